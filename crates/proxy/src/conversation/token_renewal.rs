//! Conversations that continue under a renewed credential.
//!
//! A tenant is derived from a credential, and some credentials last only for hours: access tokens
//! that a client renews in the middle of a conversation. Neither such a token nor a client's claims
//! prove to us who sends a request, but the conversation does: a sender that presents all of it
//! verbatim, including the model's answers, knows everything that is stored about it. So a
//! conversation under another access token is copied, if the request names the same session and
//! begins with all of its messages. The copy has the same bytes and may read the same refs, which
//! cannot be guessed; the original stays unchanged.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use trimtab::session::{SessionError, Setup};
use trimtab_model::{Message, Output};
use trimtab_store::{SessionId, Store, Stream};
use trimtab_wire::scan::BodyScan;

use crate::conversation::branch::{Branch, branch_name};
use crate::prefix_cache::fingerprint::FingerprintChain;

/// The maximum number of client sessions to search, the newest first.
const CLIENT_SESSIONS: usize = 4;
/// The maximum number of branches to search in each, the newest first.
const BRANCHES: usize = 16;

/// True if requests with these headers present an access token, which will be renewed.
pub(crate) fn is_renewable(headers: &HeaderMap) -> bool {
    let mut presented = headers.get_all(AUTHORIZATION).iter();
    // With two values it is not clear which one the upstream takes.
    let (Some(value), None) = (presented.next(), presented.next()) else {
        return false;
    };
    let token = value.to_str().ok().and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    // "eyJ" is how `{"` begins in base64: the header of a JSON web token.
    let is_jwt = |token: &str| token.starts_with("eyJ") && token.matches('.').count() == 2;
    token.is_some_and(|token| token.starts_with("sk-ant-oat") || is_jwt(token))
}

/// A conversation that may continue one under another credential.
pub(crate) struct IncomingConversation<'a> {
    /// The list of all client sessions with this name, whatever their credentials.
    pub(crate) place: &'a str,
    pub(crate) scan: &'a BodyScan<'a>,
    pub(crate) fingerprints: &'a FingerprintChain,
}

impl IncomingConversation<'_> {
    /// Registers a new client session in the list.
    pub(crate) fn register(
        &self,
        store: &dyn Store,
        client_session: &str,
    ) -> Result<(), SessionError> {
        let place = SessionId::new(self.place)?;
        let at = store.position(&place, Stream::Log)?;
        store.append(&place, Stream::Log, at, &[client_session.as_bytes()])?;
        Ok(())
    }

    /// The branch of another client session that the conversation continues.
    pub(crate) fn find(
        &self,
        store: &Arc<dyn Store>,
        own: &str,
        setup: &Setup,
    ) -> Result<Option<Branch>, SessionError> {
        let place = SessionId::new(self.place)?;
        let end = store.position(&place, Stream::Log)?;
        let from = end.saturating_sub(CLIENT_SESSIONS as u64);
        let listed = store.read(&place, Stream::Log, from, CLIENT_SESSIONS)?;
        for client_session in listed.iter().rev() {
            let client_session = String::from_utf8_lossy(client_session);
            if client_session == own {
                continue;
            }
            if let Some(found) = self.find_in(store, &client_session, setup)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn find_in(
        &self,
        store: &Arc<dyn Store>,
        client_session: &str,
        setup: &Setup,
    ) -> Result<Option<Branch>, SessionError> {
        let mut ids = Vec::new();
        loop {
            let id = SessionId::new(branch_name(client_session, ids.len()))?;
            // Branches are numbered without gaps, so the first empty one is the end.
            if store.position(&id, Stream::Log)? == 0 {
                break;
            }
            ids.push(id);
        }
        for id in ids.into_iter().rev().take(BRANCHES) {
            let branch = Branch::open(store, id, setup.clone())?;
            let found = branch.filter(|branch| self.goes_on_from(branch));
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// True if the request contains every client message of `branch` verbatim.
    fn goes_on_from(&self, branch: &Branch) -> bool {
        let length = branch.fingerprints().len();
        if self.fingerprints.common_length(branch.fingerprints()) < length
            // Without an answer of the model, everything in the conversation can be guessed: many
            // begin with the same prompt.
            || !self.fingerprints.has_answer_before(length)
        {
            return false;
        }
        // Fingerprints skip the system messages once the model has answered. As proof, all messages
        // are compared in full.
        let known = branch.unaltered_messages();
        // The positions ascend, so one pass over the body is enough. Reading each message by itself
        // would parse an entry of Messages again for every message in it.
        let mut presented = self.scan.messages(0).enumerate();
        known.into_iter().all(|(at, message)| {
            let found = presented.find(|(place, _)| *place == at);
            let found = found.and_then(|(_, found)| found);
            found.is_some_and(|found| says_the_same(&found, &message))
        })
    }
}

/// True if two messages have the same content.
fn says_the_same(one: &Message, other: &Message) -> bool {
    let output = |output: &Output| (output.call_id.clone(), output.text().into_owned());
    one.role == other.role
        && one.text() == other.text()
        && one.calls().eq(other.calls())
        && one.outputs().map(output).eq(other.outputs().map(output))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn access_tokens_are_told_from_keys() {
        let presented = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            is_renewable(&HeaderMap::from_iter([(AUTHORIZATION, value)]))
        };
        assert!(presented("Bearer sk-ant-oat01-abc"));
        assert!(presented(
            "bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln"
        ));
        for key in [
            "Bearer sk-proj-1",
            "Bearer sk-ant-api03-x",
            "Basic eyJ.a.b",
            "Bearer eyJx",
        ] {
            assert!(!presented(key), "{key}");
        }
        assert!(!is_renewable(&HeaderMap::new()));
    }
}

//! The work on one request, from its body to the body that is sent. All of it is synchronous,
//! and may fail or panic without harm. It runs off the threads that serve connections, under a
//! deadline; what is quick and needs no disk runs on them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use trimtab::session::{Limits, Moment, Pending, SessionError, Setup};
use trimtab_model::{Dialect, Role};
use trimtab_wire::catalogue::Cache;
use trimtab_wire::scan::{Scan, Unscannable};

use crate::branch::{Branch, Outgoing, Trouble, Ways};
use crate::config::{Compaction, Mode};
use crate::family::Family;
use crate::hashed::Hashed;
use crate::memos::Read;
use crate::models::{Known, Whom};
use crate::prints::Trail;
use crate::renewed::{self, Came};
use crate::route::Route;
use crate::service::Shared;
use crate::settings::Settings;
use crate::unwritten::Unwritten;
use crate::{aside, headers, hints, own};

/// The largest share of a window that is kept free for an answer, as a divisor: clients ask
/// for far more than answers take.
const ANSWER_SHARE: u64 = 8;
/// An answer of so many tokens is always kept room for.
const FREE_ANSWER: u64 = 4_096;

/// As much of a body may be new, in bytes, for a decision about it to be quick.
const QUICK_NEWS: usize = 64 << 10;

/// How long deciding may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// This thread may wait for locks and disks.
    MayWait,
    /// This thread serves connections: what is not quick is left for later.
    Quick,
}

/// A request to be worked on.
pub(crate) struct Work {
    pub(crate) shared: Arc<Shared>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) dialect: Dialect,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    /// The body, unpacked.
    pub(crate) body: Bytes,
    /// The hash of the body, where it was taken while it came.
    pub(crate) hashed: Option<Hashed>,
}

/// What is to be done with a request.
pub(crate) enum Decided {
    /// It passes as it came.
    Pass {
        /// Why.
        reason: &'static str,
        /// More about why, where something failed.
        detail: String,
        /// The model that it asks for.
        model: Option<String>,
    },
    /// It is managed.
    Manage(Box<Managed>),
    /// It takes longer than this thread can wait.
    Later(Box<Work>),
}

/// A request whose window is managed.
pub(crate) struct Managed {
    pub(crate) work: Work,
    pub(crate) route: Arc<Route>,
    /// The part of the path that is sent.
    pub(crate) rest: String,
    pub(crate) model: String,
    pub(crate) mode: Mode,
    pub(crate) known: Known,
    pub(crate) family: Arc<Family>,
    /// Where families of the same name are listed, for credentials that are renewed.
    listed: Option<String>,
    pub(crate) branch: usize,
    pub(crate) session: String,
    /// True if the request is sent as it came unless it overflows.
    pub(crate) untouched: Option<&'static str>,
    pub(crate) ways: Ways,
    pub(crate) outgoing: Outgoing,
    pub(crate) pending: Option<Pending>,
    /// What is to be made durable.
    pub(crate) unwritten: Option<Unwritten>,
}

/// What is to be done with a body that has nothing to trim.
pub(crate) fn small(dialect: Dialect, body: &[u8]) -> Decided {
    match Scan::new(body, dialect) {
        Ok(scan) if scan.is_partial() => pass("partial", model_of(&scan)),
        Ok(scan) => pass("small", model_of(&scan)),
        Err(why) => not_understood(&why),
    }
}

fn model_of(scan: &Scan<'_>) -> Option<String> {
    scan.model().map(String::from)
}

fn not_understood(why: &Unscannable) -> Decided {
    Decided::Pass {
        reason: "not-understood",
        detail: why.to_string(),
        model: None,
    }
}

fn pass(reason: &'static str, model: Option<String>) -> Decided {
    Decided::Pass {
        reason,
        detail: String::new(),
        model,
    }
}

impl Work {
    /// True if the decision may be a quick one: little of the body is new.
    pub(crate) fn may_be_quick(&self) -> bool {
        let tenant = self.shared.keys.tenant(&self.headers);
        let of = (tenant.as_str(), self.dialect);
        self.hashed.is_some() && self.shared.memos.may_know(of, &self.body, QUICK_NEWS)
    }

    /// Decides what is to be done, and does what can be done now.
    pub(crate) fn decide(mut self, pace: Pace) -> Decided {
        let body = self.body.clone();
        if body.len() < self.settings.config.limits.session_bytes {
            return small(self.dialect, &body);
        }
        let shared = Arc::clone(&self.shared);
        let tenant = shared.keys.tenant(&self.headers);
        let of = (tenant.as_str(), self.dialect);
        let key = shared.keys.prints();
        let hashed = self.hashed.take();
        let hashed = hashed.unwrap_or_else(|| Hashed::of(key, &body));
        let read = match shared.memos.read(of, (&body, &hashed), key) {
            Ok(read) => read,
            Err(why) => return not_understood(&why),
        };
        let model = model_of(&read.scan);
        if read.scan.is_partial() {
            return pass("partial", model);
        }
        match self.manage(&read, model.unwrap_or_default(), pace) {
            Decided::Manage(managed) => {
                shared.memos.keep(read);
                Decided::Manage(managed)
            }
            Decided::Later(mut work) => {
                work.hashed = Some(hashed);
                Decided::Later(work)
            }
            passes @ Decided::Pass { .. } => passes,
        }
    }

    fn manage(self, read: &Read<'_>, model: String, pace: Pace) -> Decided {
        let scan = &read.scan;
        let settings = Arc::clone(&self.settings);
        let chosen = settings
            .routes
            .choose(&self.path, self.dialect, Some(&model));
        let Some((route, rest)) = chosen else {
            return pass("no-upstream", Some(model));
        };
        let rest = rest.to_owned();
        let mode = headers::mode(&self.headers)
            .unwrap_or_else(|| settings.routes.mode(&settings.config, &route, Some(&model)));
        if mode == Mode::Bypass {
            return pass("bypass", Some(model));
        }
        let Some((name, listed)) = self.family_name(scan, &read.trail) else {
            return pass("empty", Some(model));
        };
        if self.shared.keys.share(&name) < settings.config.holdout {
            return pass("holdout", Some(model));
        }
        let known = self.known(&route, &model);
        // Who only wants the window calls the model without us.
        let is_compress = self.path.starts_with(own::COMPRESS);
        let family = self
            .shared
            .families
            .get(&name, settings.config.limits.sessions);
        family.weighs(self.body.len());
        let managed = Managed {
            untouched: aside::reason(&self.path, &self.headers, scan),
            ways: Ways {
                offer: settings.config.retrieval && mode == Mode::On && !is_compress,
                lowered: None,
                may_overrun: known
                    .model
                    .as_ref()
                    .is_some_and(|model| model.rules.answer_may_overrun),
            },
            work: self,
            route,
            rest,
            model,
            mode,
            known,
            family,
            listed,
            branch: 0,
            session: String::new(),
            outgoing: Outgoing {
                body: None,
                tokens_before: 0,
                tokens: 0,
                answer: None,
                offered: false,
                window: 0,
            },
            pending: None,
            unwritten: None,
        };
        match pace {
            Pace::MayWait => managed.begin(read),
            Pace::Quick => managed.begin_quickly(read),
        }
    }

    /// The name under which the conversation and its kin are kept, and where that is listed for
    /// when the credential is renewed.
    fn family_name(&self, scan: &Scan<'_>, trail: &Trail) -> Option<(String, Option<String>)> {
        let keys = &self.shared.keys;
        let tenant = keys.tenant(&self.headers);
        let hint = hints::find(&self.headers, scan);
        let beginning = trail.beginning().map(u128::to_le_bytes);
        let said: &[&[u8]] = match (&hint, &beginning) {
            (Some(hint), _) => &[hint.from.as_bytes(), hint.name.as_bytes()],
            (None, Some(beginning)) => &[beginning],
            (None, None) => return None,
        };
        let name = match &hint {
            Some(hint) if hint.is_readable() => hint.name.clone(),
            _ => keys.name(&tenant, said),
        };
        let dialect = match self.dialect {
            Dialect::Chat => "chat",
            Dialect::Messages => "messages",
            Dialect::Responses => "responses",
        };
        let listed = renewed::will_be(&self.headers)
            .then(|| format!("proxy-renewed/{dialect}/{}", keys.common_name(said)));
        Some((
            format!("proxy/{}/{dialect}/{name}", tenant.as_str()),
            listed,
        ))
    }

    fn known(&self, route: &Route, model: &str) -> Known {
        let rule = self.settings.routes.rule(model);
        self.shared.models.known(&route.upstream.name, model, rule)
    }

    /// The policy that the request itself asks for.
    fn asked_policy(&self) -> Option<&str> {
        headers::text(&self.headers, &headers::PRESET)
            .filter(|name| self.settings.policy(name).is_some())
    }

    /// The policy for the request: by its header, its model, its upstream, the settings.
    fn policy_name<'a>(&'a self, route: &'a Route, model: &str) -> &'a str {
        let by_model = || self.settings.routes.rule(model)?.preset.as_deref();
        self.asked_policy()
            .or_else(by_model)
            .or(route.upstream.preset.as_deref())
            .unwrap_or(&self.settings.config.preset)
    }
}

impl Managed {
    /// Finds its conversation, lets in what is new and makes the first body.
    fn begin(mut self, read: &Read<'_>) -> Decided {
        let (scan, trail) = (&read.scan, &read.trail);
        let family = Arc::clone(&self.family);
        let mut branches = family.branches();
        let setup = self.setup(scan);
        let store = Arc::clone(&self.work.shared.store);
        let came = self
            .listed
            .as_deref()
            .map(|place| Came { place, scan, trail });
        let found = family.branch(&mut branches, &store, trail, &setup, came.as_ref());
        let found = found.map_err(Trouble::from).and_then(|number| {
            let branch = branches.get(number);
            let branch =
                branch.ok_or_else(|| Trouble::Mismatch("the branch is gone".to_owned()))?;
            self.branch = number;
            self.first(branch, read, &setup)
        });
        match found {
            Ok(()) => Decided::Manage(Box::new(self)),
            Err(trouble) => {
                if let Trouble::Session(_) = trouble {
                    branches.forget(self.branch);
                }
                Decided::Pass {
                    reason: "failed",
                    detail: trouble.to_string(),
                    model: Some(self.model),
                }
            }
        }
    }

    /// The same where nothing has to be waited for: the conversation is in memory, nobody else
    /// is at work on it, and its window is not too large to think about.
    fn begin_quickly(mut self, read: &Read<'_>) -> Decided {
        let waits = self.work.settings.config.compaction == Compaction::Wait;
        let family = Arc::clone(&self.family);
        let setup = self.setup(&read.scan);
        let begun = family.free_branches().is_some_and(|mut branches| {
            let Some(number) = branches.find(&read.trail).filter(|_| !waits) else {
                return false;
            };
            self.branch = number;
            let branch = branches.get(number).filter(|branch| branch.is_quick());
            branch.is_some_and(|branch| {
                branch.staged().hurry(true);
                let begun = self.first(branch, read, &setup);
                branch.staged().hurry(false);
                begun.is_ok()
            })
        });
        if begun {
            Decided::Manage(Box::new(self))
        } else {
            Decided::Later(Box::new(self.work))
        }
    }

    fn first(
        &mut self,
        branch: &mut Branch,
        read: &Read<'_>,
        setup: &Setup,
    ) -> Result<(), Trouble> {
        let scan = &read.scan;
        branch.follow(&setup.policy, self.work.asked_policy().is_some())?;
        branch.session().set_limits(setup.limits);
        branch.wakes();
        let tools = scan.json(scan.request().tools);
        branch.set_tools(tools, self.work.shared.keys.prints());
        branch.id().as_str().clone_into(&mut self.session);
        branch.admit(scan, &read.trail)?;
        if self.untouched.is_none() {
            branch.count_ours(scan, &self.ways)?;
            let after_outputs = scan.role(scan.len().saturating_sub(1)) == Some(Role::Tool);
            let moments = [Moment::AfterOutputs, Moment::BeforeCall];
            let moments = moments
                .get(usize::from(!after_outputs)..)
                .unwrap_or_default();
            self.pending = branch.check(moments)?;
        }
        let waits = self.work.settings.config.compaction == Compaction::Wait;
        if waits && self.mode == Mode::On && self.pending.is_some() {
            return Ok(branch.flush()?);
        }
        let decided = branch.decisions();
        self.outgoing = branch.compose(scan, &self.ways, Some(read.prints()))?;
        if branch.decisions() != decided {
            // The window had to be made smaller at once: the summary would come too late.
            self.pending = None;
        }
        // Messages that are sent as they came rest on nothing. Whatever else is sent rests on
        // a decision, and often shows a ref.
        let staged = Arc::clone(branch.staged());
        let as_it_came = self.mode != Mode::On || self.untouched.is_some();
        self.unwritten = Some(if as_it_came || branch.rests_on_nothing() {
            Unwritten::Behind(branch.due().later(&staged))
        } else {
            Unwritten::Before(staged)
        });
        Ok(())
    }

    /// Works on the conversation again: after an overflow, after a hidden round, at the end.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut Branch, &Scan<'_>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let scan = Scan::new(&self.work.body, self.work.dialect)
            .map_err(|why| Trouble::Mismatch(why.to_string()))?;
        self.on_branch(|branch| work(branch, &scan))
    }

    /// The same, for what does not need the body. What it writes is durable when it returns.
    pub(crate) fn on_branch<T>(
        &self,
        work: impl FnOnce(&mut Branch) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let mut branches = self.family.branches();
        let gone = || Trouble::Mismatch("the branch is gone".to_owned());
        let branch = branches.get(self.branch).ok_or_else(gone)?;
        let done = work(branch);
        let staged = Arc::clone(branch.staged());
        // The next request does not wait for the disk.
        drop(branches);
        let done = done.and_then(|done| {
            staged.flush().map_err(SessionError::from)?;
            Ok(done)
        });
        if let Err(Trouble::Session(_)) = done {
            self.forget();
        }
        done
    }

    /// Forgets the conversation after a failure: it is read from the store when it comes back.
    pub(crate) fn forget(&self) {
        self.family.branches().forget(self.branch);
    }

    /// Whom it asks.
    pub(crate) fn whom(&self) -> Whom<'_> {
        (&self.route.upstream.name, &self.model)
    }

    /// What a session of this conversation is opened with.
    fn setup(&self, scan: &Scan<'_>) -> Setup {
        let name = self.work.policy_name(&self.route, &self.model);
        let policy = self.work.settings.policy(name).cloned().unwrap_or_default();
        let window = self.known.window;
        let rule = self.work.settings.routes.rule(&self.model);
        let longest = rule.and_then(|rule| rule.max_output);
        let model = self.known.model.as_ref();
        Setup {
            dialect: self.work.dialect,
            limits: Limits {
                window,
                max_output: reserve(window, scan.answer_limit(), longest),
                bytes: None,
            },
            prices: model.and_then(|model| model.prices),
            tiers: model.map_or_else(Vec::new, |model| model.tiers.clone()),
            cache_lifetime: model.and_then(|model| lifetime(&model.cache, scan)),
            calibration: self.work.shared.models.calibration(self.whom()),
            ..Setup::new(policy)
        }
    }
}

/// How long the provider keeps the prompt: longer, where the client asks and pays for it.
fn lifetime(cache: &Cache, scan: &Scan<'_>) -> Option<Duration> {
    let markers = scan.request().markers.iter();
    let asks = |json: &str| json.contains("\"1h\"");
    let long = markers
        .into_iter()
        .any(|marker| asks(scan.json(marker.value)));
    let long = cache.long_lifetime.filter(|_| long);
    long.or(cache.lifetime)
}

/// What is kept free for the answer: what the client asks for, within reason, or within what
/// the settings say is the longest.
fn reserve(window: Option<u64>, asked: Option<u64>, longest: Option<u64>) -> Option<u64> {
    let share = window.map_or(u64::MAX, |window| (window / ANSWER_SHARE).max(FREE_ANSWER));
    match (asked, longest) {
        (asked, Some(longest)) => Some(asked.map_or(longest, |asked| asked.min(longest))),
        (Some(asked), None) => Some(asked.min(share)),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_what_answers_take() {
        let window = Some(200_000);
        assert_eq!(reserve(window, Some(1_000), None), Some(1_000));
        assert_eq!(reserve(window, Some(128_000), None), Some(25_000));
        assert_eq!(reserve(None, Some(128_000), None), Some(128_000));
        assert_eq!(reserve(window, None, None), None);
        // The settings know better than both.
        assert_eq!(reserve(window, Some(128_000), Some(60_000)), Some(60_000));
        assert_eq!(reserve(window, Some(1_000), Some(60_000)), Some(1_000));
        assert_eq!(reserve(window, None, Some(60_000)), Some(60_000));
    }
}

//! The way of a request: refused, answered by us, passed on, or managed.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use tokio::sync::Semaphore;
use trimtab_model::Dialect;
use trimtab_store::Store;
use trimtab_wire::catalogue::Catalogue;
use trimtab_wire::scan::detect;

use crate::access::{
    self, AccessCheck, AccessState, InboundConnection, Keys, RequestCaller, StoreUse, Tenant,
    UnknownTenant,
};
use crate::asked::Asked;
use crate::body::{self, Body, Collected, collect_seen, rejoined};
use crate::client::Client;
use crate::config::Mode;
use crate::counted::counted;
use crate::family::Families;
use crate::hashed::Hashed;
use crate::manage::manage;
use crate::memos::Memos;
use crate::models::Models;
use crate::record::{Book, Note, Report};
use crate::route::dialect_of_client;
use crate::settings::Current;
use crate::spare::Spare;
use crate::{aside, headers, learned, own, tunnel};

/// How many bytes the conversations in memory may take, about; the store has all of them.
const SESSION_MEMORY: usize = 512 << 20;
/// How many bytes may be remembered of bodies, about.
const MEMO_MEMORY: usize = 64 << 20;

/// What all requests share.
pub(crate) struct Shared {
    /// The settings that hold now.
    pub(crate) settings: Current,
    /// Where everything is kept.
    pub(crate) store: Arc<dyn Store>,
    /// Connections to upstreams.
    pub(crate) client: Client,
    /// Permits to plan.
    pub(crate) plans: Arc<Semaphore>,
    /// What tells tenants apart.
    pub(crate) keys: Keys,
    /// What is remembered of who asks.
    access: AccessState,
    /// How much tenants have in the store.
    pub(crate) store_use: StoreUse,
    /// The conversations in memory.
    pub(crate) families: Families,
    /// What is remembered of the bodies of conversations.
    pub(crate) memos: Memos,
    /// What is known of models.
    pub(crate) models: Models,
    /// Buffers for bodies.
    spare: Spare,
    book: Arc<Book>,
}

impl Shared {
    pub(crate) fn new(
        settings: Current,
        store: Arc<dyn Store>,
        client: Client,
        catalogue: Catalogue,
        book: Arc<Book>,
    ) -> Self {
        // A store that fails costs us sessions over a restart, never traffic.
        let keys = Keys::load(store.as_ref()).unwrap_or_else(|_| Keys::make());
        let learned = learned::read(store.as_ref()).unwrap_or_default();
        let plans = settings.get().config.limits.plans;
        Self {
            settings,
            store,
            client,
            plans: Arc::new(Semaphore::new(plans)),
            keys,
            access: AccessState::default(),
            store_use: StoreUse::default(),
            families: Families::new(SESSION_MEMORY),
            memos: Memos::new(MEMO_MEMORY),
            models: Models::new(catalogue, learned),
            spare: Spare::default(),
            book,
        }
    }

    /// A record of a request of our own, written when it is dropped.
    pub(crate) fn note(&self, method: &Method, path: &str) -> Note {
        Note::new(&self.book, method.as_str(), path)
    }

    /// Figures of all requests so far.
    pub(crate) fn report(&self) -> Report {
        Report {
            sessions: self.families.len() as u64,
            ..self.book.report()
        }
    }
}

/// Answers a request, whose connection is among its extensions.
pub(crate) async fn handle(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (mut parts, incoming) = request.into_parts();
    let websocket = tunnel::asked_for(&mut parts);
    let settings = shared.settings.get();
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let path = path.to_owned();
    let mut note = Note::new(&shared.book, parts.method.as_str(), &path);
    let connection = parts.extensions.remove::<Arc<InboundConnection>>();
    let connection = connection.unwrap_or_default();
    access::note_sender(&mut note.record, &connection, &parts);
    let check = AccessCheck {
        state: &shared.access,
        settings: &settings,
        keys: &shared.keys,
        connection: &connection,
    };
    let admitted = check.admit(&mut parts, incoming.size_hint().exact()).await;
    let (tenant, refusal) = match admitted {
        Ok(caller) => (note_caller(&mut note, caller), None),
        Err(refusal) => (Err(UnknownTenant::default()), Some(refusal)),
    };
    let body = counted(body::passing(incoming), Arc::clone(&note.body_bytes));
    let is_own = own::endpoint(parts.uri.path()).is_some();
    let asked = Asked {
        shared,
        settings,
        method: parts.method,
        path,
        headers: parts.headers,
        tenant,
        note,
        usage: None,
    };
    Ok(match refusal {
        Some(refusal) => {
            let by_path = detect(b"", &asked.path);
            let dialect = by_path.unwrap_or_else(|| dialect_of_client(&asked.headers));
            asked.deny(&refusal, dialect)
        }
        None if is_own => own::answer(asked, body).await,
        None if !asked.path.starts_with('/') => {
            asked.refuse(StatusCode::BAD_REQUEST, "the request names no path")
        }
        None => match websocket {
            Some(client) => tunnel::answer(asked, client).await,
            None => Box::pin(forward(asked, body)).await,
        },
    })
}

/// Writes down who sent a request, and gives whose it is.
fn note_caller(note: &mut Note, caller: RequestCaller) -> Result<Tenant, UnknownTenant> {
    note.counted = caller.counted;
    if let Some(token) = &caller.token {
        token.name.as_ref().clone_into(&mut note.record.token);
    }
    if let Ok(tenant) = &caller.tenant {
        tenant.as_str().clone_into(&mut note.record.tenant);
    }
    caller.tenant
}

/// Sends a request on, managed or as it came.
async fn forward(mut asked: Asked, body: Body) -> Response<Body> {
    let by_path = detect(b"", &asked.path).filter(|_| asked.method == Method::POST);
    let dialect = by_path.unwrap_or_else(|| dialect_of_client(&asked.headers));
    let bypass = headers::mode(&asked.headers) == Some(Mode::Bypass);
    let reason = match by_path {
        None => "endpoint",
        Some(_) if aside::is_count(&asked.path) => "count",
        Some(_) if bypass => "bypass",
        Some(_) => return look_into(asked, dialect, body).await,
    };
    asked.note.because(reason);
    pass(asked, dialect, None, body).await
}

/// Reads the body of a request that may be managed.
async fn look_into(mut asked: Asked, dialect: Dialect, body: Body) -> Response<Body> {
    let limit = asked.settings.config.limits.body_bytes;
    // It is hashed while it comes.
    let mut hashed = Hashed::new(asked.shared.keys.prints());
    let seen = |piece: &[u8]| hashed.add(piece);
    match collect_seen(body, limit, &asked.shared.spare, seen).await {
        Collected::Whole(bytes) => manage(asked, dialect, (bytes, hashed)).await,
        Collected::Longer(read, rest) => {
            asked.note.because("body-too-long");
            pass(asked, dialect, None, rejoined(read, rest)).await
        }
    }
}

/// Sends a request on as it came.
pub(crate) async fn pass(
    asked: Asked,
    dialect: Dialect,
    model: Option<&str>,
    body: Body,
) -> Response<Body> {
    let settings = Arc::clone(&asked.settings);
    let path = asked.path.clone();
    match settings.routes.choose(&path, dialect, model) {
        Some((route, rest)) => asked.pass(&route, rest, body).await,
        None => asked.refuse(StatusCode::NOT_FOUND, "no upstream is set for this path"),
    }
}

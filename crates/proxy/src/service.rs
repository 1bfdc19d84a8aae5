//! The way of a request: refused, answered by us, passed on, or managed.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use tokio::sync::Semaphore;
use trimtab_model::Dialect;
use trimtab_wire::catalogue::Catalogue;
use trimtab_wire::scan::detect;

use crate::access::{
    self, AccessCheck, AccessState, InboundConnection, RequestCaller, StoreUse, Tenant,
    UnknownTenant,
};
use crate::asked::Asked;
use crate::body::{Body, Received, receive, rejoined};
use crate::chains::Chains;
use crate::client::Client;
use crate::client_body::ClientBody;
use crate::config::Mode;
use crate::connections::{Connection, Connections};
use crate::counted::counted;
use crate::hashed::Hashed;
use crate::manage::{self, manage};
use crate::memory_budget::MemoryBudget;
use crate::models::Models;
use crate::notices::Notices;
use crate::record::{Book, Note, Report};
use crate::settings::Current;
use crate::spoken::Spoken;
use crate::store_state::{OpenedStore, StoreState};
use crate::{aside, deadline, headers, learned, own, tunnel};

/// Bytes that caches give back beyond what is needed when memory runs short.
const SPARE_ROOM: usize = 4 << 20;
/// Bytes that a request takes in buffers of its connections while it is under way, about.
const STREAM_BUFFERS: usize = 64 << 10;
/// How many bodies are unpacked at the same time: it takes nothing but a processor.
const UNPACKED_AT_A_TIME: usize = 4;

/// What all requests share.
pub(crate) struct Shared {
    /// The settings that hold now.
    pub(crate) settings: Current,
    /// Where everything is kept, if that can be used now.
    pub(crate) store_state: Arc<StoreState>,
    /// Connections to upstreams.
    pub(crate) client: Client,
    /// Permits to plan, or to wait for it.
    pub(crate) plans: Arc<Semaphore>,
    /// Turns of those that plan.
    pub(crate) turns: Arc<Semaphore>,
    /// What is remembered of who asks.
    access: AccessState,
    /// How much tenants have in the store.
    pub(crate) store_use: StoreUse,
    /// What is known of models.
    pub(crate) models: Models,
    /// The connections of clients.
    pub(crate) connections: Arc<Connections>,
    /// What requests and caches may take of the memory.
    pub(crate) memory: MemoryBudget,
    /// Conversations that providers keep.
    pub(crate) chains: Chains,
    /// Permits to unpack a body.
    pub(crate) unpacking: Semaphore,
    book: Arc<Book>,
}

impl Shared {
    pub(crate) fn new(
        settings: Current,
        store_state: StoreState,
        client: Client,
        catalogue: Catalogue,
        book: Arc<Book>,
        notices: Notices,
    ) -> Self {
        let opened = store_state.readable();
        let learned = opened.and_then(|opened| learned::read(opened.store.as_ref()).ok());
        let plans = settings.get().config.limits.plans;
        let memory = store_state.memory().clone();
        let store_state = Arc::new(store_state);
        caches_give_way(&memory, &store_state);
        Self {
            settings,
            store_state,
            client,
            plans: Arc::new(Semaphore::new(plans)),
            turns: deadline::turns(),
            access: AccessState::default(),
            store_use: StoreUse::default(),
            models: Models::new(catalogue, learned.unwrap_or_default()),
            connections: Arc::default(),
            chains: Chains::new(memory.clone(), notices),
            memory,
            unpacking: Semaphore::new(UNPACKED_AT_A_TIME),
            book,
        }
    }

    /// A record of a request of our own, written when it is dropped.
    pub(crate) fn note(&self, method: &Method, path: &str) -> Note {
        Note::new(&self.book, method.as_str(), path)
    }

    /// Figures of all requests so far.
    pub(crate) fn report(&self) -> Report {
        let opened = self.store_state.usable();
        Report {
            sessions: opened.map_or(0, |opened| opened.families.len() as u64),
            connections: self.connections.len() as u64,
            memory_bytes: self.memory.used() as u64,
            store: self.store_state.problem(),
            ..self.book.report()
        }
    }
}

/// Lets the caches give way when memory runs short: what is remembered of bodies first, as it
/// is the easiest to have again.
fn caches_give_way(memory: &MemoryBudget, store_state: &Arc<StoreState>) {
    let store_state = Arc::downgrade(store_state);
    memory.when_short(move |missing| {
        let opened = store_state.upgrade().and_then(|state| state.readable());
        if let Some(opened) = opened {
            let freed = opened.memos.forget_all();
            // A little more than is needed, so that this is not done for every request.
            opened
                .families
                .make_room((missing + SPARE_ROOM).saturating_sub(freed));
        }
    });
}

/// Answers a request, whose connection is among its extensions.
pub(crate) async fn handle(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (mut parts, incoming) = request.into_parts();
    let connection = parts.extensions.remove::<Arc<Connection>>();
    let open = connection.as_ref().map(|connection| {
        let buffers = shared.memory.always_reserve(None, STREAM_BUFFERS);
        (connection.begin_request(parts.version), buffers)
    });
    let websocket = tunnel::asked_for(&mut parts);
    let settings = shared.settings.get();
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let path = path.to_owned();
    let mut note = Note::new(&shared.book, parts.method.as_str(), &path);
    let inbound = parts.extensions.remove::<Arc<InboundConnection>>();
    let inbound = inbound.unwrap_or_default();
    access::note_sender(&mut note.record, &inbound, &parts);
    let opened = shared.store_state.readable();
    let check = AccessCheck {
        state: &shared.access,
        settings: &settings,
        keys: opened.as_ref().map(|opened| &opened.keys),
        connection: &inbound,
    };
    let admitted = check.admit(&mut parts, incoming.size_hint().exact()).await;
    let (tenant, refusal) = match admitted {
        Ok(caller) => (note_caller(&mut note, caller), None),
        Err(refusal) => (Err(UnknownTenant::default()), Some(refusal)),
    };
    let wait = settings.config.limits.body_idle_time();
    let (body, body_fault) = ClientBody::watched(incoming, wait, connection.clone());
    let body = counted(body, Arc::clone(&note.body_bytes));
    let is_own = own::endpoint(parts.uri.path()).is_some();
    let asked = Asked {
        shared,
        settings,
        method: parts.method,
        path,
        headers: parts.headers,
        tenant,
        note,
        body_fault,
        open,
        planning: None,
        usage: None,
        tap: None,
    };
    Ok(match refusal {
        Some(refusal) => {
            let by_path = detect(b"", &asked.path);
            let by_client = || Spoken::by_client(&asked.headers).first();
            let dialect = by_path.unwrap_or_else(by_client);
            asked.deny(&refusal, dialect)
        }
        None if is_own => own::answer(asked, body).await,
        None if !asked.path.starts_with('/') => {
            asked.refuse(StatusCode::BAD_REQUEST, "the request names no path")
        }
        None => match websocket {
            Some(client) => tunnel::answer(asked, (client, connection)).await,
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
    let by_client = || Spoken::by_client(&asked.headers);
    let spoken = by_path.map_or_else(by_client, Spoken::from);
    let bypass = headers::mode(&asked.headers) == Some(Mode::Bypass);
    let reason = match by_path {
        None => "endpoint",
        Some(_) if aside::is_count(&asked.path) => "count",
        Some(_) if bypass => "bypass",
        Some(dialect) => match asked.shared.store_state.usable() {
            Some(opened) => return Box::pin(look_into(asked, opened, dialect, body)).await,
            None => "store",
        },
    };
    asked.note.because(reason);
    pass(asked, spoken, None, body).await
}

/// Reads the body of a request that may be managed.
async fn look_into(
    mut asked: Asked,
    opened: Arc<OpenedStore>,
    dialect: Dialect,
    body: Body,
) -> Response<Body> {
    let limit = asked.settings.config.limits.body_bytes;
    // It is hashed while it comes.
    let mut hashed = Hashed::new(opened.keys.prints());
    let seen = |piece: &[u8]| hashed.add(piece);
    let memory = (Some(asked.reservation()), manage::BYTES_PER_BYTE);
    let (reason, read, rest) = match receive(body, limit, memory, seen).await {
        Received::Whole(bytes, memory) => {
            asked.planning = memory;
            return Box::pin(manage(asked, opened, dialect, (bytes, hashed))).await;
        }
        Received::Broken(..) => return asked.broken_body(),
        Received::TooLong(read, rest) => ("body-too-long", read, rest),
        Received::NoMemory(read, rest) => ("memory", read, rest),
    };
    asked.note.because(reason);
    pass(asked, dialect, None, rejoined(read, rest)).await
}

/// Sends a request on as it came.
pub(crate) async fn pass(
    asked: Asked,
    spoken: impl Into<Spoken>,
    model: Option<&str>,
    body: Body,
) -> Response<Body> {
    let (settings, spoken) = (Arc::clone(&asked.settings), spoken.into());
    let path = asked.path.clone();
    match settings.routes.choose(&path, spoken, model, &asked.headers) {
        Ok((route, rest)) => asked.pass(&route, rest, body).await,
        Err(why) => asked.misdirected(why, spoken),
    }
}

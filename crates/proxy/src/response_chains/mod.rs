//! Conversations in the Responses dialect whose earlier items the provider keeps.
//!
//! A client that names `previous_response_id`, or refers to items by their ids, sends only new
//! items. Items that passed through the proxy are remembered under the ids that the client knows,
//! in memory only, so that such a request can be completed to the whole conversation. If something
//! is missing, the request passes unchanged.

mod history;
pub(crate) mod stored_link;
mod tap;

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use trimtab_model::Dialect;
use trimtab_wire::scan::{BodyScan, Span};

use crate::resources::memory_budget::{MemoryBudget, Reservation};
use crate::resources::notices::Notices;
use history::ChainHistory;

pub(crate) use tap::AnswerTap;

/// The maximum bytes of remembered items for all tenants together: a small part of the memory
/// budget, and enough for several conversations of a million tokens.
const MOST_BYTES: usize = 32 << 20;
/// The maximum number of remembered responses.
const MOST_LINKS: usize = 1 << 16;
/// The maximum number of remembered reports, so that each conversation is reported once.
const MOST_TOLD: usize = 4096;
/// The notice about a conversation whose beginning was not seen.
const UNSEEN: &str = "a client leaves its conversation to the provider, and its beginning was not \
    seen here: it is sent unchanged and is not kept within the window; hint: let the conversation \
    begin through this proxy, or send the whole input (store = false)";

/// The notices about requests that refer to data that only the provider has.
const CONVERSATION: &str = "a client names a conversation that the provider keeps (conversation): \
    its requests are sent unchanged and are not kept within the window; hint: send the whole input, \
    or name previous_response_id of an answer that passed here";
const STORED_PROMPT: &str = "a client uses a prompt that the provider stores (prompt): such \
    requests are sent unchanged and are not kept within the window; hint: send the text of the \
    prompt as instructions and input";

/// A tenant and an id of the provider's.
type ChainKey = (String, String);

/// The remembered conversations that providers keep.
pub(crate) struct ResponseChains {
    table: Mutex<ChainTable>,
    /// Bytes of all items that are remembered.
    bytes: Arc<AtomicUsize>,
    memory: MemoryBudget,
    notices: Notices,
}

#[derive(Default)]
struct ChainTable {
    /// The conversation that ends with a response, by the response's id.
    links: HashMap<ChainKey, ChainLink>,
    /// The positions of items, by their ids.
    items: HashMap<ChainKey, (Arc<ChainHistory>, Range<usize>)>,
    /// The ids of responses, oldest first.
    order: VecDeque<ChainKey>,
    /// Hashes of the conversations that were reported to the operator. Clients choose the names,
    /// which can be as long as a body.
    reported: HashSet<u64>,
    hasher: RandomState,
}

struct ChainLink {
    prior_items: PriorItems,
    /// The items of its answer that have ids.
    item_ids: Vec<String>,
}

/// The items before a request.
#[derive(Clone)]
pub(crate) enum PriorItems {
    /// All of them are known; none at the start of a conversation.
    Known(Option<Arc<ChainHistory>>),
    /// Some of them were not seen.
    Unknown,
}

/// A Responses request, completed with the remembered items of its conversation.
#[derive(Default)]
pub(crate) struct ChainedRequest {
    /// The body with the whole conversation, if the client sent only a part and the rest is known.
    pub(crate) full_body: Option<Bytes>,
    /// What to remember with its answer, if the provider keeps the answer.
    pub(crate) next: Option<NextLink>,
}

/// What to remember with an answer.
pub(crate) struct NextLink {
    tenant: String,
    prior_items: PriorItems,
    /// The items of the request, joined by commas.
    items: String,
    /// The memory of the items.
    _memory: Reservation,
}

/// The relevant fields of an item.
#[derive(Deserialize)]
struct ItemOutline<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
}

impl ResponseChains {
    pub(crate) fn new(memory: MemoryBudget, notices: Notices) -> Self {
        Self {
            table: Mutex::default(),
            bytes: Arc::default(),
            memory,
            notices,
        }
    }

    /// Reads a request of a tenant. `memory` is an empty reservation for what it builds.
    pub(crate) fn read(
        &self,
        tenant: &str,
        body: &[u8],
        mut memory: Reservation,
    ) -> ChainedRequest {
        let Ok(scan) = BodyScan::new(body, Dialect::Responses) else {
            return ChainedRequest::default();
        };
        // The provider keeps an answer unless the request says otherwise.
        let is_kept = scan.json(scan.request().session.store) != "false";
        if !is_kept && !scan.is_partial() {
            return ChainedRequest::default();
        }
        let (past, items) = self.past_and_items(tenant, &scan, &mut memory);
        let whole = match &past {
            // A request that is complete by itself starts a new chain and needs no completion.
            PriorItems::Known(history) if scan.is_partial() => {
                let empty = memory.split_off(memory.bytes());
                whole_body(&scan, history.as_ref(), &items, empty)
            }
            _ => None,
        };
        let next = NextLink {
            tenant: tenant.to_owned(),
            prior_items: past,
            items,
            _memory: memory,
        };
        ChainedRequest {
            full_body: whole,
            next: is_kept.then_some(next),
        }
    }

    /// The items before the request, and its own items with references resolved, for which it
    /// reserves memory.
    fn past_and_items(
        &self,
        tenant: &str,
        scan: &BodyScan<'_>,
        memory: &mut Reservation,
    ) -> (PriorItems, String) {
        let session = &scan.request().session;
        let named = |span| {
            scan.string(span)
                .map(|id| (tenant.to_owned(), id.into_owned()))
        };
        let provider_has = [
            (session.conversation, CONVERSATION),
            (session.stored_prompt, STORED_PROMPT),
        ];
        let provider_has = provider_has.map(|(span, notice)| (scan.json(span), notice));
        // A conversation object or a stored prompt holds items that no client ever sends, so they
        // cannot be known here.
        let named_there = provider_has
            .into_iter()
            .find(|(json, _)| !matches!(*json, "" | "null"));
        let mut kept = self.lock_table();
        let mut past = match (named_there, named(session.previous_response_id)) {
            (Some((json, notice)), _) => {
                let name = (tenant.to_owned(), json.to_owned());
                self.notify_once(&mut kept, &name, notice);
                PriorItems::Unknown
            }
            (None, None) => PriorItems::Known(None),
            (None, Some(name)) => {
                let past = kept.links.get(&name).map(|link| link.prior_items.clone());
                past.unwrap_or_else(|| {
                    self.notify_once(&mut kept, &name, UNSEEN);
                    PriorItems::Unknown
                })
            }
        };
        // An unknown reference makes the request as incomplete as an unknown beginning.
        let items = resolved(tenant, scan, &kept, memory).unwrap_or_else(|| {
            past = PriorItems::Unknown;
            String::new()
        });
        (past, items)
    }

    /// Remembers an answer, which is a response in JSON.
    pub(crate) fn remember(&self, next: NextLink, response: &str) {
        #[derive(Deserialize)]
        struct ResponseOutline<'a> {
            id: String,
            #[serde(borrow, default)]
            output: Vec<&'a RawValue>,
            #[serde(default)]
            status: Option<String>,
        }
        let Ok(response) = serde_json::from_str::<ResponseOutline<'_>>(response) else {
            return;
        };
        let tenant = next.tenant;
        let mut kept = self.lock_table();
        let mut item_ids = Vec::new();
        // An answer in the background is fetched later, and its items are not seen here.
        let is_unfinished = matches!(response.status.as_deref(), Some("queued" | "in_progress"));
        let past = match next.prior_items {
            PriorItems::Known(_) if is_unfinished => PriorItems::Unknown,
            // The link is kept even so: later requests of the conversation are known to be
            // incomplete, and the operator is not told again for each of them.
            PriorItems::Unknown => PriorItems::Unknown,
            PriorItems::Known(before) => {
                let (items, places) = with_output(next.items, &response.output);
                // Without memory the answer is not remembered. The next request of this
                // conversation then passes unchanged, as one whose beginning was not seen.
                let Some(memory) = self.memory.try_reserve(None, items.len()) else {
                    return;
                };
                let history = Arc::new(ChainHistory::new(before, items, &self.bytes, memory));
                for (id, place) in places {
                    let place = (Arc::clone(&history), place);
                    kept.items.insert((tenant.clone(), id.clone()), place);
                    item_ids.push(id);
                }
                PriorItems::Known(Some(history))
            }
        };
        let name = (tenant, response.id);
        kept.order.push_back(name.clone());
        kept.links.insert(
            name,
            ChainLink {
                prior_items: past,
                item_ids,
            },
        );
        self.make_room(&mut kept);
    }

    /// Forgets the oldest responses while the limits are exceeded.
    fn make_room(&self, kept: &mut ChainTable) {
        let is_too_much = |kept: &ChainTable| {
            kept.order.len() > MOST_LINKS || self.bytes.load(Ordering::Relaxed) > MOST_BYTES
        };
        // Bytes are freed only when the last link of a conversation goes, because histories share
        // their beginnings. So this may remove several links.
        while is_too_much(kept) {
            let Some(oldest) = kept.order.pop_front() else {
                return;
            };
            let Some(link) = kept.links.remove(&oldest) else {
                continue;
            };
            for id in link.item_ids {
                kept.items.remove(&(oldest.0.clone(), id));
            }
        }
    }

    /// Sends a notice once per name.
    fn notify_once(&self, kept: &mut ChainTable, name: &ChainKey, notice: &str) {
        // Forgetting only means that a conversation may be reported twice.
        if kept.reported.len() >= MOST_TOLD {
            kept.reported.clear();
        }
        let name = kept.hasher.hash_one(name);
        if kept.reported.insert(name) {
            self.notices.warning(notice);
        }
    }

    fn lock_table(&self) -> MutexGuard<'_, ChainTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The items of a request with references resolved, joined by commas; none if a reference is
/// unknown, or there is no memory.
fn resolved(
    tenant: &str,
    scan: &BodyScan<'_>,
    kept: &ChainTable,
    memory: &mut Reservation,
) -> Option<String> {
    let list = scan.json(scan.request().list);
    // `input` may be a plain string, which stands for one user message.
    if list.starts_with('"') {
        let item = ["{\"role\":\"user\",\"content\":", list, "}"];
        return memory.grow(byte_sum(&item)).then(|| item.concat());
    }
    let items: Vec<&RawValue> = serde_json::from_str(list).ok()?;
    let mut items: Vec<&str> = items.into_iter().map(RawValue::get).collect();
    for item in &mut items {
        if let Some(id) = reference(item) {
            let (history, place) = kept.items.get(&(tenant.to_owned(), id))?;
            *item = history.item(place.clone())?;
        }
    }
    // Many short references to one long item make a body that is far longer than the request.
    memory
        .grow(byte_sum(&items) + items.len())
        .then(|| items.join(","))
}

fn byte_sum(texts: &[&str]) -> usize {
    texts.iter().map(|text| text.len()).sum()
}

/// The items of a request followed by those of its answer, and the positions of the latter by id.
fn with_output(mut items: String, output: &[&RawValue]) -> (String, Vec<(String, Range<usize>)>) {
    let mut places = Vec::new();
    for item in output {
        if !items.is_empty() {
            items.push(',');
        }
        let start = items.len();
        items.push_str(item.get());
        places.extend(item_id(item.get()).map(|id| (id, start..items.len())));
    }
    (items, places)
}

/// The id that an item refers to, if it is a reference.
fn reference(item: &str) -> Option<String> {
    let outline: ItemOutline<'_> = serde_json::from_str(item).ok()?;
    (outline.kind?.get() == r#""item_reference""#)
        .then(|| serde_json::from_str(outline.id?.get()).ok())
        .flatten()
}

fn item_id(item: &str) -> Option<String> {
    let outline: ItemOutline<'_> = serde_json::from_str(item).ok()?;
    serde_json::from_str(outline.id?.get()).ok()
}

/// `text` with the spans replaced, which are in the order of the text.
fn replaced(text: &str, changes: &[(Span, &str)]) -> Option<String> {
    let added: usize = changes.iter().map(|(_, new)| new.len()).sum();
    let mut whole = String::with_capacity(text.len() + added);
    let mut done = 0;
    for (span, new) in changes {
        whole.push_str(text.get(done..span.range().start)?);
        whole.push_str(new);
        done = span.range().end;
    }
    whole.push_str(text.get(done..)?);
    Some(whole)
}

/// The request with the whole conversation; none if it would still be incomplete, or there is no
/// memory. It holds the reservation, which is empty at first.
fn whole_body(
    scan: &BodyScan<'_>,
    history: Option<&Arc<ChainHistory>>,
    items: &str,
    mut memory: Reservation,
) -> Option<Bytes> {
    let request = scan.request();
    let mut pieces = history.map_or_else(Vec::new, |history| history.items());
    pieces.push(items);
    pieces.retain(|piece| !piece.is_empty());
    let text = std::str::from_utf8(scan.body()).ok()?;
    let input_bytes = byte_sum(&pieces) + pieces.len() + 1;
    // The input is in memory twice: joined, and in the body.
    if !memory.grow(text.len() + 2 * input_bytes) {
        return None;
    }
    let input = format!("[{}]", pieces.join(","));
    let previous = request.session.previous_response_id;
    let mut changes = vec![(request.list, input.as_str())];
    // The provider must not prepend what the body now contains. The field is set and not removed,
    // so that all other bytes stay where they are.
    if !previous.is_empty() {
        changes.push((previous, "null"));
    }
    changes.sort_unstable_by_key(|(span, _)| span.range().start);
    let whole = replaced(text, &changes)?;
    // Something else may still refer to the provider, for example an item of a kind that we do not
    // know.
    let is_whole =
        BodyScan::new(whole.as_bytes(), Dialect::Responses).is_ok_and(|scan| !scan.is_partial());
    memory.set(whole.capacity());
    is_whole.then(|| memory.attach(whole))
}

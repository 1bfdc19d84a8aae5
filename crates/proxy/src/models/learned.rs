//! What was learned about models, kept in the store so that it survives a restart.
//!
//! It is in two sessions of its own. Each time something is learned about a model, a small record
//! is appended to one of them; the newest record of each model counts. When that session is full,
//! the records that count are copied into the other one. Removing both makes the proxy forget.

use std::cmp::Reverse;

use hashlink::LruCache;
use serde::{Deserialize, Serialize};
use trimtab_model::estimate::Calibration;
use trimtab_store::{Error, Result, SessionId, Store, Stream};

/// The sessions with the records.
const PLACES: [&str; 2] = ["proxy-learned", "proxy-learned-2"];
/// The maximum number of models of all tenants.
pub(crate) const MODELS: usize = 1_024;
/// The maximum number of models of a tenant; more than anybody uses.
pub(crate) const TENANT_MODELS: usize = 64;
/// The number of records after which a session is full.
const RECORDS: u64 = 4_096;
/// How many records are read at once.
const BATCH: usize = 256;
/// The lifetime of a learned window in days, because providers raise windows.
const LASTS: u64 = 30;
/// The maximum number of attempts to add a record while others write.
const ATTEMPTS: usize = 4;
/// The longest name of a model that is remembered.
pub(crate) const NAME: usize = 256;

/// What a tenant has learned about a model at an upstream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LearnedModel {
    pub(crate) tenant: String,
    pub(crate) upstream: String,
    pub(crate) model: String,
    /// The day of the record, in days since 1970.
    #[serde(default)]
    pub(crate) day: u64,
    /// The window in an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<u64>,
    /// The window of a server that truncated a prompt silently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cut: Option<u64>,
    /// The smallest window that was assumed because a prompt was rejected without naming a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<u64>,
    /// True if it rejected signed reasoning behind an edit.
    #[serde(default)]
    pub(crate) bound_reasoning: bool,
    /// True if the upstream rejected the setting that drops such reasoning.
    #[serde(default)]
    pub(crate) no_block_binding: bool,
    /// Its calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) calibration: Option<Calibration>,
}

/// A tenant, an upstream and a model there.
pub(crate) type OwnedModelKey = [String; 3];

/// The learned models. The least recently used are forgotten if there are too many.
pub(crate) type LearnedModels = LruCache<OwnedModelKey, LearnedModel>;

/// The newest record of each model. Unreadable records are skipped.
pub(crate) fn read(store: &dyn Store) -> Result<LearnedModels> {
    let mut found = LearnedModels::new(MODELS);
    for (place, _) in places(store)? {
        let mut from = 0;
        loop {
            let records = store.read(&place, Stream::Log, from, BATCH)?;
            if records.is_empty() {
                break;
            }
            from += records.len() as u64;
            let records = records.iter();
            for learned in records.filter_map(|record| serde_json::from_slice(record).ok()) {
                let learned = LearnedModel::on(learned, today());
                // Later records replace earlier ones, because the log is read from its beginning.
                found.insert(learned.key(), learned);
            }
        }
    }
    Ok(found)
}

/// The sessions with the lengths of their logs. The full one comes first, because its records are
/// older.
fn places(store: &dyn Store) -> Result<[(SessionId, u64); 2]> {
    let place = |name| {
        let place = SessionId::new(name)?;
        let length = store.position(&place, Stream::Log)?;
        Ok::<_, Error>((place, length))
    };
    let [first, second] = PLACES.map(place);
    let mut places = [first?, second?];
    places.sort_by_key(|(_, length)| Reverse(*length));
    Ok(places)
}

/// Appends the record of one model. Records of other processes stay.
pub(crate) fn write(store: &dyn Store, mut learned: LearnedModel) -> Result<()> {
    if learned.model.len() > NAME {
        return Ok(());
    }
    learned.day = today();
    let mut added = add(store, &learned);
    for _ in 1..ATTEMPTS {
        match added {
            // Another proxy wrote at the same time, so the position has moved.
            Err(Error::Conflict { .. }) => added = add(store, &learned),
            added => return added,
        }
    }
    added
}

fn add(store: &dyn Store, learned: &LearnedModel) -> Result<()> {
    let [(longer, length), (other, other_length)] = places(store)?;
    if length < RECORDS {
        store.append(&longer, Stream::Log, length, &[&bytes(learned)])?;
        return Ok(());
    }
    // Nobody appends to a full session, so nothing is added to it while it is copied. Of several
    // processes that copy it, one succeeds; the others get a conflict and add to the copy.
    let counting = read(store)?;
    let counting = counting.iter().map(|(_, learned)| learned);
    let counting: Vec<Vec<u8>> = counting.chain([learned]).map(bytes).collect();
    let counting: Vec<&[u8]> = counting.iter().map(Vec::as_slice).collect();
    store.append(&other, Stream::Log, other_length, &counting)?;
    // Removed last, so that a crash before this loses nothing.
    store.delete_session(&longer)
}

fn bytes(learned: &LearnedModel) -> Vec<u8> {
    serde_json::to_vec(learned).unwrap_or_default()
}

impl LearnedModel {
    /// A record of a model about which nothing is known yet.
    pub(crate) fn of([tenant, upstream, model]: &OwnedModelKey) -> Self {
        Self {
            tenant: tenant.clone(),
            upstream: upstream.clone(),
            model: model.clone(),
            ..Self::default()
        }
    }

    fn key(&self) -> OwnedModelKey {
        [&self.tenant, &self.upstream, &self.model].map(String::clone)
    }

    /// The record without data that has expired by `today`.
    fn on(mut self, today: u64) -> Self {
        if self.day.saturating_add(LASTS) < today {
            // How a model counts stays: it is updated with every call.
            (self.window, self.cut, self.refused) = (None, None, None);
            (self.bound_reasoning, self.no_block_binding) = (false, false);
        }
        self
    }
}

fn today() -> u64 {
    trimtab_store::since_epoch().as_secs() / (24 * 60 * 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_store::MemoryStore;

    fn of(model: &str, window: u64) -> LearnedModel {
        LearnedModel {
            window: Some(window),
            ..LearnedModel::of(&["t", "u", model].map(str::to_owned))
        }
    }

    #[test]
    fn the_newest_of_each_model_counts() {
        let store = MemoryStore::new();
        assert!(read(&store).unwrap().is_empty());
        for learned in [of("a", 8_000), of("b", 9_000), of("a", 4_000)] {
            write(&store, learned).unwrap();
        }
        assert_eq!(
            windows(&store),
            [("b".to_owned(), 9_000), ("a".to_owned(), 4_000)]
        );
    }

    /// The learned windows in the store, the oldest record first.
    fn windows(store: &dyn Store) -> Vec<(String, u64)> {
        let learned = read(store).unwrap();
        let learned = learned.iter().map(|(_, learned)| learned);
        learned
            .map(|learned| (learned.model.clone(), learned.window.unwrap()))
            .collect()
    }

    #[test]
    fn records_do_not_pile_up() {
        let store = MemoryStore::new();
        // Both sessions get full, so each is copied into the other one.
        for window in 0..2 * RECORDS + 10 {
            write(&store, of("a", window)).unwrap();
        }
        write(&store, of(&"long".repeat(NAME), 1)).unwrap();
        let lengths = places(&store).unwrap().map(|(_, length)| length);
        assert_eq!(lengths, [12, 0]);
        assert_eq!(windows(&store), [("a".to_owned(), 2 * RECORDS + 9)]);
    }

    #[test]
    fn models_beyond_the_limit_replace_the_oldest() {
        let store = MemoryStore::new();
        for at in 0..=MODELS {
            write(&store, of(&format!("{at}"), 8_000)).unwrap();
        }
        let windows = windows(&store);
        assert_eq!((windows.len(), windows[0].0.as_str()), (MODELS, "1"));
    }

    #[test]
    fn concurrent_writers_lose_no_record_when_the_session_is_full() {
        let store = MemoryStore::new();
        for window in 0..RECORDS - 20 {
            write(&store, of("a", window)).unwrap();
        }
        let writer = |writer: usize| {
            let names = (0..100).map(move |at| format!("{writer}-{at}"));
            // A write may fail because of the others. One that succeeds is kept.
            names.filter(|name| write(&store, of(name, 1)).is_ok())
        };
        let written: Vec<String> = std::thread::scope(|scope| {
            let writers = (0..8).map(|at| scope.spawn(move || writer(at).collect::<Vec<_>>()));
            let writers: Vec<_> = writers.collect();
            let written = writers.into_iter().flat_map(|one| one.join().unwrap());
            written.collect()
        });
        let kept = windows(&store);
        assert!(written.len() > 20 && places(&store).unwrap()[0].1 < RECORDS);
        for name in written.iter().map(String::as_str).chain(["a"]) {
            assert!(
                kept.iter().any(|(model, _)| model == name),
                "{name} is lost"
            );
        }
    }

    #[test]
    fn windows_are_found_out_again_after_a_while() {
        let mut learned = of("a", 8_000);
        learned.calibration = Some(Calibration::default());
        learned.no_block_binding = true;
        let kept = learned.clone().on(LASTS);
        assert_eq!((kept.window, kept.no_block_binding), (Some(8_000), true));
        let kept = learned.on(LASTS + 1);
        assert_eq!((kept.window, kept.calibration.is_some()), (None, true));
        assert!(!kept.no_block_binding);
    }

    #[test]
    fn unreadable_entries_are_skipped() {
        let store = MemoryStore::new();
        let place = SessionId::new(PLACES[0]).unwrap();
        let entries: [&[u8]; 2] = [b"nonsense", b"{\"upstream\":1}"];
        store.append(&place, Stream::Log, 0, &entries).unwrap();
        write(&store, of("a", 1)).unwrap();
        assert_eq!(read(&store).unwrap().len(), 1);
    }
}

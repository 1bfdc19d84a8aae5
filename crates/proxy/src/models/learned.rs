//! What was learned about models, kept in the store so that it survives a restart.
//!
//! It is a session of its own. Each time something is learned about a model, a small record is
//! appended; the newest record of each model counts. Removing the session makes the proxy forget.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trimtab_model::estimate::Calibration;
use trimtab_store::{Error, Result, SessionId, Store, Stream};

/// The session with the records.
pub(crate) const PLACE: &str = "proxy-learned";
/// The maximum number of models; more than any installation uses.
pub(crate) const MODELS: usize = 1_024;
/// The number of records after which the log is rewritten with the current ones only.
const RECORDS: u64 = 4_096;
/// How many records are read at once.
const BATCH: usize = 256;
/// The lifetime of a learned window in days, because providers raise windows.
const LASTS: u64 = 30;
/// The maximum number of attempts to add a record while others write.
const ATTEMPTS: usize = 4;
/// The longest name of a model that is remembered.
pub(crate) const NAME: usize = 256;

/// The learned data of a model at an upstream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LearnedModel {
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
    /// The smallest prompt that was rejected as too long without naming a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<u64>,
    /// Its calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) calibration: Option<Calibration>,
}

/// The newest record of each model. Unreadable records are skipped.
pub(crate) fn read(store: &dyn Store) -> Result<Vec<LearnedModel>> {
    let place = SessionId::new(PLACE)?;
    let today = today();
    let mut found = BTreeMap::new();
    let mut from = 0;
    loop {
        let records = store.read(&place, Stream::Log, from, BATCH)?;
        if records.is_empty() {
            break;
        }
        from += records.len() as u64;
        for record in &records {
            if let Ok(learned) = serde_json::from_slice::<LearnedModel>(record) {
                let key = (learned.upstream.clone(), learned.model.clone());
                // Later records replace earlier ones, because the log is read from its beginning.
                found.insert(key, learned.on(today));
            }
        }
    }
    Ok(found.into_values().take(MODELS).collect())
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
    let place = SessionId::new(PLACE)?;
    let mut at = store.position(&place, Stream::Log)?;
    // A log only grows, so the records that count are copied into a new one now and then.
    if at >= RECORDS {
        let counting: Vec<Vec<u8>> = read(store)?.iter().map(bytes).collect();
        let counting: Vec<&[u8]> = counting.iter().map(Vec::as_slice).collect();
        store.delete_session(&place)?;
        at = store.append(&place, Stream::Log, 0, &counting)?;
    }
    store.append(&place, Stream::Log, at, &[&bytes(learned)])?;
    Ok(())
}

fn bytes(learned: &LearnedModel) -> Vec<u8> {
    serde_json::to_vec(learned).unwrap_or_default()
}

impl LearnedModel {
    /// The record without data that has expired by `today`.
    fn on(mut self, today: u64) -> Self {
        if self.day.saturating_add(LASTS) < today {
            // How a model counts stays: it is updated with every call.
            (self.window, self.cut, self.refused) = (None, None, None);
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
            upstream: "u".to_owned(),
            model: model.to_owned(),
            window: Some(window),
            ..LearnedModel::default()
        }
    }

    #[test]
    fn the_newest_of_each_model_counts() {
        let store = MemoryStore::new();
        assert_eq!(read(&store).unwrap(), []);
        for learned in [of("a", 8_000), of("b", 9_000), of("a", 4_000)] {
            write(&store, learned).unwrap();
        }
        let windows: Vec<_> = read(&store).unwrap();
        let windows: Vec<_> = windows
            .iter()
            .map(|learned| (learned.model.as_str(), learned.window))
            .collect();
        assert_eq!(windows, [("a", Some(4_000)), ("b", Some(9_000))]);
    }

    #[test]
    fn records_do_not_pile_up() {
        let store = MemoryStore::new();
        let place = SessionId::new(PLACE).unwrap();
        for window in 0..RECORDS + 10 {
            write(&store, of("a", window)).unwrap();
        }
        write(&store, of(&"long".repeat(NAME), 1)).unwrap();
        assert_eq!(store.position(&place, Stream::Log).unwrap(), 11);
        assert_eq!(read(&store).unwrap().len(), 1);
    }

    #[test]
    fn windows_are_found_out_again_after_a_while() {
        let mut learned = of("a", 8_000);
        learned.calibration = Some(Calibration::default());
        let kept = learned.clone().on(LASTS);
        assert_eq!(kept.window, Some(8_000));
        let kept = learned.on(LASTS + 1);
        assert_eq!((kept.window, kept.calibration.is_some()), (None, true));
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let store = MemoryStore::new();
        let place = SessionId::new(PLACE).unwrap();
        let entries: [&[u8]; 2] = [b"nonsense", b"{\"upstream\":1}"];
        store.append(&place, Stream::Log, 0, &entries).unwrap();
        write(&store, of("a", 1)).unwrap();
        assert_eq!(read(&store).unwrap().len(), 1);
    }
}

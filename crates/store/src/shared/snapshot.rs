//! Reads the state of the store for the decision what to remove.

use std::collections::BTreeMap;

use deadpool_postgres::Object;

use super::rows::{query_all, session_id, unsigned};
use crate::Result;
use crate::collect::{SnapshotSession, StoreSnapshot};

/// All sessions, outputs and blobs. The queries are not in one transaction: an output that is added
/// between them belongs to a session that is in use again, which stays.
pub(super) async fn take(connection: Object, now: i64) -> Result<StoreSnapshot> {
    let sessions = "SELECT sessions.id, sessions.name, above.name, sessions.used,
             sessions.leased_until > $1, sessions.entry_bytes
         FROM trimtab.sessions LEFT JOIN trimtab.sessions AS above ON above.id = sessions.parent
         ORDER BY sessions.name";
    let sessions = query_all(&connection, sessions, &[&now]).await?;
    let outputs = "SELECT session, whole, text FROM trimtab.outputs";
    let outputs = query_all(&connection, outputs, &[]).await?;
    let blobs = "SELECT id, stored_size FROM trimtab.blobs";
    let blobs = query_all(&connection, blobs, &[]).await?;
    let mut by_session: BTreeMap<i64, Vec<Vec<u64>>> = BTreeMap::new();
    for row in &outputs {
        let (whole, text): (i64, Option<i64>) = (row.get(1), row.get(2));
        let blobs = std::iter::once(whole).chain(text).map(unsigned);
        by_session
            .entry(row.get(0))
            .or_default()
            .push(blobs.collect());
    }
    let sessions = sessions.iter().map(|row| {
        let parent: Option<Vec<u8>> = row.get(2);
        Ok(SnapshotSession {
            id: session_id(row.get(1))?,
            parent: parent.map(session_id).transpose()?,
            used: unsigned(row.get(3)),
            leased: row.get(4),
            stream_bytes: unsigned(row.get(5)),
            outputs: by_session.remove(&row.get(0)).unwrap_or_default(),
        })
    });
    let blobs = blobs
        .iter()
        .map(|row| (unsigned(row.get(0)), unsigned(row.get(1))));
    Ok(StoreSnapshot {
        sessions: sessions.collect::<Result<_>>()?,
        blobs: blobs.collect(),
        ..StoreSnapshot::default()
    })
}

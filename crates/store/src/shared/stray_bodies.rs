//! Finds bodies that no row names: those of processes that were killed while they stored an output.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use object_store::ObjectStore;
use object_store::path::Path as ObjectPath;

use super::bodies::{BodyName, BodyStorage};
use super::objects::{FOLDER, from_object_store};
use super::rows::{query_all, signed};
use crate::Result;

/// Younger bodies may belong to an output that is being stored.
const STRAY_AFTER: Duration = Duration::from_hours(1);
/// How long listing an object store may take.
const LISTING: Duration = Duration::from_mins(10);
/// The number of names in one query.
const BATCH: usize = 1_000;

/// All stray bodies.
pub(super) fn find(storage: &BodyStorage, now: u64) -> Result<Vec<BodyName>> {
    let age = u64::try_from(STRAY_AFTER.as_millis()).unwrap_or(u64::MAX);
    let before = now.saturating_sub(age);
    let mut strays = in_chunks(storage, before)?;
    // Without our mark nothing in the object store is known to be ours.
    if let Some(objects) = &storage.objects
        && storage.owns_objects(objects)?
    {
        // List objects before reading rows, so that an object named meanwhile is not a stray.
        let old = old_objects(storage, objects, before)?;
        for batch in old.chunks(BATCH) {
            strays.extend(without_row(storage, batch.to_vec())?);
        }
    }
    Ok(strays)
}

fn in_chunks(storage: &BodyStorage, before: u64) -> Result<Vec<BodyName>> {
    storage.database.long_call(move |connection| async move {
        // A body that is still being written has a young chunk.
        let select = "SELECT body FROM trimtab.chunks
             WHERE NOT EXISTS (SELECT FROM trimtab.blobs WHERE blobs.body = chunks.body)
             GROUP BY body HAVING max(created) < $1";
        let rows = query_all(&connection, select, &[&signed(before)]).await?;
        let strays = rows.iter().map(|row| BodyName {
            name: row.get(0),
            in_object_store: false,
        });
        Ok(strays.collect())
    })
}

/// The names of all objects that were last changed before a time.
fn old_objects(
    storage: &BodyStorage,
    objects: &Arc<dyn ObjectStore>,
    before: u64,
) -> Result<Vec<String>> {
    let objects = Arc::clone(objects);
    storage.database.wait(LISTING, async move {
        let folder = ObjectPath::from(FOLDER);
        let mut listed = objects.list(Some(&folder));
        let mut names = Vec::new();
        while let Some(object) = listed
            .try_next()
            .await
            .map_err(|error| from_object_store(&error))?
        {
            let is_old = object.last_modified.timestamp_millis() < signed(before);
            names.extend(
                object
                    .location
                    .filename()
                    .filter(|_| is_old)
                    .map(str::to_owned),
            );
        }
        Ok(names)
    })
}

fn without_row(storage: &BodyStorage, names: Vec<String>) -> Result<Vec<BodyName>> {
    storage.database.long_call(move |connection| async move {
        let select = "SELECT body FROM trimtab.blobs WHERE body = ANY($1)";
        let rows = query_all(&connection, select, &[&names]).await?;
        let in_use: BTreeSet<&str> = rows.iter().map(|row| row.get(0)).collect();
        let strays = names.iter().filter(|name| !in_use.contains(name.as_str()));
        let strays = strays.map(|name| BodyName {
            name: name.clone(),
            in_object_store: true,
        });
        Ok(strays.collect())
    })
}

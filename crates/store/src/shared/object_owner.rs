//! Which store an object store belongs to.
//!
//! Collection removes objects that no row of the database names. In a place that two stores use,
//! each would remove the objects of the other. So the first store that writes to a place leaves its
//! mark there, and any other store refuses the place.

use std::sync::Arc;

use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};

use super::bodies::{BodyStorage, PATIENCE};
use super::objects::{from_object_store, from_write, is_missing_object};
use super::rows::store_secret;
use crate::{Error, Result};

/// The object with the mark. It is beside the folder of outputs.
const MARK: &str = "store";
/// The context string of the derived mark. Part of the format.
const PURPOSE: &str = "trimtab store, owner of an object store, version 1";

impl BodyStorage {
    /// Marks the object store as that of this store, if it has no mark yet. Fails if it belongs to
    /// another store. Asks only once.
    pub(super) fn claim_objects(&self) -> Result<()> {
        let Some(objects) = &self.objects else {
            return Ok(());
        };
        if self.is_ours.get().is_some() {
            return Ok(());
        }
        let own = self.own_mark()?;
        match self.read_mark(objects)? {
            Some(found) if found == own => {}
            Some(_) => return Err(Error::ForeignObjects),
            None => self.write_mark(objects, own)?,
        }
        self.is_ours.get_or_init(|| ());
        Ok(())
    }

    /// True if the object store has the mark of this store, so that objects without a row are
    /// strays. Fails if it belongs to another store.
    pub(super) fn owns_objects(&self, objects: &Arc<dyn ObjectStore>) -> Result<bool> {
        // Not remembered: two stores that began at the same moment may both have left a mark, and
        // the later one counts.
        match self.read_mark(objects)? {
            None => Ok(false),
            Some(found) if found == self.own_mark()? => Ok(true),
            Some(_) => Err(Error::ForeignObjects),
        }
    }

    /// Fails if the object store has a mark. For a store that does not exist yet.
    pub(super) fn refuse_owned_objects(&self) -> Result<()> {
        match &self.objects {
            Some(objects) if self.read_mark(objects)?.is_some() => Err(Error::ForeignObjects),
            _ => Ok(()),
        }
    }

    /// The mark of this store. A digest, because the secret must not leave the database.
    fn own_mark(&self) -> Result<Vec<u8>> {
        let secret = self.database.call(store_secret)?;
        let mark = blake3::derive_key(PURPOSE, &secret);
        Ok(data_encoding::HEXLOWER.encode(&mark).into_bytes())
    }

    fn read_mark(&self, objects: &Arc<dyn ObjectStore>) -> Result<Option<Vec<u8>>> {
        let objects = Arc::clone(objects);
        self.database.wait(PATIENCE, async move {
            let read = async { objects.get(&ObjectPath::from(MARK)).await?.bytes().await };
            match read.await {
                Ok(bytes) => Ok(Some(bytes.to_vec())),
                Err(error) if is_missing_object(&error) => Ok(None),
                Err(error) => Err(from_object_store(&error)),
            }
        })
    }

    fn write_mark(&self, objects: &Arc<dyn ObjectStore>, mark: Vec<u8>) -> Result<()> {
        let objects = Arc::clone(objects);
        self.database.wait(PATIENCE, async move {
            let path = ObjectPath::from(MARK);
            let written = objects.put(&path, PutPayload::from(mark)).await;
            written.map(|_| ()).map_err(|error| from_write(&error))
        })
    }
}

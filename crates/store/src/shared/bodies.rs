//! The bytes of images: chunks in the database, or objects in an object store.
//!
//! Bytes come first. A body is durable before a row names it. A process that is killed between the
//! two leaves a body without a row, which collection removes, and never a row without a body.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};

use super::database::{Database, from_postgres};
use super::objects::{from_object_store, from_write, object_path};
use super::segment_cache::SegmentCache;
use crate::image::{ImageBytes, damaged};
use crate::{Error, Result};

/// The size of a chunk: a row of the database, which is always read as a whole.
const CHUNK: usize = 256 << 10;
/// How much of an object is read at once.
const OBJECT_SEGMENT: usize = 1 << 20;
/// How much of an object is uploaded at once. S3 rejects parts below 5 MiB, except the last.
const OBJECT_PART: usize = 8 << 20;
/// How long an object store may take for one operation.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Writes and reads bodies.
#[derive(Clone)]
pub(super) struct BodyStorage {
    pub(super) database: Arc<Database>,
    /// Without an object store, all bodies are in the database.
    pub(super) objects: Option<Arc<dyn ObjectStore>>,
    pub(super) cache: Arc<SegmentCache>,
    /// Set once the object store is known to belong to this store.
    pub(super) is_ours: Arc<OnceLock<()>>,
}

/// The name of a body, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BodyName {
    pub(super) name: String,
    pub(super) in_object_store: bool,
}

impl BodyStorage {
    /// A new, random name.
    pub(super) fn new_name(in_object_store: bool) -> Result<BodyName> {
        let mut bytes = [0; 16];
        crate::refs::random(&mut bytes)?;
        Ok(BodyName {
            name: data_encoding::HEXLOWER.encode(&bytes),
            in_object_store,
        })
    }

    /// Starts to write a body that is too large for the transaction of its row.
    pub(super) fn write(&self, now: Option<i64>) -> Result<ImageBodyWriter> {
        Ok(ImageBodyWriter {
            storage: self.clone(),
            name: Self::new_name(self.objects.is_some())?,
            now,
            chunks: 0,
            upload: None,
        })
    }

    /// Removes bodies that no row names.
    pub(super) fn remove(&self, names: Vec<BodyName>) -> Result<()> {
        let (in_objects, in_chunks): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|body| body.in_object_store);
        if !in_chunks.is_empty() {
            let names: Vec<String> = in_chunks.into_iter().map(|body| body.name).collect();
            self.database.long_call(move |connection| async move {
                let delete = "DELETE FROM trimtab.chunks WHERE body = ANY($1)";
                let deleted = connection.execute(delete, &[&names]).await;
                deleted.map(|_| ()).map_err(from_postgres)
            })?;
        }
        for body in in_objects {
            // Without an object store, no caller names a body that is in one.
            let Some(objects) = self.objects.clone() else {
                return Ok(());
            };
            self.database.wait(PATIENCE, async move {
                match objects.delete(&object_path(&body.name)).await {
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                    Err(error) => Err(from_object_store(&error)),
                }
            })?;
        }
        Ok(())
    }

    /// Writes, reads and removes an object, if there is an object store. For a store that does not
    /// exist yet.
    pub(super) fn probe(&self) -> Result<()> {
        if self.objects.is_none() {
            return Ok(());
        }
        self.refuse_owned_objects()?;
        let bytes = b"trimtab".to_vec();
        let (mut read, size) = (vec![0; bytes.len()], bytes.len() as u64);
        let name = self.write(None)?.finish(bytes)?;
        let was_read = self.open(name.clone(), size).read_exact_at(0, &mut read);
        // Remove it even if it could not be read.
        self.remove(vec![name])?;
        was_read
    }

    /// Keeps the first chunk of a body in memory.
    pub(super) fn keep_chunk(&self, body: &BodyName, chunk: Vec<u8>) {
        self.cache.insert((body.name.clone(), 0), &Arc::new(chunk));
    }

    /// Opens a body of `size` bytes.
    pub(super) fn open(&self, name: BodyName, size: u64) -> StoredBody {
        StoredBody {
            storage: self.clone(),
            name,
            size,
            last: Mutex::default(),
        }
    }
}

/// A body that is being written.
pub(super) struct ImageBodyWriter {
    storage: BodyStorage,
    name: BodyName,
    /// None for the time of the database.
    now: Option<i64>,
    chunks: i32,
    /// The upload of an object with more than one part. A smaller object is written at once.
    upload: Option<Box<dyn MultipartUpload>>,
}

impl ImageBodyWriter {
    /// Writes whole chunks or parts from the front of `pending`.
    pub(super) fn take(&mut self, pending: &mut Vec<u8>) -> Result<()> {
        let objects = self.storage.objects.clone();
        let size = objects.as_ref().map_or(CHUNK, |_| OBJECT_PART);
        while pending.len() >= size {
            let rest = pending.split_off(size);
            let bytes = std::mem::replace(pending, rest);
            match &objects {
                None => self.write_chunk(bytes)?,
                Some(objects) => self.upload_part(objects, bytes)?,
            }
        }
        Ok(())
    }

    /// Writes the rest. The body is durable once this returns.
    pub(super) fn finish(mut self, mut pending: Vec<u8>) -> Result<BodyName> {
        self.take(&mut pending)?;
        match self.storage.objects.clone() {
            None if pending.is_empty() => {}
            None => self.write_chunk(pending)?,
            Some(objects) => self.finish_object(objects, pending)?,
        }
        Ok(self.name.clone())
    }

    fn write_chunk(&mut self, bytes: Vec<u8>) -> Result<()> {
        let (name, number, now) = (self.name.name.clone(), self.chunks, self.now);
        self.chunks += 1;
        self.storage.database.call(move |connection| async move {
            let insert = concat!(
                "INSERT INTO trimtab.chunks (body, number, created, bytes) VALUES ($1, $2, ",
                time_or_now!("$3"),
                ", $4)"
            );
            let insert = connection.prepare_cached(insert).await;
            let insert = insert.map_err(from_postgres)?;
            let inserted = connection
                .execute(&insert, &[&name, &number, &now, &bytes])
                .await;
            inserted.map(|_| ()).map_err(from_postgres)
        })
    }

    fn upload_part(&mut self, objects: &Arc<dyn ObjectStore>, bytes: Vec<u8>) -> Result<()> {
        let mut upload = if let Some(upload) = self.upload.take() {
            upload
        } else {
            let (objects, path) = (Arc::clone(objects), object_path(&self.name.name));
            self.wait_for_object(async move { objects.put_multipart(&path).await })?
        };
        let sent = upload.put_part(PutPayload::from(bytes));
        self.upload = Some(upload);
        self.wait_for_object(sent)
    }

    fn finish_object(&mut self, objects: Arc<dyn ObjectStore>, rest: Vec<u8>) -> Result<()> {
        if self.upload.is_some() {
            if !rest.is_empty() {
                self.upload_part(&objects, rest)?;
            }
            return self.complete_upload();
        }
        let path = object_path(&self.name.name);
        self.wait_for_object(async move {
            let written = objects.put(&path, PutPayload::from(rest)).await;
            written.map(|_| ())
        })
    }

    fn complete_upload(&mut self) -> Result<()> {
        let Some(mut upload) = self.upload.take() else {
            return Ok(());
        };
        self.wait_for_object(async move {
            let completed = upload.complete().await.map(|_| ());
            if completed.is_err() {
                // As in `drop`.
                let _ = upload.abort().await;
            }
            completed
        })
    }

    fn wait_for_object<T: Send + 'static>(
        &self,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T> {
        let work = async move { work.await.map_err(|error| from_write(&error)) };
        self.storage.database.wait(PATIENCE, work)
    }
}

/// Aborts an upload that was not completed: an object store keeps its parts otherwise, and no
/// listing shows them.
impl Drop for ImageBodyWriter {
    fn drop(&mut self) {
        if let Some(mut upload) = self.upload.take() {
            // A failure leaves the parts to the bucket's rule for incomplete uploads.
            let _ = self.wait_for_object(async move { upload.abort().await });
        }
    }
}

/// A body that is open for reading.
pub(super) struct StoredBody {
    storage: BodyStorage,
    name: BodyName,
    size: u64,
    /// The last used part. Reads go forward in smaller steps.
    last: Mutex<Option<(u64, Arc<Vec<u8>>)>>,
}

impl StoredBody {
    fn segment(&self, number: u64) -> Result<Arc<Vec<u8>>> {
        // The lock is held during the fetch, so that parallel readers of a body do not fetch a part
        // twice.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bytes)) = last.as_ref().filter(|(kept, _)| *kept == number) {
            return Ok(Arc::clone(bytes));
        }
        let key = (self.name.name.clone(), number);
        let cached = self.storage.cache.get(&key);
        let bytes = cached.map_or_else(|| self.fetch(number).map(Arc::new), Ok)?;
        // Also after a hit, which marks the part as used.
        self.storage.cache.insert(key, &bytes);
        *last = Some((number, Arc::clone(&bytes)));
        Ok(bytes)
    }

    fn segment_size(&self) -> u64 {
        if self.name.in_object_store {
            OBJECT_SEGMENT as u64
        } else {
            CHUNK as u64
        }
    }

    fn fetch(&self, number: u64) -> Result<Vec<u8>> {
        if self.name.in_object_store {
            return self.fetch_object(number);
        }
        let name = self.name.name.clone();
        let number = i32::try_from(number).map_err(|_| damaged())?;
        self.storage.database.call(move |connection| async move {
            let select = "SELECT bytes FROM trimtab.chunks WHERE body = $1 AND number = $2";
            let select = connection.prepare_cached(select).await;
            let select = select.map_err(from_postgres)?;
            let row = connection.query_opt(&select, &[&name, &number]).await;
            let row = row.map_err(from_postgres)?.ok_or_else(damaged)?;
            row.try_get(0).map_err(from_postgres)
        })
    }

    fn fetch_object(&self, number: u64) -> Result<Vec<u8>> {
        let objects = self.storage.objects.clone().ok_or(Error::Unsupported(
            "read an output from the object store: the setting `blobs` is missing\nhint: set the object store with --blobs or TRIMTAB_BLOBS, and for a copy with --from-blobs",
        ))?;
        let path = object_path(&self.name.name);
        let start = number.saturating_mul(self.segment_size());
        let end = (start + self.segment_size()).min(self.size);
        self.storage.database.wait(PATIENCE, async move {
            let bytes = objects.get_range(&path, start..end).await;
            bytes
                .map(Vec::from)
                .map_err(|error| from_object_store(&error))
        })
    }
}

impl ImageBytes for StoredBody {
    fn read_exact_at(&self, start: u64, into: &mut [u8]) -> Result<()> {
        let (mut at, mut left) = (start, into);
        while !left.is_empty() {
            let segment = self.segment(at / self.segment_size())?;
            let inside = usize::try_from(at % self.segment_size()).unwrap_or(usize::MAX);
            let found = segment.get(inside..).filter(|found| !found.is_empty());
            let found = found.ok_or_else(damaged)?;
            let len = found.len().min(left.len());
            let (now, later) = left.split_at_mut(len);
            now.copy_from_slice(found.get(..len).unwrap_or_default());
            at += len as u64;
            left = later;
        }
        Ok(())
    }
}

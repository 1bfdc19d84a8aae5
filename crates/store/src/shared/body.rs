//! The bytes of images: chunks in the database, or objects in an object store.
//!
//! Bytes come first. A body is durable before any row names it, so a process that is killed in
//! between leaves a body without a name, which collection finds, and never a name without a
//! body.

use std::sync::{Arc, Mutex, PoisonError};

use object_store::path::Path as ObjectPath;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};

use super::connect::{Database, from_postgres};
use crate::image::{ImageBytes, damaged};
use crate::{Error, Result};

/// Bytes of an image in one row.
const CHUNK: usize = 256 * 1024;
/// Bytes of an object that are fetched together.
const OBJECT_SEGMENT: usize = 1024 * 1024;
/// Bytes that are uploaded together. Object stores refuse smaller parts.
const OBJECT_PART: usize = 8 * 1024 * 1024;

/// Where bodies are written to and read from.
#[derive(Clone)]
pub(super) struct Bodies {
    pub(super) database: Arc<Database>,
    /// Without one, all bodies are in the database.
    pub(super) objects: Option<Arc<dyn ObjectStore>>,
}

/// The name of a body, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BodyName {
    pub(super) name: String,
    pub(super) in_object_store: bool,
}

impl Bodies {
    /// A name that no other body has.
    pub(super) fn new_name(&self) -> Result<BodyName> {
        let mut bytes = [0; 16];
        crate::refs::random(&mut bytes)?;
        let name = data_encoding::HEXLOWER.encode(&bytes);
        let in_object_store = self.objects.is_some();
        Ok(BodyName {
            name,
            in_object_store,
        })
    }

    /// Begins to write a body that is too large to travel with its row.
    pub(super) fn write(&self, now: u64) -> Result<BodyWriter> {
        let name = self.new_name()?;
        let upload = match &self.objects {
            None => None,
            Some(objects) => Some(self.begin_upload(objects, &name)?),
        };
        Ok(BodyWriter {
            bodies: self.clone(),
            name,
            now,
            chunks: 0,
            upload,
        })
    }

    fn begin_upload(
        &self,
        objects: &Arc<dyn ObjectStore>,
        name: &BodyName,
    ) -> Result<Box<dyn MultipartUpload>> {
        let (objects, path) = (Arc::clone(objects), object_path(&name.name));
        self.database.wait(async move {
            let upload = objects.put_multipart(&path).await;
            upload.map_err(from_object_store)
        })
    }

    /// Removes bodies that no row names any more.
    pub(super) fn remove(&self, names: Vec<BodyName>) -> Result<()> {
        let (in_objects, in_chunks): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|body| body.in_object_store);
        if !in_chunks.is_empty() {
            let names: Vec<String> = in_chunks.into_iter().map(|body| body.name).collect();
            self.database.ask(move |connection| async move {
                let delete = "DELETE FROM chunks WHERE body = ANY($1)";
                let deleted = connection.execute(delete, &[&names]).await;
                deleted.map(|_| ()).map_err(from_postgres)
            })?;
        }
        let Some(objects) = self.objects.clone().filter(|_| !in_objects.is_empty()) else {
            return Ok(());
        };
        self.database.wait(async move {
            for body in in_objects {
                match objects.delete(&object_path(&body.name)).await {
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => return Err(from_object_store(error)),
                }
            }
            Ok(())
        })
    }

    /// Opens a body of `size` bytes for reading.
    pub(super) fn open(&self, name: BodyName, size: u64) -> StoredBody {
        StoredBody {
            bodies: self.clone(),
            name,
            size,
            last: Mutex::default(),
        }
    }
}

/// A body that is being written.
pub(super) struct BodyWriter {
    bodies: Bodies,
    name: BodyName,
    now: u64,
    chunks: i32,
    upload: Option<Box<dyn MultipartUpload>>,
}

impl BodyWriter {
    /// Takes whole chunks or parts from the front of `pending`.
    pub(super) fn take(&mut self, pending: &mut Vec<u8>) -> Result<()> {
        let size = if self.upload.is_some() {
            OBJECT_PART
        } else {
            CHUNK
        };
        while pending.len() >= size {
            let rest = pending.split_off(size);
            self.send(std::mem::replace(pending, rest))?;
        }
        Ok(())
    }

    /// Takes the rest. The body is durable afterwards.
    pub(super) fn finish(mut self, mut pending: Vec<u8>) -> Result<BodyName> {
        self.take(&mut pending)?;
        if !pending.is_empty() {
            self.send(pending)?;
        }
        if let Some(mut upload) = self.upload.take() {
            self.bodies.database.wait(async move {
                let completed = upload.complete().await;
                completed.map(|_| ()).map_err(from_object_store)
            })?;
        }
        Ok(self.name)
    }

    fn send(&mut self, bytes: Vec<u8>) -> Result<()> {
        if let Some(upload) = &mut self.upload {
            let sent = upload.put_part(PutPayload::from(bytes));
            return self
                .bodies
                .database
                .wait(async move { sent.await.map_err(from_object_store) });
        }
        let (name, number) = (self.name.name.clone(), self.chunks);
        let now = i64::try_from(self.now).unwrap_or(i64::MAX);
        self.chunks += 1;
        self.bodies.database.ask(move |connection| async move {
            let insert =
                "INSERT INTO chunks (body, number, created, bytes) VALUES ($1, $2, $3, $4)";
            let insert = connection
                .prepare_cached(insert)
                .await
                .map_err(from_postgres)?;
            let inserted = connection
                .execute(&insert, &[&name, &number, &now, &bytes])
                .await;
            inserted.map(|_| ()).map_err(from_postgres)
        })
    }
}

/// A body, open for reading. Keeps the part that was read last, because most reading goes
/// forward in steps that are smaller than a part.
pub(super) struct StoredBody {
    bodies: Bodies,
    name: BodyName,
    size: u64,
    last: Mutex<Option<(u64, Arc<Vec<u8>>)>>,
}

impl StoredBody {
    fn segment(&self, number: u64) -> Result<Arc<Vec<u8>>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((kept, bytes)) if *kept == number => Ok(Arc::clone(bytes)),
            _ => {
                let bytes = Arc::new(self.fetch(number)?);
                *last = Some((number, Arc::clone(&bytes)));
                Ok(bytes)
            }
        }
    }

    fn segment_size(&self) -> u64 {
        let size = if self.name.in_object_store {
            OBJECT_SEGMENT
        } else {
            CHUNK
        };
        size as u64
    }

    fn fetch(&self, number: u64) -> Result<Vec<u8>> {
        let name = self.name.name.clone();
        if !self.name.in_object_store {
            let number = i32::try_from(number).map_err(|_| damaged())?;
            return self.bodies.database.ask(move |connection| async move {
                let select = "SELECT bytes FROM chunks WHERE body = $1 AND number = $2";
                let select = connection
                    .prepare_cached(select)
                    .await
                    .map_err(from_postgres)?;
                let row = connection.query_opt(&select, &[&name, &number]).await;
                let row = row.map_err(from_postgres)?.ok_or_else(damaged)?;
                row.try_get(0).map_err(from_postgres)
            });
        }
        let objects = self.bodies.objects.clone().ok_or(Error::Unsupported(
            "read an output from the object store: no object store is set",
        ))?;
        let start = number * self.segment_size();
        let end = (start + self.segment_size()).min(self.size);
        self.bodies.database.wait(async move {
            let bytes = objects.get_range(&object_path(&name), start..end).await;
            bytes.map(Vec::from).map_err(from_object_store)
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

/// Where the object of a body is. Two levels, because some stores list a folder slowly.
pub(super) fn object_path(name: &str) -> ObjectPath {
    let folder = name.get(..2).unwrap_or("00");
    ObjectPath::from_iter(["outputs", folder, name])
}

fn from_object_store(error: object_store::Error) -> Error {
    match error {
        object_store::Error::NotFound { .. } => damaged(),
        other => Error::database(other),
    }
}

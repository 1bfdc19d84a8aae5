//! Prepares outputs and entries for the transaction that stores them.

use trimtab_model::Ref;

use super::SharedStore;
use super::incoming::{self, ReadyImage};
use super::writing::{ReadyWrite, SessionTransaction};
use crate::image::compress_entry;
use crate::put::{OutputLabels, PutInput};
use crate::refs::SessionSecret;
use crate::write::{WriteKind, check_id};
use crate::{Error, Put, Result, SessionId, Write};

/// The most bytes of one transaction. The protocol of PostgreSQL cannot send 1 GiB at once.
const MOST_BYTES: usize = 512 << 20;

impl SharedStore {
    pub(super) fn put_output(&self, session: &SessionId, put: Put<'_>) -> Result<Ref> {
        let now = self.now();
        let labels = put.labels();
        let text = put.text.map(|text| PutInput::Slice(text.as_bytes()));
        let mut images = vec![incoming::make_ready(&self.bodies, put.bytes, now)?];
        if let Some(text) = text {
            images.push(incoming::make_ready(&self.bodies, text, now)?);
        }
        let secret = self.secret_or_create(session)?;
        let size = images.first().map(|whole| whole.scan.byte_size);
        // The last image is the text projection if there is one. Its lines can be read.
        let lines = images.last().map(|text| text.scan.newlines + 1);
        let id = output_id(&secret, &labels, &images);
        let reference = Ref::issue(id.clone(), size, lines);
        let write = ReadyWrite::Put { id, labels, images };
        self.execute(session, Some(secret), vec![write])?;
        Ok(reference)
    }

    pub(super) fn execute_writes(&self, session: &SessionId, writes: &[Write]) -> Result<()> {
        let bytes: usize = writes.iter().map(Write::weight).sum();
        if bytes > MOST_BYTES {
            return Err(Error::Unsupported("write more than 512 MiB at once"));
        }
        let has_put = |write: &Write| matches!(write.0, WriteKind::Put { .. });
        let secret = if writes.iter().any(has_put) {
            Some(self.secret_or_create(session)?)
        } else {
            None
        };
        let ready = writes
            .iter()
            .map(|write| self.make_ready(write, secret.as_ref()));
        let ready = ready.collect::<Result<_>>()?;
        self.execute(session, secret, ready)
    }

    /// The secret of the session, which is created if it does not exist.
    fn secret_or_create(&self, session: &SessionId) -> Result<SessionSecret> {
        if let Some(secret) = self.session_secret(session)? {
            return Ok(secret);
        }
        self.execute(session, None, Vec::new())?;
        self.session_secret(session)?.ok_or(Error::NotFound)
    }

    /// Compresses a write, and makes the bytes of a large output durable.
    fn make_ready(&self, write: &Write, secret: Option<&SessionSecret>) -> Result<ReadyWrite> {
        match &write.0 {
            WriteKind::Put {
                id,
                labels,
                bytes,
                text,
                ..
            } => {
                let now = self.now();
                let text = text.as_deref().map(str::as_bytes);
                let images = std::iter::once(bytes.as_slice())
                    .chain(text)
                    .map(|bytes| incoming::make_ready(&self.bodies, PutInput::Slice(bytes), now));
                let images: Vec<ReadyImage> = images.collect::<Result<_>>()?;
                if let Some(secret) = secret {
                    check_id(id, &output_id(secret, labels, &images))?;
                }
                Ok(ReadyWrite::Put {
                    id: id.clone(),
                    labels: labels.clone(),
                    images,
                })
            }
            WriteKind::Append {
                stream,
                expected,
                entries,
            } => {
                let (sizes, entries) = entries.iter().map(|entry| compress_entry(entry)).unzip();
                Ok(ReadyWrite::Append {
                    stream: *stream,
                    expected: *expected,
                    sizes,
                    entries,
                })
            }
        }
    }

    /// Executes writes in one transaction. `known` is the secret that outputs were named with.
    pub(super) fn execute(
        &self,
        session: &SessionId,
        known: Option<SessionSecret>,
        writes: Vec<ReadyWrite>,
    ) -> Result<()> {
        let transaction = SessionTransaction {
            session: session.clone(),
            now: self.now(),
            known,
            fresh: SessionSecret::random()?,
            writes,
        };
        let done = self
            .database
            .call(move |connection| transaction.run(connection));
        if matches!(done, Err(Error::NotFound)) {
            // The session was removed: its secret is outdated.
            self.secrets().remove(session);
        }
        let unused = done?;
        if !unused.is_empty() {
            // Best effort: collection removes the rest.
            self.bodies.remove(unused).unwrap_or(());
        }
        Ok(())
    }
}

fn output_id(secret: &SessionSecret, labels: &OutputLabels, images: &[ReadyImage]) -> String {
    let digest = images.first().map(|whole| whole.scan.digest);
    secret.ref_id(&labels.call, &digest.unwrap_or_default())
}

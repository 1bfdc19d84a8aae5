//! Writes to one session: one transaction, sent at once.

use std::pin::Pin;

use deadpool_postgres::Object;
use futures_util::future::join_all;
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;
use trimtab_model::Ref;

use super::SharedStore;
use super::connect::from_postgres;
use super::incoming::{self, ReadyImage};
use super::rows::millis;
use crate::image::compress;
use crate::put::{Input, Labels};
use crate::refs::Secret;
use crate::write::{Kind, check};
use crate::{Error, Put, Result, SessionId, Stream, Write};

/// Shorter entries are not worth compressing.
const WORTH_COMPRESSING: usize = 256;

/// A write whose bytes are durable, or travel with it.
pub(super) enum ReadyWrite {
    Put {
        id: String,
        labels: Labels,
        /// The output, then the text that is kept beside it.
        images: Vec<ReadyImage>,
    },
    Append {
        stream: Stream,
        expected: u64,
        /// Size before compression, where an entry is compressed.
        sizes: Vec<Option<i64>>,
        entries: Vec<Vec<u8>>,
    },
}

impl SharedStore {
    pub(super) fn put_output(&self, session: &SessionId, put: Put<'_>) -> Result<Ref> {
        let now = self.now();
        let labels = put.labels();
        let text = put.text.map(|text| Input::Slice(text.as_bytes()));
        let mut images = vec![incoming::make_ready(&self.bodies, put.bytes, now)?];
        if let Some(text) = text {
            images.push(incoming::make_ready(&self.bodies, text, now)?);
        }
        let secret = self.secret_or_new(session)?;
        let sizes = images.first().map(|whole| whole.scan.byte_size);
        let lines = images.last().map(|text| text.scan.newlines + 1);
        let id = name(&secret, &labels, &images);
        let reference = Ref::issue(id.clone(), sizes, lines);
        let write = ReadyWrite::Put { id, labels, images };
        self.write_all(session, Some(secret), vec![write])?;
        Ok(reference)
    }

    /// The secret that the outputs among `writes` are named with.
    pub(super) fn secret_for(
        &self,
        session: &SessionId,
        writes: &[Write],
    ) -> Result<Option<Secret>> {
        let is_put = |write: &Write| matches!(write.0, Kind::Put { .. });
        if writes.iter().any(is_put) {
            return self.secret_or_new(session).map(Some);
        }
        Ok(None)
    }

    /// The secret of the session. A session that is not there is made.
    fn secret_or_new(&self, session: &SessionId) -> Result<Secret> {
        if let Some(secret) = self.session_secret(session)? {
            return Ok(secret);
        }
        self.write_all(session, None, Vec::new())?;
        self.session_secret(session)?.ok_or(Error::NotFound)
    }

    /// Compresses what is written, and makes large outputs durable.
    pub(super) fn make_ready(&self, write: &Write, secret: Option<&Secret>) -> Result<ReadyWrite> {
        match &write.0 {
            Kind::Put {
                id,
                labels,
                bytes,
                text,
            } => {
                let now = self.now();
                let inputs =
                    std::iter::once(bytes.as_slice()).chain(text.as_deref().map(str::as_bytes));
                let images = inputs
                    .map(|bytes| incoming::make_ready(&self.bodies, Input::Slice(bytes), now));
                let images: Vec<ReadyImage> = images.collect::<Result<_>>()?;
                if let Some(secret) = secret {
                    check(id, &name(secret, labels, &images))?;
                }
                Ok(ReadyWrite::Put {
                    id: id.clone(),
                    labels: labels.clone(),
                    images,
                })
            }
            Kind::Append {
                stream,
                expected,
                entries,
            } => {
                let packed = entries.iter().map(|entry| pack(entry));
                let (sizes, entries) = packed.unzip();
                Ok(ReadyWrite::Append {
                    stream: *stream,
                    expected: *expected,
                    sizes,
                    entries,
                })
            }
        }
    }

    /// Carries out writes in one transaction. Marks the session as used, and makes it if it is
    /// new. `known` is the secret that outputs were named with.
    pub(super) fn write_all(
        &self,
        session: &SessionId,
        known: Option<Secret>,
        writes: Vec<ReadyWrite>,
    ) -> Result<()> {
        let transaction = Transaction {
            session: session.clone(),
            now: millis(self.now()),
            known,
            fresh: Secret::random()?,
            writes,
        };
        self.database
            .ask(move |connection| transaction.run(connection))
    }
}

struct Transaction {
    session: SessionId,
    now: i64,
    known: Option<Secret>,
    /// For a session that is new.
    fresh: Secret,
    writes: Vec<ReadyWrite>,
}

/// The statements of a transaction, prepared once per connection.
struct Statements {
    use_session: Statement,
    hold: Statement,
    name: Statement,
    append: Statement,
}

type Step<'t> = Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send + 't>>;

impl Transaction {
    /// Sends all statements without waiting for the answer to each: one round trip in all. After
    /// a statement that fails, the database refuses the others and takes the commit for a
    /// rollback.
    async fn run(self, connection: Object) -> Result<()> {
        let statements = Statements::prepare(&connection)
            .await
            .map_err(from_postgres)?;
        let mut steps: Vec<Step<'_>> = vec![Box::pin(connection.batch_execute("BEGIN"))];
        steps.push(self.use_session(&connection, &statements));
        for write in &self.writes {
            match write {
                ReadyWrite::Put { id, labels, images } => {
                    for image in images {
                        steps.push(self.hold(image, &connection, &statements));
                    }
                    steps.push(self.name(id, labels, images, &connection, &statements));
                }
                ReadyWrite::Append { .. } => {
                    steps.push(self.append(write, &connection, &statements));
                }
            }
        }
        steps.push(Box::pin(connection.batch_execute("COMMIT")));
        // All of them: the connection must not go back to the pool inside a transaction.
        let done = join_all(steps).await;
        let failed = done.into_iter().find_map(std::result::Result::err);
        failed.map_or(Ok(()), |error| Err(self.explain(from_postgres(error))))
    }

    /// Which stream has moved on is known here only.
    fn explain(&self, error: Error) -> Error {
        let Error::Conflict { actual, .. } = error else {
            return error;
        };
        let appends = self.writes.iter().filter_map(|write| match write {
            ReadyWrite::Append {
                stream, expected, ..
            } => Some((stream.as_str(), *expected)),
            ReadyWrite::Put { .. } => None,
        });
        let moved = appends.clone().find(|(_, expected)| *expected != actual);
        let (stream, expected) = moved.unwrap_or(("log", 0));
        Error::Conflict {
            stream,
            expected,
            actual,
        }
    }

    fn use_session<'t>(&'t self, connection: &'t Object, statements: &'t Statements) -> Step<'t> {
        Box::pin(async move {
            let known = self
                .known
                .as_ref()
                .map(|secret| secret.as_bytes().as_slice());
            let fresh = self.fresh.as_bytes().as_slice();
            let values: [&(dyn ToSql + Sync); 4] =
                [&self.session.as_str(), &fresh, &known, &self.now];
            connection
                .query(&statements.use_session, &values)
                .await
                .map(|_| ())
        })
    }

    fn hold<'t>(
        &'t self,
        image: &'t ReadyImage,
        connection: &'t Object,
        statements: &'t Statements,
    ) -> Step<'t> {
        Box::pin(async move {
            let outline = image.outline.encode();
            let (digest, inline) = (image.scan.digest.as_slice(), image.inline.as_deref());
            let sizes = [
                image.scan.byte_size,
                image.scan.newlines,
                image.outline.image_size(),
            ];
            let [size, lines, stored] = sizes.map(millis);
            let values: [&(dyn ToSql + Sync); 10] = [
                &self.session.as_str(),
                &digest,
                &size,
                &lines,
                &stored,
                &outline,
                &image.body.name,
                &image.body.in_object_store,
                &inline,
                &self.now,
            ];
            connection
                .query(&statements.hold, &values)
                .await
                .map(|_| ())
        })
    }

    fn name<'t>(
        &'t self,
        id: &'t str,
        labels: &'t Labels,
        images: &'t [ReadyImage],
        connection: &'t Object,
        statements: &'t Statements,
    ) -> Step<'t> {
        Box::pin(async move {
            let digest = |at: usize| images.get(at).map(|image| image.scan.digest.as_slice());
            let values: [&(dyn ToSql + Sync); 8] = [
                &self.session.as_str(),
                &id,
                &digest(0),
                &digest(1),
                &labels.call,
                &labels.tool,
                &labels.media_type,
                &self.now,
            ];
            connection
                .query(&statements.name, &values)
                .await
                .map(|_| ())
        })
    }

    fn append<'t>(
        &'t self,
        write: &'t ReadyWrite,
        connection: &'t Object,
        statements: &'t Statements,
    ) -> Step<'t> {
        Box::pin(async move {
            let ReadyWrite::Append {
                stream,
                expected,
                sizes,
                entries,
            } = write
            else {
                return Ok(());
            };
            let (stream, expected) = (i16::from(stream.number()), millis(*expected));
            let values: [&(dyn ToSql + Sync); 5] =
                [&self.session.as_str(), &stream, &expected, sizes, entries];
            connection
                .query(&statements.append, &values)
                .await
                .map(|_| ())
        })
    }
}

impl Statements {
    async fn prepare(connection: &Object) -> Result<Self, tokio_postgres::Error> {
        let (use_session, hold, name, append) = tokio::try_join!(
            connection.prepare_cached("SELECT use_session($1, $2, $3, $4)"),
            connection.prepare_cached("SELECT hold_blob($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"),
            connection.prepare_cached("SELECT name_output($1, $2, $3, $4, $5, $6, $7, $8)"),
            connection.prepare_cached("SELECT append_entries($1, $2, $3, $4, $5)"),
        )?;
        Ok(Self {
            use_session,
            hold,
            name,
            append,
        })
    }
}

fn name(secret: &Secret, labels: &Labels, images: &[ReadyImage]) -> String {
    let digest = images.first().map(|whole| whole.scan.digest);
    secret.ref_id(&labels.call, &digest.unwrap_or_default())
}

/// The entry as it is stored, and its size if it is compressed.
fn pack(entry: &[u8]) -> (Option<i64>, Vec<u8>) {
    let mut bytes = Vec::new();
    if entry.len() >= WORTH_COMPRESSING && compress(entry, &mut bytes) {
        return (Some(millis(entry.len() as u64)), bytes);
    }
    (None, entry.to_vec())
}

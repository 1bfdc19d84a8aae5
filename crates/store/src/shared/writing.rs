//! Executes writes to one session in one transaction.

use std::pin::Pin;

use deadpool_postgres::Object;
use futures_util::future::join_all;
use tokio_postgres::{Row, Statement};

use super::bodies::BodyName;
use super::database::from_postgres;
use super::incoming::ReadyImage;
use super::rows::{SqlValues, signed};
use crate::put::OutputLabels;
use crate::refs::SessionSecret;
use crate::{Error, Result, SessionId, Stream};

/// A write whose bytes are durable, or are sent with it.
pub(super) enum ReadyWrite {
    Put {
        id: String,
        labels: OutputLabels,
        /// The output, and then its text projection if it has one.
        images: Vec<ReadyImage>,
    },
    Append {
        stream: Stream,
        expected: u64,
        /// The sizes before compression of the compressed entries.
        sizes: Vec<Option<i64>>,
        entries: Vec<Vec<u8>>,
    },
}

/// Writes to one session. The session is created if it is new, and marked as used.
pub(super) struct SessionTransaction {
    pub(super) session: SessionId,
    /// None for the time of the database.
    pub(super) now: Option<i64>,
    /// The secret that the outputs were named with.
    pub(super) known: Option<SessionSecret>,
    /// The secret of the session if it is new.
    pub(super) fresh: SessionSecret,
    pub(super) writes: Vec<ReadyWrite>,
}

/// The statements of a transaction, prepared once per connection.
struct WriteStatements {
    use_session: Statement,
    hold: Statement,
    name: Statement,
    append: Statement,
}

/// A statement that was sent.
type SentStatement<'t> =
    Pin<Box<dyn Future<Output = Result<Vec<Row>, tokio_postgres::Error>> + Send + 't>>;

/// Sends statements over a connection without waiting for the answers.
struct StatementSender<'t> {
    connection: &'t Object,
    sent: Vec<SentStatement<'t>>,
}

impl<'t> StatementSender<'t> {
    fn command(&mut self, command: &'static str) {
        let connection = self.connection;
        self.sent.push(Box::pin(async move {
            connection.batch_execute(command).await?;
            Ok(Vec::new())
        }));
    }

    fn statement(&mut self, statement: &'t Statement, values: Vec<SqlValue<'t>>) {
        let connection = self.connection;
        self.sent.push(Box::pin(async move {
            let values: Vec<_> = values.iter().map(SqlValue::as_sql).collect();
            let values: SqlValues<'_> = &values;
            connection.query(statement, values).await
        }));
    }
}

/// A value of a statement, owned or borrowed.
enum SqlValue<'t> {
    Bytes(Option<&'t [u8]>),
    Owned(Vec<u8>),
    Text(&'t str),
    Number(i64),
    Time(Option<i64>),
    Stream(i16),
    Flag(bool),
    Sizes(&'t Vec<Option<i64>>),
    Entries(&'t Vec<Vec<u8>>),
}

impl SqlValue<'_> {
    fn as_sql(&self) -> &(dyn tokio_postgres::types::ToSql + Sync) {
        match self {
            Self::Bytes(value) => value,
            Self::Owned(value) => value,
            Self::Text(value) => value,
            Self::Number(value) => value,
            Self::Time(value) => value,
            Self::Stream(value) => value,
            Self::Flag(value) => value,
            Self::Sizes(value) => value,
            Self::Entries(value) => value,
        }
    }
}

impl SessionTransaction {
    /// Executes the writes. Returns the bodies that are not needed, because the store has equal
    /// bytes already.
    ///
    /// All statements are sent at once, in one round trip. After a statement that fails, the
    /// database rejects the others and treats the commit as a rollback.
    pub(super) async fn run(self, connection: Object) -> Result<Vec<BodyName>> {
        let prepared = WriteStatements::prepare(&connection).await;
        let prepared = prepared.map_err(from_postgres)?;
        let mut sender = StatementSender {
            connection: &connection,
            sent: Vec::new(),
        };
        sender.command("BEGIN");
        let known = self
            .known
            .as_ref()
            .map(|secret| secret.as_bytes().as_slice());
        sender.statement(
            &prepared.use_session,
            vec![
                self.name(),
                SqlValue::Bytes(Some(self.fresh.as_bytes())),
                SqlValue::Bytes(known),
                SqlValue::Time(self.now),
            ],
        );
        for write in &self.writes {
            self.send(write, &prepared, &mut sender);
        }
        sender.command("COMMIT");
        // Wait for all of them: the connection must not return to the pool inside a transaction.
        let mut answers = Vec::new();
        for answer in join_all(sender.sent).await {
            answers.extend(answer.map_err(|error| self.explain(from_postgres(error)))?);
        }
        Ok(self.unused_bodies(&answers))
    }

    fn name(&self) -> SqlValue<'_> {
        SqlValue::Bytes(Some(self.session.as_str().as_bytes()))
    }

    fn send<'t>(
        &'t self,
        write: &'t ReadyWrite,
        prepared: &'t WriteStatements,
        sender: &mut StatementSender<'t>,
    ) {
        match write {
            ReadyWrite::Put { id, labels, images } => {
                // Blobs come before the output that names them.
                for image in images {
                    sender.statement(&prepared.hold, self.hold(image));
                }
                sender.statement(&prepared.name, self.name_output(id, labels, images));
            }
            ReadyWrite::Append {
                stream,
                expected,
                sizes,
                entries,
            } => sender.statement(
                &prepared.append,
                vec![
                    self.name(),
                    SqlValue::Stream(i16::from(stream.number())),
                    SqlValue::Number(signed(*expected)),
                    SqlValue::Sizes(sizes),
                    SqlValue::Entries(entries),
                ],
            ),
        }
    }

    fn hold<'t>(&'t self, image: &'t ReadyImage) -> Vec<SqlValue<'t>> {
        vec![
            self.name(),
            SqlValue::Bytes(Some(&image.scan.digest)),
            SqlValue::Number(signed(image.scan.byte_size)),
            SqlValue::Number(signed(image.scan.newlines)),
            SqlValue::Number(signed(image.outline.image_size())),
            SqlValue::Owned(image.outline.encode()),
            SqlValue::Text(&image.body.name),
            SqlValue::Flag(image.body.in_object_store),
            SqlValue::Bytes(image.inline.as_deref()),
            SqlValue::Time(self.now),
        ]
    }

    fn name_output<'t>(
        &'t self,
        id: &'t str,
        labels: &'t OutputLabels,
        images: &'t [ReadyImage],
    ) -> Vec<SqlValue<'t>> {
        let digest = |at: usize| images.get(at).map(|image| image.scan.digest.as_slice());
        vec![
            self.name(),
            SqlValue::Text(id),
            SqlValue::Bytes(digest(0)),
            SqlValue::Bytes(digest(1)),
            SqlValue::Bytes(Some(labels.call.as_bytes())),
            SqlValue::Bytes(Some(labels.tool.as_bytes())),
            SqlValue::Bytes(Some(labels.media_type.as_bytes())),
            SqlValue::Time(self.now),
        ]
    }

    /// Adds the expected position to a conflict. The database reports only the actual one.
    fn explain(&self, error: Error) -> Error {
        let Error::Conflict { stream, actual, .. } = error else {
            return error;
        };
        let of_stream = self.writes.iter().find_map(|write| match write {
            ReadyWrite::Append {
                stream: to,
                expected,
                ..
            } if to.as_str() == stream => Some(*expected),
            _ => None,
        });
        Error::Conflict {
            stream,
            expected: of_stream.unwrap_or_default(),
            actual,
        }
    }

    /// The stored bodies that no row names. Only `hold_blob` returns texts.
    fn unused_bodies(&self, answers: &[Row]) -> Vec<BodyName> {
        let kept: Vec<&str> = answers
            .iter()
            .filter_map(|row| row.try_get(0).ok())
            .collect();
        let images = self.writes.iter().flat_map(|write| match write {
            ReadyWrite::Put { images, .. } => images.as_slice(),
            ReadyWrite::Append { .. } => &[],
        });
        images
            .filter(|image| image.inline.is_none() && !kept.contains(&image.body.name.as_str()))
            .map(|image| image.body.clone())
            .collect()
    }
}

impl WriteStatements {
    async fn prepare(connection: &Object) -> Result<Self, tokio_postgres::Error> {
        let (use_session, hold, name, append) = tokio::try_join!(
            connection.prepare_cached(concat!(
                "SELECT trimtab.use_session($1, $2, $3, ",
                time_or_now!("$4"),
                ")"
            )),
            connection.prepare_cached(concat!(
                "SELECT trimtab.hold_blob($1, $2, $3, $4, $5, $6, $7, $8, $9, ",
                time_or_now!("$10"),
                ")"
            )),
            connection.prepare_cached(concat!(
                "SELECT trimtab.name_output($1, $2, $3, $4, $5, $6, $7, ",
                time_or_now!("$8"),
                ")"
            )),
            connection.prepare_cached("SELECT trimtab.append_entries($1, $2, $3, $4, $5)"),
        )?;
        Ok(Self {
            use_session,
            hold,
            name,
            append,
        })
    }
}

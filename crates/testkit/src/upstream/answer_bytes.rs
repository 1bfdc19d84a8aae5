//! An answer as bytes and waits.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::{HeaderName, HeaderValue};
use http_body::{Frame, SizeHint};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::answer::AnswerEvent;
use super::socket::Fuse;

/// How long the client has to read what came before a connection breaks.
pub(super) const BEFORE_BREAK: Duration = Duration::from_millis(20);

/// An answer as it is sent.
#[derive(Debug, Default)]
pub(super) struct Parcel {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    /// The wait before the headers.
    pub(super) late: Duration,
    pub(super) pieces: Vec<ParcelPiece>,
    pub(super) end: ParcelEnd,
}

/// A step of sending a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ParcelPiece {
    Bytes(Bytes),
    Wait(Duration),
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ParcelEnd {
    #[default]
    Clean,
    /// The connection is reset behind the pieces.
    Reset,
    /// The connection is reset before the headers.
    Nothing,
}

impl Parcel {
    /// A JSON document.
    pub(super) fn json(status: u16, value: &Value) -> Self {
        let bytes = Bytes::from(value.to_string());
        Self::new(status, "application/json", [bytes])
    }

    /// A stream of events, as they are.
    pub(super) fn events(events: &[AnswerEvent]) -> Self {
        let pieces = events.iter().map(|event| event.to_text("\n").into());
        Self::new(200, "text/event-stream; charset=utf-8", pieces)
    }

    pub(super) fn new(
        status: u16,
        content_type: &str,
        bytes: impl IntoIterator<Item = Bytes>,
    ) -> Self {
        Self {
            status,
            headers: vec![("content-type", content_type.to_owned())],
            pieces: bytes.into_iter().map(ParcelPiece::Bytes).collect(),
            ..Self::default()
        }
    }

    /// Sends it; the body follows from a task of its own where it takes time.
    pub(super) async fn deliver(self, fuse: Fuse) -> io::Result<Response<ParcelBody>> {
        pause(self.late).await;
        if self.end == ParcelEnd::Nothing {
            fuse.blow();
            return Err(io::Error::from(io::ErrorKind::ConnectionReset));
        }
        let mut response = Response::new(ParcelBody::Whole(None));
        *response.status_mut() = http::StatusCode::from_u16(self.status).unwrap_or_default();
        for (name, value) in &self.headers {
            let name = HeaderName::from_static(name);
            if let Ok(value) = HeaderValue::from_str(value) {
                response.headers_mut().insert(name, value);
            }
        }
        let fixed = self
            .headers
            .iter()
            .any(|(name, _)| *name == "content-length");
        *response.body_mut() = match self.pieces.as_slice() {
            [ParcelPiece::Bytes(bytes)] if self.end == ParcelEnd::Clean && !fixed => {
                ParcelBody::Whole(Some(bytes.clone()))
            }
            _ => self.stream(fuse),
        };
        Ok(response)
    }

    fn stream(self, fuse: Fuse) -> ParcelBody {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            for piece in self.pieces {
                match piece {
                    ParcelPiece::Wait(time) => pause(time).await,
                    ParcelPiece::Bytes(bytes) => {
                        if sender.send(Ok(bytes)).await.is_err() {
                            return;
                        }
                    }
                }
            }
            if self.end == ParcelEnd::Reset {
                sleep(BEFORE_BREAK).await;
                fuse.blow();
                let error = io::Error::from(io::ErrorKind::ConnectionReset);
                let _ = sender.send(Err(error)).await;
            }
        });
        ParcelBody::Pieces(receiver)
    }
}

/// Waits; no time at all only lets others run, since a timer would take a millisecond.
async fn pause(time: Duration) {
    if time.is_zero() {
        tokio::task::yield_now().await;
    } else {
        sleep(time).await;
    }
}

/// The body of an answer.
pub(super) enum ParcelBody {
    /// All at once, with its length.
    Whole(Option<Bytes>),
    /// Piece by piece.
    Pieces(mpsc::Receiver<io::Result<Bytes>>),
}

impl http_body::Body for ParcelBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces(receiver) => receiver
                .poll_recv(context)
                .map(|piece| piece.map(|piece| piece.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Pieces(_) => SizeHint::default(),
        }
    }
}

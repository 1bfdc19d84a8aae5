//! What comes back from a model, piece by piece.

use std::future::Future;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use trimtab_model::{Call, Usage};

use super::{Answer, ModelError};

/// Pieces that may wait for their reader: enough not to stall the connection over a redraw.
const WAITING: usize = 256;

/// One piece of a reply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Piece {
    /// More text of the answer.
    Text(String),
    /// More of what the model thinks.
    Reasoning(String),
    /// A call, complete.
    Call(Call),
    /// What the provider reports so far.
    Usage(Usage),
    /// The call failed before anything was delivered, and is made again after a while.
    Retry {
        /// Which attempt failed, from 1.
        attempt: u32,
        /// How long until the next.
        wait: Duration,
        /// Why it failed.
        why: String,
    },
    /// The whole answer. Nothing comes after it.
    End(Box<Answer>),
}

/// A reply on its way. Dropping it breaks the call off.
#[derive(Debug)]
pub struct Reply {
    pieces: mpsc::Receiver<Result<Piece, ModelError>>,
    work: AbortHandle,
}

/// Where a backend puts the pieces of a reply.
#[derive(Clone, Debug)]
pub struct Sink(mpsc::Sender<Result<Piece, ModelError>>);

impl Reply {
    /// A reply whose pieces are made by `work`, which ends with the answer or an error. Must
    /// be called within a tokio runtime.
    pub fn spawn<F, W>(work: F) -> Self
    where
        F: FnOnce(Sink) -> W,
        W: Future<Output = Result<Answer, ModelError>> + Send + 'static,
    {
        let (sender, pieces) = mpsc::channel(WAITING);
        let work = work(Sink(sender.clone()));
        let task = tokio::spawn(async move {
            let last = work.await.map(|answer| Piece::End(Box::new(answer)));
            // Nobody listens any more: then nobody needs the end either.
            let _ = sender.send(last).await;
        });
        Self {
            pieces,
            work: task.abort_handle(),
        }
    }

    /// The next piece; none after the end or an error. It may be dropped while it waits and
    /// asked again: no piece is lost.
    pub async fn next(&mut self) -> Option<Result<Piece, ModelError>> {
        self.pieces.recv().await
    }

    /// Waits for the whole answer.
    pub async fn answer(mut self) -> Result<Answer, ModelError> {
        while let Some(piece) = self.next().await {
            if let Piece::End(answer) = piece? {
                return Ok(*answer);
            }
        }
        Err(ModelError::Cut {
            why: "the client ended without an answer".to_owned(),
        })
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl Sink {
    /// Hands a piece on; waits while the reader is far behind.
    pub async fn send(&self, piece: Piece) {
        // A reader that is gone has aborted this work already.
        let _ = self.0.send(Ok(piece)).await;
    }
}

//! The streamed reply of a model.

use std::future::Future;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::{ModelAnswer, ModelError};

/// How many pieces may wait for the reader, so that a slow redraw does not stall the connection.
const WAITING: usize = 256;

/// One piece of a reply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReplyPiece {
    /// More text of the answer.
    Text(String),
    /// More of the model's reasoning.
    Reasoning(String),
    /// The call failed before anything was delivered, and is repeated after a delay.
    Retry {
        /// The number of the failed attempt, from 1.
        attempt: u32,
        /// The delay before the next attempt.
        wait: Duration,
        /// The reason.
        why: String,
    },
    /// The complete answer, always the last piece.
    End(Box<ModelAnswer>),
}

/// A reply in progress. Dropping it aborts the call.
#[derive(Debug)]
pub struct ModelReply {
    pieces: mpsc::Receiver<Result<ReplyPiece, ModelError>>,
    work: AbortHandle,
}

/// The sending end of a reply, for backends.
#[derive(Clone, Debug)]
pub struct ReplySink(mpsc::Sender<Result<ReplyPiece, ModelError>>);

impl ModelReply {
    /// A reply whose pieces `work` produces; it ends with the answer or an error. Requires a tokio
    /// runtime.
    pub fn spawn<F, W>(work: F) -> Self
    where
        F: FnOnce(ReplySink) -> W,
        W: Future<Output = Result<ModelAnswer, ModelError>> + Send + 'static,
    {
        let (sender, pieces) = mpsc::channel(WAITING);
        let work = work(ReplySink(sender.clone()));
        let task = tokio::spawn(async move {
            let last = work.await.map(|answer| ReplyPiece::End(Box::new(answer)));
            // If nobody listens any more, nobody needs the end either.
            let _ = sender.send(last).await;
        });
        Self {
            pieces,
            work: task.abort_handle(),
        }
    }

    /// The next piece; none after the end or an error. Cancel-safe: no piece is lost.
    pub async fn next(&mut self) -> Option<Result<ReplyPiece, ModelError>> {
        self.pieces.recv().await
    }

    /// Waits for the complete answer.
    pub async fn answer(mut self) -> Result<ModelAnswer, ModelError> {
        while let Some(piece) = self.next().await {
            if let ReplyPiece::End(answer) = piece? {
                return Ok(*answer);
            }
        }
        Err(ModelError::Cut {
            why: "the client ended without an answer".to_owned(),
        })
    }
}

impl Drop for ModelReply {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl ReplySink {
    /// Sends a piece; waits while the reader is far behind.
    pub async fn send(&self, piece: ReplyPiece) {
        // If the reader is gone, this task has already been aborted.
        let _ = self.0.send(Ok(piece)).await;
    }
}

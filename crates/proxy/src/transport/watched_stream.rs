//! The bytes of a connection, watched to see whether its client keeps up.
//!
//! A client may close its sending half after a request and still wait for the answer. The network
//! does not tell that from a client that is gone; only for a client on this machine do we know, and
//! only there does its answer go on.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::transport::connections::Connection;
use crate::transport::peer_socket::PeerSocket;

/// How often to look whether a client that sends no more still waits.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A stream that reports reads and writes to its connection, and removes the connection when it is
/// dropped, also as a tunnel.
pub(crate) struct WatchedStream<S> {
    inner: S,
    connection: Arc<Connection>,
    /// The client's socket, if it is on this machine.
    socket: Option<PeerSocket>,
    /// Wakes the reader to look again whether its client still waits.
    look_again: Option<Pin<Box<Sleep>>>,
}

impl<S> WatchedStream<S> {
    /// Watches the stream of `connection`.
    pub(crate) fn new(inner: S, connection: Arc<Connection>, socket: Option<PeerSocket>) -> Self {
        Self {
            inner,
            connection,
            socket,
            look_again: None,
        }
    }

    /// True if the client that has sent everything waits for its answer. Then the reader is woken
    /// to ask again.
    fn is_awaited(&mut self, context: &mut Context<'_>) -> bool {
        let is_answering = self.connection.progress().is_answering();
        if !is_answering || !self.socket.is_some_and(PeerSocket::is_open) {
            return false;
        }
        let mut sleep = Box::pin(tokio::time::sleep(LOOK_EVERY));
        if sleep.as_mut().poll(context).is_ready() {
            context.waker().wake_by_ref();
        }
        self.look_again = Some(sleep);
        true
    }

    /// Reports the result of a write.
    fn note(&self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let now = Instant::now();
        match &polled {
            Poll::Pending => self.connection.progress().note_blocked(now),
            Poll::Ready(_) => self.connection.progress().note_written(now),
        }
        polled
    }
}

impl<S> Drop for WatchedStream<S> {
    fn drop(&mut self) {
        self.connection.leave();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        // A read of zero bytes is the end of the stream, and no progress.
        if buffer.filled().len() > before {
            self.connection.progress().note_read(Instant::now());
        } else if matches!(polled, Poll::Ready(Ok(()))) && self.is_awaited(context) {
            return Poll::Pending;
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.note(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write_vectored(context, bytes);
        self.note(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

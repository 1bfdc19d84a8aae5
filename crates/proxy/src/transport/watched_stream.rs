//! The bytes of a connection, watched to see whether its client keeps up.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transport::connections::Connection;

/// A stream that reports reads and writes to its connection, and removes the connection when it is
/// dropped, also as a tunnel.
pub(crate) struct WatchedStream<S> {
    inner: S,
    connection: Arc<Connection>,
}

impl<S> WatchedStream<S> {
    /// Watches the stream of `connection`.
    pub(crate) fn new(inner: S, connection: Arc<Connection>) -> Self {
        Self { inner, connection }
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

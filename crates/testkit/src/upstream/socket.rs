//! A connection that can be reset.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Says that a connection is to end with a reset.
#[derive(Clone, Debug, Default)]
pub(super) struct Fuse(Arc<AtomicBool>);

impl Fuse {
    pub(super) fn blow(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A connection that is reset instead of closed once its fuse is blown.
pub(super) struct Socket {
    stream: TcpStream,
    fuse: Fuse,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, fuse: Fuse) -> Self {
        Self { stream, fuse }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.fuse.0.load(Ordering::Acquire) {
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.fuse.0.load(Ordering::Acquire) {
            // A polite end would reach the client before the reset.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

//! Hand-written HTTP/1.1: an upstream that disconnects at any point, and a client that sees every
//! byte.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use std::collections::HashMap;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Headers that concern one connection, or how a body is framed on it.
const OF_A_CONNECTION: [&str; 5] = [
    "connection",
    "keep-alive",
    "transfer-encoding",
    "content-length",
    "te",
];

/// A request or an answer as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    /// The first line.
    pub(crate) first: String,
    /// Names in lower case, sorted, without those of one connection.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// True if it ended before its end.
    pub(crate) is_cut: bool,
}

impl Read {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    pub(crate) fn without(mut self, leave_out: impl Fn(&str) -> bool) -> Self {
        self.headers.retain(|(name, _)| !leave_out(name));
        self
    }
}

/// A connection, and what was read from it too early.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn to(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self::new(stream))
    }

    fn new(stream: TcpStream) -> Self {
        let buffer = Vec::new();
        Self { stream, buffer }
    }

    /// Sends a request and reads the answer; none if the connection was closed without one.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<Option<Read>> {
        self.stream.write_all(request).await?;
        self.read(true).await
    }

    /// Reads a request or an answer; none if the connection ends before its head does.
    async fn read(&mut self, is_answer: bool) -> Result<Option<Read>> {
        let end = loop {
            if let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n\r\n") {
                break end;
            }
            if !self.more().await? {
                return Ok(None);
            }
        };
        let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        self.buffer.drain(..end + 4);
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default().to_owned();
        let all: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect();
        let value = |name: &str| {
            let found = all.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        let mut body = Vec::new();
        let whole = if value("transfer-encoding").is_some() {
            self.chunks(&mut body).await?
        } else if let Some(length) = value("content-length") {
            let length = length.parse().map_err(|_| ErrorKind::InvalidData)?;
            self.exactly(length, &mut body).await?
        } else if is_answer {
            while self.more().await? {}
            body = std::mem::take(&mut self.buffer);
            true
        } else {
            true
        };
        let mut headers = all;
        headers.retain(|(name, _)| !OF_A_CONNECTION.contains(&name.as_str()));
        headers.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(Some(Read {
            first,
            headers,
            body,
            is_cut: !whole,
        }))
    }

    async fn chunks(&mut self, body: &mut Vec<u8>) -> Result<bool> {
        loop {
            let end = loop {
                if let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n") {
                    break end;
                }
                if !self.more().await? {
                    return Ok(false);
                }
            };
            let line = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
            let size =
                usize::from_str_radix(line.trim(), 16).map_err(|_| ErrorKind::InvalidData)?;
            self.buffer.drain(..end + 2);
            if !self.exactly(size, body).await? || !self.exactly(2, &mut Vec::new()).await? {
                return Ok(false);
            }
            if size == 0 {
                return Ok(true);
            }
        }
    }

    async fn exactly(&mut self, length: usize, to: &mut Vec<u8>) -> Result<bool> {
        while self.buffer.len() < length {
            if !self.more().await? {
                to.append(&mut self.buffer);
                return Ok(false);
            }
        }
        to.extend(self.buffer.drain(..length));
        Ok(true)
    }

    /// Reads more; false at the end, however the connection ends.
    async fn more(&mut self) -> Result<bool> {
        self.buffer.reserve(16 << 10);
        match self.stream.read_buf(&mut self.buffer).await {
            Ok(read) => Ok(read > 0),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Where an upstream hangs up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HangUp {
    Never,
    BeforeHeaders,
    InHeaders,
    InBody,
    InChunk,
    BetweenChunks,
    InEvent,
}

type Answering = dyn Fn(&Read) -> (Vec<u8>, HangUp) + Send + Sync;

/// An upstream that answers with bytes, and remembers each request by its header `x-case`.
pub(crate) struct RawUpstream {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<HashMap<String, Read>>>,
}

impl RawUpstream {
    pub(crate) async fn start(
        answer: impl Fn(&Read) -> (Vec<u8>, HangUp) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(HashMap::new()));
        let (answer, kept): (Arc<Answering>, _) = (Arc::new(answer), Arc::clone(&seen));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).ok();
                let connection = Connection::new(stream);
                tokio::spawn(serve(connection, Arc::clone(&answer), Arc::clone(&kept)));
            }
        });
        Self { address, seen }
    }

    /// What was asked last under a number, once.
    pub(crate) fn take(&self, case: &str) -> Option<Read> {
        self.seen.lock().unwrap().remove(case)
    }
}

async fn serve(
    mut connection: Connection,
    answer: Arc<Answering>,
    seen: Arc<Mutex<HashMap<String, Read>>>,
) -> Result<()> {
    while let Some(asked) = connection.read(false).await? {
        let (bytes, hang_up) = answer(&asked);
        let case = asked.header("x-case").to_owned();
        seen.lock().unwrap().insert(case, asked);
        connection.stream.write_all(&bytes).await?;
        if hang_up != HangUp::Never {
            connection.stream.shutdown().await?;
            return Err(Error::from(ErrorKind::ConnectionAborted));
        }
    }
    Ok(())
}

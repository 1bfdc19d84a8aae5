//! Servers that record every byte they receive.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What every request is answered with.
const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
    content-length: 2\r\nconnection: close\r\n\r\n{}";

/// Bytes, as text.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<u8>>>);

impl Heard {
    pub(crate) fn add(&self, bytes: &[u8]) {
        self.0.lock().unwrap().extend_from_slice(bytes);
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

/// A server that answers every request with an empty object.
pub(crate) struct Recorder {
    pub(crate) url: String,
    heard: Heard,
}

impl Recorder {
    pub(crate) fn start() -> Self {
        let heard = Heard::default();
        let ours = heard.clone();
        let address = serve(move |stream| answer(stream, &ours));
        Self {
            url: format!("http://{address}"),
            heard,
        }
    }

    /// Everything that was sent so far.
    pub(crate) fn heard(&self) -> String {
        self.heard.text()
    }
}

/// Lets `each` deal with every connection, on a thread of its own.
pub(crate) fn serve(each: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let each = Arc::new(each);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let each = Arc::clone(&each);
            thread::spawn(move || each(stream));
        }
    });
    address
}

/// Reads one request, and answers it.
pub(crate) fn answer(mut stream: impl Read + Write, heard: &Heard) {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    while !is_whole(&request) {
        match stream.read(&mut piece) {
            Ok(read) if read > 0 => {
                request.extend_from_slice(&piece[..read]);
                heard.add(&piece[..read]);
            }
            _ => return,
        }
    }
    // Whoever asked may be gone.
    drop(stream.write_all(ANSWER.as_bytes()));
    drop(stream.flush());
}

/// True if a request is there with all of its body.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.split_once("content-length: ");
    let length = length.and_then(|(_, rest)| rest.split("\r\n").next()?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

/// An egress proxy that leads every tunnel to `target`.
pub(crate) struct EgressProxy {
    pub(crate) address: SocketAddr,
    heard: Heard,
}

impl EgressProxy {
    pub(crate) fn start(target: SocketAddr) -> Self {
        let heard = Heard::default();
        let ours = heard.clone();
        let address = serve(move |stream| lead(stream, target, &ours));
        Self { address, heard }
    }

    /// The heads of the requests for tunnels.
    pub(crate) fn heard(&self) -> String {
        self.heard.text()
    }
}

fn lead(mut client: TcpStream, target: SocketAddr, heard: &Heard) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match client.read(&mut byte) {
            Ok(1) => head.extend_from_slice(&byte),
            _ => return,
        }
    }
    heard.add(&head);
    let server = TcpStream::connect(target).unwrap();
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let pipe = |mut from: TcpStream, mut to: TcpStream| {
        thread::spawn(move || {
            drop(std::io::copy(&mut from, &mut to));
            drop(to.shutdown(std::net::Shutdown::Write));
        })
    };
    let up = pipe(client.try_clone().unwrap(), server.try_clone().unwrap());
    let down = pipe(server, client);
    drop((up.join(), down.join()));
}

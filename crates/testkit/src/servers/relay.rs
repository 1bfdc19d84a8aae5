//! A relay before a server that can fail in the ways of a network.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How a relay treats connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayMode {
    /// Forwards everything.
    Forward,
    /// Closes all connections, as if the server were stopped.
    Refuse,
    /// Keeps connections open and forwards nothing, as if the server or the network hung.
    Stall,
    /// Answers every HTTP request with status 503.
    Unavailable,
    /// Forwards everything, but holds back each answer for ten seconds.
    Slow,
}

/// How long a slow relay holds back an answer.
const SLOWNESS: Duration = Duration::from_secs(10);

/// A relay on loopback.
pub struct FaultyRelay {
    address: SocketAddr,
    target: Arc<Mutex<SocketAddr>>,
    mode: Arc<AtomicU8>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    round_trips: Arc<AtomicU64>,
}

impl FaultyRelay {
    /// Starts a relay to `target`.
    pub fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let relay = Self {
            address: listener.local_addr()?,
            target: Arc::new(Mutex::new(target)),
            mode: Arc::default(),
            open: Arc::default(),
            round_trips: Arc::default(),
        };
        let (mode, open) = (Arc::clone(&relay.mode), Arc::clone(&relay.open));
        let round_trips = Arc::clone(&relay.round_trips);
        let target = Arc::clone(&relay.target);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let target = *target.lock().unwrap_or_else(PoisonError::into_inner);
                let connected = connect(&client, target, &mode, &open, &round_trips);
                // A client whose connection fails sees that it is closed.
                connected.unwrap_or(());
            }
        });
        Ok(relay)
    }

    /// The address that clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often a client sent something after an answer, over all connections.
    pub fn round_trips(&self) -> u64 {
        self.round_trips.load(Ordering::SeqCst)
    }

    /// Forwards new connections to another server, as an address that moves to it.
    pub fn retarget(&self, target: SocketAddr) {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = target;
    }

    /// Changes how connections are treated. Existing connections end, unless they stall.
    pub fn set(&self, mode: RelayMode) {
        self.mode.store(mode as u8, Ordering::SeqCst);
        if mode == RelayMode::Stall {
            return;
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in open.drain(..) {
            stream.shutdown(Shutdown::Both).unwrap_or(());
        }
    }
}

fn connect(
    client: &TcpStream,
    target: SocketAddr,
    mode: &Arc<AtomicU8>,
    open: &Mutex<Vec<TcpStream>>,
    round_trips: &Arc<AtomicU64>,
) -> io::Result<()> {
    let now = mode.load(Ordering::SeqCst);
    if now == RelayMode::Refuse as u8 {
        return Ok(());
    }
    if now == RelayMode::Unavailable as u8 {
        let answer = "HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let mut client = client.try_clone()?;
        std::thread::spawn(move || {
            let mut request = [0; 4096];
            let read = client.read(&mut request);
            read.and_then(|_| client.write_all(answer.as_bytes()))
                .unwrap_or(());
        });
        return Ok(());
    }
    let server = TcpStream::connect(target)?;
    let mut kept = open.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push(client.try_clone()?);
    kept.push(server.try_clone()?);
    drop(kept);
    let client_spoke = Arc::new(AtomicBool::new(false));
    for (from, to, is_client) in [(client, &server, true), (&server, client, false)] {
        let (from, to, mode) = (from.try_clone()?, to.try_clone()?, Arc::clone(mode));
        let (client_spoke, round_trips) = (Arc::clone(&client_spoke), Arc::clone(round_trips));
        let note = move || {
            if !client_spoke.swap(is_client, Ordering::SeqCst) && is_client {
                round_trips.fetch_add(1, Ordering::SeqCst);
            }
        };
        std::thread::spawn(move || {
            forward(&from, &to, &mode, is_client, &note).unwrap_or(());
            to.shutdown(Shutdown::Both).unwrap_or(());
        });
    }
    Ok(())
}

fn forward(
    mut from: &TcpStream,
    mut to: &TcpStream,
    mode: &AtomicU8,
    is_client: bool,
    note: &dyn Fn(),
) -> io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut bytes)?;
        if count == 0 {
            return Ok(());
        }
        note();
        while mode.load(Ordering::SeqCst) == RelayMode::Stall as u8 {
            std::thread::sleep(Duration::from_millis(10));
        }
        if !is_client && mode.load(Ordering::SeqCst) == RelayMode::Slow as u8 {
            std::thread::sleep(SLOWNESS);
        }
        to.write_all(bytes.get(..count).unwrap_or_default())?;
    }
}

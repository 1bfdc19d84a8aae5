//! Real servers for tests of the shared store: PostgreSQL, and an S3-compatible server.
//!
//! A server is started for the test process, on loopback and in a temporary folder, and stops when
//! the process ends, even if it is killed. A test without its server says so and passes; with
//! `TRIMTAB_SERVERS=required`, as in `./test`, it fails instead.

mod objects;
mod postgres;
mod relay;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub use objects::ObjectServer;
pub use postgres::{PostgresServer, PostgresSetup};
pub use relay::{FaultyRelay, RelayMode};

/// How long a server may take to start.
const START: Duration = Duration::from_mins(1);
/// Ends the server when the standard input is closed: that happens when the test process ends.
const SUPERVISE: &str = r#"folder=$1; shift; "$@" >"$folder/log" 2>&1 & server=$!
    cat >/dev/null; kill -INT "$server" 2>/dev/null; wait "$server"; rm -rf "$folder""#;

/// A server process. It stops when this is dropped.
struct ServerProcess {
    _supervisor: Child,
    address: SocketAddr,
}

impl ServerProcess {
    /// Runs a command in `folder` until this is dropped, and waits until it accepts connections.
    fn start(folder: &Path, port: u16, command: &[&str]) -> io::Result<Self> {
        let supervisor = Command::new("sh")
            .args(["-c", SUPERVISE, "sh"])
            .arg(folder)
            .args(command)
            .stdin(Stdio::piped())
            .spawn()?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            if began.elapsed() > START {
                let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
                return Err(io::Error::other(format!("it does not start: {log}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self {
            _supervisor: supervisor,
            address,
        })
    }
}

/// The server, or a note that it is missing.
#[expect(
    clippy::print_stderr,
    clippy::panic,
    reason = "a test says what it skips"
)]
fn started<T>(name: &str, started: io::Result<T>) -> Option<T> {
    match started {
        Ok(server) => Some(server),
        Err(error) if std::env::var_os("TRIMTAB_SERVERS").is_some_and(|how| how == "required") => {
            panic!("{name} cannot be started: {error}")
        }
        Err(error) => {
            eprintln!("SKIPPED: {name} cannot be started: {error}");
            None
        }
    }
}

fn temporary_folder(purpose: &str) -> io::Result<PathBuf> {
    let name = format!("trimtab-{purpose}-{}-{}", std::process::id(), free_port()?);
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir(&folder)?;
    Ok(folder)
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn run(command: &mut Command) -> io::Result<String> {
    let done = command.output()?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned());
    }
    let text = String::from_utf8_lossy(&done.stderr);
    Err(io::Error::other(format!("{}: {text}", done.status)))
}

//! Real servers for tests of the shared store: PostgreSQL, and an S3-compatible server.
//!
//! A server is started for the test process, on loopback and in a temporary folder, and stops when
//! the process ends, even if it is killed. A test without its server says so and passes; with
//! `TRIMTAB_SERVERS=required`, as in `./test`, it fails instead.

mod relay;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub use relay::{FaultyRelay, RelayMode};

/// How long a server may take to start.
const START: Duration = Duration::from_mins(1);
/// Ends the server when the standard input is closed: that happens when the test process ends.
const SUPERVISE: &str = r#"folder=$1; shift; "$@" >"$folder/log" 2>&1 & server=$!
    cat >/dev/null; kill -INT "$server"; wait "$server"; rm -rf "$folder""#;

/// Settings of PostgreSQL. Tests end processes, and never the machine, so commits need no disk.
const SETTINGS: &str = "fsync = off\nmax_connections = 300\n";

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

/// A PostgreSQL server.
pub struct PostgresServer {
    process: ServerProcess,
    programs: PathBuf,
    databases: AtomicU32,
}

impl PostgresServer {
    /// The server of this test process. None if PostgreSQL is not installed.
    pub fn shared() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<PostgresServer>> = OnceLock::new();
        let start = || started("PostgreSQL", Self::start());
        SERVER.get_or_init(start).as_ref()
    }

    fn start() -> io::Result<Self> {
        let programs = postgres_programs()?;
        let folder = temporary_folder("postgres")?;
        let data = folder.join("data");
        // PostgreSQL refuses to run as root.
        let user: &[&str] = if rustix::process::getuid().is_root() {
            run(Command::new("chown").arg("postgres").arg(&folder))?;
            &[
                "setpriv",
                "--reuid=postgres",
                "--regid=postgres",
                "--clear-groups",
            ]
        } else {
            &[]
        };
        let (initdb, postgres) = (programs.join("initdb"), programs.join("postgres"));
        let (data, initdb, postgres) = (text(&data), text(&initdb), text(&postgres));
        let mut create = user.to_vec();
        create.extend([&initdb, "-D", &data, "-A", "trust", "-U", "postgres"]);
        create.extend(["-E", "UTF8", "--locale=C", "--no-sync"]);
        let (program, arguments) = create.split_first().ok_or(io::ErrorKind::NotFound)?;
        run(Command::new(program).args(arguments).current_dir(&folder))?;
        let settings = folder.join("data/postgresql.conf");
        let mut settings = std::fs::File::options().append(true).open(settings)?;
        settings.write_all(SETTINGS.as_bytes())?;
        let (port, sockets) = (free_port()?, text(&folder));
        let number = port.to_string();
        let mut serve = user.to_vec();
        serve.extend([&postgres, "-D", &data, "-p", &number, "-k", &sockets]);
        serve.extend(["-c", "listen_addresses=127.0.0.1"]);
        Ok(Self {
            process: ServerProcess::start(&folder, port, &serve)?,
            programs,
            databases: AtomicU32::new(0),
        })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.process.address
    }

    /// The URL of a new, empty database.
    pub fn new_database(&self) -> io::Result<String> {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"))?;
        Ok(format!("postgres://postgres@{}/{name}", self.address()))
    }

    /// Runs a statement in a database, and returns what it prints.
    pub fn sql(&self, database: &str, statement: &str) -> io::Result<String> {
        let port = self.address().port().to_string();
        run(Command::new(self.programs.join("psql"))
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                "-U",
                "postgres",
                "-d",
                database,
            ])
            .args(["-v", "ON_ERROR_STOP=1", "-qtAc", statement]))
    }
}

/// An S3-compatible server.
pub struct ObjectServer {
    process: ServerProcess,
    buckets: AtomicU32,
}

impl ObjectServer {
    /// The server of this test process. None if it is not installed.
    pub fn shared() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<ObjectServer>> = OnceLock::new();
        let start = || started("moto_server (S3)", Self::start());
        SERVER.get_or_init(start).as_ref()
    }

    fn start() -> io::Result<Self> {
        let folder = temporary_folder("objects")?;
        let port = free_port()?;
        let number = port.to_string();
        let command = ["moto_server", "-H", "127.0.0.1", "-p", &number];
        run(Command::new("moto_server").arg("--help"))?;
        Ok(Self {
            process: ServerProcess::start(&folder, port, &command)?,
            buckets: AtomicU32::new(0),
        })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.process.address
    }

    /// Creates a bucket and returns its name.
    pub fn new_bucket(&self) -> io::Result<String> {
        let name = format!("bucket-{}", self.buckets.fetch_add(1, Ordering::Relaxed));
        let answer = self.request("PUT", &format!("/{name}"))?;
        if answer.contains(" 200 ") {
            Ok(name)
        } else {
            Err(io::Error::other(answer))
        }
    }

    /// The URL of a bucket for clients that connect to `address`.
    pub fn url(bucket: &str, address: SocketAddr) -> String {
        format!(
            "s3://{bucket}/trimtab?endpoint=http://{address}&region=us-east-1\
             &access_key_id=test&secret_access_key=test"
        )
    }

    /// The number of objects in a bucket.
    pub fn object_count(&self, bucket: &str) -> io::Result<usize> {
        let listed = self.request("GET", &format!("/{bucket}?list-type=2"))?;
        Ok(listed.matches("<Key>").count())
    }

    fn request(&self, method: &str, path: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.address())?;
        let signed = "Authorization: AWS4-HMAC-SHA256 Credential=test/20300101/us-east-1/s3/\
             aws4_request, SignedHeaders=host, Signature=0";
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{signed}\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n",
            self.address()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
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

/// The folder with the programs of the newest PostgreSQL.
fn postgres_programs() -> io::Result<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql")?;
    let folders = installed.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    let newest = folders
        .filter(|folder| folder.join("initdb").exists())
        .max();
    newest.ok_or_else(|| io::Error::other("no initdb below /usr/lib/postgresql"))
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

//! PostgreSQL servers.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::{START, ServerProcess, free_port, run, started, temporary_folder, text};

/// Settings of all servers. Tests end processes, and never the machine, so commits need no disk.
const SETTINGS: &str = "fsync = off\nmax_connections = 300\n";

/// How a server differs from the one that most tests share.
#[derive(Clone, Debug, Default)]
pub struct PostgresSetup {
    /// Further lines of `postgresql.conf`.
    pub settings: String,
    /// The lines of `pg_hba.conf`; empty to let everybody in.
    pub access: String,
    /// Further files in the folder of the server, with their contents. Only the server reads them.
    pub files: Vec<(&'static str, String)>,
}

/// A PostgreSQL server.
pub struct PostgresServer {
    process: ServerProcess,
    programs: PathBuf,
    data: PathBuf,
    databases: AtomicU32,
}

impl PostgresServer {
    /// The server of this test process. None if PostgreSQL is not installed.
    pub fn shared() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<PostgresServer>> = OnceLock::new();
        let start = || Self::own(&PostgresSetup::default());
        SERVER.get_or_init(start).as_ref()
    }

    /// A server for one test. None if PostgreSQL is not installed.
    pub fn own(setup: &PostgresSetup) -> Option<Self> {
        started("PostgreSQL", Self::create(setup))
    }

    fn create(setup: &PostgresSetup) -> io::Result<Self> {
        let (programs, folder) = (postgres_programs()?, postgres_folder()?);
        let data = folder.join("data");
        let (initdb, place) = (text(&programs.join("initdb")), text(&data));
        let create = [&initdb, "-D", &place, "-A", "trust", "-U", "postgres"];
        let options = ["-E", "UTF8", "--locale=C", "--no-sync"];
        run_as_postgres(&folder, &[&create[..], &options].concat())?;
        append(&data.join("postgresql.conf"), SETTINGS)?;
        append(&data.join("postgresql.conf"), &setup.settings)?;
        if !setup.access.is_empty() {
            std::fs::write(data.join("pg_hba.conf"), &setup.access)?;
        }
        for (name, contents) in &setup.files {
            write_private(&data.join(name), contents)?;
        }
        Self::serve(programs, &folder, data)
    }

    /// A standby of this server, which receives everything that is committed here.
    pub fn standby(&self) -> io::Result<Self> {
        let folder = postgres_folder()?;
        let data = folder.join("data");
        let (backup, place) = (text(&self.programs.join("pg_basebackup")), text(&data));
        let port = self.address().port().to_string();
        let from = [&backup, "-h", "127.0.0.1", "-p", &port, "-U", "postgres"];
        let options = [
            "-D",
            &place,
            "-R",
            "-X",
            "stream",
            "--no-sync",
            "-c",
            "fast",
        ];
        run_as_postgres(&folder, &[&from[..], &options].concat())?;
        Self::serve(self.programs.clone(), &folder, data)
    }

    fn serve(programs: PathBuf, folder: &Path, data: PathBuf) -> io::Result<Self> {
        let (postgres, place) = (text(&programs.join("postgres")), text(&data));
        let (port, sockets) = (free_port()?, text(folder));
        let number = port.to_string();
        let mut serve = postgres_user().to_vec();
        serve.extend([&postgres, "-D", &place, "-p", &number, "-k", &sockets]);
        serve.extend(["-c", "listen_addresses=127.0.0.1"]);
        let server = Self {
            process: ServerProcess::start(folder, port, &serve)?,
            programs,
            data,
            databases: AtomicU32::new(0),
        };
        // It listens before it can answer.
        let began = Instant::now();
        while let Err(error) = server.sql("postgres", "SELECT 1") {
            if began.elapsed() > START {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
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
        // Through the local socket, which needs no password and no encryption.
        let folder = self.data.parent().unwrap_or(&self.data);
        run(Command::new(self.programs.join("psql"))
            .arg("-h")
            .arg(folder)
            .args(["-p", &port, "-U", "postgres", "-d", database])
            .args(["-v", "ON_ERROR_STOP=1", "-qtAc", statement]))
    }

    /// Ends it without a last word to its clients and its standby.
    pub fn crash(&self) -> io::Result<()> {
        let (control, place) = (text(&self.programs.join("pg_ctl")), text(&self.data));
        let stop = [&control, "-D", &place, "-m", "immediate", "-w", "stop"];
        run_as_postgres(self.data.parent().unwrap_or(&self.data), &stop)
    }

    /// Makes a standby the primary server.
    pub fn promote(&self) -> io::Result<()> {
        let promoted = self.sql("postgres", "SELECT pg_promote()")?;
        if promoted == "t" {
            return Ok(());
        }
        Err(io::Error::other("the standby does not become a primary"))
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

/// A folder that PostgreSQL may write.
fn postgres_folder() -> io::Result<PathBuf> {
    let folder = temporary_folder("postgres")?;
    if !postgres_user().is_empty() {
        run(Command::new("chown").arg("postgres").arg(&folder))?;
    }
    Ok(folder)
}

/// The start of a command line that runs as another user: PostgreSQL refuses to run as root.
fn postgres_user() -> &'static [&'static str] {
    if rustix::process::getuid().is_root() {
        &[
            "setpriv",
            "--reuid=postgres",
            "--regid=postgres",
            "--clear-groups",
        ]
    } else {
        &[]
    }
}

fn run_as_postgres(folder: &Path, command: &[&str]) -> io::Result<()> {
    let all = [postgres_user(), command].concat();
    let (program, arguments) = all.split_first().ok_or(io::ErrorKind::NotFound)?;
    run(Command::new(program).args(arguments).current_dir(folder))?;
    Ok(())
}

fn append(path: &Path, lines: &str) -> io::Result<()> {
    let mut file = std::fs::File::options().append(true).open(path)?;
    file.write_all(lines.as_bytes())
}

/// Writes a file that only the user of the server can read, as PostgreSQL wants it for keys.
fn write_private(path: &Path, contents: &str) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, contents)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    if !postgres_user().is_empty() {
        run(Command::new("chown").arg("postgres").arg(path))?;
    }
    Ok(())
}

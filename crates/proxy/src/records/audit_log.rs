//! The audit log: who did what, one JSON line for each request and each order.
//!
//! A thread of its own writes the lines. Requests never wait for it: if it cannot keep up, or the
//! file cannot be written, lines are lost and counted, and the operator is told once.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::records::record::Record;
use crate::resources::notices::Notices;

/// The maximum number of lines that wait to be written.
const WAITING: usize = 8_192;

/// The audit log of a proxy.
pub(crate) struct AuditLog {
    writer: Mutex<Option<AuditThread>>,
    lost: Arc<AtomicU64>,
    notices: Notices,
}

struct AuditThread {
    orders: SyncSender<AuditOrder>,
    thread: JoinHandle<()>,
}

enum AuditOrder {
    Write(String),
    Open(PathBuf),
}

/// The state of the writing thread.
struct AuditWriter {
    file: Option<File>,
    path: PathBuf,
    lost: Arc<AtomicU64>,
    notices: Notices,
    has_complained: bool,
}

impl AuditLog {
    /// No log yet.
    pub(crate) fn new(notices: Notices) -> Self {
        Self {
            writer: Mutex::default(),
            lost: Arc::default(),
            notices,
        }
    }

    /// Writes to `path` from now on; none disables the log. The same path is opened again, because
    /// the file may have been moved away.
    pub(crate) fn open(&self, path: Option<&Path>) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(path) = path.map(Path::to_path_buf) else {
            // Dropping the sender ends the thread after its last line.
            *writer = None;
            return;
        };
        match &*writer {
            Some(thread) => {
                if thread.orders.try_send(AuditOrder::Open(path)).is_err() {
                    self.notices
                        .warning("the audit log is behind and was not opened again");
                }
            }
            None => *writer = self.started(path),
        }
    }

    fn started(&self, path: PathBuf) -> Option<AuditThread> {
        let (orders, received) = sync_channel(WAITING);
        let mut writer = AuditWriter {
            file: None,
            path: PathBuf::new(),
            lost: Arc::clone(&self.lost),
            notices: self.notices.clone(),
            has_complained: false,
        };
        // Opened here and not on the thread, so that an operator is told of a wrong path at the
        // start.
        writer.open(path);
        let builder = std::thread::Builder::new().name("audit-log".to_owned());
        let started = builder.spawn(move || writer.run(&received));
        match started {
            Ok(thread) => Some(AuditThread { orders, thread }),
            Err(error) => {
                let text = format!("the audit log cannot be written: {error}");
                self.notices.error(&text);
                None
            }
        }
    }

    /// Writes the line of a request.
    pub(crate) fn request(&self, record: &Record) {
        self.write(|| line_of(record));
    }

    /// Writes the line of an order of the operator, such as `reload`.
    pub(crate) fn order(&self, action: &str, reason: &str) {
        let time_ms = trimtab_store::now_millis();
        self.write(|| json!({"time_ms": time_ms, "action": action, "reason": reason}));
    }

    fn write(&self, line: impl FnOnce() -> Value) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = &*writer else { return };
        let order = AuditOrder::Write(format!("{}\n", line()));
        if writer.orders.try_send(order).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number of lost lines.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until all lines are written, and ends the thread.
    pub(crate) fn close(&self) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(AuditThread { orders, thread }) = writer.take() {
            drop(orders);
            // A thread that panicked has nothing more to write.
            thread.join().unwrap_or(());
        }
    }
}

impl AuditWriter {
    fn run(mut self, orders: &Receiver<AuditOrder>) {
        while let Ok(order) = orders.recv() {
            match order {
                AuditOrder::Open(path) => self.open(path),
                AuditOrder::Write(line) => self.write(&line),
            }
        }
    }

    fn open(&mut self, path: PathBuf) {
        self.path = path;
        self.has_complained = false;
        self.file = None;
        match append_to(&self.path) {
            Ok(file) => self.file = Some(file),
            Err(error) => self.complain(&error),
        }
    }

    fn write(&mut self, line: &str) {
        let written = match &mut self.file {
            // The last write failed and may have left half a line, so start a new one.
            Some(file) if self.has_complained => file.write_all(format!("\n{line}").as_bytes()),
            Some(file) => file.write_all(line.as_bytes()),
            // Opening is tried again for every line, so that the log resumes by itself once its
            // folder or its permissions are back.
            None => append_to(&self.path).and_then(|mut file| {
                file.write_all(line.as_bytes())?;
                self.file = Some(file);
                Ok(())
            }),
        };
        match written {
            Ok(()) => self.has_complained = false,
            Err(error) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                self.complain(&error);
            }
        }
    }

    fn complain(&mut self, error: &io::Error) {
        if std::mem::replace(&mut self.has_complained, true) {
            return;
        }
        let text = format!(
            "the audit log {} cannot be written: {error}; requests go on, and lost lines are \
             counted as audit_lost\nhint: make room or mend its rights; SIGHUP opens it again",
            self.path.display()
        );
        self.notices.error(&text);
    }
}

/// Opens a file for appending, readable only by us. Anything but a regular file is rejected.
fn append_to(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Opening a named pipe without a reader would block forever.
        let no_wait = rustix::fs::OFlags::NONBLOCK.bits();
        options.mode(0o600).custom_flags(no_wait.cast_signed());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// The line of a request. It contains no text and no key.
fn line_of(record: &Record) -> Value {
    json!({
        "time_ms": record.time_ms,
        "request_id": record.request_id,
        "tenant": record.tenant,
        "token": record.token,
        "peer": record.peer,
        "method": record.method,
        "path": record.path,
        "upstream": record.upstream,
        "dialect": record.dialect,
        "model": record.model,
        "session": record.session,
        "action": record.action,
        "reason": record.reason,
        "status": record.status,
        "bytes_in": record.bytes_in,
        "bytes_out": record.bytes_out,
        "refs_redeemed": record.retrievals,
        "total_ms": record.total_ms,
        "cut": record.cut,
    })
}

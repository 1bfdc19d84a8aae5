//! Runs a command on a pseudo-terminal and captures every byte.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::run::PATIENCE;

/// A command that runs in a terminal.
pub(crate) struct InTerminal {
    child: Child,
    keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl InTerminal {
    /// Starts a command with standard input, output and error on a terminal.
    pub(crate) fn start(mut command: Command) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let name = std::ffi::OsStr::from_bytes(name.to_bytes());
        let device = File::options().read(true).write(true).open(name).unwrap();
        let device = || Stdio::from(device.try_clone().unwrap());
        command.stdin(device()).stdout(device()).stderr(device());
        command.env("TERM", "xterm").env_remove("COLUMNS");
        let child = command.spawn().unwrap();
        // Our handles of the device go, so that its end is seen.
        drop(command);
        let keyboard = File::from(master);
        let mut screen = keyboard.try_clone().unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&shown);
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // The device fails once nobody has it open any more.
            while let Ok(read @ 1..) = screen.read(&mut piece) {
                into.lock().unwrap().extend_from_slice(&piece[..read]);
            }
        });
        Self {
            child,
            keyboard,
            shown,
            reader: Some(reader),
        }
    }

    /// What was shown so far.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Waits until `text` was shown.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let shown = self.shown();
            if shown.contains(text) {
                return shown;
            }
            assert!(Instant::now() < until, "no {text:?} in {shown:?}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Types something.
    pub(crate) fn type_in(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// The number of its process.
    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end: everything that was shown, and the exit code.
    pub(crate) fn end(mut self) -> (String, i32) {
        let status = self.child.wait().unwrap();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        (self.shown(), status.code().unwrap_or(-1))
    }
}

impl Drop for InTerminal {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

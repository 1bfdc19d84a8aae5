//! Ends commands with all processes that they started.
//!
//! A command runs in its own process group, but its children can leave that group, and their
//! parents can end first. On Linux all descendants of the command are therefore looked up and
//! killed one by one. Orphans no longer have a link to their command: a process that adopts them (a
//! child subreaper) and starts no other children knows that they belong to a command.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

/// The shells of running commands, and whether orphans are ended with them.
static RUNNING: Mutex<Vec<(Pid, bool)>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<(Pid, bool)>> {
    // A list of numbers cannot be left inconsistent.
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command with all its processes. Dropping it ends them.
#[derive(Debug)]
pub(super) struct CommandProcesses {
    shell: Pid,
    ends_orphans: bool,
}

impl CommandProcesses {
    /// Registers the command whose shell, a group leader, is `shell`.
    pub(super) fn new(shell: Pid, ends_orphans: bool) -> Self {
        running().push((shell, ends_orphans));
        Self {
            shell,
            ends_orphans,
        }
    }
}

impl Drop for CommandProcesses {
    fn drop(&mut self) {
        // The group may already be empty.
        let _ = kill_process_group(self.shell, Signal::KILL);
        #[cfg(target_os = "linux")]
        {
            // While another command runs, an orphan may belong to it.
            let orphans = self.ends_orphans && running().len() == 1;
            tree::end_processes(&[self.shell], orphans);
        }
        running().retain(|(shell, _)| *shell != self.shell);
    }
}

/// Ends all running commands with their processes. Call this before the process exits.
pub fn end_all_commands() {
    let commands = running().clone();
    let shells: Vec<Pid> = commands.iter().map(|(shell, _)| *shell).collect();
    for shell in &shells {
        let _ = kill_process_group(*shell, Signal::KILL);
    }
    #[cfg(target_os = "linux")]
    if !shells.is_empty() {
        let orphans = commands.iter().any(|(_, ends_orphans)| *ends_orphans);
        tree::end_processes(&shells, orphans);
    }
}

/// Makes this process adopt orphans of commands, if the system supports it.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        // On failure, groups and descendants are still ended.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
}

#[cfg(target_os = "linux")]
mod tree {
    use std::collections::HashSet;
    use std::fs;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use rustix::process::{
        Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal, waitpid,
    };

    use super::running;

    /// The time limit until all processes are gone. Only a process that forks as fast as it is
    /// killed reaches it.
    const PATIENCE: Duration = Duration::from_secs(5);
    /// The delay between two checks.
    const PAUSE: Duration = Duration::from_millis(2);

    /// An entry of the process table.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct ProcessEntry {
        id: Pid,
        parent: i32,
        group: i32,
        /// Distinguishes it from a later process with the same id.
        started: u64,
        is_zombie: bool,
    }

    /// Ends the descendants and groups of `shells`, and orphans if requested.
    pub(super) fn end_processes(shells: &[Pid], orphans: bool) {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = left_over(&all(), shells, orphans);
            if left.is_empty() || Instant::now() > until {
                return;
            }
            for process in left {
                kill(process);
            }
            sleep(PAUSE);
        }
    }

    /// The processes to kill. Also reaps orphans that have ended.
    fn left_over(all: &[ProcessEntry], shells: &[Pid], orphans: bool) -> Vec<ProcessEntry> {
        let own = getpid().as_raw_pid();
        let known: HashSet<Pid> = running().iter().map(|(shell, _)| *shell).collect();
        let is_orphan = |process: &ProcessEntry| {
            orphans && process.parent == own && !known.contains(&process.id)
        };
        let mut found: HashSet<i32> = shells.iter().map(|shell| shell.as_raw_pid()).collect();
        let groups = found.clone();
        // Each pass finds the children of the processes found before, in whatever order they are
        // listed.
        loop {
            let before = found.len();
            for process in all {
                let belongs = groups.contains(&process.group)
                    || found.contains(&process.parent)
                    || is_orphan(process);
                if belongs && process.id.as_raw_pid() != own {
                    found.insert(process.id.as_raw_pid());
                }
            }
            if found.len() == before {
                break;
            }
        }
        let mut left = Vec::new();
        for process in all {
            if !found.contains(&process.id.as_raw_pid()) {
                continue;
            }
            if !process.is_zombie {
                left.push(*process);
            } else if is_orphan(process) {
                // Nobody else reaps it.
                let _ = waitpid(Some(process.id), WaitOptions::NOHANG);
            }
        }
        left
    }

    /// Kills a process, but not another one that has reused its id.
    fn kill(process: ProcessEntry) {
        let Ok(handle) = pidfd_open(process.id, PidfdFlags::empty()) else {
            return;
        };
        // The handle refers to one process for good. Reading its start time afterwards proves that
        // it is the process that was found.
        let now = entry(process.id.as_raw_pid());
        if now.is_some_and(|now| now.started == process.started) {
            // The process may have just ended.
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
    }

    fn all() -> Vec<ProcessEntry> {
        let Ok(folder) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let ids = folder.flatten().filter_map(|entry| {
            let name = entry.file_name();
            name.to_str()?.parse().ok()
        });
        ids.filter_map(entry).collect()
    }

    fn entry(id: i32) -> Option<ProcessEntry> {
        let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
        parse(id, &String::from_utf8_lossy(&stat))
    }

    /// Parses a line of `/proc/ID/stat`.
    fn parse(id: i32, stat: &str) -> Option<ProcessEntry> {
        // The program name is in brackets and may contain anything, including brackets.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Some(ProcessEntry {
            id: Pid::from_raw(id)?,
            is_zombie: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn stat_of_an_unusual_program_name_is_parsed() {
            let rest = "S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 99";
            let found = parse(5, &format!("5 (a) Z 1 (b)) {rest}")).unwrap();
            assert_eq!((found.parent, found.group), (7, 8));
            assert_eq!((found.started, found.is_zombie), (4711, false));
        }

        #[test]
        fn descendants_and_groups_are_found_in_any_order() {
            let process = |id, parent, group| ProcessEntry {
                id: Pid::from_raw(id).unwrap(),
                parent,
                group,
                started: 1,
                is_zombie: false,
            };
            let all = [
                process(904, 903, 904),
                process(903, 902, 903),
                process(902, 901, 901),
                process(901, 1, 901),
                process(905, 1, 901),
                process(906, 1, 906),
            ];
            let left = left_over(&all, &[Pid::from_raw(901).unwrap()], false);
            let ids: Vec<i32> = left.iter().map(|one| one.id.as_raw_pid()).collect();
            assert_eq!(ids, [904, 903, 902, 901, 905]);
        }
    }
}

//! Walks through a folder, without hidden and ignored files.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, Dir, FileType, statat};

use super::confined_path::{kind_of, open_folder, open_regular};

/// The maximum depth, because each folder on the path is held open.
const MOST_DEPTH: usize = 100;
/// The maximum size of a rules file.
const MOST_RULES: u64 = 1 << 20;
/// The files with ignore rules; later ones override earlier ones.
const RULE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// An entry of a walk.
pub(super) struct WalkEntry<'w> {
    /// Its parent folder.
    pub(super) folder: &'w OwnedFd,
    pub(super) name: &'w OsStr,
    /// Relative to the root of the workspace.
    pub(super) path: &'w Path,
    pub(super) kind: FileType,
    pub(super) byte_size: u64,
}

/// A walk through a folder in the order of names. It follows no links and opens every folder
/// relative to its parent.
pub(super) struct FolderWalk<'v> {
    root: PathBuf,
    recursive: bool,
    /// The ignore rules; those of the innermost folder come last.
    rules: Vec<Gitignore>,
    /// Called for every entry; false ends the walk.
    visit: &'v mut dyn FnMut(&WalkEntry<'_>) -> bool,
}

impl<'v> FolderWalk<'v> {
    /// A walk in the workspace at `root`.
    pub(super) fn new(
        root: &Path,
        recursive: bool,
        visit: &'v mut dyn FnMut(&WalkEntry<'_>) -> bool,
    ) -> Self {
        Self {
            root: root.to_owned(),
            recursive,
            rules: Vec::new(),
            visit,
        }
    }

    /// Walks through `folder` at `path`.
    pub(super) fn run(mut self, folder: &OwnedFd, path: &Path) {
        self.add_rules_above(path);
        self.enter(folder, path, 0);
    }

    /// Adds the rules of parent folders, up to the root of the repository.
    fn add_rules_above(&mut self, path: &Path) {
        let start = self.root.join(path);
        // The folder is a repository of its own, and rules above it do not apply to it.
        if start.join(".git").exists() {
            return;
        }
        let mut above = Vec::new();
        for folder in start.ancestors().skip(1) {
            above.push(rules_in(folder, |name| {
                let found = folder.join(name);
                // A FIFO of this name must not block.
                let is_file = found
                    .symlink_metadata()
                    .is_ok_and(|found| found.file_type().is_file());
                is_file.then(|| File::open(found).ok()).flatten()
            }));
            if folder.join(".git").exists() {
                self.rules.extend(above.into_iter().rev());
                return;
            }
        }
    }

    /// Walks through one folder; false ends the walk.
    fn enter(&mut self, folder: &OwnedFd, path: &Path, depth: usize) -> bool {
        let rules = rules_in(&self.root.join(path), |name| {
            let kind = kind_of(folder, name.as_ref()).ok()?;
            open_regular(folder, name.as_ref(), kind).ok()
        });
        self.rules.push(rules);
        let goes_on = names_in(folder)
            .iter()
            .all(|name| self.entry(folder, name, &path.join(name), depth));
        self.rules.pop();
        goes_on
    }

    fn entry(&mut self, folder: &OwnedFd, name: &OsStr, path: &Path, depth: usize) -> bool {
        let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return true;
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if self.is_ignored(path, kind == FileType::Directory) {
            return true;
        }
        let entry = WalkEntry {
            folder,
            name,
            path,
            kind,
            byte_size: u64::try_from(stat.st_size).unwrap_or(0),
        };
        if !(self.visit)(&entry) {
            return false;
        }
        let enters = self.recursive && kind == FileType::Directory && depth < MOST_DEPTH;
        match enters.then(|| open_folder(folder, name)) {
            Some(Ok(inner)) => self.enter(&inner, path, depth + 1),
            // An unreadable folder counts as empty.
            _ => true,
        }
    }

    fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        let whole = self.root.join(path);
        let decided =
            self.rules
                .iter()
                .rev()
                .find_map(|rules| match rules.matched(&whole, is_folder) {
                    Match::None => None,
                    Match::Ignore(_) => Some(true),
                    Match::Whitelist(_) => Some(false),
                });
        decided.unwrap_or(false)
    }
}

/// The visible names in a folder, sorted.
fn names_in(folder: &OwnedFd) -> Vec<OsString> {
    let Ok(entries) = Dir::read_from(folder) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name().to_owned());
    let mut names: Vec<OsString> = names
        .filter(|name| !name.as_bytes().starts_with(b"."))
        .map(|name| OsString::from_vec(name.into_bytes()))
        .collect();
    names.sort();
    names
}

/// The rules in one folder.
fn rules_in(folder: &Path, open: impl Fn(&str) -> Option<File>) -> Gitignore {
    let mut rules = GitignoreBuilder::new(folder);
    for file in RULE_FILES.into_iter().filter_map(open) {
        let mut bytes = Vec::new();
        // Use as much as can be read.
        let _ = file.take(MOST_RULES).read_to_end(&mut bytes);
        for line in String::from_utf8_lossy(&bytes).lines() {
            // Invalid rules are ignored, as in git.
            let _ = rules.add_line(None, line);
        }
    }
    rules.build().unwrap_or_else(|_| Gitignore::empty())
}

//! Files of the workspace that a user names in a message.

use std::io::Read;
use std::path::Path;

use rustix::fs::FileType;

use super::Workspace;
use super::text::has_nul;
use super::walk::{FolderWalk, WalkEntry};
use super::workspace::display_path;

/// The largest attachment. The model should read larger files itself, because outputs are
/// shortened.
const MOST_BYTES: u64 = 128 * 1024;
/// The maximum number of completions.
const MOST_NAMES: usize = 200;

/// The result of looking up a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedFile {
    /// The file does not exist.
    Missing,
    /// The file cannot be used, with the reason.
    Refused(String),
    /// The text of the file.
    Text(String),
}

impl Workspace {
    /// Reads a text file that a user named.
    pub fn named_file(&self, path: &str) -> NamedFile {
        let refused = |why: &str| NamedFile::Refused(format!("`{path}` {why}"));
        let file = match self.open_file(path) {
            Ok(file) => file,
            Err(error) if error.is_missing() => return NamedFile::Missing,
            Err(error) => return NamedFile::Refused(error.to_string()),
        };
        let mut bytes = Vec::new();
        // One byte more than allowed shows that the file is too long, without reading all of it.
        if let Err(error) = file.take(MOST_BYTES + 1).read_to_end(&mut bytes) {
            return refused(&format!("cannot be read: {error}"));
        }
        if bytes.len() as u64 > MOST_BYTES {
            let most = MOST_BYTES / 1024;
            return refused(&format!("has more than {most} KiB: let the model read it"));
        }
        match String::from_utf8(bytes) {
            Ok(text) if !has_nul(text.as_bytes()) => NamedFile::Text(text),
            _ => refused("is not text"),
        }
    }

    /// Completes `typed` to paths of files and folders, without hidden and ignored ones. Folders
    /// end with `/`.
    pub fn paths_from(&self, typed: &str) -> Vec<String> {
        let (folder, begin) = match typed.rsplit_once('/') {
            Some((folder, begin)) => (folder, begin),
            None => (".", typed),
        };
        let Ok((opened, path)) = self.open_folder(folder) else {
            return Vec::new();
        };
        let before = typed.strip_suffix(begin).unwrap_or_default();
        let mut names = Vec::new();
        let mut visit = |entry: &WalkEntry<'_>| {
            let name = entry.name.to_string_lossy();
            // A name with white space could not be written in a message as one word.
            if name.starts_with(begin) && !name.contains(char::is_whitespace) {
                let end = if entry.kind == FileType::Directory {
                    "/"
                } else {
                    ""
                };
                names.push(format!("{before}{}{end}", display_path(Path::new(&*name))));
            }
            names.len() < MOST_NAMES
        };
        FolderWalk::new(self.root(), false, &mut visit).run(&opened, &path);
        names
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::super::Confirm;
    use super::*;

    #[test]
    fn files_are_named_and_completed_within_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        fs::create_dir_all(root.join("src")).unwrap();
        fs::write(root.join("src/main.rs"), "fn main() {}").unwrap();
        fs::write(root.join("src/image.png"), b"\x89PNG\0").unwrap();
        fs::write(root.join("large"), vec![b'x'; 200_000]).unwrap();
        fs::write(folder.path().join("secret"), "s").unwrap();
        symlink("../secret", root.join("link")).unwrap();
        let workspace = Workspace::new(&root, Confirm::Never).unwrap();
        let main = NamedFile::Text("fn main() {}".to_owned());
        assert_eq!(workspace.named_file("src/main.rs"), main);
        assert_eq!(workspace.named_file("src/none.rs"), NamedFile::Missing);
        for path in [
            "../secret",
            "link",
            "/etc/passwd",
            "large",
            "src/image.png",
            "src",
        ] {
            let found = workspace.named_file(path);
            assert!(matches!(found, NamedFile::Refused(_)), "{path}: {found:?}");
        }
        assert_eq!(workspace.paths_from("s"), ["src/"]);
        assert_eq!(workspace.paths_from("src/m"), ["src/main.rs"]);
        assert!(workspace.paths_from("../").is_empty());
    }
}

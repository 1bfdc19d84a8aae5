//! The folder that the tools work in.

use std::io;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

use super::Confirm;

/// The folder that the tools work in, and what they may do beyond it.
///
/// No path leads out of it, not by `..` and not by a symbolic link. That keeps a model's
/// mistakes in; a command that the user allows can still go anywhere.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
    confirm: Confirm,
}

/// A path that cannot be used. The text is for the model.
#[derive(Debug, Error)]
pub enum Outside {
    /// It leads out of the workspace.
    #[error("`{0}` is outside the workspace\nhint: give a path relative to the workspace")]
    Escapes(String),
    /// It cannot be looked at.
    #[error("`{path}`: {error}")]
    Unreadable {
        /// The path as the model gave it.
        path: String,
        /// What the system says.
        error: io::Error,
    },
}

impl Workspace {
    /// The workspace at `root`, which must be a folder.
    pub fn new(root: impl AsRef<Path>, confirm: Confirm) -> io::Result<Self> {
        let root = root.as_ref().canonicalize()?;
        if !root.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        Ok(Self { root, confirm })
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Who decides about what reaches beyond it.
    pub fn confirm(&self) -> &Confirm {
        &self.confirm
    }

    /// The place of something that exists. All links in the path are followed, and it must
    /// still be inside.
    pub fn existing(&self, path: &str) -> Result<PathBuf, Outside> {
        let found = self.root.join(path).canonicalize();
        let found = found.map_err(|error| self.unreadable(path, error))?;
        self.inside(path, found)
    }

    /// The place of something that may not exist yet: as much of the path as exists is
    /// followed, the rest must be plain names.
    pub fn new_or_existing(&self, path: &str) -> Result<PathBuf, Outside> {
        let wanted = self.root.join(path);
        let mut existing = wanted.as_path();
        let mut rest = Vec::new();
        // A link that leads nowhere exists too: writing through it could lead anywhere.
        while existing.symlink_metadata().is_err() {
            let (Some(name), Some(parent)) = (existing.components().next_back(), existing.parent())
            else {
                return Err(Outside::Escapes(path.to_owned()));
            };
            let Component::Normal(name) = name else {
                return Err(Outside::Escapes(path.to_owned()));
            };
            rest.push(name.to_owned());
            existing = parent;
        }
        let found = existing.canonicalize();
        let mut found = found.map_err(|error| self.unreadable(path, error))?;
        found.extend(rest.iter().rev());
        self.inside(path, found)
    }

    /// How a place is shown to the model: relative to the root.
    pub fn shown(&self, place: &Path) -> String {
        let relative = place.strip_prefix(&self.root).unwrap_or(place);
        match relative.to_string_lossy() {
            shown if shown.is_empty() => ".".to_owned(),
            shown => shown.into_owned(),
        }
    }

    fn inside(&self, path: &str, found: PathBuf) -> Result<PathBuf, Outside> {
        let plain = !found.components().any(|part| part == Component::ParentDir);
        if plain && found.starts_with(&self.root) {
            Ok(found)
        } else {
            Err(Outside::Escapes(path.to_owned()))
        }
    }

    /// Whether something outside exists is not for the model to learn.
    fn unreadable(&self, path: &str, error: io::Error) -> Outside {
        let leaves = Path::new(path).components().any(|part| {
            matches!(
                part,
                Component::ParentDir | Component::RootDir | Component::Prefix(_)
            )
        });
        let inside = Path::new(path).starts_with(&self.root) && !path.contains("..");
        if leaves && !inside {
            return Outside::Escapes(path.to_owned());
        }
        let path = path.to_owned();
        Outside::Unreadable { path, error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("sub/a.txt"), "a").unwrap();
        fs::write(folder.path().join("secret"), "s").unwrap();
        let workspace = Workspace::new(&root, Confirm::Never).unwrap();
        (folder, workspace)
    }

    #[test]
    fn paths_inside_are_found() {
        let (_folder, workspace) = workspace();
        let absolute = workspace.root().join("sub/a.txt");
        for path in [
            "sub/a.txt",
            "./sub/../sub/a.txt",
            absolute.to_str().unwrap(),
        ] {
            let place = workspace.existing(path).unwrap();
            assert_eq!(workspace.shown(&place), "sub/a.txt");
            assert_eq!(workspace.new_or_existing(path).unwrap(), place);
        }
        let new = workspace.new_or_existing("new/folder/b.txt").unwrap();
        assert_eq!(workspace.shown(&new), "new/folder/b.txt");
        assert_eq!(workspace.shown(workspace.root()), ".");
    }

    #[test]
    fn no_path_leads_out() {
        let (folder, workspace) = workspace();
        let root = workspace.root().to_owned();
        symlink(folder.path(), root.join("up")).unwrap();
        symlink(folder.path().join("secret"), root.join("link")).unwrap();
        symlink(folder.path().join("not there"), root.join("dangling")).unwrap();
        symlink(folder.path().join("not there"), root.join("sub/down")).unwrap();
        for path in [
            "../secret",
            "sub/../../secret",
            "/etc/passwd",
            "up/secret",
            "link",
        ] {
            assert!(
                matches!(workspace.existing(path), Err(Outside::Escapes(_))),
                "{path}"
            );
        }
        let new = [
            "../new",
            "up/new",
            "link",
            "dangling",
            "sub/down/x",
            "no/../../new",
            "/tmp/new",
        ];
        for path in new {
            assert!(workspace.new_or_existing(path).is_err(), "{path}");
        }
        assert!(matches!(
            workspace.existing("/no/such"),
            Err(Outside::Escapes(_))
        ));
        assert!(matches!(
            workspace.existing("no such"),
            Err(Outside::Unreadable { .. })
        ));
    }
}

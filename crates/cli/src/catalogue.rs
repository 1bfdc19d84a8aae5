//! The model catalogue of all verbs: the user's file if it exists, else the embedded one.

use std::path::{Path, PathBuf};

use trimtab::config::{NotRead, config_folder, read_own_file};
use trimtab_wire::catalogue::{Catalogue, FoundModel};

use crate::exit::Failure;

/// Overrides the path of the user's catalogue.
const VARIABLE: &str = "TRIMTAB_MODELS";

/// The path of the user's catalogue, which may not exist.
pub fn path() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    if let Some(named) = named {
        return Some(named.into());
    }
    let folder = config_folder(|name| std::env::var(name).ok())?;
    Some(folder.join("models.tsv"))
}

/// Like [`path`], with an error if there is no configuration folder.
pub fn own_path() -> Result<PathBuf, Failure> {
    path().ok_or_else(|| {
        Failure::input(
            "no folder for the model catalogue: HOME is not set",
            "set HOME, or name a file with TRIMTAB_MODELS",
        )
    })
}

/// Loads the catalogue.
pub fn load() -> Result<Catalogue, Failure> {
    let Some(path) = path() else {
        return Ok(Catalogue::embedded());
    };
    match read_own_file(&path) {
        Ok(text) => Catalogue::from_snapshot(text).map_err(|error| broken(&path, &error)),
        Err(NotRead::Missing) => Ok(Catalogue::embedded()),
        Err(NotRead::Untrusted(file)) => {
            let hint = format!("replace it with trimtab models update, or {}", file.hint);
            Err(Failure::input(file.to_string(), hint))
        }
        // The embedded catalogue does not take its place: the user expects the windows and prices
        // of this file.
        Err(NotRead::Failed(_, error)) => Err(broken(&path, &error)),
    }
}

fn broken(path: &Path, error: &dyn std::error::Error) -> Failure {
    let path = path.display();
    Failure::input(
        format!("{path}: cannot use this model catalogue: {error}"),
        "restore the built-in one with trimtab models reset",
    )
}

/// The failure for a catalogue that cannot be written or removed.
pub fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::WithHint {
        message: format!("{}: cannot write: {error}", path.display()),
        hint: Some("name another file with TRIMTAB_MODELS".to_owned()),
    }
}

/// Looks up a model. `hint` goes into the error if the model is unknown.
pub fn find(catalogue: &Catalogue, model: &str, hint: &str) -> Result<FoundModel, Failure> {
    catalogue.find(model).map_err(|unknown| {
        let like = match unknown.closest.as_slice() {
            [] => String::new(),
            closest => format!("; similar names: {}", closest.join(", ")),
        };
        Failure::input(format!("unknown model {model:?}{like}"), hint)
    })
}

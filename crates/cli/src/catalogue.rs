//! The model catalogue that every verb asks: the user's own if there is one, else the embedded.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use trimtab_wire::catalogue::{Catalogue, Found};

use crate::exit::Failure;

/// Names the file in place of the usual one.
const VARIABLE: &str = "TRIMTAB_MODELS";

/// Where the user's catalogue is kept, whether it is there or not.
pub fn path() -> Option<PathBuf> {
    let folder = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty());
    if let Some(named) = folder(VARIABLE) {
        return Some(named.into());
    }
    let config = folder("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(PathBuf::from(folder("HOME")?).join(".config")))?;
    Some(config.join("trimtab").join("models.tsv"))
}

/// Loads the catalogue.
pub fn load() -> Result<Catalogue, Failure> {
    let Some(path) = path() else {
        return Ok(Catalogue::embedded());
    };
    match fs::read_to_string(&path) {
        Ok(text) => Catalogue::from_snapshot(text).map_err(|error| broken(&path, &error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Catalogue::embedded()),
        Err(error) => Err(broken(&path, &error)),
    }
}

fn broken(path: &Path, error: &dyn std::error::Error) -> Failure {
    let path = path.display();
    Failure::input(
        format!("{path}: cannot use this model catalogue: {error}"),
        format!("make it anew with trimtab models update FILE, or remove {path}"),
    )
}

/// Looks a model up; `hint` is the way out if it is not known.
pub fn find(catalogue: &Catalogue, model: &str, hint: &str) -> Result<Found, Failure> {
    catalogue.find(model).map_err(|unknown| {
        let like = match unknown.closest.as_slice() {
            [] => String::new(),
            closest => format!("; known are: {}", closest.join(", ")),
        };
        Failure::input(format!("unknown model {model:?}{like}"), hint)
    })
}

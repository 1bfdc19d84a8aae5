//! `trimtab config init`: writes a project file to start from.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use trimtab::config::commented;
use trimtab::engine::policy::PRESETS;

use crate::exit::Failure;
use crate::settings;
use crate::ui::Terminal;
use crate::ui::visible::visible;

/// All settings of a preset with their meanings, commented out.
pub(super) fn of_preset(preset: Option<&str>) -> Result<String, Failure> {
    let default = PRESETS.first().map_or("", |preset| preset.name);
    let (keys, defaults) = (settings::keys(), settings::defaults());
    commented(&keys, preset.unwrap_or(default), &defaults).map_err(|unknown| {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        Failure::input(
            format!("--preset: unknown preset '{}'", unknown.0),
            format!("allowed: one of {}", names.join(", ")),
        )
    })
}

/// Writes the file.
pub(super) fn write(
    file: &Path,
    text: &str,
    force: bool,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if file.as_os_str() == "-" {
        return Ok(terminal.out().write_all(text.as_bytes())?);
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    // The file system checks this atomically, so no file can appear in between.
    options.create_new(!force);
    let shown = file.display().to_string();
    let shown = visible(&shown);
    let mut target = options.open(file).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::input(format!("{shown} already exists"), "--force overwrites it")
        }
        _ => Failure::input(
            format!("{shown}: cannot write: {error}"),
            "give another file",
        ),
    })?;
    target.write_all(text.as_bytes())?;
    terminal.note(&format!("wrote {shown}"));
    Ok(())
}

//! `trimtab config init`: writes a project file to start from.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use trimtab::config::{DESIGN_NAMES, ORIGINAL_SYSTEMS, commented, under_design_names};
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

/// The settings of a design under its own names. `name` is a preset or an original system.
pub(super) fn of_design(name: &str) -> Result<String, Failure> {
    let system = ORIGINAL_SYSTEMS.iter().find(|(system, _)| *system == name);
    let preset = system.map_or(name, |(_, preset)| *preset);
    if DESIGN_NAMES.iter().any(|known| known.preset == preset) {
        return Ok(under_design_names(&settings::keys(), preset));
    }
    let mut names: Vec<&str> = DESIGN_NAMES.iter().map(|known| known.preset).collect();
    names.dedup();
    names.extend(ORIGINAL_SYSTEMS.iter().map(|(system, _)| *system));
    Err(Failure::input(
        format!("--from: unknown design '{name}'"),
        format!("allowed: one of {}", names.join(", ")),
    ))
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

//! `trimtab config init`: a project file to begin with.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use trimtab::config::commented;
use trimtab::engine::policy::PRESETS;

use crate::exit::Failure;
use crate::settings;
use crate::ui::Terminal;
use crate::ui::visible::visible;

/// Runs the verb.
pub(super) fn run(
    file: &Path,
    preset: Option<&str>,
    force: bool,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let default = PRESETS.first().map_or("", |preset| preset.name);
    let (keys, defaults) = (settings::keys(), settings::defaults());
    let text = commented(&keys, preset.unwrap_or(default), &defaults).map_err(|unknown| {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        Failure::input(
            format!("--preset: preset = '{}' cannot be used", unknown.0),
            format!("allowed: one of {}", names.join(", ")),
        )
    })?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    // Asked of the file system, so that nobody can put a file there in between.
    options.create_new(!force);
    let shown = file.display().to_string();
    let shown = visible(&shown);
    let mut target = options.open(file).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::input(
            format!("{shown} is there already"),
            "--force writes it anew; what is in it is lost then",
        ),
        _ => Failure::input(
            format!("{shown}: cannot write: {error}"),
            "give another file",
        ),
    })?;
    target.write_all(text.as_bytes())?;
    terminal.note(&format!("wrote {shown}"));
    Ok(())
}

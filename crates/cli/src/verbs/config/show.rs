//! `trimtab config show`: every setting with its value and source.

use std::io::Write;

use serde_json::json;
use trimtab::config::{Setting, SettingSource, inline};

use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::settings;
use crate::ui::columns::{Align, lined_up};
use crate::ui::{Terminal, style};

/// The maximum length of a shown value.
const WIDEST: usize = 60;

/// Runs the verb.
pub(super) fn run(
    filter: &str,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let config = settings::load(common, &[])?;
    let settings = config.settings().into_iter();
    let settings: Vec<Setting> = settings
        .filter(|setting| setting.key.contains(filter))
        .collect();
    if settings.is_empty() {
        return Err(Failure::input(
            format!("no setting has '{filter}' in its name"),
            "`trimtab config show` shows all of them",
        ));
    }
    if common.json {
        for setting in settings {
            let line = json!({
                "key": setting.key,
                "value": setting.value,
                "source": setting.source.as_str(),
                "from": setting.source.name(),
            });
            terminal.json(&line)?;
        }
        return Ok(());
    }
    let rows: Vec<[String; 3]> = settings.iter().map(row).collect();
    let lines = lined_up(&rows, [Align::Left; 3]);
    for (line, setting) in lines.lines().zip(&settings) {
        let of_preset = matches!(
            setting.source,
            SettingSource::Preset(_) | SettingSource::Default
        );
        let style = if of_preset { style::DIM } else { style::STRONG };
        writeln!(terminal.out(), "{style}{line}{style:#}")?;
    }
    Ok(())
}

fn row(setting: &Setting) -> [String; 3] {
    let value = setting.value.as_ref().map(inline);
    let value = value.unwrap_or_else(|| "-".to_owned());
    let shown: String = value.chars().take(WIDEST).collect();
    let shown = if shown.len() < value.len() {
        format!("{shown}...")
    } else {
        shown
    };
    [setting.key.to_owned(), shown, setting.source.to_string()]
}

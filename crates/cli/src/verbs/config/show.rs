//! `trimtab config show`: every setting with its value and source.

use std::io::Write;

use serde_json::json;
use trimtab::config::{Setting, SettingSource, inline};

use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::proxy::settings::{ProxyArgs, resolve};
use crate::settings;
use crate::ui::clipped::clipped;
use crate::ui::columns::{Align, lined_up};
use crate::ui::visible::visible;
use crate::ui::{Terminal, is_terminal, line_width, style};

/// The width of values from which on longer ones are not aligned.
const WIDEST: usize = 60;
/// The least width of a value on a narrow terminal.
const NARROWEST: usize = 20;

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
    print(&settings, common, terminal)?;
    // Settings of the proxy depend on each other, so that only the proxy can check them. They are
    // shown before, because whoever looks for the mistake needs them.
    resolve(&ProxyArgs::default(), None, common).map(drop)
}

fn print(
    settings: &[Setting],
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
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
    let width = line_width().filter(|_| is_terminal());
    for (line, setting) in lines(&rows, width).iter().zip(settings) {
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
    [setting.key.to_owned(), value, setting.source.to_string()]
}

/// The rows as lines. With the `width` of a terminal, values are cut so that the lines fit it;
/// without one, values that are longer than others are printed in full and not aligned.
fn lines(rows: &[[String; 3]], width: Option<usize>) -> Vec<String> {
    let widest = |column: fn(&[String; 3]) -> &String| {
        let widths = rows.iter().map(|row| column(row).chars().count());
        widths.max().unwrap_or(0)
    };
    let keys = widest(|[key, _, _]| key);
    // Two spaces are between two columns.
    let others = keys + widest(|[_, _, source]| source) + 4;
    let room = width.map_or(WIDEST, |width| width.saturating_sub(others).max(NARROWEST));
    let cut = |[key, value, source]: &[String; 3]| {
        let value = clipped(value, room).into_owned();
        [key.clone(), value, source.clone()]
    };
    let aligned = lined_up(&rows.iter().map(cut).collect::<Vec<_>>(), [Align::Left; 3]);
    let lines = aligned.lines().zip(rows).map(|(line, row)| {
        let [key, value, source] = row.each_ref().map(|cell| visible(cell));
        if width.is_none() && value.chars().count() > room {
            format!("{key:<keys$}  {value}  {source}")
        } else {
            line.to_owned()
        }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(long: &str) -> [[String; 3]; 2] {
        ["1", long].map(|value| ["window", value, "default"].map(str::to_owned))
    }

    #[test]
    fn values_are_cut_to_the_width_of_the_terminal() {
        let lines = lines(&rows(&"long ".repeat(20)), Some(60));
        let widths: Vec<usize> = lines.iter().map(|line| line.chars().count()).collect();
        assert_eq!(widths, [60, 60], "{lines:?}");
    }

    #[test]
    fn values_in_a_pipe_are_whole_and_do_not_widen_other_lines() {
        let long = "x".repeat(500);
        let lines = lines(&rows(&long), None);
        assert!(lines[0].chars().count() < 100, "{lines:?}");
        assert_eq!(lines[1], format!("window  {long}  default"));
    }
}

//! A page with plots: one file, no scripts, nothing fetched.

use std::fmt::Write;

use trimtab::replay::Settings;

use super::rows::{Row, Rows};
use super::svg::{Axes, Series, escaped, lines, points};
use crate::ui::number::grouped;

/// So many conversations get a plot of their own, the longest first.
const PLOTS: usize = 12;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
padding:0 1rem;color:#222;background:#fff}table{border-collapse:collapse;width:100%}\
th,td{text-align:right;padding:.25rem .6rem;border-bottom:1px solid #ddd}\
th:first-child,td:first-child{text-align:left}svg{width:100%;height:auto}\
svg text{font:11px system-ui,sans-serif;fill:#444}.grid{stroke:#e5e5e5}\
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}\
th,td{border-color:#444}svg text{fill:#bbb}.grid{stroke:#333}}";

/// The page.
pub fn page(rows: &Rows, settings: &Settings) -> String {
    let window = grouped(settings.window);
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>trimtab replay</title><style>{STYLE}</style>\
         <h1>Replay, window of {window} tokens</h1>"
    );
    page.push_str(&table(rows));
    page.push_str("<h2>What is still there, against what it costs</h2>");
    page.push_str(&trade(rows));
    page.push_str("<h2>Tokens sent at each call</h2>");
    page.push_str(&sizes(rows));
    page.push_str("</html>\n");
    page
}

fn table(rows: &Rows) -> String {
    let mut table = String::from(
        "<table><tr><th>preset<th>in window<th>by ref<th>lost<th>tokens<th>billed<th>cold\
         <th>extends<th>breaks<th>compactions<th>over<th>faults",
    );
    for preset in &rows.presets {
        let row = &preset.sum;
        let percent = |of: u64| {
            let share = row.share(of);
            share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
        };
        let (report, recall) = (&row.report, &row.report.recall);
        let _ = write!(
            table,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{:.3}<td>{:.3}<td>{:.3}<td>{:.1} %<td>{}<td>{}<td>{}<td>{}",
            escaped(&preset.name),
            percent(recall.shown),
            percent(recall.behind),
            percent(recall.lost),
            row.tokens_ratio(),
            row.billed_ratio(),
            row.cold_ratio(),
            row.extended_share() * 100.0,
            report.breaks.len(),
            report.compactions,
            report.over,
            report.faults,
        );
    }
    table.push_str("</table><p>Tokens and bills: 1 is sending everything.</p>");
    table
}

fn trade(rows: &Rows) -> String {
    let series: Vec<Series> = rows
        .presets
        .iter()
        .map(|preset| Series {
            name: preset.name.clone(),
            points: point(&preset.sum).into_iter().collect(),
        })
        .collect();
    let axes = Axes {
        x: "billed, 1 is sending everything",
        y: "needed names in the window, %",
        y_top: 100.0,
    };
    points(&series, &axes)
}

fn point(row: &Row) -> Option<(f64, f64)> {
    let share = row.share(row.report.recall.shown)?;
    Some((row.billed_ratio(), share * 100.0))
}

fn sizes(rows: &Rows) -> String {
    let mut longest: Vec<usize> = (0..rows.all_sizes.len()).collect();
    longest.sort_by_key(|at| std::cmp::Reverse(rows.all_sizes.get(*at).map_or(0, Vec::len)));
    let mut plots = String::new();
    for at in longest.into_iter().take(PLOTS) {
        let name = rows
            .presets
            .first()
            .and_then(|preset| preset.rows.get(at)?.id.clone());
        let mut series: Vec<Series> = rows
            .presets
            .iter()
            .filter_map(|preset| Some((preset, preset.rows.get(at)?)))
            .map(|(preset, row)| Series {
                name: preset.name.clone(),
                points: over_calls(&row.sizes),
            })
            .collect();
        series.push(Series {
            name: "everything".to_owned(),
            points: rows
                .all_sizes
                .get(at)
                .map(|sizes| over_calls(sizes))
                .unwrap_or_default(),
        });
        let axes = Axes {
            x: "call",
            y: "tokens",
            y_top: 1.0,
        };
        let _ = write!(plots, "<h3>{}</h3>", escaped(&name.unwrap_or_default()));
        plots.push_str(&lines(&series, &axes));
    }
    plots
}

fn over_calls(sizes: &[u64]) -> Vec<(f64, f64)> {
    let sizes = sizes.iter().enumerate();
    sizes
        .map(|(call, size)| (call as f64, *size as f64))
        .collect()
}

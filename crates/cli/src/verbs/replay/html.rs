//! A page with plots: one file, no scripts, nothing fetched.

use std::fmt::Write;

use trimtab::replay::ReplaySettings;
use trimtab_wire::catalogue::Price;

use super::rows::{COLUMNS, PresetRows, ReplayRow, ReplayRows};
use super::svg::{PlotAxes, PlotLine, colour, lines};
use crate::picture::{SessionPicture, byline, escaped};
use crate::ui::number::grouped;

/// The maximum number of conversations with a plot, the longest first.
const PLOTS: usize = 12;
/// The height of a plot of tokens, in windows. Unmanaged conversations grow without a limit.
const WINDOWS: f64 = 1.5;

/// The first seven colours can also be distinguished by colour-blind people. The last one is for
/// sending everything.
const STYLE: &str = "\
:root{--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#b3528a;--c4:#2a93c9;--c5:#b97f00;--c6:#332288;\
--c7:#777;--ink:#222;--soft:#555;--line:#ddd;--page:#fff}\
@media(prefers-color-scheme:dark){:root{--c0:#4aa8e0;--c1:#f08a4b;--c2:#2fc49a;--c3:#e29ac4;\
--c4:#8fd0f5;--c5:#f0bb4a;--c6:#a79df0;--c7:#999;--ink:#ddd;--soft:#aaa;--line:#3a3a3a;\
--page:#181818}}\
body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;\
color:var(--ink);background:var(--page)}\
h1,h2,h3{line-height:1.25}p,summary{color:var(--soft)}\
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\
th,td{text-align:right;padding:.25rem .5rem;border-bottom:1px solid var(--line);white-space:nowrap}\
th:first-child,td:first-child{text-align:left}\
.key{display:flex;flex-wrap:wrap;gap:.2rem 1rem;padding:0;list-style:none}\
.key i{display:inline-block;width:.7em;height:.7em;margin-right:.4em;border-radius:2px}\
svg{width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:var(--soft)}\
polyline{fill:none;stroke-width:1.5}.grid{stroke:var(--line)}\
.wide pre,pre{overflow-x:auto;color:var(--soft)}.mark{stroke:var(--soft);stroke-dasharray:4 3}\
@media(max-width:480px){svg text{font-size:16px}}";

/// The page, with a picture of the longest conversation if there is one.
pub fn page(
    rows: &ReplayRows,
    settings: &ReplaySettings,
    picture: Option<&SessionPicture>,
) -> String {
    let window = grouped(settings.window);
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <title>Replay - Trimtab</title><style>{STYLE}{}{}</style>\
         <h1>Replay, window of {window} tokens</h1><p>{}</p>{}",
        crate::picture::COLOURS,
        crate::picture::STYLE,
        byline(),
        about(rows)
    );
    if let Some(picture) = picture {
        let _ = write!(
            page,
            "<h2>{}</h2>{}",
            escaped(&picture.title),
            picture.section()
        );
    }
    let sums = rows
        .presets
        .iter()
        .map(|preset| (&*preset.name, &preset.sum));
    page.push_str("<h2>All conversations</h2>");
    page.push_str(&measures(settings, picture.is_some()));
    page.push_str(&table("preset", sums));
    let _ = write!(
        page,
        "<details><summary>What the columns mean</summary><pre>{}</pre></details>",
        escaped(super::columns())
    );
    page.push_str(&faults(rows));
    page.push_str("<h2>Tokens sent at each call</h2>");
    page.push_str(&key(rows));
    page.push_str(&sizes(rows, settings));
    page.push_str("<h2>Conversation by conversation</h2>");
    for preset in &rows.presets {
        page.push_str(&conversations(preset));
    }
    page.push_str("</html>\n");
    page
}

/// How the tables count, and why a picture above them has other figures.
fn measures(settings: &ReplaySettings, has_picture: bool) -> String {
    let prices = &settings.prices;
    let share = |price: Price| price.pico() as f64 / prices.input.pico().max(1) as f64;
    let mut text = format!(
        "<p>In the tables, 1 is the cost of sending everything. Tokens are estimated. \
         Reading from the cache costs {:.2} of plain input, writing to it {:.2}.",
        share(prices.cache_read),
        share(prices.cache_write),
    );
    if has_picture {
        text.push_str(
            " The picture above shows one conversation, with the window and the prices of its own \
             model, so its ratios may differ.",
        );
    }
    text.push_str("</p>");
    text
}

fn about(rows: &ReplayRows) -> String {
    let first = rows.presets.first();
    let count = first.map_or(0, |preset| preset.rows.len());
    let report = first.map(|preset| &preset.sum.report);
    format!(
        "<p>{} {}, {} calls.</p>",
        grouped(count as u64),
        if count == 1 {
            "conversation"
        } else {
            "conversations"
        },
        grouped(report.map_or(0, |report| report.calls)),
    )
}

fn table<'a>(first: &str, rows: impl Iterator<Item = (&'a str, &'a ReplayRow)>) -> String {
    let mut table = format!(
        "<div class=\"wide\"><table><tr><th>{first}<th>{}",
        COLUMNS.join("<th>")
    );
    for (name, row) in rows {
        let _ = write!(
            table,
            "<tr><td>{}<td>{}",
            escaped(name),
            row.cells().join("<td>")
        );
    }
    table.push_str("</table></div>");
    table
}

/// The first faults of each preset, in words.
fn faults(rows: &ReplayRows) -> String {
    let mut texts = String::new();
    for preset in &rows.presets {
        for text in preset.sum.report.fault_texts.iter().take(3) {
            let _ = write!(texts, "<p>{}: {}</p>", escaped(&preset.name), escaped(text));
        }
    }
    texts
}

/// True if one of the presets sends everything, so that it needs no additional line.
fn sends_all(rows: &ReplayRows) -> bool {
    rows.presets.iter().any(|preset| preset.name == "none")
}

/// The colours of the lines.
fn key(rows: &ReplayRows) -> String {
    let mut key = String::from("<ul class=\"key\">");
    let all = (!sends_all(rows)).then_some("everything");
    let names = rows.presets.iter().map(|preset| preset.name.as_str());
    for (number, name) in names.chain(all).enumerate() {
        let _ = write!(
            key,
            "<li><i style=\"background:{}\"></i>{}",
            colour(number),
            escaped(name)
        );
    }
    key.push_str("</ul>");
    key
}

fn sizes(rows: &ReplayRows, settings: &ReplaySettings) -> String {
    let mut longest: Vec<usize> = (0..rows.all_sizes.len()).collect();
    longest.sort_by_key(|at| std::cmp::Reverse(rows.all_sizes.get(*at).map_or(0, Vec::len)));
    let mut plots = String::new();
    for at in longest.into_iter().take(PLOTS) {
        let first = rows.presets.first();
        let name = first.and_then(|preset| preset.rows.get(at)?.id.clone());
        let name = name.unwrap_or_default();
        let _ = write!(plots, "<h3>{}</h3>", escaped(&name));
        plots.push_str(&size(rows, at, &name, settings.window as f64));
    }
    plots
}

/// The plot of one conversation.
fn size(rows: &ReplayRows, at: usize, name: &str, window: f64) -> String {
    let presets = rows.presets.iter();
    let mut series: Vec<PlotLine> = presets
        .filter_map(|preset| Some(over_calls(&preset.rows.get(at)?.sizes)))
        .collect();
    let all = rows
        .all_sizes
        .get(at)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let largest = all.iter().max().copied().unwrap_or(1) as f64;
    if !sends_all(rows) {
        series.push(over_calls(all));
    }
    let axes = PlotAxes {
        title: name,
        x: "call",
        y: "tokens",
        top: (window * WINDOWS).min(largest * 1.05),
        mark: (largest >= window).then_some((window, "the window")),
    };
    lines(&series, &axes)
}

fn over_calls(sizes: &[u64]) -> PlotLine {
    let sizes = sizes.iter().enumerate();
    sizes
        .map(|(call, size)| (call as f64, *size as f64))
        .collect()
}

/// The results of each conversation under a preset, collapsed.
fn conversations(preset: &PresetRows) -> String {
    let rows = preset.rows.iter();
    let named = rows.map(|row| (row.id.as_deref().unwrap_or_default(), row));
    format!(
        "<details><summary>{}</summary>{}</details>",
        escaped(&preset.name),
        table("conversation", named)
    )
}

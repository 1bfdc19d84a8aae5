//! `trimtab models list`: one line per model.

use std::io::Write;

use trimtab_wire::catalogue::{ModelInfo, Price};

use crate::catalogue;
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::visible::visible;
use crate::ui::{Terminal, number, style};

/// The width of names from which on longer ones are not aligned.
const WIDEST: usize = 52;

pub(super) fn run(
    filter: &str,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let catalogue = catalogue::load()?;
    let models: Vec<ModelInfo> = catalogue.list(filter).collect();
    let widths = models.iter().map(|model| model.id.chars().count());
    let width = widths.max().unwrap_or(0).min(WIDEST);
    for (number, model) in models.iter().enumerate() {
        if common.json {
            terminal.json(model)?;
        } else {
            if number == 0 {
                heading(width, terminal)?;
            }
            writeln!(terminal.out(), "{}", line(model, width))?;
        }
    }
    if models.is_empty() {
        return Err(Failure::input(
            format!("no model has {filter:?} in its name or provider"),
            "list them all with trimtab models list",
        ));
    }
    Ok(())
}

fn heading(width: usize, terminal: &mut Terminal) -> Result<(), Failure> {
    let strong = style::STRONG;
    writeln!(
        terminal.out(),
        "{strong}{:<width$} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}{strong:#}",
        "model",
        "window",
        "answer",
        "input",
        "output",
        "read",
        "write"
    )?;
    Ok(())
}

fn line(model: &ModelInfo, width: usize) -> String {
    let answer = model
        .max_output
        .map_or_else(|| "-".to_owned(), number::short);
    let price = |price: fn(&trimtab_wire::catalogue::Prices) -> Price| {
        model
            .prices
            .as_ref()
            .map_or_else(|| "-".to_owned(), |prices| price(prices).to_string())
    };
    format!(
        "{:<width$} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}",
        visible(&model.id),
        number::short(model.window),
        answer,
        price(|prices| prices.input),
        price(|prices| prices.output),
        price(|prices| prices.cache_read),
        price(|prices| prices.cache_write),
    )
}

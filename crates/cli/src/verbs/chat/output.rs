//! The command `/output`: shows a stored output in a pager.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

use terminal_size::{Height, terminal_size};
use trimtab::store::{Error, LineRange, OpenOutput, OutputForm, OutputMetadata};

use super::open_chat::OpenChat;
use super::screen::Screen;
use super::sessions::{is_choice, store_failure};
use super::text::on_one_line;
use crate::exit::Failure;
use crate::ui::columns::{Align, lined_up};
use crate::ui::visible::{visible, visible_lines};
use crate::ui::{self, number, units};
use crate::verbs::output::prefix::unique_name;

/// The number of outputs in the list.
const LISTED: usize = 12;
/// The number of lines that are read at a time.
const BATCH: u64 = 500;

/// Opens the output with this ref prefix in a pager, or lists the outputs if none is given.
pub(super) fn run(chat: &OpenChat, given: &str, screen: &mut Screen<'_>) -> Result<(), Failure> {
    let mut outputs = chat
        .store()
        .list(chat.id())
        .map_err(|error| store_failure(&error))?;
    outputs.retain(|output| !is_choice(output));
    if given.is_empty() {
        let lines = |output: &OutputMetadata| {
            let opened = chat
                .store()
                .open(chat.id(), output.reference.id(), OutputForm::Text);
            let lines = opened.and_then(|stored| stored.shown_lines());
            // A damaged output is listed too.
            lines.unwrap_or(output.line_count)
        };
        list(&outputs, lines, screen);
        return Ok(());
    }
    let names = outputs.iter().map(|output| output.reference.id());
    // A ref that is unknown here may belong to a parent session.
    let id = unique_name(given, "output", names)?.unwrap_or(given);
    let stored =
        chat.store()
            .open(chat.id(), id, OutputForm::Text)
            .map_err(|error| match error {
                Error::NotFound => Failure::input(
                    format!("no output '{}' in this session", visible(given)),
                    "/output lists them",
                ),
                error => store_failure(&error),
            })?;
    if stored.is_binary().map_err(|error| store_failure(&error))? {
        return Err(Failure::input(
            format!("output '{id}' is binary and has no lines to show"),
            format!(
                "trimtab output read --session {} {id} --raw > FILE",
                chat.id()
            ),
        ));
    }
    page(&stored, screen)
}

fn list(
    outputs: &[OutputMetadata],
    lines: impl Fn(&OutputMetadata) -> u64,
    screen: &mut Screen<'_>,
) {
    if outputs.is_empty() {
        screen.text("no outputs yet\n");
        return;
    }
    let heading = ["REF", "LINES", "SIZE", "TOOL"].map(str::to_owned);
    let row = |output: &OutputMetadata| {
        let labels = &output.labels;
        let tool = if labels.tool.is_empty() {
            &labels.call
        } else {
            &labels.tool
        };
        [
            output.reference.id().to_owned(),
            number::grouped(lines(output)),
            units::size(output.byte_size),
            on_one_line(tool),
        ]
    };
    let older = outputs.len().saturating_sub(LISTED);
    let rows: Vec<_> = [heading]
        .into_iter()
        .chain(outputs.iter().skip(older).map(row))
        .collect();
    let (left, right) = (Align::Left, Align::Right);
    screen.text(&lined_up(&rows, [left, right, right, left]));
    if older > 0 {
        screen.text(&format!("and {older} older\n"));
    }
}

/// Shows all lines, in a pager if they do not fit the terminal.
fn page(stored: &OpenOutput, screen: &mut Screen<'_>) -> Result<(), Failure> {
    let rows = terminal_size().map_or(u64::MAX, |(_, Height(rows))| u64::from(rows));
    let count = stored
        .shown_lines()
        .map_err(|error| store_failure(&error))?;
    // Two rows are needed for the command and the next prompt.
    let long = count.saturating_add(2) > rows;
    let pager = if long && ui::is_terminal() {
        pager()
    } else {
        None
    };
    let Some(mut pager) = pager else {
        return lines(stored, |line| {
            screen.text(line);
            screen.check()
        });
    };
    let mut input = pager.stdin.take();
    let written = lines(stored, |line| {
        let input = input.as_mut().ok_or_else(pager_closed)?;
        Ok(input.write_all(line.as_bytes())?)
    });
    drop(input);
    pager.wait()?;
    match written {
        // The user quit the pager early.
        Err(Failure::Failed(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn pager_closed() -> Failure {
    io::Error::from(io::ErrorKind::BrokenPipe).into()
}

/// Starts `$PAGER`, else less, if there is one.
fn pager() -> Option<Child> {
    let wanted = std::env::var("PAGER").unwrap_or_default();
    let mut words = wanted.split_whitespace();
    let program = words.next().unwrap_or("less");
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped());
    // R passes styles through, X leaves the text on the screen when less ends.
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "RX");
    }
    command.spawn().ok()
}

fn lines(
    stored: &OpenOutput,
    mut show: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let count = stored
        .shown_lines()
        .map_err(|error| store_failure(&error))?;
    let mut next = (count > 0).then_some(0);
    while let Some(from) = next {
        let read = stored
            .lines(LineRange::new(from, BATCH.min(count - from)))
            .map_err(|error| store_failure(&error))?;
        for line in &read.lines {
            let more = if line.is_clipped() { "\u{2026}" } else { "" };
            let text = line.text();
            show(&format!(
                "{:>5}  {}{more}\n",
                line.number + 1,
                visible_lines(&text)
            ))?;
        }
        next = read
            .next
            .filter(|next| !read.lines.is_empty() && *next < count);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab::store::{MemoryStore, Put, SessionId, Store};

    #[test]
    fn non_empty_text_after_the_last_newline_is_a_line() {
        let store = MemoryStore::new();
        let session = SessionId::new("s").unwrap();
        for (text, count) in [("one\ntwo\n", 2), ("one\ntwo", 2), ("one\n\n", 2), ("", 0)] {
            let stored = store.put(&session, Put::new("c", text)).unwrap();
            let stored = store.open(&session, stored.id(), OutputForm::Text).unwrap();
            assert_eq!(stored.shown_lines().unwrap(), count, "{text:?}");
            let mut shown = Vec::new();
            lines(&stored, |line| {
                shown.push(line.to_owned());
                Ok(())
            })
            .unwrap();
            assert_eq!(shown.len() as u64, count, "{shown:?}");
        }
    }
}

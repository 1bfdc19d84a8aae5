//! A model that reads back what its window no longer has, by the refs that windows name, page by
//! page.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use trimtab_model::{Call, Message};
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::ReceivedRequest;

use crate::scripted::system_text;

const READ: &str = "tool_output_cache";
/// What a page says that begins behind the last line.
const PAST_END: &str = "Offset exceeds output length.";
/// What a line says that goes on behind what is shown of it.
const MORE_OF_LINE: &str = " bytes more in this line: ";
/// A line that names refs says one of these.
const NAMES_REFS: [&str; 3] = ["ref", "is behind ", "trimtab: "];
/// How many refs are read at once.
const AT_ONCE: usize = 3;
/// How many lines are asked for at once.
const LINES: u64 = 400;

/// What was read behind one ref.
#[derive(Default)]
pub(crate) struct Book {
    /// The text so far.
    pub(crate) text: String,
    /// True once all of it was read, or as much as is wanted.
    done: bool,
    offset: u64,
    column: u64,
    /// True if a window named the ref, and not only a text that was read.
    named_by_window: bool,
}

/// What the model knows.
#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) books: BTreeMap<String, Book>,
    /// The refs in the order in which they were named.
    order: Vec<String>,
    /// What the tools printed, all of it.
    outputs: Vec<String>,
    /// How many of them were sent. A window may never show one of them: it may be part of a
    /// summary at once.
    pub(crate) sent: usize,
    /// Those of them that the newest window shows whole, and those that were read.
    whole: BTreeSet<usize>,
    read: BTreeSet<usize>,
    /// Everything that the newest window says.
    pub(crate) window: String,
    /// What was answered in place of a page.
    pub(crate) troubles: Vec<String>,
    /// Of each text so many bytes are read.
    most: usize,
}

impl Reader {
    /// A model that is shown these outputs, and reads so many bytes of each text.
    pub(crate) fn new(outputs: &[String], most: usize) -> Self {
        Self {
            outputs: outputs.to_vec(),
            most,
            ..Self::default()
        }
    }

    /// Notes down a ref.
    fn name(&mut self, id: String) -> &mut Book {
        if !self.books.contains_key(&id) {
            self.order.push(id.clone());
        }
        self.books.entry(id).or_default()
    }

    /// Takes in a request: the pages at its end, and the refs that it names.
    pub(crate) fn look(&mut self, received: &ReceivedRequest) {
        let messages = received.read_messages();
        self.take_pages(&messages);
        let calls = messages.iter().flat_map(Message::calls);
        let pages = calls.filter(|call| call.name == READ);
        let pages: BTreeSet<&str> = pages.map(|call| call.id.as_str()).collect();
        let mut window = system_text(received);
        for message in &messages {
            let outputs: Vec<_> = message.outputs().collect();
            if outputs.is_empty() {
                window.push_str(&message.text());
                window.push('\n');
            }
            for output in outputs {
                if !pages.contains(output.call_id.as_str()) {
                    window.push_str(&output.text());
                    window.push('\n');
                }
            }
        }
        for id in refs_in(&window) {
            self.name(id).named_by_window = true;
        }
        self.whole = self.whole_in(&window, &numbers_in(&window));
        self.window = window;
    }

    fn take_pages(&mut self, messages: &[Message]) {
        let Some(asked) = messages.iter().rposition(Message::has_calls) else {
            return;
        };
        let (before, answers) = messages.split_at(asked + 1);
        let calls: Vec<&Call> = before.last().into_iter().flat_map(Message::calls).collect();
        for output in answers.iter().flat_map(Message::outputs) {
            let call = calls.iter().find(|call| call.id == output.call_id);
            if let Some(call) = call.filter(|call| call.name == READ) {
                self.take_page(&call.arguments, &output.text());
            }
        }
    }

    fn take_page(&mut self, arguments: &str, page: &str) {
        let asked: Value = serde_json::from_str(arguments).unwrap_or_default();
        let id = asked["ref_id"].as_str().unwrap_or_default();
        let (offset, column) = (asked["offset"].as_u64(), asked["column"].as_u64());
        let Some(book) = self.books.get_mut(id) else {
            return;
        };
        // A page that came twice.
        if (Some(book.offset), book.column) != (offset, column.unwrap_or(0)) || book.done {
            return;
        }
        if let Err(line) = book.take(id, page) {
            let begin: String = line.chars().take(200).collect();
            self.troubles.push(format!("{arguments}: {begin}"));
            book.done = true;
        }
        book.done |= book.text.len() >= self.most;
        if !book.done {
            return;
        }
        let (text, is_direct) = (book.text.clone(), book.named_by_window);
        let whole = self.whole_in(&text, &numbers_in(&text));
        self.read.extend(whole);
        if is_direct {
            for id in refs_in(&text) {
                self.name(id);
            }
        }
    }

    /// Those of the outputs with these numbers that a text has whole.
    fn whole_in(&self, text: &str, numbers: &BTreeSet<usize>) -> BTreeSet<usize> {
        let is_whole = |number: &&usize| {
            let output = self.outputs.get(**number).map(String::as_str);
            // The end of the last line is not told by lines.
            output.is_some_and(|output| text.contains(output.strip_suffix('\n').unwrap_or(output)))
        };
        numbers.iter().filter(is_whole).copied().collect()
    }

    /// True if there is something to read: an output that was sent is neither in the window nor
    /// read yet. Of what is too long only the beginning is read.
    pub(crate) fn has_more(&self) -> bool {
        let is_short = |number: &usize| self.outputs[*number].len() < self.most / 2;
        let is_gone = |number: &usize| !self.whole.contains(number) && !self.read.contains(number);
        let mut gone = (0..self.sent).filter(is_gone);
        gone.any(|number| is_short(&number)) && self.books.values().any(|book| !book.done)
    }

    /// The refs in the text of a book that a window named, beside those that were read.
    pub(crate) fn refs_behind(&self, book: &Book, text: &str) -> Vec<String> {
        let mut refs = refs_in(text);
        refs.retain(|id| book.named_by_window && !self.books.contains_key(id));
        refs.sort();
        refs.dedup();
        refs
    }

    /// Asks for the next pages; none if there is nothing to read.
    pub(crate) fn next_pages(&self) -> Option<ScriptedReply> {
        let books = self.order.iter().map(|id| (id, &self.books[id]));
        let open = books.filter(|(_, book)| !book.done && self.has_more());
        let mut reply: Option<ScriptedReply> = None;
        for (id, book) in open.take(AT_ONCE) {
            let mut asks = json!({"ref_id": id, "offset": book.offset, "limit": LINES});
            if book.column > 0 {
                asks["column"] = json!(book.column);
                asks["limit"] = json!(1);
            }
            reply = Some(match reply {
                Some(reply) => reply.and_call(READ, asks),
                None => ScriptedReply::call(READ, asks),
            });
        }
        reply
    }
}

impl Book {
    /// Takes the next page; the line that is none if there is one.
    fn take<'p>(&mut self, id: &str, page: &'p str) -> Result<(), &'p str> {
        if page == PAST_END {
            self.done = true;
            return Ok(());
        }
        for line in page.split('\n') {
            if line.starts_with("[trimtab: lines ") {
                return Ok(());
            }
            let (number, text) = line.trim_start().split_once("  ").ok_or(line)?;
            if number.parse() != Ok(self.offset + 1) {
                return Err(line);
            }
            if self.column == 0 && self.offset > 0 {
                self.text.push('\n');
            }
            if let Some((shown, column)) = shown_part(text, id) {
                self.text.push_str(shown);
                self.column = column;
                return Ok(());
            }
            self.text.push_str(text);
            self.offset += 1;
            self.column = 0;
        }
        Ok(())
    }
}

/// What is shown of a line that goes on, and the column from which on it does.
fn shown_part<'l>(line: &'l str, id: &str) -> Option<(&'l str, u64)> {
    let (shown, call) = line.rsplit_once(MORE_OF_LINE)?;
    let (shown, _) = shown.rsplit_once(" [… ")?;
    // Lines that were read once may be read again, with what was said of them then.
    let (ours, column) = call.split_once("\"column\":")?;
    let column = column.strip_suffix("})]")?;
    Some((shown, column.parse().ok()?)).filter(|_| ours.contains(id))
}

/// The numbers of the outputs whose first words are in a text.
fn numbers_in(text: &str) -> BTreeSet<usize> {
    let behind = text.split("OUTPUT-").skip(1);
    let number = |rest: &str| rest.split_once(" begins")?.0.parse().ok();
    behind.filter_map(number).collect()
}

/// The refs that a text names, in its order: refs are random, and every run reads the same.
fn refs_in(text: &str) -> Vec<String> {
    let naming = |line: &&str| NAMES_REFS.iter().any(|mark| line.contains(mark));
    let words = text
        .lines()
        .filter(naming)
        .flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    let is_ref = |word: &&str| {
        let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'2'..=b'7');
        word.len() == 16 && word.bytes().all(allowed)
    };
    words.filter(is_ref).map(str::to_owned).collect()
}

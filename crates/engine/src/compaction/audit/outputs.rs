//! Lists the stored outputs of the replaced messages, each with its call.

use std::borrow::Borrow;
use std::collections::HashMap;

use trimtab_model::rounds::{self, PartPosition};
use trimtab_model::{Call, Message, Part, Ref};

use super::block::{CLOSING, OUTPUTS};
use crate::compaction::text::short_arguments;

/// The characters of the arguments that are shown.
const ARGUMENTS: usize = 60;

/// One stored output.
pub(super) struct StoredOutput<'m> {
    /// The id of its ref.
    pub(super) id: &'m str,
    /// The ref, unless only an earlier fact block names it.
    pub(super) stored: Option<&'m Ref>,
    tool: &'m str,
    call: Option<&'m Call>,
    /// Its label in an earlier fact block.
    earlier_label: &'m str,
}

impl StoredOutput<'_> {
    /// Its call, in short.
    pub(super) fn label(&self) -> String {
        match self.call {
            Some(call) => short_arguments(call, ARGUMENTS),
            None if self.stored.is_some() => self.tool.to_owned(),
            None => self.earlier_label.to_owned(),
        }
    }
}

/// The stored outputs of the replaced messages, oldest first, each once.
pub(super) fn stored_outputs<M: Borrow<Message>>(replaced: &[M]) -> Vec<StoredOutput<'_>> {
    let pairing = rounds::pair(replaced);
    let answered = pairing.outputs.iter();
    let answered =
        answered.filter_map(|(place, answer)| Some((*place, pairing.call_of(replaced, *answer)?)));
    let calls: HashMap<PartPosition, &Call> = answered.collect();
    let mut all: Vec<StoredOutput<'_>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (at, message) in replaced.iter().enumerate() {
        let message = message.borrow();
        let parts = message.parts.iter();
        // An earlier fact block may be the only place that still names an old output.
        let texts = parts
            .filter_map(Part::as_text)
            .filter(|_| message.is_summary());
        let outputs = message
            .parts
            .iter()
            .enumerate()
            .filter_map(|(part, output)| {
                let output = output.as_output()?;
                let stored = output.stored.as_ref()?;
                Some(StoredOutput {
                    id: stored.id(),
                    stored: Some(stored),
                    tool: output.tool.as_deref().unwrap_or("output"),
                    call: calls.get(&PartPosition { message: at, part }).copied(),
                    earlier_label: "",
                })
            });
        for output in texts.flat_map(named_in).chain(outputs) {
            match places.get(output.id).and_then(|at| all.get_mut(*at)) {
                // The output itself says more than its line in an earlier fact block.
                Some(known) if known.stored.is_none() => *known = output,
                Some(_) => {}
                None => {
                    places.insert(output.id, all.len());
                    all.push(output);
                }
            }
        }
    }
    all
}

/// The outputs that the fact block of an earlier summary names.
fn named_in(summary: &str) -> impl Iterator<Item = StoredOutput<'_>> {
    // Only lines of their own: a quoted fact may contain the same words.
    let lines = summary.lines().skip_while(|line| *line != OUTPUTS).skip(1);
    let lines = lines.take_while(|line| *line != CLOSING);
    lines.flat_map(named_in_line)
}

/// Parses `- REF tool(arguments)`, or a line of bare refs.
fn named_in_line(line: &str) -> Vec<StoredOutput<'_>> {
    let named = |id, said| StoredOutput {
        id,
        stored: None,
        tool: "",
        call: None,
        earlier_label: said,
    };
    match line.strip_prefix("- ") {
        Some(entry) => {
            let (id, said) = entry.split_once(' ').unwrap_or((entry, ""));
            vec![named(id, said)]
        }
        None => line.split_whitespace().map(|id| named(id, "")).collect(),
    }
}

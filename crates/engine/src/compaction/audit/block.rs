//! The fact block: what a summary leaves out, within a budget.

use std::collections::BTreeMap;

use trimtab_model::Ref;

use super::outputs::{StoredOutput, StoredOutputs};
use super::{Coverage, Missing};
use crate::compaction::room::Room;
use crate::compaction::text::{clipped, untagged};
use crate::facts::{self, FactKind};

/// What the block begins with.
const OPENING: &str = "[Facts of the replaced messages]";
/// What the list of stored outputs begins with.
pub(super) const OUTPUTS: &str = "[Stored outputs: ref and call]";
/// What ends the block.
pub(super) const CLOSING: &str = "[End of facts]";
/// Characters of one fact.
const LONGEST: usize = 240;
/// How much of the room the list of outputs may take before the facts have theirs.
const OUTPUTS_FIRST: u64 = 65;

/// The text that makes up for what a summary leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactBlock {
    /// The text; empty if there is nothing to say, or no room for it.
    pub text: String,
    /// The refs that it names.
    pub refs: Vec<Ref>,
    /// Stored outputs for which there was no room.
    pub unnamed: usize,
    /// The coverage with this block.
    pub coverage: Coverage,
}

/// Renders the block within `room`.
pub(super) fn render(
    missing: &[Missing<'_>],
    outputs: &StoredOutputs<'_>,
    room: &Room<'_>,
) -> FactBlock {
    let frame = [OPENING, OUTPUTS, CLOSING]
        .iter()
        .map(|line| room.weight(line) + 1);
    let Some(tokens) = room.tokens.checked_sub(frame.sum()) else {
        return nothing(outputs);
    };
    let inner = room.with(tokens);
    let first = outputs_within(&outputs.all, &inner.share(OUTPUTS_FIRST));
    let facts = facts_within(missing, &inner.with(tokens.saturating_sub(first.weight)));
    let used: u64 = facts.iter().map(|line| line.weight).sum();
    let listed = outputs_within(&outputs.all, &inner.with(tokens.saturating_sub(used)));
    let mut block = assemble(facts, &listed, outputs);
    // Texts may weigh more together than one by one.
    let mut less = tokens;
    while !room.holds(&block.text) && less > 0 {
        less /= 2;
        let half = inner.with(less);
        let listed = outputs_within(&outputs.all, &half.share(OUTPUTS_FIRST));
        let facts = facts_within(missing, &half.with(less.saturating_sub(listed.weight)));
        block = assemble(facts, &listed, outputs);
    }
    if room.holds(&block.text) {
        block
    } else {
        nothing(outputs)
    }
}

fn nothing(outputs: &StoredOutputs<'_>) -> FactBlock {
    FactBlock {
        unnamed: outputs.all.len(),
        ..FactBlock::default()
    }
}

/// Facts as they are shown, each with its weight, by the ref of the output they came from.
type ByRef<'m> = BTreeMap<&'m str, Vec<(String, u64)>>;

/// One line of facts.
struct FactLine {
    text: String,
    facts: usize,
    weight: u64,
}

/// The facts that matter most, as many as there is room for, one line for each kind.
fn facts_within(missing: &[Missing<'_>], room: &Room<'_>) -> Vec<FactLine> {
    let mut left = room.tokens;
    let mut kinds: BTreeMap<FactKind, ByRef<'_>> = BTreeMap::new();
    for fact in missing {
        let shown = shown(fact);
        let by_ref = kinds.get(&fact.kind);
        let id = fact.stored.map_or("", Ref::id);
        let known = by_ref.is_some_and(|groups| groups.contains_key(id));
        let head = if by_ref.is_none() {
            room.weight(fact.kind.plural()) + 1
        } else {
            0
        };
        let group = if known { 0 } else { room.weight(id) + 4 };
        let weight = room.weight(&shown) + 1 + head + group;
        let Some(rest) = left.checked_sub(weight) else {
            break;
        };
        left = rest;
        let groups = kinds.entry(fact.kind).or_default();
        groups.entry(id).or_default().push((shown, weight));
    }
    kinds
        .into_iter()
        .map(|(kind, groups)| line(kind, groups))
        .collect()
}

/// `paths: a, b (ref1); c`.
fn line(kind: FactKind, groups: ByRef<'_>) -> FactLine {
    let facts = groups.values().map(Vec::len).sum();
    let weight = groups.values().flatten().map(|(_, weight)| weight).sum();
    let between = match kind {
        FactKind::Constraint | FactKind::Error | FactKind::Command => " | ",
        _ => ", ",
    };
    let group = |(id, facts): (&str, Vec<(String, u64)>)| {
        let facts: Vec<String> = facts.into_iter().map(|(fact, _)| fact).collect();
        match id {
            "" => facts.join(between),
            id => format!("{} ({id})", facts.join(between)),
        }
    };
    let groups: Vec<String> = groups.into_iter().map(group).collect();
    FactLine {
        text: format!("{kind}: {}", groups.join("; ")),
        facts,
        weight,
    }
}

fn shown(fact: &Missing<'_>) -> String {
    let text = match fact.kind {
        FactKind::Command => facts::unescaped(fact.text),
        _ => fact.text.into(),
    };
    untagged(&clipped(&text, LONGEST))
}

/// Outputs that are named, newest first.
struct Listed {
    /// How many are named with their call.
    labelled: usize,
    /// How many older ones are named by their ref alone.
    bare: usize,
    weight: u64,
}

fn entry(output: &StoredOutput<'_>) -> String {
    let label = untagged(&output.label());
    format!("- {} {label}", output.id).trim_end().to_owned()
}

/// As many of the newest outputs as there is room for: all with their call, else all by
/// their ref and as many as possible with their call, else the newest.
fn outputs_within(outputs: &[StoredOutput<'_>], room: &Room<'_>) -> Listed {
    let bare = |output: &StoredOutput<'_>| room.weight(output.id) + 1;
    let mut left = room.tokens;
    let mut listed = Listed {
        labelled: 0,
        bare: 0,
        weight: 0,
    };
    for output in outputs.iter().rev() {
        let Some(rest) = left.checked_sub(bare(output)) else {
            break;
        };
        left = rest;
        listed.bare += 1;
    }
    for output in outputs.iter().rev().take(listed.bare) {
        let more = (room.weight(&entry(output)) + 1).saturating_sub(bare(output));
        let Some(rest) = left.checked_sub(more) else {
            break;
        };
        left = rest;
        listed.labelled += 1;
    }
    listed.bare -= listed.labelled;
    listed.weight = room.tokens - left;
    listed
}

fn assemble(facts: Vec<FactLine>, listed: &Listed, outputs: &StoredOutputs<'_>) -> FactBlock {
    let added = facts.iter().map(|line| line.facts).sum();
    let named = listed.labelled + listed.bare;
    let unnamed = outputs.all.len() - named;
    if added + named == 0 {
        return nothing(outputs);
    }
    let mut lines = vec![OPENING.to_owned()];
    lines.extend(facts.into_iter().map(|line| line.text));
    let newest = outputs.all.iter().skip(unnamed);
    if named > 0 {
        lines.push(OUTPUTS.to_owned());
        let bare: Vec<&str> = newest
            .clone()
            .take(listed.bare)
            .map(|output| output.id)
            .collect();
        if !bare.is_empty() {
            lines.push(bare.join(" "));
        }
        lines.extend(newest.clone().skip(listed.bare).map(entry));
    }
    lines.push(CLOSING.to_owned());
    FactBlock {
        text: lines.join("\n"),
        refs: newest.filter_map(|output| output.stored.cloned()).collect(),
        unnamed,
        coverage: Coverage {
            added,
            ..Coverage::default()
        },
    }
}

/// `text` without the fact block in it.
pub(in crate::compaction) fn without_block(text: &str) -> String {
    let Some((before, block)) = text.split_once(OPENING) else {
        return text.to_owned();
    };
    let after = block.split_once(CLOSING).map_or("", |(_, after)| after);
    format!("{}{after}", before.trim_end())
}

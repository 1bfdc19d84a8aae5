//! Programs that the provider runs, and the outputs that they read.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use trimtab_model::Dialect;

use super::{BrokenRule, entries, text};
use crate::upstream::refusal::ProviderRefusal;

/// How our own notes in a shortened output begin. Nothing is kept between two requests, so this is
/// how an output that is not whole shows.
const NOTE: &str = "[trimtab:";

pub(super) fn judge(body: &Value, dialect: Dialect) -> Vec<BrokenRule> {
    match dialect {
        Dialect::Chat => Vec::new(),
        Dialect::Responses => judge_items(body),
        Dialect::Messages => judge_blocks(body),
    }
}

/// The caller of a call or an output, unless it is the model itself.
fn program_caller(value: &Value) -> Option<&Value> {
    let caller = value.get("caller")?;
    (!matches!(text(caller, "type"), "" | "direct")).then_some(caller)
}

fn judge_items(body: &Value) -> Vec<BrokenRule> {
    let mut rules = ItemRules::default();
    for (at, item) in entries(body, "input") {
        rules.caller(at, item);
        rules.item(at, item);
    }
    rules.broken
}

/// Reads the items of Responses.
#[derive(Default)]
struct ItemRules<'a> {
    programs: HashSet<&'a str>,
    /// For each call its caller.
    calls: HashMap<&'a str, Option<&'a Value>>,
    broken: Vec<BrokenRule>,
}

impl<'a> ItemRules<'a> {
    fn note(&mut self, rule: String, message: String) {
        let refusal = ProviderRefusal::openai(message, Some("input"), None);
        self.broken.push(BrokenRule::new(rule, refusal));
    }

    fn caller(&mut self, at: usize, item: &Value) {
        let program = program_caller(item).map(|caller| text(caller, "caller_id"));
        if let Some(program) = program.filter(|program| !self.programs.contains(program)) {
            let message = format!("No program found for caller_id {program}.");
            self.note(format!("item {at} has no program {program:?}"), message);
        }
    }

    fn item(&mut self, at: usize, item: &'a Value) {
        let id = text(item, "call_id");
        match text(item, "type") {
            "program" => drop(self.programs.insert(id)),
            "program_output" if !self.programs.contains(id) => {
                let message = format!("No program found for program output with call_id {id}.");
                self.note(format!("program output {at} has no program"), message);
            }
            "function_call" | "custom_tool_call" => {
                self.calls.insert(id, program_caller(item));
            }
            "function_call_output" | "custom_tool_call_output" => self.output(id, item),
            _ => {}
        }
    }

    fn output(&mut self, id: &str, item: &Value) {
        let caller = program_caller(item);
        if self.calls.get(id).is_some_and(|of_call| *of_call != caller) {
            let message = format!("The caller of output {id} is not that of its call.");
            self.note(format!("output {id:?} has another caller"), message);
        }
        if caller.is_some() && item.to_string().contains(NOTE) {
            let message = format!("The output {id} for a program is not whole.");
            self.note(format!("output {id:?} for a program is cut"), message);
        }
    }
}

fn judge_blocks(body: &Value) -> Vec<BrokenRule> {
    let mut rules = BlockRules::default();
    for (at, message) in entries(body, "messages") {
        rules.message(at, message);
    }
    rules.broken
}

/// Reads the blocks of Messages.
#[derive(Default)]
struct BlockRules<'a> {
    programs: HashSet<&'a str>,
    /// The calls of programs in the current answer.
    calls: HashSet<&'a str>,
    /// True while the user side answers a program.
    answers: bool,
    /// The role of the message before.
    last: &'a str,
    broken: Vec<BrokenRule>,
}

impl<'a> BlockRules<'a> {
    fn note(&mut self, rule: String, message: String) {
        let refusal = ProviderRefusal::anthropic(message);
        self.broken.push(BrokenRule::new(rule, refusal));
    }

    fn message(&mut self, at: usize, message: &'a Value) {
        let role = text(message, "role");
        // Consecutive messages of one role are one message to the provider.
        if role == "assistant" && self.last != role {
            self.calls.clear();
            self.answers = false;
        }
        self.last = role;
        for (number, block) in entries(message, "content") {
            self.block(&format!("messages.{at}.content.{number}"), block);
        }
        let is_other = |(_, block): (usize, &Value)| text(block, "type") != "tool_result";
        let is_text = message.get("content").is_some_and(Value::is_string);
        let has_other = is_text || entries(message, "content").any(is_other);
        if self.answers && has_other && role == "user" {
            let message = format!(
                "messages.{at}: only `tool_result` blocks are allowed when responding to \
                 programmatic tool calls"
            );
            self.note(format!("message {at} answers a program with more"), message);
        }
    }

    fn block(&mut self, place: &str, block: &'a Value) {
        let id = text(block, "tool_use_id");
        match text(block, "type") {
            "server_tool_use" => drop(self.programs.insert(text(block, "id"))),
            "tool_use" => self.call(place, block),
            "tool_result" if self.calls.contains(id) => {
                self.answers = true;
                if block.to_string().contains(NOTE) {
                    let message = format!("{place}: the result for a program is not whole");
                    self.note(format!("{place} for a program is cut"), message);
                }
            }
            "tool_result" | "mcp_tool_result" => {}
            other if other.ends_with("_tool_result") && !self.programs.contains(id) => {
                let message =
                    format!("{place}: unexpected `tool_use_id` found in `{other}` blocks: {id}.");
                self.note(format!("{place} has no server tool use"), message);
            }
            _ => {}
        }
    }

    fn call(&mut self, place: &str, block: &'a Value) {
        let Some(program) = program_caller(block) else {
            return;
        };
        self.calls.insert(text(block, "id"));
        let program = text(program, "tool_id");
        if !self.programs.contains(program) {
            let message = format!("{place}: unexpected caller {program}");
            self.note(format!("{place} has no program {program:?}"), message);
        }
    }
}

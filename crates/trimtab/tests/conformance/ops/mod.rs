//! One function an op: from a case's input to our result in the case's own words.

mod archive;
mod budgets;
mod compaction;
mod estimates;
mod history;
mod recovery;
mod retrieval;
mod views;

use std::sync::Arc;

use serde_json::Value;
use trimtab::engine::decide::{CallConditions, ConversationState, PlanStep, ReportedUsage, age};
use trimtab::engine::normalise::NormaliseOptions;
use trimtab::engine::policy::{Moment, Policy};
use trimtab::engine::window::Projection;
use trimtab::model::estimate::Measure;
use trimtab::model::{Media, MediaKind, Message, Part, RawJson, Usage};
use trimtab::wire::chat;

use crate::case::Case;

/// A result for a case, or why there is none.
pub(crate) type Ran<T = Value> = Result<T, String>;

/// Something that a case or a session must give.
pub(crate) trait Must<T> {
    /// The value, or that `what` is missing.
    fn must(self, what: &str) -> Ran<T>;
}

impl<T> Must<T> for Option<T> {
    fn must(self, what: &str) -> Ran<T> {
        self.ok_or_else(|| format!("there is no {what}"))
    }
}

impl<T, E: std::fmt::Display> Must<T> for Result<T, E> {
    fn must(self, what: &str) -> Ran<T> {
        self.map_err(|error| format!("{what}: {error}"))
    }
}

/// Where a result is seen.
enum Seen {
    /// In the window or the request that a session makes.
    InSession,
    /// At the function that the session calls, because of this.
    AtFunction(#[expect(dead_code, reason = "for whoever reads the table")] &'static str),
}

use Seen::{AtFunction, InSession};

const FIGURES: &str = "the case gives figures and no conversation";
const ONE_STEP: &str = "the case is about one step, whose result is not sent by itself";
const SMALL: &str = "the notes are longer than what they replace, and no session carries that out";
const TASK: &str = "the case drops what the user said first, and no session does";

type Run = fn(&Value) -> Ran;

/// Every op: its name, where its result is seen, and the function that runs it.
#[rustfmt::skip]
const OPS: &[(&str, Seen, Run)] = &[
    ("add_message_truncates", InSession, views::added),
    ("build_compacted_history", InSession, compaction::built),
    ("cache_grep", InSession, retrieval::grep),
    ("cache_read", InSession, retrieval::read),
    ("collect_user_messages", InSession, compaction::collected),
    ("compact_codex_style", InSession, compaction::checkpoint),
    ("compact_old_tool_results", AtFunction(SMALL), views::retention),
    ("compact_tool_results_in_recent", InSession, archive::digested),
    ("compact_with_error", InSession, compaction::with_error),
    ("compact_with_response", InSession, compaction::with_response),
    ("compact_with_summary", InSession, archive::compacted),
    ("compaction_prompt", InSession, compaction::instructions),
    ("context_budget", AtFunction(FIGURES), budgets::output_budget),
    ("convert_visible", InSession, history::visible),
    ("effective_keep_recent_tokens", AtFunction(FIGURES), budgets::recent_tokens),
    ("effective_token_limit", AtFunction(FIGURES), budgets::token_limit),
    ("estimate_context_tokens", AtFunction(ONE_STEP), estimates::context),
    ("estimate_message_tokens_25", AtFunction(ONE_STEP), estimates::turns_message),
    ("estimate_message_tokens_4", AtFunction(ONE_STEP), estimates::archive_message),
    ("estimate_tokens_4", AtFunction(ONE_STEP), estimates::archive_messages),
    ("estimate_tokens_bytes4", AtFunction(ONE_STEP), estimates::refs_text),
    ("estimate_tool_defs_25", AtFunction(ONE_STEP), estimates::turns_tools),
    ("find_safe_boundary", AtFunction(ONE_STEP), history::nearest_boundary),
    ("force_compression", AtFunction(TASK), recovery::half_of_turns),
    ("formatted_truncate_text", InSession, views::formatted),
    ("inject_summary", InSession, compaction::injected),
    ("is_over_context_budget", AtFunction(FIGURES), budgets::is_over),
    ("is_safe_boundary", AtFunction(ONE_STEP), history::is_boundary),
    ("metadata_json_round_trip", AtFunction(ONE_STEP), history::metadata),
    ("normalize_synthesize", InSession, history::normalised),
    ("overflow_recovery", InSession, recovery::dropping),
    ("overflow_recovery_compact", InSession, recovery::compacting),
    ("parse_compaction_response", AtFunction(ONE_STEP), compaction::parsed),
    ("parse_turn_boundaries", AtFunction(ONE_STEP), history::boundaries),
    ("prepare_for_summary", AtFunction(ONE_STEP), compaction::prepared),
    ("project_for_summary", AtFunction(ONE_STEP), archive::projected),
    ("remove_oldest_pair", InSession, recovery::remove_oldest),
    ("resolve_context_window", AtFunction("a setting: what sessions are opened with"), budgets::window),
    ("select_user_messages", InSession, compaction::selected),
    ("separate_preserved", AtFunction(TASK), history::preserved),
    ("should_compact_limits", AtFunction(FIGURES), budgets::archive_fires),
    ("should_compact_usage", AtFunction(FIGURES), budgets::refs_fires),
    ("should_compress_manager", AtFunction(FIGURES), budgets::checkpoint_fires),
    ("should_summarize", AtFunction(FIGURES), budgets::turns_fires),
    ("split_by_token_budget", AtFunction(ONE_STEP), budgets::split),
    ("summariser_input", InSession, compaction::asked),
    ("summarize_old_tool_results", AtFunction(SMALL), archive::summarised),
    ("summarize_plan", AtFunction(TASK), compaction::turns_plan),
    ("tool_output_limits", InSession, views::limits),
    ("tool_output_view", InSession, views::head_lines),
    ("trim_conversation_history", InSession, history::kept_whole),
    ("trim_tool_outputs", AtFunction(SMALL), views::trimmed),
    ("truncate_text", InSession, views::truncated),
    ("usage_total", AtFunction(ONE_STEP), estimates::usage_total),
];

/// The result for a case.
pub(crate) fn run(case: &Case) -> Ran {
    let known = OPS.iter().find(|(name, ..)| *name == case.op);
    let (.., run) = known.ok_or_else(|| format!("op '{}' is not known", case.op))?;
    run(&case.input)
}

/// The messages of a case.
pub(crate) fn messages(list: &Value) -> Ran<Vec<Message>> {
    list.as_array().into_iter().flatten().map(message).collect()
}

/// A message of a case, with the fields that only cases have.
fn message(value: &Value) -> Ran<Message> {
    let mut message = chat::read_message(&value.to_string()).must("message")?;
    // The third design takes the total that is reported, and its parts only without one.
    if let Some(total) = value["usage"]["total"].as_u64().filter(|total| *total > 0) {
        message.meta.usage = Some(Usage {
            input: total,
            ..Usage::default()
        });
    }
    let pictures = value["images"].as_u64().unwrap_or(0);
    let media = value["media"]
        .as_array()
        .map_or(0, |list| list.len() as u64);
    for _ in 0..pictures + media {
        let raw = RawJson::of(&serde_json::json!({"type": "image_url"}));
        message.parts.push(Part::Media(Media {
            kind: MediaKind::Image,
            raw,
        }));
    }
    Ok(message)
}

/// Messages of ours in the words of a case.
pub(crate) fn written<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Value {
    let json = messages.into_iter().flat_map(chat::write_message);
    json.map(|raw| raw.to_value())
        .map(content_is_there)
        .collect()
}

/// An assistant without content may leave the field out; the cases write null.
fn content_is_there(mut message: Value) -> Value {
    if let Some(fields) = message.as_object_mut() {
        fields.entry("content").or_insert(Value::Null);
    }
    message
}

/// A number that is no less than zero.
fn number(value: &Value) -> usize {
    usize::try_from(value.as_i64().unwrap_or(0)).unwrap_or(0)
}

/// A figure that is given; zero and less mean that it is not.
fn figure(input: &Value, key: &str) -> Option<u64> {
    let figure = input[key].as_i64();
    figure
        .and_then(|figure| u64::try_from(figure).ok())
        .filter(|figure| *figure > 0)
}

/// The texts of a list.
fn texts(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten();
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What the planner does about the old outputs of `log` at a moment, and the messages after
/// that. A model answers `answer` to every question about an output.
fn aged(
    policy: &Policy,
    log: Vec<Message>,
    usage: Option<Usage>,
    moment: Moment,
    answer: Option<&str>,
) -> Ran<(Option<String>, bool, Vec<Arc<Message>>)> {
    let mut projection = Projection::new(NormaliseOptions::default());
    for message in log {
        projection.admit(message);
    }
    projection.window().must("window")?;
    let step = {
        let call = CallConditions {
            usage: usage.map(|usage| ReportedUsage {
                usage,
                window: Measure::default(),
                answer: Measure::default(),
            }),
            ..CallConditions::new(&Measure::tokens)
        };
        let conversation = ConversationState::new(&projection, policy, &call);
        age(&conversation, moment)
    };
    let done = step.is_some();
    let (plan, note) = match step {
        Some(PlanStep::Plan(plan, note)) => (Some(plan), note),
        Some(PlanStep::ToolSummaries(archived)) => {
            let asked = (0..).take_while(|index| archived.request(*index).is_some());
            let answers = vec![answer; asked.count()];
            (Some(archived.with_summaries(&answers)), None)
        }
        _ => (None, None),
    };
    if let Some(plan) = plan {
        projection.carry_out(plan);
    }
    let slots = projection.slots().iter();
    let messages = slots.map(|slot| Arc::clone(&slot.message)).collect();
    Ok((note, done, messages))
}

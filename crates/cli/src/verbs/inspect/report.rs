//! The analysis of one conversation.

use serde::Serialize;
use trimtab_model::estimate::{Anchor, Measure};
use trimtab_model::{Message, MessageKind, Part, Role, Usage, rounds, turns};
use trimtab_wire::transcript::{Conversation, TranscriptForm};

use super::faults::{self, InspectFault};
use super::outputs::{self, OutputSummary};

/// The analysis of one conversation. Serialises as a line of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct InspectReport {
    /// The file it is in.
    pub file: String,
    /// The conversation's id in the file.
    pub id: Option<String>,
    /// The form of the transcript.
    pub form: &'static str,
    /// The model that answered last.
    pub model: Option<String>,
    /// The counts.
    pub counts: ConversationCounts,
    /// The fill level of the window.
    pub window: WindowUse,
    /// Estimated tokens by region, which add up to the window.
    pub regions: RegionTokens,
    /// Estimated tokens by role, which add up to the messages.
    pub roles: RoleTokens,
    /// The usage reported for the last answer.
    pub usage: Option<Usage>,
    /// The outputs.
    pub outputs: OutputSummary,
    /// Faults that a provider would reject.
    pub faults: Vec<InspectFault>,
}

/// The number of items in the window.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ConversationCounts {
    /// User messages with what follows them.
    pub turns: usize,
    /// Answers that call tools, with their outputs.
    pub rounds: usize,
    /// Messages.
    pub messages: usize,
    /// Calls.
    pub calls: usize,
    /// Outputs.
    pub outputs: usize,
    /// Times the agent compacted.
    pub compactions: usize,
    /// Messages that an earlier compaction took out of the window.
    pub compacted_messages: usize,
}

/// The fill level of the window.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct WindowUse {
    /// Estimated tokens in the transcript.
    pub tokens: u64,
    /// Tokens that the provider counted for the last prompt, if the transcript says so. They
    /// include the system prompt and the tools, which many transcripts omit.
    pub reported: Option<u64>,
    /// The size of the window, if known.
    pub size: Option<u64>,
}

/// Estimated tokens by region.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct RegionTokens {
    /// System messages; none if the transcript omits them.
    pub system: Option<u64>,
    /// Tool definitions; none if the transcript omits them.
    pub tools: Option<u64>,
    /// Summaries, with the messages kept next to them.
    pub summary: u64,
    /// Everything else.
    pub log: u64,
}

/// Estimated tokens by role, with summaries separate.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct RoleTokens {
    /// System messages.
    pub system: u64,
    /// User messages, including those written in the user's name.
    pub user: u64,
    /// The model's text, reasoning and calls.
    pub assistant: u64,
    /// The part of those that is reasoning.
    pub reasoning: u64,
    /// The part of those that is calls.
    pub calls: u64,
    /// Tool outputs.
    pub tool: u64,
    /// Summaries, in whatever role.
    pub summary: u64,
}

impl InspectReport {
    /// Analyses the last window of `conversation`, for a window of `size` tokens.
    pub fn new(file: &str, conversation: &Conversation, size: Option<u64>) -> Self {
        let window = conversation.in_window();
        let positions = MessagePositions::of(conversation, window.len());
        let PartWeights {
            roles,
            outputs,
            total,
        } = weigh(&window);
        let tools = conversation.tools.iter();
        let tools: Measure = tools.map(|tool| Measure::of_text(tool.as_str())).sum();
        // Rounded once, as in `compact` and in the proxy, so that all verbs report the same figure.
        let tokens = (total + tools).tokens();
        let regions = regions(conversation, &roles, tools.tokens(), tokens);
        let usage = Anchor::find(&window).map(|anchor| anchor.usage);
        Self {
            file: file.to_owned(),
            id: conversation.id.clone(),
            form: conversation.form.as_str(),
            model: conversation.model.clone(),
            counts: counts(conversation, &window),
            window: WindowUse {
                tokens,
                reported: usage.map(|usage| usage.prompt()),
                size,
            },
            regions,
            roles,
            usage,
            outputs: outputs::summarise(&window, &outputs, &positions, tokens),
            faults: faults::find(&window, &positions, conversation.form.dialect()),
        }
    }
}

/// Maps positions in the window to positions in the transcript.
pub struct MessagePositions {
    /// The number of leading system messages, which no compaction removes.
    head: usize,
    /// The number of messages that compactions removed after them.
    gap: usize,
}

impl MessagePositions {
    fn of(conversation: &Conversation, in_window: usize) -> Self {
        let start = conversation.compactions.last().copied().unwrap_or(0);
        // Messages before the last compaction are not in the window, except the system prompt.
        let gap = conversation.messages.len().saturating_sub(in_window);
        Self {
            head: start.saturating_sub(gap),
            gap,
        }
    }

    /// The index in the transcript of message `index` of the window.
    pub fn in_transcript(&self, index: usize) -> usize {
        if index < self.head {
            index
        } else {
            index.saturating_add(self.gap)
        }
    }
}

fn counts(conversation: &Conversation, window: &[&Message]) -> ConversationCounts {
    let pairing = rounds::pair(window);
    ConversationCounts {
        turns: turns::boundaries(window).len(),
        rounds: pairing.rounds.len(),
        messages: window.len(),
        calls: pairing.rounds.iter().map(|round| round.calls.len()).sum(),
        outputs: pairing.outputs.len(),
        compactions: conversation.compactions.len(),
        compacted_messages: conversation.messages.len().saturating_sub(window.len()),
    }
}

/// All parts, measured once.
struct PartWeights {
    roles: RoleTokens,
    /// Tokens of each output, in order.
    outputs: Vec<u64>,
    /// All messages together.
    total: Measure,
}

fn weigh(window: &[&Message]) -> PartWeights {
    let mut roles = RoleTokens::default();
    let mut outputs = Vec::new();
    let mut total = Measure::default();
    // The framing of a message is not part of any of its parts.
    let around = Measure::of(&Message::new(Role::User, Vec::new()));
    for message in window {
        let mut measure = around;
        for part in &message.parts {
            let of_part = Measure::of_parts(std::slice::from_ref(part));
            measure += of_part;
            let of_part = of_part.tokens();
            match part {
                Part::Reasoning(_) => roles.reasoning += of_part,
                Part::Call(_) => roles.calls += of_part,
                Part::Output(_) => outputs.push(of_part),
                Part::Text(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
        }
        total += measure;
        *place(&mut roles, message) += measure.tokens();
    }
    PartWeights {
        roles,
        outputs,
        total,
    }
}

/// The field of `roles` for a message.
fn place<'a>(roles: &'a mut RoleTokens, message: &Message) -> &'a mut u64 {
    if matches!(
        message.meta.kind,
        Some(MessageKind::Summary | MessageKind::Retain)
    ) {
        return &mut roles.summary;
    }
    match message.role {
        Role::System => &mut roles.system,
        Role::User => &mut roles.user,
        Role::Assistant => &mut roles.assistant,
        Role::Tool => &mut roles.tool,
    }
}

/// The regions of a window of `tokens`, of which `tools` are tool definitions.
fn regions(
    conversation: &Conversation,
    roles: &RoleTokens,
    tools: u64,
    tokens: u64,
) -> RegionTokens {
    // Requests contain everything, but logs of clients often omit the constant parts.
    let is_request = matches!(
        conversation.form,
        TranscriptForm::Chat | TranscriptForm::Messages | TranscriptForm::Responses
    );
    // Zero tokens in a log mean "not recorded".
    let known = |figure: u64| Some(figure).filter(|figure| is_request || *figure > 0);
    RegionTokens {
        system: known(roles.system),
        tools: known(tools),
        summary: roles.summary,
        log: tokens.saturating_sub(roles.system + tools + roles.summary),
    }
}

impl InspectReport {
    /// The best known size of the window: the provider's figure if the transcript is incomplete,
    /// else the estimate.
    pub fn filled(&self) -> u64 {
        let leaves_out = self.regions.system.is_none() || self.regions.tools.is_none();
        let reported = self.window.reported.filter(|_| leaves_out);
        reported.map_or(self.window.tokens, |reported| {
            reported.max(self.window.tokens)
        })
    }
}

//! What there is to say about one conversation.

use serde::Serialize;
use trimtab_model::estimate::{Anchor, Measure};
use trimtab_model::{Kind, Message, Part, Role, Usage, rounds, turns};
use trimtab_wire::transcript::{Conversation, Form};

use super::faults::{self, Fault};
use super::outputs::{self, Outputs};

/// What there is to say about one conversation. Serialises as a line of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The file it is in.
    pub file: String,
    /// What the file calls it.
    pub id: Option<String>,
    /// The form it is written in.
    pub form: &'static str,
    /// The model that answered last.
    pub model: Option<String>,
    /// How many there are of everything.
    pub counts: Counts,
    /// How full the window is.
    pub window: Window,
    /// Estimated tokens by region; together they are the window.
    pub regions: Regions,
    /// Estimated tokens by role; together they are the messages.
    pub roles: Roles,
    /// What the provider reported with the last answer.
    pub usage: Option<Usage>,
    /// The outputs, in short.
    pub outputs: Outputs,
    /// What a provider would refuse.
    pub faults: Vec<Fault>,
}

/// How many there are of everything that is in the window.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Counts {
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

/// How full the window is.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Window {
    /// Estimated tokens of what is in the transcript.
    pub tokens: u64,
    /// Tokens that the provider counted for the last prompt, where the transcript says so. The
    /// system prompt and the tools are in it, which many transcripts do not hold.
    pub reported: Option<u64>,
    /// What it can hold, where that is known.
    pub size: Option<u64>,
}

/// Estimated tokens by region.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Regions {
    /// System messages; none if the transcript does not hold them.
    pub system: Option<u64>,
    /// Tool definitions; none if the transcript does not hold them.
    pub tools: Option<u64>,
    /// Summaries and what was kept with them.
    pub summary: u64,
    /// Everything else.
    pub log: u64,
}

/// Estimated tokens by role, summaries apart.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Roles {
    /// System messages.
    pub system: u64,
    /// What the user said, and what was said in the user's name.
    pub user: u64,
    /// What the model said: text, thoughts, calls.
    pub assistant: u64,
    /// Of that: thoughts.
    pub reasoning: u64,
    /// Of that: calls.
    pub calls: u64,
    /// What the tools gave back.
    pub tool: u64,
    /// Summaries, whoever's name they are in.
    pub summary: u64,
}

impl Report {
    /// Looks at what was sent last in `conversation`, for a window of `size` tokens.
    pub fn new(file: &str, conversation: &Conversation, size: Option<u64>) -> Self {
        let window = conversation.in_window();
        let positions = Positions::of(conversation, window.len());
        let Weighed {
            roles,
            outputs,
            total,
        } = weigh(&window);
        let tools = conversation.tools.iter();
        let tools: Measure = tools.map(|tool| Measure::of_text(tool.as_str())).sum();
        // Rounded once, as `compact` and the proxy do it.
        let tokens = (total + tools).tokens();
        let regions = regions(conversation, &roles, tools.tokens(), tokens);
        let usage = Anchor::find(&window).map(|anchor| anchor.usage);
        Self {
            file: file.to_owned(),
            id: conversation.id.clone(),
            form: conversation.form.as_str(),
            model: conversation.model.clone(),
            counts: counts(conversation, &window),
            window: Window {
                tokens,
                reported: usage.map(|usage| usage.prompt()),
                size,
            },
            regions,
            roles,
            usage,
            outputs: outputs::look_at(&window, &outputs, &positions, tokens),
            faults: faults::find(&window, &positions, conversation.form.dialect()),
        }
    }
}

/// Where the messages of the window stand in the transcript.
pub struct Positions {
    /// System messages at the head, which no compaction takes out.
    head: usize,
    /// How many messages a compaction took out behind them.
    gap: usize,
}

impl Positions {
    fn of(conversation: &Conversation, in_window: usize) -> Self {
        let start = conversation.compactions.last().copied().unwrap_or(0);
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

fn counts(conversation: &Conversation, window: &[&Message]) -> Counts {
    let pairing = rounds::pair(window);
    Counts {
        turns: turns::boundaries(window).len(),
        rounds: pairing.rounds.len(),
        messages: window.len(),
        calls: pairing.rounds.iter().map(|round| round.calls.len()).sum(),
        outputs: pairing.outputs.len(),
        compactions: conversation.compactions.len(),
        compacted_messages: conversation.messages.len().saturating_sub(window.len()),
    }
}

/// Every part, estimated once.
struct Weighed {
    roles: Roles,
    /// Tokens of each output, in order.
    outputs: Vec<u64>,
    /// All messages together.
    total: Measure,
}

fn weigh(window: &[&Message]) -> Weighed {
    let mut roles = Roles::default();
    let mut outputs = Vec::new();
    let mut total = Measure::default();
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
    Weighed {
        roles,
        outputs,
        total,
    }
}

/// Which figure a message counts for.
fn place<'a>(roles: &'a mut Roles, message: &Message) -> &'a mut u64 {
    if matches!(message.meta.kind, Some(Kind::Summary | Kind::Retain)) {
        return &mut roles.summary;
    }
    match message.role {
        Role::System => &mut roles.system,
        Role::User => &mut roles.user,
        Role::Assistant => &mut roles.assistant,
        Role::Tool => &mut roles.tool,
    }
}

/// The regions of a window of `tokens`, `tools` of them for tools.
fn regions(conversation: &Conversation, roles: &Roles, tools: u64, tokens: u64) -> Regions {
    // Requests hold everything; the logs of clients often leave out what never changes.
    let is_request = matches!(
        conversation.form,
        Form::Chat | Form::Messages | Form::Responses
    );
    let known = |figure: u64| Some(figure).filter(|figure| is_request || *figure > 0);
    Regions {
        system: known(roles.system),
        tools: known(tools),
        summary: roles.summary,
        log: tokens.saturating_sub(roles.system + tools + roles.summary),
    }
}

impl Report {
    /// Tokens of the whole window as well as they are known: the provider's figure where the
    /// transcript leaves something out, else the estimate.
    pub fn filled(&self) -> u64 {
        let leaves_out = self.regions.system.is_none() || self.regions.tools.is_none();
        let reported = self.window.reported.filter(|_| leaves_out);
        reported.map_or(self.window.tokens, |reported| {
            reported.max(self.window.tokens)
        })
    }
}

//! Stores and shows one output on its own, outside of any conversation.
//!
//! For hosts that let others replace the output of a tool, but do not expose their messages. Others
//! use a [`Session`](crate::session::Session).

use trimtab_engine::decide::CallConditions;
use trimtab_engine::decide::admit::{IncomingOutput, OutputRoom, incoming_view};
use trimtab_engine::view::policy::CompiledViews;
use trimtab_engine::view::tools::READ;
use trimtab_model::estimate::Measure;
use trimtab_model::{Output, Ref};
use trimtab_store::{Put, SessionId, Store};

use crate::admission::spill_file;
use crate::session::{Limits, SessionError, Setup};

/// The assumed window in tokens, if it is unknown.
const ASSUMED_WINDOW: u64 = 100_000;

/// The view of one output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownOutput {
    /// The text to show.
    pub text: String,
    /// The ref of the full output.
    pub stored: Ref,
    /// True if the text is not the full output.
    pub shortened: bool,
}

impl ShownOutput {
    /// The text with another way to read the rest, for models without the retrieval tools:
    /// `command` returns the command that reads on from a line, counted from 0.
    pub fn with_read_command(&self, command: impl Fn(u64) -> String) -> String {
        let call = format!("{READ}({{\"ref_id\":\"{}\"", self.stored.id());
        let mut pieces = self.text.split(call.as_str());
        let mut text = pieces.next().unwrap_or_default().to_owned();
        let mut is_named = false;
        for piece in pieces {
            let (arguments, rest) = piece.split_once("})").unwrap_or((piece, ""));
            let offset = arguments.split_once("\"offset\":");
            let offset = offset.and_then(|(_, number)| number.split(',').next()?.parse().ok());
            text.push_str(&command(offset.unwrap_or(0)));
            text.push_str(rest);
            is_named = true;
        }
        // Some designs cut without naming a ref.
        if self.shortened && !is_named {
            text.push_str("\n[trimtab: this is a part; all of it: ");
            text.push_str(&command(0));
            text.push(']');
        }
        text
    }
}

/// Stores `text`, the output of the call `call_id` of `tool`, and returns its view.
///
/// The view depends on the policy and the limits of `setup` only, not on earlier outputs.
///
/// ```
/// use trimtab::engine::policy::Policy;
/// use trimtab::session::Setup;
/// use trimtab::single_output::show_output;
/// use trimtab::store::{MemoryStore, SessionId, Store};
///
/// let (store, session) = (MemoryStore::new(), SessionId::new("s1")?);
/// let setup = Setup::new(Policy::preset("steady")?);
/// let log = "all is well here\n".repeat(20_000);
/// let shown = show_output(&store, &session, &setup, ("c1", "bash"), &log)?;
/// assert!(shown.shortened && shown.text.len() < log.len() / 4);
/// let text = shown.with_read_command(|line| format!("read-output --line {line}"));
/// assert!(text.contains("read-output --line ") && !text.contains("tool_output_cache"));
/// assert_eq!(store.get(&session, shown.stored.id())?, log.as_bytes());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub fn show_output(
    store: &dyn Store,
    session: &SessionId,
    setup: &Setup,
    (call_id, tool): (&str, &str),
    text: &str,
) -> Result<ShownOutput, SessionError> {
    let views = CompiledViews::new(&setup.policy.views)?;
    // Stored before it is shown: the view names its ref.
    let stored = store.put(session, Put::new(call_id, text).tool(tool))?;
    let stored = stored.with_lines_of(text);
    let output = Output {
        stored: Some(stored.clone()),
        ..Output::new(call_id, text)
    };
    let spill = spill_file(store, session, &views, (tool, &output));
    let incoming = IncomingOutput {
        tool,
        output: &output,
        measure: Some(Measure::of_text(text)),
        observed: false,
        is_for_program: false,
        spill: spill.as_ref(),
    };
    let window = setup.limits.window.unwrap_or(ASSUMED_WINDOW);
    let answer = setup.limits.max_output;
    let tokens = |measure: &Measure| setup.calibration.tokens(measure);
    let call = CallConditions {
        window: Some(window),
        max_output: answer.or_else(|| Some(Limits::usual_answer(window))),
        can_retrieve: setup.retrieval.is_some(),
        ..CallConditions::new(&tokens)
    };
    let room = OutputRoom::new(&setup.policy, &call, 0, 0);
    let view = incoming_view(&views, &incoming, &room, &call);
    Ok(ShownOutput {
        shortened: view.is_some(),
        text: view.map_or_else(|| text.to_owned(), |view| view.text().into_owned()),
        stored,
    })
}

//! A scripted model whose answers depend only on a header of the client, so that requests of the
//! proxy consume no replies.

use serde_json::json;
use trimtab_testkit::script::{ScriptedCall, ScriptedReply};
use trimtab_testkit::upstream::{ReceivedRequest, ReplySource, Upstream, UpstreamOptions};

use crate::windows;

/// Says which call of the client it is.
pub(crate) const CALL_HEADER: &str = "x-test-call";
/// What the model does before it is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// How many calls of a tool it makes.
    pub(crate) rounds: usize,
    /// The calls of the client before which it asks for a stored output.
    pub(crate) asks_at: &'static [usize],
    /// How many bytes the outputs have that it gets.
    pub(crate) output: usize,
}

/// Work that fits into a window, cut at admission.
pub(crate) const SHORT: Work = Work {
    rounds: 8,
    asks_at: &[5],
    output: 60_000,
};
/// Work that does not: the window has to be rewritten on the way, and what went is asked for.
pub(crate) const LONG: Work = Work {
    rounds: 30,
    asks_at: &[5, 28],
    output: 32_000,
};
/// What is in the part of an output that it asks for.
pub(crate) const RETRIEVED: &str = ":000777 worker";
/// The last words of the model.
pub(crate) const LAST: &str = "that was all of it";

/// An upstream with a window of so many tokens.
pub(crate) async fn upstream(window: Option<u64>) -> Upstream {
    Upstream::start(options(window, SHORT)).await.unwrap()
}

/// The options of an upstream for this work.
pub(crate) fn options(window: Option<u64>, work: Work) -> UpstreamOptions {
    UpstreamOptions {
        window,
        ..UpstreamOptions::new(ReplySource::with(move |received| reply(work, received)))
    }
}

fn reply(work: Work, received: &ReceivedRequest) -> ScriptedReply {
    if received.last.contains("<summary>") {
        return ScriptedReply::text("<summary>the agent reads logs, one after the other</summary>");
    }
    let call: Option<usize> = received
        .header(CALL_HEADER)
        .and_then(|call| call.parse().ok());
    if call.is_some_and(|call| work.asks_at.contains(&call))
        && windows::may_ask(received)
        && let Some(shown) = windows::shown_ref(received)
    {
        let arguments = json!({"ref_id": shown, "offset": 776, "limit": 3});
        return ScriptedReply::call("tool_output_cache", arguments);
    }
    match call {
        Some(call) if call < work.rounds => ScriptedReply {
            calls: vec![ScriptedCall {
                id: Some(format!("call_{call:04}")),
                ..ScriptedCall::new("read_log", json!({"number": call}))
            }],
            ..ScriptedReply::text(format!("I read log {call}."))
        },
        Some(_) => ScriptedReply::text(LAST),
        None => ScriptedReply::text("hello"),
    }
}

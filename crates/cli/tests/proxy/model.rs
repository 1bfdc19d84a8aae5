//! A scripted model whose answers depend on a header of the client only: requests of the proxy
//! itself take nothing away from the client.

use serde_json::json;
use trimtab_testkit::script::{Reply, ScriptedCall};
use trimtab_testkit::upstream::{Options, Received, Source, Upstream};

use crate::windows;

/// Says which call of the client it is.
pub(crate) const CALL_HEADER: &str = "x-test-call";
/// How many calls of a tool the model makes before it is done.
pub(crate) const ROUNDS: usize = 8;
/// The call of the client before which the model asks for a stored output.
const ASKS_AT: usize = 5;
/// What is in the part of the first output that it asks for.
pub(crate) const RETRIEVED: &str = "00:000777 worker";
/// The last words of the model.
pub(crate) const LAST: &str = "that was all of it";

/// An upstream with a window of so many tokens.
pub(crate) async fn upstream(window: Option<u64>) -> Upstream {
    Upstream::start(options(window)).await.unwrap()
}

/// The same, to be changed.
pub(crate) fn options(window: Option<u64>) -> Options {
    Options {
        window,
        ..Options::new(Source::with(reply))
    }
}

fn reply(received: &Received) -> Reply {
    if received.last.contains("<summary>") {
        return Reply::text("<summary>the agent reads logs, one after the other</summary>");
    }
    let call: Option<usize> = received
        .header(CALL_HEADER)
        .and_then(|call| call.parse().ok());
    if call == Some(ASKS_AT)
        && windows::may_ask(received)
        && let Some(shown) = windows::shown_ref(received)
    {
        let arguments = json!({"ref_id": shown, "offset": 776, "limit": 3});
        return Reply::call("tool_output_cache", arguments);
    }
    match call {
        Some(call) if call < ROUNDS => Reply {
            calls: vec![ScriptedCall {
                id: Some(format!("call_{call:04}")),
                ..ScriptedCall::new("read_log", json!({"number": call}))
            }],
            ..Reply::text(format!("I read log {call}."))
        },
        Some(_) => Reply::text(LAST),
        None => Reply::text("hello"),
    }
}

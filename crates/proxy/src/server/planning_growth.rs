//! A call through the proxy costs what is new: planning one more call of a long conversation takes
//! as much work as planning one of a short conversation. Work is counted (`model::work`), not timed.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use trimtab_model::work::counted;
use trimtab_model::{Call, Dialect, Message, Output};
use trimtab_store::MemoryStore;
use trimtab_testkit::is_long;

use super::{Proxy, RunningProxy};
use crate::access::PresentedIdentity;
use crate::config::{ModelRule, ProxyConfig};
use crate::request::plan::{ManagedRequest, PlannedSend, PlanningJob, plan};

/// A model whose window holds everything, under the preset that changes nothing.
const UNCHANGED: &str = "unchanged-model";
/// A model whose window is full after fewer than a hundred rounds.
const NARROW: &str = "narrow-model";
/// The same with a round that the client does not see.
const HIDDEN: &str = "hidden-rounds-model";
/// Calls that are counted.
const CALLS: usize = 100;
/// The most that the later call may take, in percent of the earlier one.
const MOST_PERCENT: u64 = 130;

/// Admits a round that the client does not see.
fn hide_round((managed, planned): (ManagedRequest, PlannedSend)) {
    let sent = planned.outgoing.messages;
    let asks = Message::assistant("").with_call(Call::new("h", "tool_output_cache", "{}"));
    let continued = Arc::new(managed).continue_answer(sent, |branch, _| {
        branch.admit_hidden(asks, vec![Output::new("h", "found")])
    });
    assert!(continued.is_ok());
}

/// A conversation of which one longer body after the other is planned.
struct PlannedTalk {
    dialect: Dialect,
    model: &'static str,
    list: String,
    rounds: usize,
}

impl PlannedTalk {
    fn new(dialect: Dialect, model: &'static str) -> Self {
        Self {
            dialect,
            model,
            // Each model has a conversation of its own.
            list: format!(r#"{{"role":"user","content":"read all of it, {model}"}}"#),
            rounds: 0,
        }
    }

    /// Adds one round.
    fn grow(&mut self) {
        let at = self.rounds;
        self.rounds += 1;
        let output = format!("{at}: a line of the output\\n").repeat(20);
        let round = match self.dialect {
            Dialect::Chat => format!(
                r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{at}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c{at}","content":"{output}"}}"#
            ),
            Dialect::Messages => format!(
                r#",{{"role":"assistant","content":[{{"type":"tool_use","id":"c{at}","name":"f","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c{at}","content":"{output}"}}]}}"#
            ),
            Dialect::Responses => format!(
                r#",{{"type":"function_call","call_id":"c{at}","name":"f","arguments":"{{}}"}},{{"type":"function_call_output","call_id":"c{at}","output":"{output}"}}"#
            ),
        };
        self.list.push_str(&round);
    }

    fn body(&self) -> Bytes {
        let (model, list) = (self.model, &self.list);
        let body = match self.dialect {
            Dialect::Chat => format!(r#"{{"model":"{model}","messages":[{list}]}}"#),
            // The system field may stand on both sides of the list.
            Dialect::Messages => {
                format!(r#"{{"model":"{model}","messages":[{list}],"system":"be brief"}}"#)
            }
            Dialect::Responses => {
                format!(r#"{{"model":"{model}","instructions":"be brief","input":[{list}]}}"#)
            }
        };
        Bytes::from(body)
    }

    /// Grows by one round and plans the call. Returns the units of work.
    fn call(&mut self, proxy: &RunningProxy) -> u64 {
        self.grow();
        let shared = Arc::clone(&proxy.shared);
        let opened = shared.store_state.usable().unwrap();
        let job = PlanningJob {
            settings: shared.settings.get(),
            dialect: self.dialect,
            path: match self.dialect {
                Dialect::Chat => "/v1/chat/completions",
                Dialect::Messages => "/v1/messages",
                Dialect::Responses => "/v1/responses",
            }
            .to_owned(),
            headers: HeaderMap::new(),
            tenant: opened.keys.tenant(&PresentedIdentity::default()),
            body: self.body(),
            partial: None,
            hashed: None,
            known: None,
            opened,
            shared,
        };
        let (planned, units) = counted(|| plan(job));
        let planned = planned.unwrap_or_else(|passes| panic!("{passes:?}"));
        if self.model == HIDDEN && self.rounds == 1 {
            hide_round(planned);
        }
        units
    }

    /// The units of work of a call at this round, at the median and on average.
    fn units_at(&mut self, proxy: &RunningProxy, round: usize) -> [u64; 2] {
        while self.rounds < round {
            self.call(proxy);
        }
        let mut each: Vec<u64> = (0..CALLS).map(|_| self.call(proxy)).collect();
        each.sort_unstable();
        [each[CALLS / 2], each.iter().sum::<u64>() / CALLS as u64]
    }
}

#[tokio::test]
async fn planning_one_more_call_costs_the_same_however_long_the_conversation_is() {
    let rule = |(model, window, preset): (&str, u64, &str)| ModelRule {
        model: model.to_owned(),
        window: Some(window),
        max_output: Some(1_000),
        preset: Some(preset.to_owned()),
        mode: None,
    };
    let mut config = ProxyConfig::to_upstream("http://127.0.0.1:9");
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.models = [
        (UNCHANGED, 1_000_000_000, "none"),
        (NARROW, 16_000, "steady"),
        (HIDDEN, 16_000, "steady"),
    ]
    .map(rule)
    .into();
    let store = Arc::new(MemoryStore::new());
    let proxy = Proxy::start(config, store).await.unwrap();
    let late = if is_long() { 5_000 } else { 1_000 };
    let mut dearer = Vec::new();
    for (dialect, model) in Dialect::ALL
        .into_iter()
        .flat_map(|dialect| [UNCHANGED, NARROW, HIDDEN].map(|model| (dialect, model)))
    {
        let mut body = PlannedTalk::new(dialect, model);
        let first = body.units_at(&proxy, 100);
        let later = body.units_at(&proxy, late);
        let mut both = first.iter().zip(&later);
        if both.any(|(first, later)| later * 100 > first * MOST_PERCENT) {
            dearer.push(format!("{dialect}, {model}: {first:?}, then {later:?}"));
        }
    }
    assert!(dearer.is_empty(), "{dearer:#?}");
}

//! The command `/cost`: usage of the model and of summaries since the chat was opened.

use std::fmt::Write;

use trimtab::retrieval::Retrieval;
use trimtab::session;
use trimtab::wire::catalogue::Prices;
use trimtab_agent::AgentEvent;
use trimtab_model::Usage;

use crate::ui::number::{counted, grouped};

/// The usage since the chat was opened.
#[derive(Debug, Default)]
pub(super) struct ChatSpending {
    model: CallTotals,
    summaries: CallTotals,
    /// Tool calls, and how many of them retrieved stored outputs.
    tools: usize,
    retrievals: usize,
}

/// Calls, their usage, and their cost if the prices are known.
#[derive(Debug, Default)]
struct CallTotals {
    calls: usize,
    usage: Usage,
    dollars: Option<f64>,
}

impl CallTotals {
    fn add(&mut self, calls: usize, usage: Usage, dollars: Option<f64>) {
        self.calls += calls;
        self.usage = self.usage + usage;
        if let Some(dollars) = dollars {
            *self.dollars.get_or_insert(0.0) += dollars;
        }
    }

    fn summary_text(&self) -> String {
        let mut text = format!("{} tokens in", grouped(self.usage.prompt()));
        if self.usage.cache_read > 0 {
            let _ = write!(text, " ({} cached)", grouped(self.usage.cache_read));
        }
        let _ = write!(text, ", {} out", grouped(self.usage.output));
        match self.dollars {
            Some(dollars) => {
                let _ = write!(text, ", ${dollars:.4}");
            }
            None => text.push_str(", price unknown"),
        }
        text
    }
}

impl ChatSpending {
    /// Adds an event.
    pub(super) fn event(&mut self, event: &AgentEvent, prices: Option<&Prices>) {
        match event {
            AgentEvent::Usage(usage) => {
                let dollars = prices.map(|prices| prices.cost(usage).dollars());
                self.model.add(1, *usage, dollars);
            }
            AgentEvent::Session(event) => self.summary(event),
            AgentEvent::Call(call) => {
                self.tools += 1;
                self.retrievals += usize::from(Retrieval::is_ours(&call.name));
            }
            _ => {}
        }
    }

    fn summary(&mut self, event: &session::SessionEvent) {
        let calls = usize::try_from(event.own_calls).unwrap_or(usize::MAX);
        if calls > 0 {
            let usage = event.usage.unwrap_or_default();
            self.summaries.add(calls, usage, event.cost);
        }
    }

    /// The report in a few lines.
    pub(super) fn text(&self) -> String {
        let calls = counted(self.model.calls, "call");
        let mut text = format!("{calls} of the model: {}\n", self.model.summary_text());
        if self.summaries.calls > 0 {
            let summaries = match self.summaries.calls {
                1 => "1 call for a summary".to_owned(),
                count => format!("{} calls for summaries", grouped(count as u64)),
            };
            let _ = writeln!(text, "{summaries}: {}", self.summaries.summary_text());
        }
        let tools = counted(self.tools, "call");
        let _ = writeln!(
            text,
            "{tools} of tools, {} of them for stored outputs",
            grouped(self.retrievals as u64)
        );
        let dollars = [self.model.dollars, self.summaries.dollars];
        if let [Some(model), Some(summaries)] = dollars {
            let _ = writeln!(text, "in all ${:.4}", model + summaries);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::Call;

    #[test]
    fn calls_of_model_and_tools_add_up() {
        let mut spent = ChatSpending::default();
        let usage = Usage {
            input: 900,
            cache_read: 100,
            output: 10,
            ..Usage::default()
        };
        spent.event(&AgentEvent::Usage(usage), None);
        spent.event(&AgentEvent::Usage(usage), None);
        for tool in ["read_file", "tool_output_cache"] {
            spent.event(&AgentEvent::Call(Call::new("c", tool, "{}")), None);
        }
        assert_eq!(
            spent.text(),
            "2 calls of the model: 2,000 tokens in (200 cached), 20 out, price unknown\n\
             2 calls of tools, 1 of them for stored outputs\n"
        );
    }
}

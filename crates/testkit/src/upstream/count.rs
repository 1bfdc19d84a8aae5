//! How tokens are counted.

use trimtab_model::Usage;
use trimtab_model::estimate::Measure;
use trimtab_wire::scan::BodyScan;

use super::cache::CachedTokens;
use crate::script::ScriptedReply;

/// How tokens are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Count {
    /// The bytes of all texts, divided by four.
    #[default]
    Bytes,
    /// The same for a vocabulary with very long tokens: the bytes of all texts, divided by 14.
    FewBytes,
    /// The estimate of `trimtab_model::estimate`.
    Estimate,
}

impl Count {
    /// The tokens of a prompt: its messages and the definitions of its tools.
    pub(super) fn prompt(self, scan: &BodyScan<'_>) -> u64 {
        let messages = (0..scan.len()).filter_map(|at| scan.message(at));
        let mut sum: Measure = messages.map(|message| Measure::of(&message)).sum();
        sum += Measure::of_text(&scan.tools_in_prompt());
        self.tokens(&sum)
    }

    /// The tokens of a reply.
    pub(super) fn reply(self, reply: &ScriptedReply) -> u64 {
        let mut sum = Measure::of_text(&reply.reasoning);
        sum += Measure::of_text(&reply.text);
        for call in &reply.calls {
            sum += Measure::of_text(&call.name);
            sum += Measure::of_text(&call.arguments.to_text());
        }
        self.tokens(&sum).max(1)
    }

    /// What is reported for an answer to a prompt of `prompt` tokens.
    pub(super) fn usage(self, reply: &ScriptedReply, prompt: u64, cached: CachedTokens) -> Usage {
        let cache_read = cached.read.min(prompt);
        let cache_creation = cached.written.min(prompt - cache_read);
        reply.usage.unwrap_or_else(|| Usage {
            input: prompt - cache_read - cache_creation,
            cache_read,
            cache_creation,
            cache_creation_long: cached.written_long.min(cache_creation),
            output: self.reply(reply),
            ..Usage::default()
        })
    }

    fn tokens(self, measure: &Measure) -> u64 {
        match self {
            Self::Bytes | Self::FewBytes => {
                let sizes = measure.sizes();
                let texts = [sizes.text, sizes.reasoning, sizes.names, sizes.arguments];
                let bytes: u64 = texts.iter().map(|length| u64::from(length.bytes)).sum();
                let per_token = if self == Self::Bytes { 4 } else { 14 };
                (bytes + u64::from(sizes.tags)).div_ceil(per_token)
            }
            Self::Estimate => measure.tokens(),
        }
    }
}

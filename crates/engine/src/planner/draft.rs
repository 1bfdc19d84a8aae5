//! A compaction that is decided on, and what becomes of the answer of its summariser.

use std::sync::Arc;

use trimtab_model::{Kind, Message, Ref};

use super::rungs::{previous_summary, said_before};
use super::survivors::{Survivors, survivors};
use super::{Now, State, plan};
use crate::compaction::answer::{Answer, Ending, Refusal, judge};
use crate::compaction::archive;
use crate::compaction::rebuild::{Replacement, rebuild};
use crate::plan::{Edit, Plan, Reason};
use crate::policy::Policy;
use crate::trigger::{Trigger, WindowUnknown};

/// The condition that says it is time to compact, if one does. An error if nobody can tell,
/// because the model's window is not known.
pub fn time_to_compact(
    state: &State<'_>,
    policy: &Policy,
    now: &Now<'_>,
) -> Result<Option<Trigger>, WindowUnknown> {
    let situation = now.situation(state, policy);
    let triggers = policy.compaction.triggers();
    triggers.check(&situation)?;
    Ok(triggers.fired(&situation))
}

/// What is asked of a compaction.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Why it is made.
    pub reason: Reason,
    /// Further wishes for the summary.
    pub instructions: Vec<String>,
    /// How many turns stay, where somebody said so.
    pub keep_turns: Option<usize>,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            reason: Reason::ByHand,
            instructions: Vec::new(),
            keep_turns: None,
        }
    }
}

/// A compaction that is decided on. It wants a summary, and does without where there is none.
#[derive(Clone, Debug)]
pub struct Draft {
    policy: Policy,
    asked: Asked,
    survivors: Survivors,
    /// How long the log was.
    length: usize,
    window: Option<u64>,
    stored: Option<Ref>,
}

/// What a compaction comes to.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The plan.
    pub plan: Plan,
    /// Why the summariser's answer was not used, where there was one.
    pub refusal: Option<Refusal>,
    /// True if a model wrote the summary.
    pub by_model: bool,
}

/// The compaction of this window under `policy`; none if there is nothing that it could
/// replace, or if nothing came since the last one.
pub fn draft(state: &State<'_>, policy: &Policy, now: &Now<'_>, asked: &Asked) -> Option<Draft> {
    if !policy.compaction.enabled || state.compacted_at == Some(state.log.len()) {
        return None;
    }
    Some(Draft {
        policy: policy.clone(),
        asked: asked.clone(),
        survivors: survivors(state, policy, now, asked.keep_turns)?,
        length: state.log.len(),
        window: now.window,
        stored: None,
    })
}

impl Draft {
    /// The messages that the summary will stand for.
    pub fn replaced(&self) -> impl Iterator<Item = &Arc<Message>> {
        let slots = &self.survivors.slots;
        let replaced = self.survivors.replaced.iter();
        replaced
            .filter_map(|at| slots.get(*at))
            .map(|slot| &slot.message)
    }

    /// How long the log was when it was made.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Says where the replaced messages are stored, so that the window can name it.
    pub fn stored_at(&mut self, stored: Ref) {
        self.stored = Some(stored);
    }
}

impl Draft {
    /// The plan with what the summariser answered, or with a summary that needs no model where
    /// it answered nothing that can be used.
    pub fn finish(&self, answer: Option<(&str, Ending)>) -> Finished {
        let judged = answer.map(|(text, ending)| self.judged(text, ending));
        let (answer, refusal) = match judged {
            Some(Ok(answer)) => (Some(answer), None),
            Some(Err(refusal)) => (None, Some(refusal)),
            None => (None, None),
        };
        let by_model = answer.is_some();
        let replacement = self.replacement(answer);
        Finished {
            plan: self.plan(&replacement),
            refusal,
            by_model,
        }
    }

    fn judged(&self, text: &str, ending: Ending) -> Result<Answer, Refusal> {
        let answer = Answer::parse(text, self.policy.compaction.prompt.retain.is_some());
        let weigh = |text: &str| self.policy.estimate.message(&Message::user(text));
        let tokens = weigh(&answer.retain) + weigh(&answer.effective_summary);
        judge(&answer, ending, tokens, self.replaced_tokens())?;
        Ok(answer)
    }

    /// What the replaced messages measure by the policy's estimate.
    pub fn replaced_tokens(&self) -> u64 {
        self.replaced()
            .map(|message| self.policy.estimate.message(message))
            .sum()
    }

    fn replacement(&self, answer: Option<Answer>) -> Replacement {
        if !self.survivors.summary {
            return Replacement::default();
        }
        match answer {
            Some(answer) => Replacement {
                retain: answer.retain,
                summary: answer.effective_summary,
            },
            None => Replacement {
                retain: said_before(&self.survivors.slots, Kind::Retain, ""),
                summary: self.fallback(),
            },
        }
    }

    /// A summary that needs no model: what was said before, and how much went.
    fn fallback(&self) -> String {
        let previous = previous_summary(&self.survivors.slots, &self.policy);
        let replaced = self.survivors.replaced.len();
        format!("{previous}\n\n[{replaced} earlier messages]")
            .trim()
            .to_owned()
    }

    /// The most a summary may take, in tokens.
    pub fn summary_tokens(&self) -> u64 {
        let most = self.policy.compaction.summary_tokens;
        self.window.map_or(most, |window| most.min(window / 10))
    }

    fn plan(&self, replacement: &Replacement) -> Plan {
        let Survivors {
            slots,
            kept,
            replaced,
            ..
        } = &self.survivors;
        let compaction = &self.policy.compaction;
        let mut edits = rebuild(slots, kept, replacement, &compaction.placement);
        edits.extend(self.digest());
        let reason = self.asked.reason.clone();
        let mut plan = plan(reason, edits, slots, replaced, compaction.bound_reasoning);
        plan.refs.extend(self.stored.clone());
        plan
    }

    /// Archives the oldest outputs of what is kept behind the summary, with a digest.
    fn digest(&self) -> Vec<Edit> {
        let digest = &self.policy.compaction.digest;
        if !digest.enabled {
            return Vec::new();
        }
        let slots = &self.survivors.slots;
        let recent = self
            .survivors
            .kept
            .behind
            .iter()
            .filter_map(|at| slots.get(*at));
        let recent: Vec<_> = recent.collect();
        let messages: Vec<&Message> = recent.iter().map(|slot| &*slot.message).collect();
        let over: Vec<_> = archive::excess(&messages, digest.cutoff)
            .into_iter()
            .filter_map(|at| recent.get(at))
            .collect();
        let positions: Vec<usize> = over
            .iter()
            .filter_map(|slot| super::ageing::position(slot))
            .collect();
        if positions.is_empty() {
            return Vec::new();
        }
        let mut edits = archive::archive(&positions);
        let digest = archive::digest(over.iter().flat_map(|slot| slot.message.outputs()));
        edits.push(archive::at_the_end(digest, self.length));
        edits
    }
}

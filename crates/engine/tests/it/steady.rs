//! Our own policy: the four promises, over generated conversations and windows from 4k up.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;
use trimtab_engine::decide::admit::{IncomingOutput, OutputRoom, incoming_view};
use trimtab_engine::decide::{
    CallConditions, CompactionDraft, ConversationState, PlanStep, age, conservative_tokens,
    rungs_before_call, shorten_sent, step_for_rung,
};
use trimtab_engine::normalise::NormaliseOptions;
use trimtab_engine::plan::{Edit, Plan, PlanReason};
use trimtab_engine::policy::{Moment, Policy};
use trimtab_engine::verify::verify;
use trimtab_engine::view::policy::CompiledViews;
use trimtab_engine::window::Projection;
use trimtab_model::estimate::Measure;
use trimtab_model::{Call, Dialect, Message, Part, Ref};
use trimtab_testkit::cases;

/// What a tool prints: so many lines, of one of a few kinds.
#[derive(Clone, Debug)]
struct Printed {
    lines: usize,
    kind: usize,
}

fn printed() -> impl Strategy<Value = Printed> {
    let lines = prop_oneof![4 => 0usize..12, 2 => 12usize..150, 1 => 150usize..900];
    (lines, 0usize..5).prop_map(|(lines, kind)| Printed { lines, kind })
}

fn text(printed: &Printed, seed: usize) -> String {
    let line = |n: usize| match printed.kind {
        0 => format!("src/module_{seed}/file_{n}.rs:{n}: let value_{n} = state.next_token();\n"),
        1 => format!("[{n}] step {n} of build {seed} finished without a word\n"),
        2 => format!("{{\"id\": {n}, \"name\": \"entry-{seed}-{n}\", \"ok\": true}}\n"),
        3 => format!("\u{6f22}\u{5b57} {n} \u{e9}t\u{e9} {seed}\n"),
        _ => "the same line again and again\n".to_owned(),
    };
    (0..printed.lines).map(line).collect()
}

/// A conversation: rounds of one to three calls, now and then a word of the user.
fn conversation() -> impl Strategy<Value = Vec<Message>> {
    let round = (proptest::collection::vec(printed(), 1..4), 0usize..6);
    proptest::collection::vec(round, 1..40).prop_map(|rounds| {
        let mut messages = vec![Message::system("be brief"), Message::user("begin")];
        for (number, (outputs, said)) in rounds.iter().enumerate() {
            let id = |call: usize| format!("c{number}_{call}");
            let mut asks = Message::assistant(format!("step {number}"));
            for call in 0..outputs.len() {
                let arguments = format!("{{\"path\":\"file_{}\"}}", number % 7);
                asks = asks.with_call(Call::new(id(call), "read", arguments));
            }
            messages.push(asks);
            for (call, output) in outputs.iter().enumerate() {
                messages.push(Message::output(id(call), text(output, number % 5)));
            }
            if *said == 0 {
                messages.push(Message::assistant("done"));
                messages.push(Message::user(format!(
                    "now the next thing, number {number}"
                )));
            }
        }
        messages
    })
}

fn stored(id: &str) -> Ref {
    serde_json::from_str(&format!("{{\"id\": \"{id}\"}}")).unwrap()
}

fn weigh(measure: &Measure) -> u64 {
    conservative_tokens(measure.tokens(), measure)
}

/// A model with so much room for messages.
fn conditions(room: u64) -> CallConditions<'static> {
    CallConditions {
        window: Some(room + 1),
        max_output: Some(1),
        can_retrieve: true,
        ..CallConditions::new(&Measure::tokens)
    }
}

/// A session as a caller would run it: admits, rewrites above the high-water mark, and makes
/// what is still too large fit.
struct Run {
    policy: Policy,
    views: CompiledViews,
    room: u64,
    projection: Projection,
    round: u64,
    /// What was hidden so far is behind these.
    archives: Vec<Archive>,
    rewritten: bool,
}

impl Run {
    fn new(room: u64, dialect: Dialect) -> Self {
        let policy = Policy::preset("steady").unwrap();
        Self {
            views: CompiledViews::new(&policy.views).unwrap(),
            policy,
            room,
            projection: Projection::new(NormaliseOptions::for_dialect(dialect)),
            round: 0,
            archives: Vec::new(),
            rewritten: false,
        }
    }

    fn used(&mut self) -> u64 {
        if self.projection.log().len() < 2 {
            return 0;
        }
        weigh(&self.projection.window().unwrap().measures().total())
    }

    fn admit(&mut self, mut message: Message) {
        if message.has_calls() {
            self.round = 0;
        }
        let used = self.used();
        let at = self.projection.log().len();
        let mut edits = Vec::new();
        for (part, content) in message.parts.iter_mut().enumerate() {
            let Part::Output(output) = content else {
                continue;
            };
            output.stored = Some(stored(&format!("ref-of-{}", output.call_id)));
            let call = conditions(self.room);
            let room = OutputRoom::new(&self.policy, &call, used, self.round);
            let arriving = IncomingOutput {
                tool: "read",
                output,
                measure: Some(Measure::of_text(&output.text())),
                observed: false,
                is_for_program: false,
                spill: None,
            };
            let view = incoming_view(&self.views, &arriving, &room, &call);
            let shown = view.as_ref().unwrap_or(output).text().into_owned();
            self.round += weigh(&Measure::of_text(&shown));
            if let Some(output) = view {
                edits.push(Edit::Show {
                    message: at,
                    part,
                    output,
                });
            }
        }
        self.projection.admit(message);
        self.projection
            .carry_out(Plan::new(PlanReason::Admission, edits));
    }

    /// What is decided about the conversation as it stands.
    fn decide<T>(&mut self, decision: impl FnOnce(&ConversationState<'_>) -> T) -> T {
        self.projection.window().unwrap();
        let call = conditions(self.room);
        decision(&ConversationState::new(
            &self.projection,
            &self.policy,
            &call,
        ))
    }

    /// The rewrite that is due, if one is.
    fn draft(&mut self) -> Option<CompactionDraft> {
        if self.projection.log().len() < 2 {
            return None;
        }
        let step = self.decide(|conversation| age(conversation, Moment::BeforeCall));
        match step? {
            PlanStep::Draft(draft) => Some(*draft),
            _ => None,
        }
    }

    fn rewrite(&mut self) {
        self.rewritten = false;
        let Some(draft) = self.draft() else {
            return;
        };
        let again = self.draft().unwrap();
        let archived = self.archive(draft.replaced());
        let finished = |mut draft: CompactionDraft| {
            if let Some(archived) = archived.clone() {
                draft.stored_at(archived);
            }
            draft.finish(None).plan
        };
        let plan = finished(draft);
        assert_eq!(plan, finished(again), "the same twice");
        self.projection.carry_out(plan);
        self.rewritten = true;
    }

    /// What a caller does before every call: what a rewrite does not bring down has to fit.
    fn fit(&mut self) {
        for rung in rungs_before_call(&self.policy) {
            while self.step(|conversation, excess| {
                step_for_rung(conversation, rung, excess, &PlanReason::Fit)
            }) {}
        }
        self.step(|conversation, excess| shorten_sent(conversation, excess, &PlanReason::Fit));
    }

    /// Executes a step if the window does not fit; false if that did not help.
    fn step(&mut self, step: impl FnOnce(&ConversationState<'_>, u64) -> Option<PlanStep>) -> bool {
        let step = self.decide(|conversation| step(conversation, conversation.removable_excess()?));
        let plan = match step {
            Some(PlanStep::Plan(plan, _)) => plan,
            Some(PlanStep::Draft(mut draft)) => {
                if let Some(archived) = self.archive(draft.replaced()) {
                    draft.stored_at(archived);
                }
                draft.finish(None).plan
            }
            // There are no media and no model.
            _ => return false,
        };
        let plan = self.projection.would_shrink(plan, Measure::tokens).unwrap();
        let helped = plan.is_some();
        if let Some(plan) = plan {
            self.projection.carry_out(plan);
            self.rewritten = true;
        }
        helped
    }

    /// Stores messages that go, with all that is behind the refs in them.
    fn archive<'m>(&mut self, gone: impl Iterator<Item = &'m Arc<Message>>) -> Option<Ref> {
        let gone: Vec<&Arc<Message>> = gone.collect();
        gone.first()?;
        let outputs = gone.iter().flat_map(|message| message.outputs());
        let mut holds: HashSet<String> = outputs.map(|output| output.call_id.clone()).collect();
        for earlier in &self.archives {
            if gone
                .iter()
                .any(|message| message.text().contains(&earlier.id))
            {
                holds.extend(earlier.holds.iter().cloned());
            }
        }
        let id = format!("archive-{}-", self.archives.len());
        let archived = stored(&id);
        self.archives.push(Archive { id, holds });
        Some(archived)
    }
}

/// Messages that left the window, behind a ref.
struct Archive {
    id: String,
    /// The calls whose outputs are in it.
    holds: HashSet<String>,
}

/// Every output that is not whole in the window is named in it by its ref, or an archive that
/// holds it is.
fn is_lossless(run: &mut Run) -> Result<(), TestCaseError> {
    let window = run.projection.window().unwrap();
    let texts: Vec<String> = window
        .messages()
        .map(|message| message.text().into_owned())
        .collect();
    let mentions = |id: &str| texts.iter().any(|text| text.contains(id));
    // A rewrite may have put a copy of a message elsewhere, so the place does not count.
    let shown: HashSet<(String, String)> = window
        .messages()
        .flat_map(|message| message.outputs())
        .map(|output| (output.call_id.clone(), output.text().into_owned()))
        .collect();
    for message in run.projection.log().messages() {
        for output in message.outputs() {
            let whole = (output.call_id.clone(), output.text().into_owned());
            if shown.contains(&whole) {
                continue;
            }
            let own = output
                .stored
                .as_ref()
                .is_some_and(|stored| mentions(stored.id()));
            let holds = |archive: &Archive| {
                archive.holds.contains(&output.call_id) && mentions(&archive.id)
            };
            let archived = run.archives.iter().any(holds);
            prop_assert!(
                own || archived,
                "output {} is behind no ref",
                output.call_id
            );
        }
    }
    Ok(())
}

fn rooms() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(4_000),
        Just(8_000),
        Just(20_000),
        Just(40_000),
        4_000u64..100_000
    ]
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn the_four_promises_hold(
        messages in conversation(),
        room in rooms(),
        dialect in prop::sample::select(Dialect::ALL.to_vec()),
    ) {
        let mut run = Run::new(room, dialect);
        let mut before: Vec<Arc<Message>> = Vec::new();
        for message in messages {
            let calls = message.role == trimtab_model::Role::Assistant;
            if calls {
                run.rewrite();
                run.fit();
                let used = run.used();
                let window = run.projection.window().unwrap();
                let sent: Vec<Arc<Message>> = window.messages().cloned().collect();
                prop_assert_eq!(verify(&sent, dialect), vec![]);
                prop_assert!(used <= room, "{} of {} tokens", used, room);
                if !run.rewritten {
                    prop_assert!(sent.starts_with(&before), "the window changed between switch points");
                }
                is_lossless(&mut run)?;
                before = sent;
            }
            run.admit(message);
        }
    }

    #[test]
    fn a_rewrite_comes_down_to_its_mark_or_says_what_is_left(
        messages in conversation(),
        room in 4_000u64..40_000,
    ) {
        let mut run = Run::new(room, Dialect::Chat);
        for message in messages {
            run.admit(message);
            let used = run.used();
            run.rewrite();
            if run.rewritten {
                prop_assert!(run.used() < used, "{} is not less than {}", run.used(), used);
            }
        }
    }
}

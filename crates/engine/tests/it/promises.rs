//! The promise *Valid*, and the record of every repair, over any history.

use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;
use trimtab_engine::journal::Journal;
use trimtab_engine::log::Log;
use trimtab_engine::normalise::{
    EntryChange, MessageSource, NormaliseOptions, Normalised, OpenCallRepair, RepairKind, normalise,
};
use trimtab_engine::plan::{Edit, Plan, PlanReason};
use trimtab_engine::verify::verify;
use trimtab_engine::window::Projection;
use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Message, MessageKind, Output, Part};
use trimtab_testkit::cases;
use trimtab_testkit::history::{any_history, valid_history};

pub(crate) fn options() -> impl Strategy<Value = NormaliseOptions> {
    let dialects = prop::sample::select(Dialect::ALL.to_vec());
    let habits = prop::sample::select(vec![
        OpenCallRepair::Synthesise,
        OpenCallRepair::Tell,
        OpenCallRepair::Strip,
        OpenCallRepair::DropRound,
    ]);
    (dialects, habits).prop_map(|(dialect, habit)| NormaliseOptions { dialect, habit })
}

fn shared(messages: Vec<Message>) -> Vec<Arc<Message>> {
    messages.into_iter().map(Arc::new).collect()
}

proptest! {
    #![proptest_config(cases(8_000))]

    #[test]
    fn a_normalised_history_is_valid(log in any_history(24), options in options()) {
        let normalised = normalise(&shared(log), options);
        prop_assert_eq!(verify(&normalised.messages(), options.dialect), vec![]);
    }

    #[test]
    fn normalising_twice_is_normalising_once(log in any_history(24), options in options()) {
        let once = normalise(&shared(log), options);
        let twice = normalise(&once.messages(), options);
        prop_assert_eq!(twice.messages(), once.messages());
        prop_assert_eq!(twice.repairs, vec![]);
    }

    #[test]
    fn nothing_is_lost_without_a_record(log in any_history(24), options in options()) {
        let log = shared(log);
        let normalised = normalise(&log, options);
        for (at, message) in log.iter().enumerate().filter(|(_, m)| m.agent_visible()) {
            let lost = lost_parts(at, message, &normalised);
            let records = records_of(at, &normalised);
            prop_assert!(lost <= records, "message {at}: {lost} parts lost, {records} on record");
        }
    }
}

/// How many parts of a message are nowhere in the window.
fn lost_parts(at: usize, message: &Message, normalised: &Normalised) -> usize {
    let sent: Vec<&Part> = normalised
        .entries
        .iter()
        .filter(|entry| entry.source == MessageSource::Log(at) && entry.change != EntryChange::Made)
        .flat_map(|entry| &entry.message.parts)
        .collect();
    let content = |part: &Part| match part {
        Part::Call(call) => format!("call {} {}", call.name, call.arguments),
        Part::Output(output) => format!("output {}", output.text()),
        other => format!("{other:?}"),
    };
    let mut sent: Vec<String> = sent.into_iter().map(content).collect();
    let is_lost = |part: &&Part| match sent.iter().position(|text| *text == content(part)) {
        Some(found) => {
            sent.swap_remove(found);
            false
        }
        None => true,
    };
    message.parts.iter().filter(is_lost).count()
}

/// How many parts the records of a message account for.
fn records_of(at: usize, normalised: &Normalised) -> usize {
    let counts = |kind: &RepairKind| match kind {
        RepairKind::RoundDropped | RepairKind::EmptyDropped | RepairKind::SystemJoined => {
            usize::MAX / 64
        }
        RepairKind::CallStripped
        | RepairKind::OrphanDropped
        | RepairKind::OrphanTold
        | RepairKind::DuplicateDropped
        | RepairKind::PartStripped => 1,
        _ => 0,
    };
    let of_message = normalised
        .repairs
        .iter()
        .filter(|repair| repair.source == MessageSource::Log(at));
    of_message.map(|repair| counts(&repair.kind)).sum()
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn a_valid_history_comes_back_untouched(log in valid_history(12), options in options()) {
        let log = shared(log);
        let normalised = normalise(&log, options);
        prop_assert_eq!(normalised.messages(), log);
        prop_assert!(normalised.entries.iter().all(|entry| entry.change == EntryChange::Untouched));
        prop_assert_eq!(normalised.repairs, vec![]);
    }
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn a_window_built_step_by_step_is_the_window_built_at_once(
        parts in prop::collection::vec(any_history(120), 1..5),
        options in options(),
    ) {
        let mut projection = Projection::new(options);
        for part in parts {
            for message in part {
                projection.admit(message);
            }
            let at_once = normalise(projection.log().messages(), options);
            let window = projection.window().expect("the window is valid");
            prop_assert_eq!(window.entries(), &at_once.entries[..]);
            prop_assert_eq!(window.repairs(), &at_once.repairs[..]);
        }
    }

    #[test]
    fn a_valid_window_only_grows_at_its_end(log in valid_history(60), options in options()) {
        let mut projection = Projection::new(options);
        let mut before: Vec<Arc<Message>> = Vec::new();
        for message in log {
            let user = message.is_real_user();
            projection.admit(message);
            // Only a window that ends with the user is sent.
            if !user {
                continue;
            }
            let window = projection.window().expect("the window is valid");
            let now: Vec<Arc<Message>> = window.messages().cloned().collect();
            prop_assert_eq!(&now[..before.len()], &before[..]);
            before = now;
        }
    }

    #[test]
    fn a_view_that_an_output_comes_in_with_stays(
        log in any_history(40),
        more in any_history(90),
        options in options(),
    ) {
        let mut projection = Projection::new(options);
        for message in log.into_iter().chain(more) {
            let at = projection.admit(message.clone());
            let parts = message.parts.iter().enumerate();
            let shown = parts.filter_map(|(part, found)| {
                let output = found.as_output()?;
                let output = Output::new(output.call_id.clone(), format!("view of {at}"));
                Some(Edit::Show { message: at, part, output })
            });
            projection.carry_out(Plan::new(PlanReason::Admission, shown.collect()));
        }
        prop_assert!(!projection.undo());
        let log: Log = projection.log().messages().iter().cloned().collect();
        let mut restored = Projection::restore(options, log, projection.journal().clone());
        prop_assert_eq!(restored.window().expect("valid"), projection.window().expect("valid"));
    }

    #[test]
    fn predicted_size_of_a_plan_is_its_size(
        log in any_history(40),
        edits in prop::collection::vec(edit(), 1..5),
        options in options(),
    ) {
        let mut projection = Projection::restore(options, log.into_iter().collect(), Journal::new());
        let before = projection.window().expect("valid before").clone();
        let plan = Plan::new(PlanReason::ByHand, edits);
        let plan = projection.would_shrink(plan, Measure::tokens).expect("valid after");
        prop_assert_eq!(projection.window().expect("valid after"), &before);
        if let Some(plan) = plan {
            projection.carry_out(plan.clone());
            let after = projection.window().expect("valid after");
            prop_assert_eq!(plan.tokens_before, before.measures().total().tokens());
            prop_assert_eq!(plan.tokens_after, after.measures().total().tokens());
            prop_assert!(plan.tokens_after < plan.tokens_before);
        }
    }

    #[test]
    fn undo_gives_the_window_of_before(
        log in any_history(40),
        edits in prop::collection::vec(edit(), 1..5),
        options in options(),
    ) {
        let mut projection = Projection::restore(options, log.into_iter().collect(), Journal::new());
        let before = projection.window().expect("valid before").clone();
        projection.carry_out(Plan::new(PlanReason::ByHand, edits));
        let undone = projection.undo();
        prop_assert_eq!(undone, !projection.journal().entries().is_empty());
        prop_assert_eq!(projection.window().expect("valid after undo"), &before);
    }

    #[test]
    fn any_edits_give_a_valid_window_that_survives_a_restart(
        log in any_history(40),
        edits in prop::collection::vec(edit(), 1..5),
        more in any_history(20),
        options in options(),
    ) {
        let mut projection = Projection::restore(options, log.into_iter().collect(), Journal::new());
        projection.carry_out(Plan::new(PlanReason::ByHand, edits));
        projection.window().expect("valid after the edits");

        let journal = serde_json::to_string(projection.journal()).expect("a journal is JSON");
        let journal = serde_json::from_str(&journal).expect("and is read back");
        let log: Log = projection.log().messages().iter().cloned().collect();
        let mut restored = Projection::restore(options, log, journal);
        prop_assert_eq!(restored.window().expect("valid after a restart"), projection.window().expect("valid"));

        for message in more {
            projection.admit(message.clone());
            restored.admit(message);
        }
        prop_assert_eq!(restored.window().expect("valid after more"), projection.window().expect("valid"));
        let log: Log = projection.log().messages().iter().cloned().collect();
        let mut again = Projection::restore(options, log, projection.journal().clone());
        prop_assert_eq!(again.window().expect("valid after more"), projection.window().expect("valid"));
    }
}

pub(crate) fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (0..40usize, 0..3usize).prop_map(|(message, part)| Edit::Show {
            message,
            part,
            output: Output::new("a", "[trimmed]"),
        }),
        (0..40usize, 0..40usize).prop_map(|(one, other)| Edit::Hide {
            from: one.min(other),
            to: one.max(other)
        }),
        (0..41usize).prop_map(|before| Edit::Insert {
            before,
            message: Arc::new(Message::user("summary").with_kind(MessageKind::Summary)),
        }),
        (0..40usize, 0..40usize).prop_map(|(from, before)| Edit::StripReasoning { from, before }),
        (0..40usize).prop_map(|message| Edit::Archive { message }),
        (0..41usize).prop_map(|to| Edit::Withdraw { to }),
    ]
}

#[test]
fn repairs_name_distinct_places() {
    let log = shared(vec![Message::output("x", "1"), Message::output("y", "2")]);
    let normalised = normalise(&log, NormaliseOptions::default());
    let places: HashSet<_> = normalised
        .repairs
        .iter()
        .map(|repair| repair.source)
        .collect();
    assert_eq!(places.len(), 2);
}

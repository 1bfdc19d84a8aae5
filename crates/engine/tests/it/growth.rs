//! A window that is kept up to date is the window that log and journal make from scratch, and
//! what is kept beside it says what a walk over all slots would say.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use proptest::prelude::*;
use trimtab_engine::decide::age::archive;
use trimtab_engine::log::Log;
use trimtab_engine::normalise::MessageSource;
use trimtab_engine::plan::{Edit, Plan, PlanReason};
use trimtab_engine::view::retention::retain_in;
use trimtab_engine::view::{PrefixCut, WindowOutputs};
use trimtab_engine::window::Projection;
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Output, Part};
use trimtab_testkit::cases;
use trimtab_testkit::history::{any_history, valid_history};

use crate::promises::{edit, options};

/// What happens to a conversation.
#[derive(Clone, Debug)]
enum Happens {
    /// Messages come.
    Admit(Vec<Message>),
    /// A plan is carried out.
    Plan(Vec<Edit>),
    /// Outputs are shown shorter, as plans for old outputs do.
    Shorten(Vec<usize>),
    /// A plan is tried, and not carried out.
    Try(Vec<Edit>),
    /// The newest plan is taken back.
    Undo,
    /// The window is asked for.
    Window,
}

fn happens() -> impl Strategy<Value = Happens> {
    let edits = || prop::collection::vec(edit(), 1..4);
    prop_oneof![
        3 => any_history(40).prop_map(Happens::Admit),
        2 => valid_history(20).prop_map(Happens::Admit),
        2 => edits().prop_map(Happens::Plan),
        3 => prop::collection::vec(0..1_000usize, 1..4).prop_map(Happens::Shorten),
        1 => edits().prop_map(Happens::Try),
        1 => Just(Happens::Undo),
        4 => Just(Happens::Window),
    ]
}

/// The edit with positions that the log has, most of them among its newest messages.
fn within(edit: Edit, length: usize) -> Edit {
    let near_end = |at: usize| length.saturating_sub(40) + at % length.clamp(1, 41);
    match edit {
        Edit::Show {
            message,
            part,
            output,
        } => Edit::Show {
            message: near_end(message),
            part,
            output,
        },
        Edit::Hide { from, to } => Edit::Hide {
            from: near_end(from).min(near_end(to)),
            to: near_end(from).max(near_end(to)),
        },
        Edit::Insert { before, message } => Edit::Insert {
            before: near_end(before),
            message,
        },
        Edit::Archive { message } => Edit::Archive {
            message: near_end(message),
        },
        other => other,
    }
}

/// The edits that show the outputs of some messages shorter.
fn shorter(projection: &Projection, chosen: &[usize]) -> Vec<Edit> {
    let slots = projection.slots();
    let mut edits = Vec::new();
    for at in chosen {
        let Some(slot) = slots.get(at % slots.len().max(1)) else {
            continue;
        };
        let MessageSource::Log(message) = slot.source else {
            continue;
        };
        let came = projection.log().get(message).map(|came| came.parts.clone());
        for (part, found) in came.unwrap_or_default().into_iter().enumerate() {
            if let Part::Output(output) = found {
                let output = Output {
                    content: vec![Part::text(format!("short {at}"))],
                    ..output
                };
                edits.push(Edit::Show {
                    message,
                    part,
                    output,
                });
            }
        }
    }
    edits
}

fn carry_out(projection: &mut Projection, edits: Vec<Edit>) {
    let length = projection.log().len();
    let edits = edits.into_iter().map(|edit| within(edit, length));
    projection.carry_out(Plan::new(PlanReason::ByHand, edits.collect()));
}

fn happen(projection: &mut Projection, happens: Happens) {
    let length = projection.log().len();
    match happens {
        Happens::Admit(messages) => {
            for message in messages {
                projection.admit(message);
            }
        }
        Happens::Plan(edits) => carry_out(projection, edits),
        Happens::Shorten(chosen) => {
            let edits = shorter(projection, &chosen);
            projection.carry_out(Plan::new(PlanReason::OutputsOverBudget, edits));
        }
        Happens::Try(edits) => {
            let edits = edits.into_iter().map(|edit| within(edit, length));
            let plan = Plan::new(PlanReason::ByHand, edits.collect());
            projection.would_shrink(plan, Measure::tokens).unwrap();
        }
        Happens::Undo => {
            projection.undo();
        }
        Happens::Window => {
            projection.window().unwrap();
        }
    }
}

fn from_scratch(
    projection: &Projection,
    options: trimtab_engine::normalise::NormaliseOptions,
) -> Projection {
    let log: Log = projection.log().messages().iter().cloned().collect();
    Projection::restore(options, log, projection.journal().clone())
}

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn a_window_that_is_kept_up_to_date_is_the_window_from_scratch(
        all in prop::collection::vec(happens(), 1..25),
        options in options(),
    ) {
        let mut projection = Projection::new(options);
        for one in all {
            let asked = matches!(one, Happens::Window);
            happen(&mut projection, one);
            let mut again = from_scratch(&projection, options);
            let messages = |projection: &Projection| -> Vec<_> {
                let slots = projection.slots().iter();
                slots.map(|slot| (slot.source, slot.message.clone())).collect()
            };
            prop_assert_eq!(messages(&projection), messages(&again));
            prop_assert_eq!(projection.total(), again.total());
            prop_assert_eq!(projection.open_outputs(), again.open_outputs());
            prop_assert_eq!(projection.is_unedited(), again.is_unedited());
            if asked {
                let window = again.window().unwrap();
                prop_assert_eq!(projection.window().unwrap(), window);
            }
        }
    }

    #[test]
    fn outputs_found_by_the_index_are_those_that_a_walk_finds(
        all in prop::collection::vec(happens(), 1..20),
        options in options(),
        budget in 0..200u64,
        chars in 0..30usize,
    ) {
        let mut projection = Projection::new(options);
        for one in all {
            happen(&mut projection, one);
            projection.window().unwrap();
            let (outputs, slots) = (projection.outputs(), projection.slots());
            let walked = WindowOutputs::of(slots);
            let protect = |tool: &str| tool.len() % 2 == 1;
            prop_assert_eq!(outputs.over_budget(budget, protect), walked.over_budget(budget, protect));
            let keep = PrefixCut { chars };
            prop_assert_eq!(retain_in(&outputs, keep, (2, 1), false), retain_in(&walked, keep, (2, 1), false));
            let cutoff = chars / 3 + 1;
            prop_assert_eq!(archive::excess(&outputs, cutoff, 0), archive::excess(&walked, cutoff, 0));
        }
    }
}

//! Properties of measures, estimates and calibrations over any text.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "token counts are small and positive"
)]

use proptest::prelude::*;
use trimtab_model::estimate::{Calibration, Heuristic, Measure, TokenClass};
use trimtab_model::{Call, Message};

fn message() -> impl Strategy<Value = Message> {
    let text = prop_oneof![
        any::<String>(),
        "[a-zA-Z0-9 .\n\t{}-]{0,300}",
        "[а-яé漢字😀 ]{0,80}"
    ];
    prop_oneof![
        text.clone().prop_map(Message::user),
        (text.clone(), text.clone()).prop_map(
            |(said, asked)| Message::assistant(said).with_call(Call::new("c", "run", asked))
        ),
        text.prop_map(|text| Message::output("c", text)),
    ]
}

proptest! {
    #[test]
    fn measures_can_be_added_and_subtracted(messages in prop::collection::vec(message(), 0..12), drop in 0_usize..12) {
        let measures: Vec<Measure> = messages.iter().map(Measure::of).collect();
        let mut running: Measure = measures.iter().copied().sum();
        let drop = drop.min(measures.len());
        for measure in &measures[..drop] {
            running -= *measure;
        }
        let rest: Measure = measures[drop..].iter().copied().sum();
        prop_assert_eq!(running.tokens(), rest.tokens());
        prop_assert_eq!(running.sizes(), rest.sizes());
    }

    #[test]
    fn estimates_are_non_negative_and_monotonic(message in message(), more in "[ -~\n]{0,40}") {
        let measure = Measure::of(&message);
        let classes: f64 = TokenClass::ALL.iter().map(|&class| measure.class(class)).sum();
        prop_assert!(TokenClass::ALL.iter().all(|&class| measure.class(class) >= 0.0));
        prop_assert!((measure.tokens() as f64 - classes).abs() < 1.0);
        let longer = Measure::of(&Message::user(more));
        prop_assert!((measure + longer).tokens() >= measure.tokens());
    }

    #[test]
    fn heuristic_of_sizes_equals_heuristic_of_the_message(message in message()) {
        let measure = Measure::of(&message);
        for heuristic in [Heuristic::Refs, Heuristic::Turns, Heuristic::Archive] {
            prop_assert_eq!(heuristic.sizes(measure.sizes()), heuristic.message(&message));
        }
        let projected = message.text();
        prop_assert_eq!(Heuristic::Refs.message(&message), Heuristic::Refs.text(&projected));
    }

    /// Whatever is reported, true or not.
    #[test]
    fn calibrated_estimate_stays_within_factor_limits(
        reports in prop::collection::vec((message(), any::<u32>()), 0..30),
        factor in 0.1_f64..6.0,
        asked in message(),
    ) {
        let mut model = Calibration::default();
        for (message, noise) in &reports {
            let added = Measure::of(message);
            let wobble = 0.5 + f64::from(*noise) / f64::from(u32::MAX);
            model.observe(&added, (added.tokens() as f64 * factor * wobble) as u64);
            model.observe(&added, u64::from(*noise));
        }
        let asked = Measure::of(&asked);
        prop_assert!(model.tokens(&asked) <= asked.tokens() * 5 + 1);
    }
}

#[test]
fn measure_fits_in_its_size_limit() {
    assert!(size_of::<Measure>() <= 112, "{}", size_of::<Measure>());
}

#[test]
fn calibration_survives_serialisation() {
    let mut model = Calibration::default();
    let added = Measure::of(&Message::user("some words ".repeat(40)));
    model.observe(&added, 130);
    let stored = serde_json::to_string(&model).unwrap();
    let mut again: Calibration = serde_json::from_str(&stored).unwrap();
    assert_eq!(again.tokens(&added), model.tokens(&added));
    again.observe(&added, 131);
    assert_eq!(again.learned(), 2);
}

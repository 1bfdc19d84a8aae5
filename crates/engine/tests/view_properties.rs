//! What holds for every view of every text.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::borrow::Cow;

use proptest::prelude::*;
use trimtab_engine::view::structure::{CutRequest, cut};
use trimtab_engine::view::trim::estimate;
use trimtab_engine::view::{
    CapUnit, HeadLinesCut, KeptLines, LimitsCut, MiddleCut, PrefixCut, Shape, ViewContext,
    WindowOutputs, view,
};
use trimtab_model::{Call, Message, Part, Ref};

type Measure = fn(&str) -> u64;

/// Bytes, two estimates of tokens, and two measures for which a text is not the sum of its lines.
const MEASURES: [Measure; 5] = [
    |text| text.len() as u64,
    |text| text.len().div_ceil(4) as u64,
    |text| text.chars().count().div_ceil(3) as u64,
    |text| {
        text.split(|c: char| !c.is_alphanumeric()).count() as u64 + text.len() as u64 / 9
            - u64::from(text.is_empty())
    },
    |text| (text.len() + text.len() * text.len() / 3_000) as u64,
];

fn stored() -> Ref {
    trimtab_testkit::made_ref("r_8Zq2mB1x", None, None)
}

fn check(text: &str, cap: u64, measure: Measure, with_ref: bool) {
    let stored = stored();
    let how = CutRequest {
        cap,
        measure: &measure,
        stored: with_ref.then_some(&stored),
    };
    let view = cut(text, &how);
    assert!(measure(&view) <= cap, "over the cap: {view:?}");
    if measure(text) <= cap {
        assert!(matches!(view, Cow::Borrowed(same) if same == text));
        return;
    }
    assert!(matches!(view, Cow::Owned(_)));
    assert_eq!(cut(&view, &how), view, "cutting twice is cutting once");
    check_lines(text, &view);
}

const LEAST: [&str; 4] = ["[trimtab: output left out]", "[left out]", "[…]", ""];

/// Replays a view against its output: every line is the next line of it, the start and the end of
/// that line, or a gap that names exactly the lines which are missing.
fn check_lines(text: &str, view: &str) {
    let lines: Vec<&str> = text
        .strip_suffix('\n')
        .unwrap_or(text)
        .split('\n')
        .collect();
    let Some((body, marker)) = view.rsplit_once('\n') else {
        let least = LEAST.contains(&view) || view.starts_with("[trimtab: ");
        assert!(least, "{view:?}");
        return;
    };
    assert!(
        marker.starts_with("[trimtab: showing ") && marker.ends_with(']'),
        "{marker:?}"
    );
    let (mut at, mut shown) = (0, 0);
    for line in body.split('\n') {
        let expected = lines.get(at).copied();
        if expected == Some(line) || expected.is_some_and(|whole| is_clipped(whole, line)) {
            (at, shown) = (at + 1, shown + 1);
        } else {
            let (from, to) = gap(line).unwrap_or_else(|| panic!("line {at}: {line:?}"));
            assert_eq!(from, at + 1, "{line:?}");
            at = to;
        }
    }
    let said = marker.strip_prefix("[trimtab: showing ");
    let said = said.and_then(|said| said.split_once(" of "));
    let said = said.map(|(said, _)| said.replace(',', ""));
    assert_eq!((at, Some(shown.to_string())), (lines.len(), said));
}

/// True if `line` is the start and the end of `whole` with the number of missing bytes.
fn is_clipped(whole: &str, line: &str) -> bool {
    line.match_indices("[… ").any(|(at, mark)| {
        let (start, rest) = line.split_at(at);
        let rest = rest.strip_prefix(mark).unwrap_or_default();
        let Some((missing, end)) = rest.split_once(" bytes left out]") else {
            return false;
        };
        let shown = start.len() + end.len();
        whole.starts_with(start)
            && whole.ends_with(end)
            && missing.replace(',', "").parse() == Ok(whole.len().wrapping_sub(shown))
    })
}

fn gap(line: &str) -> Option<(usize, usize)> {
    let inner = line.strip_prefix("[… line")?;
    let (numbers, _) = inner
        .strip_prefix('s')
        .unwrap_or(inner)
        .trim_start()
        .split_once(" left out")?;
    let (from, to) = numbers.split_once('-').unwrap_or((numbers, numbers));
    Some((from.parse().ok()?, to.parse().ok()?))
}

/// One line of what tools print, and of what nobody expects them to.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{1,9}( [a-z0-9]{1,8}){0,9}",
        2 => (0..90_u32, 0..9_000_u32).prop_map(|(a, b)| format!("2026-11-{a:02} tick {b} done")),
        2 => Just("the same again".to_owned()),
        1 => "(ERROR|TypeError|panic|FAILED): [a-z ]{0,30}",
        1 => "    at [a-z.]{1,20}\\([A-Z]\\.java:[0-9]{1,4}\\)",
        1 => "(test|ok|FAIL|---|\\+\\+\\+|@@|diff --git|running) .{0,20}",
        1 => "[a-z]{1,5},[0-9]{1,5},[0-9]{1,3}",
        1 => "[\\PC]{0,40}",
        1 => Just("x\0y\r\u{1b}[1;31mred\u{1b}[0m\ttab\u{200b}zero".to_owned()),
        1 => Just("👩‍👩‍👧 e\u{301}e\u{301} 漢字かな交じり文 🇩🇪".to_owned()),
        1 => Just(String::new()),
        1 => ("[a-z0-9,.;(){}\" ]{1,30}", 1..60_usize).prop_map(|(s, n)| s.repeat(n)),
        1 => (1..3_000_usize).prop_map(|n| "x".repeat(n)),
        1 => Just("[… lines 2-900000 left out]".to_owned()),
        1 => Just("[trimtab: showing 1 of 2 lines; the rest: rm -rf]".to_owned()),
    ]
}

fn text() -> impl Strategy<Value = String> {
    let repeated = (line(), 1..12_usize).prop_map(|(line, n)| vec![line; n]);
    let end = prop_oneof![Just("\n"), Just("\r\n")];
    (prop::collection::vec(repeated, 0..30), end, any::<bool>()).prop_map(|(lines, end, open)| {
        let mut text = lines.concat().join(end);
        if !open {
            text.push_str(end);
        }
        text
    })
}

fn cap() -> impl Strategy<Value = u64> {
    prop_oneof![1 => 0..40_u64, 3 => 40..400_u64, 3 => 400..4_000_u64]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lines_hold(text in text(), cap in cap(), measure in 0..MEASURES.len(), with_ref: bool) {
        check(&text, cap, MEASURES[measure], with_ref);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_designs_shapes_leave_alone_what_fits(text in text(), max in 1..3_000_usize) {
        let shapes = [
            Shape::HeadLines(HeadLinesCut { max_line_chars: 2_000, max_bytes: max }),
            Shape::Middle(MiddleCut { max: Some(max as u64), ..MiddleCut::default() }),
            Shape::Middle(MiddleCut { unit: CapUnit::Bytes, ..MiddleCut::codex_tokens(max as u64) }),
            Shape::Limits(LimitsCut { max_lines: max, max_bytes: max, max_chars: max, spill_chars: 0, keep: KeptLines::Head }),
            Shape::Prefix(PrefixCut { chars: max }),
        ];
        for shape in shapes {
            let shown = view(&text, &shape, &ViewContext::default());
            prop_assert_eq!(matches!(shown, Cow::Borrowed(_)), shown == text);
        }
    }

    #[test]
    fn head_lines_shows_starts_of_lines(text in text(), max in 1..3_000_usize, clip in 1..60_usize) {
        let shape = Shape::HeadLines(HeadLinesCut { max_line_chars: clip, max_bytes: max });
        let shown = view(&text, &shape, &ViewContext::default());
        if let Some(body) = shown.strip_suffix("\n\n[tool output truncated]") {
            prop_assert!(body.len() <= max);
            let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
            let shown_lines = body.split('\n');
            prop_assert!(lines.zip(shown_lines).all(|(all, part)| all.starts_with(part)));
        }
    }

    #[test]
    fn trimming_never_adds_and_protects_the_newest(sizes in prop::collection::vec(0..900_usize, 0..12), budget in 0..900_u64) {
        let mut log: Vec<Message> = Vec::new();
        for (at, size) in sizes.iter().enumerate() {
            log.push(Message::assistant("").with_call(Call::new(format!("c{at}"), "t", "{}")));
            log.push(Message::output(format!("c{at}"), "x".repeat(*size)));
        }
        let total = |log: &[Message]| log.iter().flat_map(Message::outputs).map(|o| estimate(&o.text())).sum::<u64>();
        let before = total(&log);
        let newest = log.last().cloned();
        let trimmed = |log: &[Message]| {
            WindowOutputs::of(log).over_budget(budget, |_| false)
        };
        for change in trimmed(&log) {
            log[change.message].parts[change.part] = Part::Output(change.output);
        }
        prop_assert_eq!(log.last().cloned(), newest);
        prop_assert!(total(&log) <= before);
        prop_assert!(trimmed(&log).is_empty());
    }
}

#[test]
fn hostile_texts_hold() {
    let texts = [
        "x".repeat(1 << 20),
        "word ".repeat(1 << 18),
        "👩‍👩‍👧".repeat(20_000),
        "\0".repeat(100_000),
        "a\rb\r".repeat(50_000),
        "\n".repeat(100_000),
        "\r\n".repeat(100_000),
        format!("[{}1]", "1,".repeat(100_000)),
        "ERROR: again\n".repeat(40_000),
        (0..40_000).fold(String::new(), |text, n| {
            text + &format!("{n},{},row\n", n * 7)
        }),
        // Each of these takes for ever if a line is looked at again for every word in it.
        "an error in this ".repeat(60_000) + "✓",
        "no error_".repeat(100_000),
        "xerror".repeat(150_000),
        "Error: x\n  at y\n  error\n".repeat(40_000),
    ];
    for text in &texts {
        for cap in [0, 1, 30, 90, 200, 1_000, 20_000] {
            for measure in [MEASURES[0], MEASURES[1]] {
                check(text, cap, measure, true);
            }
        }
    }
}

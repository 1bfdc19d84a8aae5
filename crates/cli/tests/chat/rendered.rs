//! The appearance of answers and typed text on a terminal.

use crate::run::Place;
use crate::tmux::Pane;

/// An answer in Markdown.
const MARKDOWN: &str = r###"[
  {"text": "## The result\n\nIt is **very** good, see `main.rs`:\n\n- first\n- second\n\n```rust\nfn main() {}\n```\n\n| name | size |\n|---|--:|\n| `a.rs` | 12 |\n| longer.rs | 3 |\n\nThat is all."},
  {"text": "I read it."}
]"###;

/// Words of all lengths up to 14 letters, none twice.
fn words() -> String {
    let word = |number: usize| format!("{}{number}", "abcdefghijkl".split_at(number % 13).0);
    let words: Vec<String> = (100..200).map(word).collect();
    words.join(" ")
}

#[test]
fn no_word_of_an_answer_or_of_reasoning_is_broken() {
    for width in [80, 61] {
        let place = Place::new();
        let text = words();
        let answer = serde_json::json!([{"reasoning": text, "text": format!("- {text}\n\nEnd.")}]);
        let model = place.script(&answer.to_string());
        let Some(pane) = Pane::start(place, (width, 60), &["--model", &model]) else {
            return;
        };
        pane.wait_for_prompt();
        pane.line("what is it?");
        let screen = pane.wait_for("End.");
        let shown: Vec<&str> = screen.split_whitespace().collect();
        for word in text.split(' ') {
            let times = shown.iter().filter(|shown| **shown == word).count();
            assert_eq!(times, 2, "{word} at {width} columns:\n{screen}");
        }
    }
}

#[test]
fn answer_is_printed_verbatim() {
    let place = Place::new();
    let model = place.script(MARKDOWN);
    let piped = place.chat_with(&["--model", &model], "what is it?\n");
    assert!(
        piped.stdout.contains("It is **very** good, see `main.rs`:"),
        "{}",
        piped.stdout
    );
    let printed = place.chat(&["--model", &model, "--print", "what is it?"]);
    assert!(
        printed
            .stdout
            .starts_with("## The result\n\nIt is **very**"),
        "{}",
        printed.stdout
    );
}

#[test]
fn long_paste_is_shown_in_one_line() {
    let place = Place::new();
    let model = place.script(MARKDOWN);
    let Some(pane) = Pane::start(place, (80, 40), &["--model", &model]) else {
        return;
    };
    pane.wait_for_prompt();
    let lines: Vec<String> = (1..=25).map(|n| format!("pasted line {n}")).collect();
    pane.paste(&lines.join("\n"));
    pane.wait_for("pasted line 25");
    pane.press(&["Enter"]);
    let screen = pane.wait_for("The result");
    assert!(
        screen.contains("> pasted line 1 [25 lines, 365 characters]"),
        "{screen}"
    );
    assert!(!screen.contains("pasted line 2\n"), "{screen}");
    assert!(!screen.contains("pasted line 25"), "{screen}");
}

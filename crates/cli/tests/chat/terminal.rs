//! The chat in a real terminal.

use crate::run::{Place, READS};
use crate::tmux::Pane;

/// Ten words, slowly, and then something else.
const SLOW: &str = r#"[
  {"text": "one two three four five six seven eight nine ten", "delay_ms": 150},
  {"text": "I am still here."}
]"#;

/// Reads the notes four times.
const FILLS: &str = r#"[
  {"calls": [{"name": "read_file", "arguments": {"path": "notes.txt"}}]},
  {"calls": [{"name": "search", "arguments": {"pattern": "note"}}]},
  {"calls": [{"name": "read_file", "arguments": {"path": "notes.txt", "limit": 200}}]},
  {"text": "I have read 300 notes in notes.txt."},
  {"text": "The newest answer."},
  {"text": "All 300 notes of notes.txt were read; question 42 has answer 294."}
]"#;

fn start(script: &str, size: (u32, u32), more: &[&str]) -> Option<Pane> {
    let place = Place::new();
    let model = place.script(script);
    let pane = Pane::start(place, size, &[&["--model", &model], more].concat())?;
    pane.wait_for_prompt();
    Some(pane)
}

/// How often `part` is on the screen.
fn count(screen: &str, part: &str) -> usize {
    screen.matches(part).count()
}

#[test]
fn answer_is_streamed_to_the_terminal() {
    let Some(pane) = start(SLOW, (100, 30), &[]) else {
        return;
    };
    pane.line("count");
    let early = pane.wait_for("one two");
    assert!(!early.contains("ten"), "{early}");
    let late = pane.wait_for("nine ten");
    assert!(
        late.contains("one two three four five six seven eight nine ten"),
        "{late}"
    );
    pane.wait_for("1 round,");
    pane.wait_for_prompt();
}

#[test]
fn ctrl_c_interrupts_the_turn_and_twice_quits() {
    let Some(pane) = start(SLOW, (100, 30), &[]) else {
        return;
    };
    pane.line("count");
    pane.wait_for("one two");
    pane.press(&["C-c"]);
    let screen = pane.wait_for("interrupted");
    assert!(!screen.contains("ten"), "{screen}");
    pane.wait_for_prompt();
    pane.line("are you there?");
    pane.wait_for("I am still here.");
    pane.wait_for_prompt();
    pane.press(&["C-c"]);
    pane.wait_for("press Ctrl-C again to quit");
    pane.wait_for_prompt();
    assert_eq!(pane.press_until_end("C-c"), "0");
    // What was said until the interrupt is in the log, and so is the interrupt.
    let list = pane.place().chat(&["--list", "--json"]);
    assert!(list.stdout.contains(r#""messages":6"#), "{}", list.stdout);
}

#[test]
fn single_ctrl_c_at_the_prompt_does_not_quit() {
    let Some(pane) = start(READS, (100, 30), &[]) else {
        return;
    };
    pane.type_in("half a line");
    pane.press(&["C-c"]);
    pane.wait_for("press Ctrl-C again to quit");
    pane.wait_for_prompt();
    pane.line("hello");
    pane.wait_for("question 42 is 294");
    pane.wait_for_prompt();
    pane.press(&["C-c"]);
    pane.wait_until("the second warning", |screen| {
        count(screen, "press Ctrl-C again to quit") == 2
    });
    assert_eq!(pane.press_until_end("C-d"), "0");
    assert!(pane.screen().contains("trimtab chat --resume chat-"));
}

#[test]
fn calls_are_shown_with_the_beginning_of_their_outputs() {
    let Some(pane) = start(READS, (100, 40), &[]) else {
        return;
    };
    pane.line("what is the answer to question 42?");
    let screen = pane.wait_for("question 42 is 294");
    assert!(screen.contains("The notes should say it."), "{screen}");
    assert!(screen.contains("* read_file notes.txt"), "{screen}");
    assert!(
        screen.contains("note 2: the answer to question 2 is 14"),
        "{screen}"
    );
    assert!(!screen.contains("note 9:"), "{screen}");
    assert!(screen.contains("5 of 300 lines: /output "), "{screen}");
}

#[test]
fn outputs_of_parallel_calls_name_their_call() {
    let script = r#"[
      {"calls": [{"name": "list", "arguments": {"path": "."}},
                 {"name": "search", "arguments": {"pattern": "question 300"}}]},
      {"text": "both done"}
    ]"#;
    let Some(pane) = start(script, (100, 40), &[]) else {
        return;
    };
    pane.line("do both");
    let screen = pane.wait_for("both done");
    let at = |part: &str| {
        screen
            .find(part)
            .unwrap_or_else(|| panic!("{part}:\n{screen}"))
    };
    let order = [
        "* list .",
        "* search question 300",
        "  list .:",
        "  search question 300:",
    ];
    assert!(order.map(at).is_sorted(), "{screen}");
}

#[test]
fn compaction_is_reported_and_undone() {
    let Some(pane) = start(FILLS, (100, 50), &[]) else {
        return;
    };
    pane.line("read the notes");
    pane.wait_for("I have read 300 notes");
    pane.wait_for_prompt();
    pane.line("and now?");
    pane.wait_for("The newest answer.");
    pane.wait_for_prompt();
    pane.line("/compact keep the numbers");
    let screen = pane.wait_for("compacted: saved ");
    assert!(screen.contains(" tokens ("), "{screen}");
    assert!(screen.contains(" messages became "), "{screen}");
    pane.wait_for_prompt();
    pane.line("/context");
    pane.wait_for("summary");
    pane.wait_for_prompt();
    pane.line("/undo");
    pane.wait_for("reverted: ");
    pane.wait_for_prompt();
    pane.line("/undo");
    pane.wait_for("nothing to undo");
}

#[test]
fn context_picture_fits_a_narrow_terminal() {
    for (width, bar) in [(40, 38), (100, 72)] {
        let Some(pane) = start(FILLS, (width, 60), &["--window", "60k"]) else {
            return;
        };
        pane.line("read the notes");
        pane.wait_for("I have read 300 notes");
        pane.wait_for_prompt();
        pane.press(&["C-l"]);
        pane.line("/context");
        let screen = pane.wait_for("reserved for");
        let drawn = |c: char| c == '\u{2588}' || c == '\u{2591}';
        // The bar is whole, and on one line.
        let bars: Vec<usize> = screen
            .lines()
            .map(|line| line.chars().filter(|c| drawn(*c)).count())
            .filter(|blocks| *blocks > 1)
            .collect();
        assert_eq!(bars, [bar], "{screen}");
        for part in [
            "system",
            "tools",
            "user",
            "assistant",
            "outputs",
            "free",
            "answer",
        ] {
            assert!(screen.contains(part), "{part}:\n{screen}");
        }
        assert!(screen.contains("1 compacts when "), "{screen}");
        assert!(screen.contains("to go"), "{screen}");
    }
}

#[test]
fn colour_is_used_only_on_a_colour_terminal() {
    let coloured = |variables: &[(&str, &str)], args: &[&str]| {
        let place = Place::new();
        let model = place.script(READS);
        let args = [&["--model", &model], args].concat();
        let pane = Pane::start_with(place, (100, 40), &args, variables)?;
        pane.line("hello");
        pane.wait_for("question 42 is 294");
        pane.line("/context");
        pane.wait_for("reserved for");
        Some(pane.colours())
    };
    let Some(screen) = coloured(&[], &[]) else {
        return;
    };
    assert!(screen.contains("\u{1b}[36m"), "{screen}");
    for (variables, args) in [
        (&[("NO_COLOR", "1")][..], &[][..]),
        (&[], &["--color", "never"]),
    ] {
        let screen = coloured(variables, args).unwrap();
        assert!(!screen.contains('\u{1b}'), "{screen}");
        // Without colour the bar has letters.
        assert!(screen.contains("[S"), "{screen}");
    }
}

#[test]
fn piped_output_has_no_colour() {
    let place = Place::new();
    let model = place.script(READS);
    let outcome = place.chat_with(&["--model", &model], "hello\n/context\n/nonsense\n");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let all = outcome.stdout + &outcome.stderr;
    assert!(!all.contains('\u{1b}'), "{all}");
    assert!(
        all.contains("question 42 is 294") && all.contains("there is no /nonsense"),
        "{all}"
    );
}

#[test]
fn output_command_opens_the_pager() {
    let place = Place::new();
    let model = place.script(READS);
    let pager = [("PAGER", "sed -n s/note.200:/paged/p")];
    let args = ["--model", &model];
    let Some(pane) = Pane::start_with(place, (100, 30), &args, &pager) else {
        return;
    };
    pane.line("hello");
    let screen = pane.wait_for("question 42 is 294");
    let shown = screen
        .lines()
        .find_map(|line| line.split_once("/output "))
        .unwrap()
        .1;
    let id = shown.trim_end().trim_end_matches(')');
    pane.wait_for_prompt();
    pane.line(&format!("/output {id}"));
    pane.wait_for("  200  paged the answer to question 200 is 1400");
    pane.wait_for_prompt();
    pane.line("/output");
    pane.wait_for("REF");
    pane.wait_for("read_file");
    pane.line("/output nothing-like-it");
    pane.wait_for("no output 'nothing-like-it'");
}

#[test]
fn command_runs_after_the_user_confirms() {
    let call = |command: &str| {
        format!(r#"{{"calls": [{{"name": "shell", "arguments": {{"command": "{command}"}}}}]}}"#)
    };
    let script = format!(
        r#"[{}, {{"text": "so be it"}}, {}, {{"text": "as you wish"}}, {}, {{"text": "again"}}]"#,
        call("echo one $((40 + 2))"),
        call("echo two $((40 + 3))"),
        call("echo three $((40 + 4))"),
    );
    let Some(pane) = start(&script, (100, 50), &[]) else {
        return;
    };
    pane.line("run one");
    pane.wait_for("shell wants to run: echo one");
    pane.wait_for("[a]lways:");
    pane.line("n");
    pane.wait_for("did not allow this command");
    pane.wait_for("so be it");
    pane.wait_for_prompt();
    pane.line("run two");
    pane.wait_for("shell wants to run: echo two");
    pane.line("a");
    pane.wait_for("two 43");
    pane.wait_for("as you wish");
    pane.wait_for_prompt();
    // Once allowed for good, it is not asked again.
    pane.line("run three");
    let screen = pane.wait_for("three 44");
    assert!(!screen.contains("run: echo three"), "{screen}");
    assert!(!screen.contains("one 42"), "{screen}");
}

#[test]
fn lines_are_edited_completed_and_recalled() {
    let Some(pane) = start(READS, (100, 40), &[]) else {
        return;
    };
    pane.type_in("/und");
    pane.press(&["Tab", "Enter"]);
    pane.wait_for("nothing to undo");
    pane.wait_for_prompt();
    pane.type_in("hexlo");
    pane.press(&["Left", "Left", "BSpace"]);
    pane.type_in("l");
    pane.wait_for("> hello");
    pane.press(&["Enter"]);
    pane.wait_for("question 42 is 294");
    pane.wait_for_prompt();
    pane.press(&["Up"]);
    pane.wait_until("the line again", |screen| count(screen, "> hello") == 2);
    pane.press(&["C-u"]);
    pane.line("/udno");
    pane.wait_for("did you mean /undo?");
}

#[test]
fn model_text_cannot_control_the_terminal() {
    let script = "[{\"text\": \"a\\u001b[2J\\u001b]0;title\\u0007b\"}]";
    let Some(pane) = start(script, (100, 30), &[]) else {
        return;
    };
    pane.line("hello");
    let screen = pane.wait_for("title");
    assert!(
        screen.contains(r"a\u{1b}[2J\u{1b}]0;title\u{7}b"),
        "{screen}"
    );
    assert!(screen.contains("> hello"), "{screen}");
}

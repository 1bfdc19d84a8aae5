//! `trimtab compact`, again and again on a session that continues in between.

use std::fs;

use serde_json::{Value, json};
use trimtab_model::Role;
use trimtab_wire::transcript::TranscriptReader;

use crate::compact::PRESETS;
use crate::growing_form::{FORMS, GrowingForm, INSTRUCTIONS, Step};
use crate::run::Home;

/// The rounds between two runs.
const ROUNDS: usize = 40;
/// A window that the work between two runs fills. `archive` needs one of more than 16,384 tokens.
const WINDOW: &str = "24000";

/// Every preset in two forms, and every form under two presets.
fn cases() -> Vec<(GrowingForm, &'static str)> {
    let mut cases = Vec::new();
    for (at, form) in FORMS.into_iter().enumerate() {
        let is_checked = |preset: &&str| at < 2 || ["steady", "turns"].contains(preset);
        let presets = PRESETS.into_iter().filter(is_checked);
        cases.extend(presets.map(|preset| (form, preset)));
    }
    cases
}

/// Compacts a file; gives the report and the result.
fn compact(home: &Home, file: &str, settings: &[&str]) -> (Value, String) {
    let path = home.file("session", file.as_bytes());
    let args = ["compact", &path, "-o", &path, "--force", "--json"];
    let done = home.run(&[args.as_slice(), settings].concat());
    assert_eq!(done.code, 0, "{settings:?}: {}", done.stderr);
    let report = serde_json::from_str(&done.stdout).unwrap();
    (report, fs::read_to_string(&path).unwrap())
}

/// A session that was compacted several times, each time after more work.
struct GrowingSession {
    home: Home,
    /// What each run reported.
    reports: Vec<Value>,
    /// The file after the last run.
    file: String,
}

impl GrowingSession {
    fn new(form: GrowingForm, preset: &str, runs: usize) -> Self {
        let home = Home::new();
        let (mut reports, mut file) = (Vec::new(), String::new());
        for run in 0..runs {
            let steps = Step::some(run * ROUNDS, ROUNDS);
            file = match run {
                0 => form.begin(&steps),
                _ => form.grow(&file, run * 1_000, &steps),
            };
            let settings = ["--preset", preset, "--window", WINDOW];
            let (report, compacted) = compact(&home, &file, &settings);
            reports.push(report);
            file = compacted;
        }
        Self {
            home,
            reports,
            file,
        }
    }

    /// The refs of the messages and outputs that run `run` removed or shortened.
    fn removed(&self, run: usize) -> Vec<&str> {
        let originals = &self.reports[run]["originals"];
        let refs = ["replaced", "outputs"].map(|name| originals[name].as_array().unwrap());
        let refs = refs.into_iter().flatten();
        refs.map(|found| found.as_str().unwrap()).collect()
    }

    /// Reads a ref in the session of the last run.
    fn read(&self, found: &str) -> String {
        let session = &self.reports.last().unwrap()["originals"]["session"];
        let session = session.as_str().unwrap();
        let args = ["output", "read", "--session", session, found];
        self.home.run(&args).stderr
    }
}

#[test]
fn last_session_reads_what_earlier_runs_removed() {
    for (form, preset) in cases() {
        let session = GrowingSession::new(form, preset, 3);
        let case = format!("{}, {preset}", form.name);
        assert_eq!(session.removed(0).is_empty(), preset == "none", "{case}");
        for run in 0..2 {
            for found in session.removed(run).into_iter().take(3) {
                assert_eq!(session.read(found), "", "{case}, run {run}: {found}");
            }
        }
    }
}

#[test]
fn next_session_reads_an_output_that_was_shortened_without_a_summary() {
    let lines = (0..9_000).map(|line| format!("let row_{line} = table.read({line})?;\n"));
    let round = |id: &str, output: &str| {
        let function = json!({"name": "read_file", "arguments": "{}"});
        let call = json!({"id": id, "type": "function", "function": function});
        [
            json!({"role": "user", "content": "Read on."}),
            json!({"role": "assistant", "content": "I do.", "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": id, "content": output}),
        ]
    };
    let first = json!({"model": "gpt-4o", "messages": round("a", &lines.collect::<String>())});
    // These show a long output shorter when it arrives.
    for preset in ["steady", "refs", "turns", "archive", "retention"] {
        let (home, settings) = (Home::new(), ["--preset", preset]);
        let (report, file) = compact(&home, &first.to_string(), &settings);
        assert_eq!(report["summary"], Value::Null, "{preset}");
        let mut next: Value = serde_json::from_str(&file).unwrap();
        let messages = next["messages"].as_array_mut().unwrap();
        messages.extend(round("b", "nothing"));
        let (next, _) = compact(&home, &next.to_string(), &settings);
        let session = next["originals"]["session"].as_str().unwrap();
        let shortened = report["originals"]["outputs"][0].as_str().unwrap();
        let read = home.run(&["output", "read", "--session", session, shortened]);
        assert_eq!((read.code, read.stderr.as_str()), (0, ""), "{preset}");
    }
}

#[test]
fn summary_of_an_earlier_run_is_replaced_and_instructions_stay() {
    for (form, preset) in cases() {
        let session = GrowingSession::new(form, preset, 3);
        let case = format!("{}, {preset}", form.name);
        let read = TranscriptReader::new(session.file.as_bytes()).next();
        let messages = read.unwrap().unwrap().messages;
        let system = messages.iter().filter(|one| one.role == Role::System);
        let system: Vec<_> = system.map(|one| one.text().into_owned()).collect();
        let expected = &[INSTRUCTIONS][..usize::from(form.has_instructions)];
        assert_eq!(system, expected, "{case}");
        let summaries = messages
            .iter()
            .filter(|one| one.text().contains("[Refs are read with"));
        assert_eq!(summaries.count(), usize::from(preset != "none"), "{case}");
    }
}

#[test]
fn turns_keeps_the_size_of_a_session_that_is_compacted_many_times() {
    for form in &FORMS[..2] {
        let session = GrowingSession::new(*form, "turns", 14);
        let sizes = session.reports.iter().map(|report| &report["tokens_after"]);
        let sizes: Vec<u64> = sizes.map(|size| size.as_u64().unwrap()).collect();
        assert!(sizes[13] < sizes[2] * 2, "{}: {sizes:?}", form.name);
    }
}

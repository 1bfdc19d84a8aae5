//! `trimtab compact`, again and again on a session that continues in between.

use std::fs;

use serde_json::Value;
use trimtab_model::Role;
use trimtab_wire::transcript::TranscriptReader;

use crate::compact::PRESETS;
use crate::growing_form::{FORMS, GrowingForm, INSTRUCTIONS, Step};
use crate::run::Home;

/// The rounds between two runs.
const ROUNDS: usize = 20;
/// A window that holds about half of the work between two runs.
const WINDOW: &str = "16000";

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
            let path = home.file("session", file.as_bytes());
            let args = ["compact", &path, "-o", &path, "--force", "--json"];
            let settings = ["--preset", preset, "--window", WINDOW];
            let done = home.run(&[args.as_slice(), &settings].concat());
            let case = format!("{}, {preset}, run {run}", form.name);
            assert_eq!(done.code, 0, "{case}: {}", done.stderr);
            reports.push(serde_json::from_str(&done.stdout).unwrap());
            file = fs::read_to_string(&path).unwrap();
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
        let removed = session.removed(0);
        assert_eq!(removed.is_empty(), preset == "none", "{case}");
        for found in removed
            .into_iter()
            .take(3)
            .chain(session.removed(1))
            .take(6)
        {
            assert_eq!(session.read(found), "", "{case}: {found}");
        }
    }
}

#[test]
fn summary_of_an_earlier_run_is_replaced_and_instructions_stay() {
    for (form, preset) in cases() {
        let session = GrowingSession::new(form, preset, 3);
        let case = format!("{}, {preset}: {}", form.name, session.file);
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
fn session_in_a_small_window_is_compacted_many_times_with_its_summary_in_the_system_prompt() {
    for form in &FORMS[..2] {
        let session = GrowingSession::new(*form, "turns", 14);
        let sizes = session.reports.iter().map(|report| &report["tokens_after"]);
        let sizes: Vec<u64> = sizes.map(|size| size.as_u64().unwrap()).collect();
        assert!(sizes[13] < sizes[2] * 2, "{}: {sizes:?}", form.name);
    }
}

//! The command is killed (SIGKILL) and resumed: it then sends the same bytes.

use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use trimtab_model::Role;
use trimtab_testkit::script::{ScriptedFault, ScriptedReply};
use trimtab_testkit::upstream::{ReceivedRequest, ReplySource, Upstream, UpstreamOptions};

use crate::run::{Place, finish};

/// Said after a kill.
const STILL_THERE: &str = "still there?";

/// Where a run is killed.
#[derive(Clone, Copy, Debug)]
enum At {
    /// A request was sent, and nothing of its answer has come.
    Request,
    /// A tool is being carried out.
    Tool,
    /// Some of an answer was said.
    Answer,
}

/// What a model does that keeps the run busy, and then stops it where it is to be killed.
fn reply(received: &ReceivedRequest, asked: &AtomicUsize, at: At) -> ScriptedReply {
    let messages = received.read_messages();
    let mut said = messages.iter().filter(|message| message.role == Role::User);
    // A summary may stand behind it.
    if said.any(|message| message.text().contains(STILL_THERE)) {
        return ScriptedReply::text("here");
    }
    let body = received.json();
    let choice = &body["tool_choice"];
    if received.tools.is_empty() || *choice == "none" || choice["type"] == "none" {
        return ScriptedReply::text("<summary>Notes were read, again and again.</summary>");
    }
    let for_long = 60_000;
    let n = asked.fetch_add(1, Ordering::SeqCst);
    match (n % 4, at) {
        (0..3, _) => {
            ScriptedReply::call("read_file", json!({"path": "notes.txt", "offset": n + 1}))
                .thinking(format!("Once more, for the {n}th time."))
        }
        (_, At::Request) => {
            ScriptedReply::text("late").with_fault(ScriptedFault::LateHeaders { ms: for_long })
        }
        (_, At::Tool) => ScriptedReply::call("shell", json!({"command": "touch started; sleep 5"})),
        (_, At::Answer) => {
            ScriptedReply::text("this is as far as it gets").with_fault(ScriptedFault::Stall {
                after: 6,
                ms: for_long,
            })
        }
    }
}

struct World {
    place: Place,
    runtime: Runtime,
    base_url: String,
    upstream: Upstream,
    /// How often the model was asked, summaries and what comes after a kill aside.
    asked: Arc<AtomicUsize>,
}

impl World {
    fn new(at: At) -> Self {
        let runtime = Runtime::new().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let source = ReplySource::with(move |received| reply(received, &counter, at));
        let options = UpstreamOptions {
            sign: true,
            ..UpstreamOptions::new(source)
        };
        let upstream = runtime.block_on(Upstream::start(options)).unwrap();
        Self {
            place: Place::new(),
            base_url: format!("{}/v1", upstream.url().trim_end_matches('/')),
            runtime,
            upstream,
            asked,
        }
    }

    fn command(&self, preset: &str, dialect: &str, more: &[&str]) -> std::process::Command {
        let args = [
            &["--model", "gpt-5", "--base-url", &self.base_url][..],
            &["--dialect", dialect, "--preset", preset, "--window", "20k"],
            &["--max-output", "1k", "--allow-shell"],
            more,
        ];
        self.place.command(&args.concat())
    }

    /// Starts a turn and kills it where it has stopped.
    fn kill(&self, preset: &str, dialect: &str, resume: bool, at: At) {
        let before = self.asked.load(Ordering::SeqCst);
        let started = self.place.workspace().join("started");
        let _ = fs::remove_file(&started);
        let said = self.place.path().join("stderr");
        let more: &[&str] = if resume { &["--resume"] } else { &[] };
        let mut child = self
            .command(
                preset,
                dialect,
                &[more, &["--print", "read the notes"]].concat(),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&said).unwrap())
            .spawn()
            .unwrap();
        let ended = || format!("{preset} {dialect}: {}", fs::read_to_string(&said).unwrap());
        // The fourth answer is the one that stops it.
        let last = before + 4;
        let is_last = || self.asked.load(Ordering::SeqCst) >= last;
        wait(&mut child, is_last, ended);
        match at {
            At::Tool => wait(&mut child, || started.exists(), ended),
            // Some of the answer has to arrive; how much does not matter.
            At::Answer => thread::sleep(Duration::from_millis(100)),
            At::Request => {}
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// What is sent when a copy of the store is resumed.
    fn resumed(&self, preset: &str, dialect: &str, copy: &str) -> Vec<u8> {
        let store = self.place.path().join(copy);
        copy_all(&self.place.store(), &store);
        self.upstream.clear_requests();
        let mut command = self.command(preset, dialect, &["--resume", "--print", STILL_THERE]);
        command.env("TRIMTAB_STORE", &store);
        let outcome = finish(command, "");
        assert_eq!(
            outcome.stdout, "here\n",
            "{preset} {dialect}: {}",
            outcome.stderr
        );
        fs::remove_dir_all(store).unwrap();
        let requests = self.upstream.requests();
        requests.last().unwrap().body.to_vec()
    }
}

fn wait(child: &mut Child, holds: impl Fn() -> bool, ended: impl Fn() -> String) {
    let begun = Instant::now();
    while !holds() {
        let is_over = child.try_wait().unwrap().is_some();
        assert!(!is_over, "it ended by itself: {}", ended());
        assert!(begun.elapsed() < Duration::from_mins(2), "it hangs");
        thread::sleep(Duration::from_millis(5));
    }
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let place = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).unwrap();
        }
    }
}

/// The messages of a body, each as its JSON.
fn messages(body: &[u8], dialect: &str) -> Vec<String> {
    let body: Value = serde_json::from_slice(body).unwrap();
    let list = if dialect == "responses" {
        "input"
    } else {
        "messages"
    };
    let list = body[list].as_array().unwrap();
    list.iter().map(ToString::to_string).collect()
}

#[test]
fn resumed_chat_sends_the_same_bytes() {
    let presets = [
        "steady",
        "refs",
        "checkpoint",
        "turns",
        "archive",
        "retention",
    ];
    let dialects = ["chat", "responses", "messages"];
    for (number, preset) in presets.into_iter().enumerate() {
        let dialect = dialects[number % 3];
        let at = [At::Request, At::Tool, At::Answer][(number + number / 3) % 3];
        let world = World::new(at);
        for kill in 0..3 {
            world.kill(preset, dialect, kill > 0, at);
            let one = world.resumed(preset, dialect, "one");
            let two = world.resumed(preset, dialect, "two");
            assert!(
                one == two,
                "{preset} {dialect}, killed at {at:?}: other bytes"
            );
        }
        let violations = world.upstream.violations();
        assert_eq!(violations, Vec::<String>::new(), "{preset} {dialect}");
        drop(world.runtime);
    }
}

#[test]
fn killed_chat_resumes_with_the_same_window() {
    for (dialect, at) in [
        ("chat", At::Request),
        ("responses", At::Tool),
        ("chat", At::Answer),
        ("responses", At::Answer),
    ] {
        let world = World::new(at);
        world.kill("none", dialect, false, at);
        let sent = world.upstream.requests();
        let sent = messages(&sent.last().unwrap().body, dialect);
        let again = messages(&world.resumed("none", dialect, "copy"), dialect);
        assert!(sent.len() > 6 && again.len() > sent.len());
        assert_eq!(again[..sent.len()], sent[..], "{dialect}, killed at {at:?}");
    }
}

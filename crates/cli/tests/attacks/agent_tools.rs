//! The limits of the tools of `trimtab chat`.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::chat_place::Place;
use crate::process::status_kib;
use crate::run::{PATIENCE, kill};
use crate::terminal_device::InTerminal;

/// Variables that no command may see, each with a value of its own.
const SECRETS: [(&str, &str); 5] = [
    ("OPENAI_API_KEY", "secret-of-openai"),
    ("ANTHROPIC_API_KEY", "secret-of-anthropic"),
    ("TRIMTAB_PROXY_TOKEN", "secret-of-the-proxy"),
    ("AWS_SECRET_ACCESS_KEY", "secret-of-aws"),
    ("GITHUB_TOKEN", "secret-of-github"),
];

/// What the tools gave back for calls that a model makes one after the other.
fn outputs(place: &Place, calls: &[(&str, Value)], flags: &[&str]) -> Vec<String> {
    let replies = calls.iter().map(|call| vec![call.clone()]).collect();
    outputs_of(place, replies, flags)
}

/// The same for calls that are made several at a time.
fn outputs_of(place: &Place, replies: Vec<Vec<(&str, Value)>>, flags: &[&str]) -> Vec<String> {
    let outcome = crate::chat_place::finish(command(place, replies, flags), "");
    let lines = outcome.stdout.lines();
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let outputs: Vec<String> = lines
        .filter(|line| line["type"] == "output")
        .map(|line| line["view"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
    outputs
}

fn command(place: &Place, replies: Vec<Vec<(&str, Value)>>, flags: &[&str]) -> Command {
    let mut script: Vec<Value> = Vec::new();
    for calls in replies {
        let calls = calls.into_iter();
        let calls: Vec<Value> = calls
            .map(|(name, arguments)| json!({"name": name, "arguments": arguments}))
            .collect();
        script.push(json!({ "calls": calls }));
    }
    script.push(json!({"text": "done"}));
    let model = place.script(&Value::from(script).to_string());
    let args = ["--model", &model, "--print", "go on", "--json"];
    let window = ["--preset", "none", "--window", "100m"];
    let mut command = place.command(&[&args[..], &window, flags].concat());
    command.envs(SECRETS);
    command
}

fn shell(line: &str) -> (&'static str, Value) {
    ("shell", json!({ "command": line }))
}

fn assert_no_secret(text: &str) {
    for (name, value) in SECRETS {
        assert!(!text.contains(value), "{name} is in {text}");
    }
}

#[test]
fn commands_get_a_clean_environment() {
    let place = Place::new();
    let env = [shell("env")];
    let plain = outputs(&place, &env, &["--allow-shell"]);
    assert_no_secret(&plain[0]);
    assert!(plain[0].contains("PATH=") && plain[0].contains("HOME="));
    let named = ["--allow-shell", "--env", "GITHUB_TOKEN"];
    let named = outputs(&place, &env, &named);
    assert!(named[0].contains("GITHUB_TOKEN=secret-of-github"));
    assert!(!named[0].contains("secret-of-aws"));
    let refused = ["--print", "x", "--env", "OPENAI_API_KEY"];
    let refused = place.chat(&refused);
    assert_eq!(refused.code, 2);
    assert!(
        refused
            .stderr
            .contains("OPENAI_API_KEY is one of our own keys")
    );
}

#[test]
fn setting_names_variables_for_commands() {
    let place = Place::new();
    let config = place.path().join("config/trimtab");
    fs::create_dir_all(&config).unwrap();
    let setting = "[tools]\nenvironment = [\"GITHUB_TOKEN\"]\n";
    fs::write(config.join("config.toml"), setting).unwrap();
    let seen = outputs(&place, &[shell("env")], &["--allow-shell"]);
    assert!(
        seen[0].contains("GITHUB_TOKEN=secret-of-github"),
        "{}",
        seen[0]
    );
    assert!(!seen[0].contains("secret-of-aws"));
}

#[test]
#[cfg(target_os = "linux")]
fn keys_cannot_be_read_from_the_agents_process() {
    let place = Place::new();
    let looks = [
        shell("tr '\\0' '\\n' < /proc/$PPID/environ; echo looked"),
        shell("cat /proc/$PPID/cmdline | tr '\\0' ' '; ls -l /proc/$PPID/fd; echo looked"),
        shell("for file in /proc/self/fd/*; do timeout 1 cat $file; done; echo looked"),
        shell("(: < /proc/$PPID/mem) && echo OPENED; echo looked"),
    ];
    let seen = outputs(&place, &looks, &["--allow-shell"]);
    for text in &seen {
        assert!(text.contains("looked"), "{text}");
        assert_no_secret(text);
    }
    assert!(!seen[3].contains("OPENED"), "{}", seen[3]);
}

/// Commands that try to leave something behind; each writes the ids of its processes to `ids`.
const LEAVE_BEHIND: [&str; 5] = [
    "sleep 300 & echo $! >> ids",
    "setsid sleep 300 & echo $! >> ids",
    "setsid nohup sh -c 'echo $$ >> ids; sleep 300 & echo $! >> ids; wait' >/dev/null 2>&1 & sleep 0.5",
    "(setsid env -i sh -c 'echo $$ >> ids; exec sleep 300' >/dev/null 2>&1 &) ; sleep 0.5",
    "setsid sh -c '(setsid sh -c \"echo \\$\\$ >> ids; exec sleep 300\" &) ; exit' ; sleep 0.5",
];

/// Says which of the processes are still there.
const WHO_IS_LEFT: &str = "for id in $(cat ids); do kill -0 $id 2>/dev/null && \
     ! grep -q ') Z' /proc/$id/stat && echo LEFT $id; done; wc -l < ids";

#[test]
#[cfg(target_os = "linux")]
fn no_process_outlives_its_command() {
    let place = Place::new();
    let mut calls: Vec<(&str, Value)> = LEAVE_BEHIND.iter().map(|line| shell(line)).collect();
    calls.push(shell(WHO_IS_LEFT));
    let seen = outputs(&place, &calls, &["--allow-shell"]);
    assert_eq!(seen.last().unwrap().trim(), "6", "{seen:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn no_process_outlives_a_command_that_timed_out() {
    let place = Place::new();
    let mut calls: Vec<(&str, Value)> = Vec::new();
    for line in LEAVE_BEHIND {
        let line = format!("{line}; sleep 300");
        calls.push(("shell", json!({"command": line, "timeout_seconds": 2})));
    }
    calls.push(shell(WHO_IS_LEFT));
    let seen = outputs(&place, &calls, &["--allow-shell"]);
    assert!(seen[0].contains("its time limit"), "{seen:?}");
    assert_eq!(seen.last().unwrap().trim(), "6", "{seen:?}");
}

/// Waits until the ids of `count` processes are there.
fn ids_of(place: &Place, count: usize) -> Vec<u32> {
    let until = Instant::now() + PATIENCE;
    loop {
        let ids = fs::read_to_string(place.workspace().join("ids")).unwrap_or_default();
        let ids: Vec<u32> = ids.lines().filter_map(|id| id.parse().ok()).collect();
        if ids.len() >= count {
            return ids;
        }
        assert!(Instant::now() < until, "{ids:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[track_caller]
fn assert_gone(ids: &[u32]) {
    let until = Instant::now() + PATIENCE;
    let is_there = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z"))
    };
    while ids.iter().any(is_there) {
        assert!(Instant::now() < until, "one of {ids:?} is left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn no_process_outlives_an_interrupt_or_the_agent() {
    for (signal, code) in [("INT", 1), ("TERM", 143), ("HUP", 129)] {
        let place = Place::new();
        let line = format!("{}; {}; sleep 300", LEAVE_BEHIND[1], LEAVE_BEHIND[3]);
        let mut chat = command(&place, vec![vec![shell(&line)]], &["--allow-shell"]);
        let mut chat = chat
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let ids = ids_of(&place, 2);
        kill(chat.id(), signal);
        let ended = chat.wait().unwrap();
        assert_eq!(ended.code(), Some(code), "{signal}");
        assert_gone(&ids);
    }
}

/// A link in the workspace that leads inside and outside by turns, until it is dropped.
fn while_swapping<T>(place: &Place, work: impl FnOnce() -> T) -> (T, u64) {
    let (link, spare) = (
        place.workspace().join("swap"),
        place.workspace().join("spare"),
    );
    let outside = place.path().join("outside");
    fs::create_dir_all(place.workspace().join("inside")).unwrap();
    fs::create_dir_all(&outside).unwrap();
    fs::write(place.workspace().join("inside/file.txt"), "harmless\n").unwrap();
    fs::write(outside.join("file.txt"), "OUTSIDE\n").unwrap();
    symlink("inside", &link).unwrap();
    let (done, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let swap = |target: &Path| {
        symlink(target, &spare).unwrap();
        fs::rename(&spare, &link).unwrap();
        swaps.fetch_add(1, Ordering::Relaxed);
    };
    let worked = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                swap(&outside);
                swap(Path::new("inside"));
            }
        });
        let worked = work();
        done.store(true, Ordering::Relaxed);
        worked
    });
    (worked, swaps.into_inner())
}

#[test]
fn swapped_link_does_not_leave_the_workspace() {
    let place = Place::new();
    let replies = if crate::is_long_run() { 400 } else { 25 };
    let reads = || {
        let mut calls = Vec::new();
        for _ in 0..95 {
            calls.push(("read_file", json!({"path": "swap/file.txt"})));
        }
        calls.push(("list", json!({"path": "swap"})));
        calls.push(("search", json!({"pattern": "OUTSIDE", "path": "swap"})));
        calls.push(("search", json!({"pattern": "OUTSIDE"})));
        calls.push((
            "write_file",
            json!({"path": "swap/new.txt", "content": "x"}),
        ));
        calls.push((
            "write_file",
            json!({"path": "swap/a/new.txt", "content": "x"}),
        ));
        calls
    };
    let replies = (0..replies).map(|_| reads()).collect();
    let (seen, swaps) = while_swapping(&place, || outputs_of(&place, replies, &["--allow-writes"]));
    assert!(swaps > 1_000, "only {swaps}");
    assert!(seen.iter().any(|text| text == "harmless\n"));
    let leaked = seen.iter().filter(|text| text.contains("OUTSIDE")).count();
    assert_eq!(leaked, 0, "of {} outputs, {swaps} swaps", seen.len());
    let outside: Vec<_> = fs::read_dir(place.path().join("outside"))
        .unwrap()
        .collect();
    assert_eq!(outside.len(), 1, "{outside:?}");
    let inside = fs::read_dir(place.workspace().join("inside")).unwrap();
    let inside: Vec<String> = inside
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(inside.contains(&"new.txt".to_owned()), "{inside:?}");
    assert!(
        !inside.iter().any(|name| name.starts_with(".trimtab")),
        "{inside:?}"
    );
}

#[test]
fn special_files_are_rejected_without_blocking() {
    let place = Place::new();
    for name in ["pipe", ".gitignore"] {
        let made = Command::new("mkfifo")
            .arg(place.workspace().join(name))
            .status();
        assert!(made.unwrap().success());
    }
    symlink("/dev/zero", place.workspace().join("zero")).unwrap();
    let calls = [
        ("read_file", json!({"path": "pipe"})),
        ("read_file", json!({"path": "zero"})),
        ("write_file", json!({"path": "pipe", "content": "x"})),
        ("search", json!({"pattern": "x", "path": "pipe"})),
        ("search", json!({"pattern": "answer to question 42 "})),
        ("list", json!({})),
    ];
    let begun = Instant::now();
    let seen = outputs(&place, &calls, &[]);
    assert!(begun.elapsed() < PATIENCE);
    for at in [0, 2, 3] {
        assert!(seen[at].contains("FIFO, not a regular file"), "{seen:?}");
    }
    assert!(seen[1].contains("outside the workspace"), "{seen:?}");
    assert!(seen[4].contains("notes.txt:42:"), "{seen:?}");
    assert!(seen[5].contains("pipe (special file)"), "{seen:?}");
}

/// Runs `trimtab chat` to its end; gives the most memory that it had, in KiB.
fn peak_kib(place: &Place, calls: Vec<(&str, Value)>) -> u64 {
    let mut chat = command(place, vec![calls], &[]);
    let mut chat = chat.stdout(Stdio::null()).spawn().unwrap();
    let mut peak = 0;
    while chat.try_wait().unwrap().is_none() {
        peak = peak.max(status_kib(chat.id(), "VmHWM:"));
        std::thread::sleep(Duration::from_millis(1));
    }
    peak
}

#[test]
fn search_is_bounded_for_bad_patterns_and_long_lines() {
    let place = Place::new();
    fs::write(place.workspace().join("as"), "a".repeat(1 << 16)).unwrap();
    let mut calls = Vec::new();
    for pattern in [
        "(a{1,100}){1,100}x$",
        r"(\w{1,100}){1,50}é",
        "(a|a)*(b{9}){99}c",
    ] {
        calls.push(("search", json!({ "pattern": pattern })));
    }
    let begun = Instant::now();
    let seen = outputs(&place, &calls, &[]);
    assert!(begun.elapsed() < PATIENCE);
    assert!(seen[0].contains("bad pattern"), "{seen:?}");
    let usual = peak_kib(&place, vec![("search", json!({"pattern": "needle"}))]);
    let size = if crate::is_long_run() { 1_500 } else { 150 };
    let mut line = fs::File::create(place.workspace().join("line")).unwrap();
    for _ in 0..size {
        std::io::Write::write_all(&mut line, &vec![b'a'; 1_000_000]).unwrap();
    }
    std::io::Write::write_all(&mut line, b" needle ").unwrap();
    drop(line);
    let calls = vec![
        ("search", json!({"pattern": "n.edle|needle"})),
        ("read_file", json!({"path": "line", "offset": 2})),
    ];
    let found = outputs(&place, &calls[..1], &[]);
    assert!(found[0].starts_with("line:1:aaaa") && found[0].len() < 2_100);
    let peak = peak_kib(&place, calls);
    assert!(peak < usual + 64 * 1024, "{peak} KiB, usually {usual} KiB");
}

#[test]
fn protected_files_need_a_confirmation() {
    let place = Place::new();
    fs::create_dir_all(place.workspace().join(".git/hooks")).unwrap();
    symlink(".git", place.workspace().join("harmless")).unwrap();
    let paths = [
        ".git/hooks/pre-commit",
        "./x/../.git/config",
        "harmless/hooks/pre-push",
        "trimtab.toml",
        "sub/.claude/settings.json",
        ".vscode/tasks.json",
        ".envrc",
        "AGENTS.md",
        ".vimrc",
        ".exrc",
        ".nvim.lua",
        ".gdbinit",
        ".travis.yml",
        "mise.toml",
        ".mise.toml",
        "sub/.config/mise/config.toml",
    ];
    fs::create_dir(place.workspace().join("x")).unwrap();
    let calls: Vec<(&str, Value)> = paths
        .iter()
        .map(|path| ("write_file", json!({"path": path, "content": "owned"})))
        .collect();
    let written = |place: &Place| {
        let mut grep = Command::new("grep");
        let grep = grep.args(["-rl", "owned"]).current_dir(place.workspace());
        String::from_utf8(grep.output().unwrap().stdout).unwrap()
    };
    for flags in [&[][..], &["--allow-shell"]] {
        let seen = outputs(&place, &calls, flags);
        for text in &seen {
            assert!(text.contains("the user did not allow to write"), "{text}");
        }
        assert_eq!(written(&place), "");
        assert!(!place.workspace().join("sub").exists());
    }
    let seen = outputs(&place, &calls, &["--allow-protected-files"]);
    assert!(
        seen.iter().all(|text| text.starts_with("wrote 5 bytes")),
        "{seen:?}"
    );
    assert_eq!(written(&place).lines().count(), paths.len());
}

#[test]
fn protected_files_need_a_confirmation_with_allow_shell() {
    let place = Place::new();
    let mut script = String::from("[");
    for (path, content) in [
        (".envrc", "first"),
        (".envrc", "second"),
        ("plain.txt", "third"),
    ] {
        let _ = write!(
            script,
            r#"{{"calls": [{{"name": "write_file", "arguments": {{"path": "{path}", "content": "{content}"}}}}]}},"#
        );
    }
    script += r#"{"text": "all is done"}]"#;
    let model = place.script(&script);
    let args = ["--model", &model, "--allow-shell", "--allow-writes"];
    let mut chat = InTerminal::start(place.command(&args));
    chat.wait_for("/help lists");
    chat.type_in("go on\r");
    chat.wait_for("wants to write 5 bytes to .envrc");
    chat.type_in("n\r");
    chat.wait_for("wants to write 6 bytes to .envrc");
    chat.type_in("y\r");
    chat.wait_for("all is done");
    let text = |name: &str| fs::read_to_string(place.workspace().join(name)).unwrap();
    assert_eq!(
        (text(".envrc").as_str(), text("plain.txt").as_str()),
        ("second", "third")
    );
}

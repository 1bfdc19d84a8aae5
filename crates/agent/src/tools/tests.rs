use std::fs;
use std::time::Duration;

use serde_json::json;
use trimtab_model::Call;

use super::*;

struct Place {
    folder: tempfile::TempDir,
    workspace: Workspace,
    tools: ToolSet,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let workspace = Workspace::new(folder.path(), Confirm::Always).unwrap();
    Place {
        folder,
        workspace,
        tools: ToolSet::standard(),
    }
}

impl Place {
    async fn call(&self, name: &str, arguments: Value) -> ToolOutcome {
        let call = Call::new("c1", name, arguments.to_string());
        self.tools.call(&call, &self.workspace).await
    }

    async fn shell(&self, command: &str) -> ToolOutcome {
        self.call("shell", json!({ "command": command })).await
    }
}

#[tokio::test]
async fn a_file_is_written_and_read() {
    let place = place();
    let content = "one\ntwo\nthree\n";
    let written = place
        .call(
            "write_file",
            json!({"path": "new/a.txt", "content": content}),
        )
        .await;
    assert_eq!(written, ToolOutcome::text("wrote 14 bytes to new/a.txt"));
    let read = place.call("read_file", json!({"path": "new/a.txt"})).await;
    assert_eq!(read, ToolOutcome::text(content));
    let range = json!({"path": "new/a.txt", "offset": 2, "limit": 1});
    assert_eq!(place.call("read_file", range).await.text, "two\n");
    let past = json!({"path": "new/a.txt", "offset": 9});
    let past = place.call("read_file", past).await;
    assert_eq!(past.text, "[there is no line 9: the file has 3 lines]");
}

#[tokio::test]
async fn search_for_a_line_in_a_sparse_file_ends() {
    let place = place();
    let file = fs::File::create(place.folder.path().join("sparse")).unwrap();
    // More than any disk has, and it takes no space.
    file.set_len(8 << 40).unwrap();
    let range = json!({"path": "sparse", "offset": 1_000_000, "limit": 10});
    // A reader that looked at the whole file would not end.
    let read = place.call("read_file", range).await;
    assert!(read.text.contains("is not in its first"), "{}", read.text);
}

#[tokio::test]
async fn tools_do_not_touch_files_outside_the_workspace() {
    let place = place();
    for (tool, arguments) in [
        ("read_file", json!({"path": "../x"})),
        ("read_file", json!({"path": "/etc/hostname"})),
        ("write_file", json!({"path": "../x", "content": ""})),
        ("write_file", json!({"path": ".", "content": ""})),
        ("list", json!({"path": ".."})),
        ("search", json!({"pattern": "root", "path": "/etc"})),
    ] {
        let outcome = place.call(tool, arguments).await;
        assert!(outcome.is_error, "{tool}: {outcome:?}");
    }
}

#[tokio::test]
async fn folders_are_listed_and_searched() {
    let place = place();
    let root = place.folder.path();
    fs::create_dir(root.join("src")).unwrap();
    fs::write(root.join("src/main.rs"), "fn main() {\n    run();\n}\n").unwrap();
    fs::write(root.join("notes.txt"), "run fast\n").unwrap();
    fs::write(root.join(".gitignore"), "target\n").unwrap();
    fs::create_dir(root.join("target")).unwrap();
    fs::write(root.join("target/out.txt"), "run\n").unwrap();
    assert_eq!(
        place.call("list", json!({})).await.text,
        "notes.txt 9\nsrc/"
    );
    let all = place.call("list", json!({"recursive": true})).await.text;
    assert_eq!(all, "notes.txt 9\nsrc/\nsrc/main.rs 25");
    let found = place.call("search", json!({"pattern": r"run\("})).await;
    assert_eq!(found.text, "src/main.rs:2:    run();");
    let found = place
        .call(
            "search",
            json!({"pattern": "RUN", "ignore_case": true, "glob": "*.txt"}),
        )
        .await;
    assert_eq!(found.text, "notes.txt:1:run fast");
    let bad = place.call("search", json!({"pattern": "("})).await;
    assert!(bad.is_error && bad.text.contains("bad pattern `(`"));
}

#[tokio::test]
async fn bad_arguments_give_a_readable_error() {
    let place = place();
    for (name, arguments, expected) in [
        ("read_file", "{}", "missing field `path`"),
        ("read_file", "{\"path\": 1}", "invalid type"),
        ("read_file", "{\"path\": ", "not valid JSON"),
        ("read_file", "[]", "must be a JSON object"),
        ("shell", "{\"command\": \" \"}", "the command is empty"),
        (
            "fly",
            "{}",
            "there is no tool `fly`\nhint: the tools are read_file,",
        ),
    ] {
        let call = Call::new("c1", name, arguments);
        let outcome = place.tools.call(&call, &place.workspace).await;
        assert!(
            outcome.is_error && outcome.text.contains(expected),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn command_output_includes_both_streams() {
    let place = place();
    let outcome = place.shell("echo out; echo err >&2; echo out").await;
    assert_eq!(outcome, ToolOutcome::text("out\nerr\nout\n"));
    assert_eq!(place.shell("true").await, ToolOutcome::text("[no output]"));
    let failed = place.shell("printf oops; exit 3").await;
    assert_eq!(failed, ToolOutcome::error("oops\n[exit status 3]"));
    let killed = place.shell("kill -9 $$").await;
    assert_eq!(killed, ToolOutcome::error("[ended by signal 9]"));
    let size = place.shell("head -c 3000000 /dev/zero | tr '\\0' x").await;
    assert_eq!(size.text.len(), 3_000_000);
}

#[tokio::test]
async fn binary_output_is_made_readable() {
    let outcome = place().shell("printf 'a\\0\\377b'").await;
    assert!(outcome.text.starts_with("[4 bytes, not all of them text"));
    assert!(outcome.text.ends_with("a\u{fffd}\u{fffd}b"));
}

/// True if a process with this id stays; one that was killed may take a moment to go.
fn is_alive(pid: &str) -> bool {
    let stat = format!("/proc/{}/stat", pid.trim());
    let is_there = || fs::read_to_string(&stat).is_ok_and(|status| !status.contains(") Z "));
    (0..100).all(|_| {
        std::thread::sleep(Duration::from_millis(20));
        is_there()
    })
}

#[tokio::test]
async fn hanging_command_is_ended_with_its_children() {
    let mut place = place();
    place.tools = ToolSet::none().with(Shell::new(ShellLimits {
        time: Duration::from_millis(300),
        ..ShellLimits::default()
    }));
    let outcome = place.shell("sleep 1d & echo $!; wait").await;
    assert!(outcome.is_error && outcome.text.contains("its time limit"));
    let pid = outcome.text.lines().next().unwrap();
    assert!(!is_alive(pid), "{pid}");
}

#[tokio::test]
async fn background_processes_do_not_delay_the_output() {
    let place = place();
    let outcome = place.shell("sleep 1d & echo $!").await;
    assert!(!outcome.is_error && !is_alive(&outcome.text));
}

#[tokio::test]
async fn endless_output_ends_the_command() {
    let mut place = place();
    place.tools = ToolSet::none().with(Shell::new(ShellLimits {
        bytes: 10_000,
        ..ShellLimits::default()
    }));
    let outcome = place.shell("yes").await;
    assert!(
        outcome
            .text
            .ends_with("[ended because it wrote more than 10000 bytes]")
    );
}

#[tokio::test]
async fn dropped_call_leaves_no_process() {
    let place = place();
    let file = place.folder.path().join("pid");
    let work = place.shell("echo $$ > pid; sleep 60");
    let waited = tokio::time::timeout(Duration::from_millis(500), work).await;
    assert!(waited.is_err());
    let pid = fs::read_to_string(file).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!is_alive(&pid));
}

#[tokio::test]
async fn the_user_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (confirm, mut questions) = Confirm::channel();
    let workspace = Workspace::new(folder.path(), confirm).unwrap();
    let tools = ToolSet::standard();
    let user = tokio::spawn(async move {
        let first = questions.recv().await.unwrap();
        assert_eq!(
            (first.tool.as_str(), first.what.as_str()),
            ("shell", "echo 1")
        );
        first.answer(true);
        questions.recv().await.unwrap().answer(false);
    });
    let call = Call::new("c", "shell", r#"{"command":"echo 1"}"#);
    assert_eq!(
        tools.call(&call, &workspace).await,
        ToolOutcome::text("1\n")
    );
    let refused = tools.call(&call, &workspace).await;
    assert!(refused.is_error && refused.text.contains("did not allow"));
    user.await.unwrap();
    // Nobody listens any more.
    assert!(tools.call(&call, &workspace).await.is_error);
}

#[tokio::test]
async fn protected_files_are_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    let (confirm, mut questions) = Confirm::channel();
    let workspace = Workspace::new(folder.path(), confirm).unwrap();
    let call = |path: &str| {
        let arguments = json!({"path": path, "content": "x"}).to_string();
        Call::new("c", "write_file", arguments)
    };
    let user = tokio::spawn(async move {
        for allow in [false, true] {
            let question = questions.recv().await.unwrap();
            assert_eq!(question.kind, QuestionKind::ProtectedFile);
            assert!(question.what.contains(".git/config"), "{}", question.what);
            question.answer(allow);
        }
    });
    let tools = ToolSet::standard();
    let refused = tools.call(&call(".git/config"), &workspace).await;
    assert!(refused.is_error && !folder.path().join(".git").exists());
    let written = tools.call(&call(".git/config"), &workspace).await;
    assert_eq!(written, ToolOutcome::text("wrote 1 bytes to .git/config"));
    user.await.unwrap();
    let plain = tools.call(&call("git/config"), &workspace).await;
    assert!(!plain.is_error);
    // Commands that are allowed without a question do not allow this.
    let workspace = Workspace::new(folder.path(), Confirm::Always).unwrap();
    assert!(tools.call(&call("trimtab.toml"), &workspace).await.is_error);
    let workspace = workspace.confirm_protected(Confirm::Always);
    assert!(!tools.call(&call("trimtab.toml"), &workspace).await.is_error);
}

#[tokio::test]
async fn confirmation_is_repeated_if_the_file_changes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.txt");
    fs::write(&file, "old").unwrap();
    let (confirm, mut questions) = Confirm::channel();
    let workspace = Workspace::new(folder.path(), Confirm::Never).unwrap();
    let workspace = workspace.confirm_writes(confirm);
    let place = file.clone();
    let user = tokio::spawn(async move {
        for (before, allow) in [("old", false), ("old", true), ("changed", true)] {
            let question = questions.recv().await.unwrap();
            assert_eq!(question.kind, QuestionKind::WriteFile);
            let change = question.change.clone().unwrap();
            assert_eq!(change.before.as_deref(), Some(before));
            assert_eq!(
                (change.path.as_str(), change.after.as_str()),
                ("a.txt", "new")
            );
            if allow && before == "old" {
                fs::write(&place, "changed").unwrap();
            }
            question.answer(allow);
        }
    });
    let tools = ToolSet::standard();
    let arguments = json!({"path": "a.txt", "content": "new"}).to_string();
    let call = Call::new("c", "write_file", arguments);
    let refused = tools.call(&call, &workspace).await;
    assert!(
        refused.is_error && refused.text.contains("did not allow"),
        "{refused:?}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    let written = tools.call(&call, &workspace).await;
    assert_eq!(written, ToolOutcome::text("wrote 3 bytes to a.txt"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    user.await.unwrap();
}

#[tokio::test]
async fn written_file_keeps_its_permissions_and_leaves_its_links_alone() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let place = place();
    let root = place.folder.path();
    let script = root.join("run.sh");
    fs::write(&script, "old").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
    fs::hard_link(&script, root.join("other")).unwrap();
    symlink("run.sh", root.join("link")).unwrap();
    let arguments = json!({"path": "link", "content": "new"});
    let written = place.call("write_file", arguments).await;
    assert_eq!(written, ToolOutcome::text("wrote 3 bytes to run.sh"));
    let text = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    assert_eq!(
        (text("run.sh").as_str(), text("other").as_str()),
        ("new", "old")
    );
    assert!(root.join("link").is_symlink());
    let mode = fs::metadata(&script).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    assert_eq!(fs::read_dir(root).unwrap().count(), 3);
}

#[tokio::test]
async fn ignore_rules_of_all_folders_apply() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("repository/part");
    fs::create_dir_all(root.join("sub/deep")).unwrap();
    fs::create_dir(folder.path().join("repository/.git")).unwrap();
    fs::write(
        folder.path().join("repository/.gitignore"),
        "*.log\n/part/out\n",
    )
    .unwrap();
    fs::write(
        root.join("sub/.gitignore"),
        "deep/*\n!deep/kept.txt\n!keep.log\n",
    )
    .unwrap();
    fs::write(root.join(".ignore"), "private\n").unwrap();
    for name in [
        "a.log",
        "a.txt",
        "out",
        "private",
        "sub/keep.log",
        "sub/deep/kept.txt",
        "sub/deep/x.txt",
    ] {
        fs::write(root.join(name), "text\n").unwrap();
    }
    let workspace = Workspace::new(&root, Confirm::Never).unwrap();
    let call = Call::new("c", "search", r#"{"pattern": "text"}"#);
    let found = ToolSet::standard().call(&call, &workspace).await.text;
    let paths: Vec<&str> = found
        .lines()
        .filter_map(|line| line.split(':').next())
        .collect();
    assert_eq!(paths, ["a.txt", "sub/deep/kept.txt", "sub/keep.log"]);
}

#[tokio::test]
async fn lines_after_a_long_line_are_read() {
    let place = place();
    let long = "x".repeat(20 << 20);
    fs::write(
        place.folder.path().join("f"),
        format!("{long}\nsecond\nthird"),
    )
    .unwrap();
    let read = async |offset: u64| {
        let range = json!({"path": "f", "offset": offset, "limit": 1});
        place.call("read_file", range).await.text
    };
    assert_eq!(read(2).await, "second\n");
    assert_eq!(read(3).await, "third");
    assert_eq!(read(4).await, "[there is no line 4: the file has 3 lines]");
    // The long line exceeds the limit of a call, and the output says so.
    assert!(read(1).await.contains("\n[cut off in line 1, after 16"));
}

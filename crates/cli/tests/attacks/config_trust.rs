//! Settings are trusted by their source: a project's file may only decide about windows.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::recorder::Recorder;
use crate::repository::{Ended, Repository, ended};
use crate::run::say;

/// Keys that must never arrive anywhere.
const KEYS: [(&str, &str); 2] = [
    ("ANTHROPIC_API_KEY", "sk-ant-stolen"),
    ("OPENAI_API_KEY", "sk-proj-stolen"),
];

/// Settings that lead all requests to `url`.
fn upstreams(url: &str) -> String {
    let one = |dialect: &str| {
        format!(
            "[[proxy.upstreams]]\nname = '{dialect}'\nurl = '{url}'\ndialects = ['{dialect}']\n"
        )
    };
    ["chat", "responses", "messages"].map(one).concat()
}

fn with_keys(mut command: Command) -> Ended {
    ended({
        command.envs(KEYS);
        command
    })
}

/// A client that sends the key and a prompt to the address in its environment.
const CLIENT: &str = r#"
url=${ANTHROPIC_BASE_URL#http://}
exec 3<>"/dev/tcp/${url%:*}/${url##*:}"
printf 'POST /v1/messages HTTP/1.1\r\nhost: %s\r\nx-api-key: %s\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}' "$url" "$ANTHROPIC_API_KEY" >&3
cat <&3
"#;

#[test]
fn no_verb_sends_requests_to_a_server_named_by_a_repository() {
    let evil = Recorder::start();
    let clone = Repository::with(&upstreams(&evil.url));
    fs::write(clone.path().join("talk.json"), "[]").unwrap();
    let verbs: [(&[&str], i32); 8] = [
        (&["serve", "--listen", "127.0.0.1:0"], 2),
        (&["wrap", "bash", "-c", CLIENT], 2),
        (&["chat", "--model", "gpt-4o", "--print", "hello"], 2),
        (&["compact", "--model", "gpt-4o", "talk.json", "-o", "-"], 2),
        (&["output", "list", "--session", "s"], 2),
        (&["config", "show"], 2),
        (&["replay", "talk.json"], 2),
        // It reports what it finds, and asks nobody.
        (&["doctor", "--listen", "127.0.0.1:0"], 1),
    ];
    for (verb, code) in verbs {
        let done = with_keys(clone.command(verb));
        let said = done.all();
        assert_eq!(done.code, Some(code), "{verb:?}: {said}");
        let file = clone.file().canonicalize().unwrap();
        for part in ["proxy.upstreams", "--config", &file.display().to_string()] {
            assert!(said.contains(part), "{verb:?} does not say {part}: {said}");
        }
        assert!(!said.contains("stolen"), "{verb:?}: {said}");
    }
    assert_eq!(evil.heard(), "");
}

#[test]
fn repository_file_cannot_set_store_or_script() {
    let clone = Repository::with("store = 'taken'\n");
    let done = clone.run(&["output", "put", "--session", "s", "trimtab.toml"]);
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(!clone.path().join("taken").exists());
    let script = r#"[{"text": "said by the script"}]"#;
    for key in ["model", "compaction.model"] {
        let clone = Repository::with(&format!("{key} = 'scripted:evil.json'\n"));
        fs::write(clone.path().join("evil.json"), script).unwrap();
        let done = clone.run(&["chat", "--print", "hello"]);
        let said = done.all();
        assert_eq!(done.code, Some(2), "{said}");
        assert!(said.contains(key) && !said.contains("said by"), "{said}");
    }
}

#[test]
fn file_named_by_the_user_is_trusted() {
    let server = Recorder::start();
    let clone = Repository::with(&upstreams(&server.url));
    let file = clone.file().display().to_string();
    let mut by_variable = clone.command(&["config", "show", "upstreams", "--json"]);
    by_variable.env("TRIMTAB_CONFIG", &file);
    let by_flag = clone.command(&["config", "show", "upstreams", "--json", "--config", &file]);
    for command in [by_variable, by_flag] {
        let done = ended(command);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let line: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(
            (&line["source"], &line["from"]),
            (&"named".into(), &file.as_str().into())
        );
    }
    let doctor = ["doctor", "--listen", "127.0.0.1:0", "--config", &file];
    let done = with_keys(clone.command(&doctor));
    let told = format!("Messages go to {}, set by {file}", server.url);
    assert!(done.stderr.contains(&told), "{}", done.all());
    assert!(server.heard().contains("sk-ant-stolen"));
}

/// What a project's file may set; everything else, and everything new, is refused.
fn is_for_projects(key: &str) -> bool {
    const REFUSED: [&str; 4] = [
        "compaction.model",
        "compaction.prompt.",
        "compaction.placement",
        "compaction.summary_prefixes",
    ];
    const ALLOWED: [&str; 10] = [
        "preset",
        "window",
        "max_output",
        "fit",
        "repair",
        "estimate",
        "ladder",
        "proxy.preset",
        "proxy.policies",
        "proxy.models",
    ];
    let sections = ["views.", "ageing.", "compaction.", "recovery."];
    let is_in = |list: &[&str]| list.iter().any(|start| key.starts_with(start));
    if key == "compaction.model_window" {
        return true;
    }
    ALLOWED.contains(&key) || (is_in(&sections) && !is_in(&REFUSED))
}

/// Every setting of a schema, with a value that it may have.
fn settings_of(schema: &Value, section: &str, found: &mut Vec<(String, String)>) {
    for (name, about) in schema["properties"].as_object().unwrap() {
        let name = format!("{section}{name}");
        if about.get("properties").is_some() {
            settings_of(about, &format!("{name}."), found);
            continue;
        }
        let value = match (&about["default"], about["type"].as_str()) {
            (Value::Object(fields), _) if !fields.is_empty() => "{}".to_owned(),
            (Value::Null | Value::Object(_), Some("boolean")) => "true".to_owned(),
            (Value::Null, Some("integer")) => "1000".to_owned(),
            (Value::Null, Some("number")) => "0.5".to_owned(),
            (Value::Null, Some("string")) => "'x'".to_owned(),
            (Value::Null, Some("array")) => "[]".to_owned(),
            (Value::Null | Value::Object(_), _) => "{}".to_owned(),
            (default, _) => default.to_string(),
        };
        found.push((name, value));
    }
}

#[test]
fn repository_file_with_a_forbidden_setting_is_rejected() {
    let clone = Repository::with("");
    let schema = clone.run(&["config", "schema"]);
    let schema: Value = serde_json::from_str(&schema.stdout).unwrap();
    let mut all = Vec::new();
    settings_of(&schema, "", &mut all);
    assert!(all.len() > 60, "{}", all.len());
    for expected in ["proxy.upstreams", "proxy.listen", "network.proxy", "store"] {
        assert!(all.iter().any(|(key, _)| key == expected), "{expected}");
    }
    for (key, value) in all {
        // Lists of tables in JSON are no TOML.
        let value = if value.contains("{\"") {
            "[]".to_owned()
        } else {
            value
        };
        fs::write(clone.file(), format!("{key} = {value}\n")).unwrap();
        let done = clone.run(&["config", "show", "preset"]);
        let may = is_for_projects(&key);
        let refused = format!("a project's file may not set {key}\n");
        assert_eq!(
            done.stderr.contains(&refused),
            !may,
            "{key}: {}",
            done.stderr
        );
        assert!(may || done.code == Some(2), "{key}");
    }
}

#[test]
fn repository_file_with_a_forbidden_nested_setting_is_rejected() {
    for (text, key) in [
        (
            "[proxy.policies.a.compaction]\nmodel = 'm'\n",
            "proxy.policies.a.compaction.model",
        ),
        (
            "[[proxy.models]]\nmodel = 'm'\nmode = 'bypass'\n",
            "proxy.models.mode",
        ),
    ] {
        let done = Repository::with(text).run(&["config", "show"]);
        assert_eq!(done.code, Some(2), "{text}");
        assert!(done.stderr.contains(key), "{}", done.stderr);
    }
    let allowed = "[proxy]\npreset = 'mine'\n[proxy.policies.mine]\npreset = 'refs'\n\
        [[proxy.models]]\nmodel = 'm'\nwindow = 8000\npreset = 'mine'\n";
    let clone = Repository::with(allowed);
    let doctor = ["doctor", "--offline", "--listen", "127.0.0.1:0"];
    let done = clone.run(&doctor);
    assert_eq!(done.code, Some(0), "{}", done.all());
    assert!(done.stdout.contains("preset mine"), "{}", done.stdout);
}

/// The preset that holds in `folder`, and what is said besides.
fn preset(clone: &Repository, folder: &Path) -> (String, String) {
    let done = ended(clone.command_in(folder, &["config", "show", "preset", "--json"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let first = done.stdout.lines().next().unwrap();
    let line: Value = serde_json::from_str(first).unwrap();
    let preset = line["value"].as_str().unwrap_or("-").to_owned();
    (preset, done.stderr)
}

#[test]
fn project_file_is_searched_up_to_the_repository_root() {
    let clone = Repository::with("preset = 'refs'\n");
    let deep = clone.path().join("src/deep");
    fs::create_dir_all(&deep).unwrap();
    for folder in [&clone.path(), &deep] {
        assert_eq!(preset(&clone, folder), ("refs".to_owned(), String::new()));
    }
    // Another repository inside, of whatever kind its .git is.
    fs::write(clone.path().join("src/.git"), "gitdir: elsewhere").unwrap();
    assert_ne!(preset(&clone, &deep).0, "refs");
    // No repository at all.
    fs::remove_dir(clone.path().join(".git")).unwrap();
    fs::remove_file(clone.path().join("src/.git")).unwrap();
    assert_eq!(preset(&clone, &clone.path()).0, "refs");
    assert_ne!(preset(&clone, &deep).0, "refs");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Checks that the file of the repository is not read, and that `why` is said.
#[track_caller]
fn is_skipped(clone: &Repository, why: &str) {
    let (found, said) = preset(clone, &clone.path().join("src"));
    assert_ne!(found, "refs", "{said}");
    for part in ["trimtab.toml is not read: ", why, "hint: "] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn project_file_writable_by_others_is_not_read() {
    let clone = Repository::with("preset = 'refs'\n");
    for mode in [0o664, 0o646, 0o666] {
        set_mode(&clone.file(), mode);
        is_skipped(&clone, "chmod go-w");
    }
    set_mode(&clone.file(), 0o644);
    set_mode(&clone.path(), 0o777);
    is_skipped(&clone, "everybody can write to the folder");
    set_mode(&clone.path(), 0o1777);
    assert_eq!(preset(&clone, &clone.path()).0, "refs");
    set_mode(&clone.path(), 0o755);
    set_mode(&clone.path().join("src"), 0o777);
    is_skipped(&clone, "everybody can write to the folder");
}

#[test]
fn project_file_must_be_a_regular_file() {
    let clone = Repository::with("");
    fs::write(clone.path().join("real.toml"), "preset = 'refs'\n").unwrap();
    fs::remove_file(clone.file()).unwrap();
    symlink(clone.path().join("real.toml"), clone.file()).unwrap();
    is_skipped(&clone, "it is a symbolic link");
    fs::remove_file(clone.file()).unwrap();
    let made = Command::new("mkfifo").arg(clone.file()).status();
    assert!(made.unwrap().success());
    is_skipped(&clone, "it is no regular file");
    fs::remove_file(clone.file()).unwrap();
    fs::create_dir(clone.file()).unwrap();
    is_skipped(&clone, "it is no regular file");
}

#[test]
fn project_file_of_another_user_is_not_read() {
    const SOMEBODY: u32 = 54_321;
    let own = |path: &Path, id: u32| std::os::unix::fs::chown(path, Some(id), None);
    let clone = Repository::with("preset = 'refs'\n");
    if own(&clone.file(), SOMEBODY).is_err() {
        say("skipped: only root can give files away");
        return;
    }
    is_skipped(&clone, "it belongs to user 54321");
    own(&clone.file(), 0).unwrap();
    own(&clone.path(), SOMEBODY).unwrap();
    is_skipped(&clone, "belongs to user 54321");
    own(&clone.path(), 0).unwrap();
    assert_eq!(preset(&clone, &clone.path()).0, "refs");
    let user = clone.user_file();
    fs::write(&user, "preset = 'turns'\n").unwrap();
    own(&user, SOMEBODY).unwrap();
    let done = clone.run(&["config", "show"]);
    assert_eq!(done.code, Some(2), "{}", done.stderr);
}

#[test]
fn user_files_writable_by_others_are_rejected() {
    let clone = Repository::with("");
    let user = clone.user_file();
    fs::write(&user, "preset = 'refs'\n").unwrap();
    assert_eq!(preset(&clone, &clone.path()).0, "refs");
    set_mode(&user, 0o666);
    let done = clone.run(&["config", "show"]);
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(done.stderr.contains("chmod go-w"), "{}", done.stderr);
    set_mode(&user, 0o644);
    // The catalogue that `models update` makes is such a file, too.
    let registry = clone.path().join("registry.json");
    fs::write(
        &registry,
        r#"{"m": {"max_input_tokens": 1000, "litellm_provider": "x"}}"#,
    )
    .unwrap();
    let update = clone.run(&["models", "update", "registry.json"]);
    assert_eq!(update.code, Some(0), "{}", update.stderr);
    let models = user.with_file_name("models.tsv");
    assert_eq!(clone.run(&["models", "show", "m"]).code, Some(0));
    set_mode(&models, 0o666);
    let mut named = clone.command(&["models", "show", "m"]);
    named.env("TRIMTAB_MODELS", &models);
    for done in [clone.run(&["models", "show", "m"]), ended(named)] {
        assert_eq!(done.code, Some(2), "{}", done.all());
        assert!(
            done.stderr.contains("others can write to it"),
            "{}",
            done.stderr
        );
    }
}

#[test]
fn documented_example_settings_are_valid() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/proxy.md");
    let text = fs::read_to_string(docs).unwrap();
    let example = text.split("```toml\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let clone = Repository::with("");
    let file = clone.path().join("example.toml");
    fs::write(&file, example).unwrap();
    let config = file.display().to_string();
    let doctor = [
        "doctor",
        "--offline",
        "--listen",
        "127.0.0.1:0",
        "--config",
        &config,
    ];
    let done = clone.run(&doctor);
    assert_eq!(done.code, Some(0), "{}", done.all());
    // And every section of it is in the schema and in the file to begin with.
    let schema: Value = serde_json::from_str(&clone.run(&["config", "schema"]).stdout).unwrap();
    let table: toml::Table = example.parse().unwrap();
    for key in table["proxy"].as_table().unwrap().keys() {
        let known = &schema["properties"]["proxy"]["properties"][key];
        assert!(known.is_object(), "{key} is not in the schema");
    }
    assert_eq!(clone.run(&["config", "init", "begun.toml"]).code, Some(0));
    let begun = fs::read_to_string(clone.path().join("begun.toml")).unwrap();
    for line in [
        "[proxy]",
        "[network]",
        "# listen = \"127.0.0.1:8787\"",
        "# retrieval = true",
    ] {
        assert!(
            begun.lines().any(|found| found == line),
            "{line} is not in\n{begun}"
        );
    }
    let shown = clone.run(&["config", "show", "proxy.listen"]);
    assert!(shown.stdout.contains("127.0.0.1:8787"), "{}", shown.stdout);
}

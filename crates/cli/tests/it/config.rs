//! `trimtab config`.

use serde_json::Value;

use crate::run::{Home, trimtab};

#[test]
fn variables_name_fields_of_tables_and_may_be_empty() {
    let home = Home::new();
    let show = |name: &str, value: &str| {
        let args = ["config", "show", "proxy.limits", "--json"];
        crate::run::finish(home.command().env(name, value).args(args), b"")
    };
    let done = show("TRIMTAB_PROXY_LIMITS_PLAN_MS", "77");
    let line: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(line["value"]["plan_ms"], 77, "{line}");
    let done = show("TRIMTAB_VIEWS_DEFAULT_MAX_BYTE", "77");
    assert!(done.stderr.contains("max_byte"), "{}", done.stderr);
    assert_eq!(done.code, 2);
    for name in ["TRIMTAB_PROXY_LIMITS_PLAN_MS", "TRIMTAB_STORE"] {
        let done = show(name, "");
        assert_eq!(done.code, 0, "{name}: {}", done.stderr);
    }
}

#[test]
fn config_init_writes_to_standard_output() {
    let home = Home::new();
    let mut command = home.command();
    command.current_dir(home.path());
    let done = crate::run::finish(command.args(["config", "init", "-"]), b"");
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    assert!(
        done.stdout.contains("preset = \"steady\""),
        "{}",
        done.stdout
    );
    assert!(!home.path().join("-").exists());
}

#[test]
fn config_show_prints_values_and_sources() {
    let home = Home::new();
    let file = home.file(
        "trimtab.toml",
        b"preset = 'refs'\n[recovery]\nretries = 1\n",
    );
    let mut command = home.command();
    command.env("TRIMTAB_COMPACTION_AUTO", "false").args([
        "config",
        "show",
        "--json",
        "--config",
        &file,
        "--set",
        "window=100000",
    ]);
    let done = crate::run::finish(&mut command, b"");
    assert_eq!(done.code, 0, "{}", done.stderr);
    let lines: Vec<Value> = done
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |key: &str| {
        let found = lines.iter().find(|line| line["key"] == key).unwrap();
        (
            found["value"].clone(),
            found["source"].as_str().unwrap().to_owned(),
            found["from"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(
        of("preset"),
        (Value::from("refs"), "named".to_owned(), file.clone())
    );
    assert_eq!(
        of("recovery.retries"),
        (Value::from(1), "named".to_owned(), file)
    );
    assert_eq!(
        of("window"),
        (Value::from(100_000), "flag".to_owned(), "--set".to_owned())
    );
    let auto = (
        Value::from(false),
        "environment".to_owned(),
        "TRIMTAB_COMPACTION_AUTO".to_owned(),
    );
    assert_eq!(of("compaction.auto"), auto);
    assert_eq!(of("repair").1, "preset");
}

#[test]
fn project_file_is_created_once_and_found_from_subfolders() {
    let home = Home::new();
    let below = home.path().join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::create_dir(home.path().join(".git")).unwrap();
    let run = |args: &[&str], folder: &std::path::Path| {
        let mut command = home.command();
        crate::run::finish(command.args(args).current_dir(folder), b"")
    };
    let init = ["config", "init", "--preset", "archive"];
    assert_eq!(run(&init, home.path()).code, 0);
    let again = run(&init, home.path());
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("already exists") && again.stderr.contains("--force"));
    assert_eq!(
        run(
            &["config", "init", "--force", "--preset", "turns"],
            home.path()
        )
        .code,
        0
    );
    let shown = run(&["config", "show", "preset"], &below);
    assert!(
        shown.stdout.contains("\"turns\"") && shown.stdout.contains("trimtab.toml"),
        "{}",
        shown.stdout
    );
}

#[test]
fn schema_is_valid_json() {
    let home = Home::new();
    let done = home.run(&["config", "schema"]);
    let schema: Value = serde_json::from_str(&done.stdout).unwrap();
    let auto = &schema["properties"]["compaction"]["properties"]["auto"];
    assert_eq!(auto["type"], "boolean");
    assert_eq!(auto["x-environment"], "TRIMTAB_COMPACTION_AUTO");
}

#[test]
fn invalid_setting_error_names_value_and_allowed_values() {
    let home = Home::new();
    for (set, expected) in [
        ("preset=tidy", "allowed: one of steady, refs"),
        (
            "compaction.when=usage >= 2 x window",
            "compaction.when[0] = \"usage >= 2 x window\" is not valid",
        ),
        (
            "recovery.retries=99",
            "recovery.retries = 99 is not valid; allowed: 0 to 10",
        ),
        (
            "compaction.auto=perhaps",
            "\"perhaps\" is not a valid value of compaction.auto",
        ),
        ("compactoin.auto=true", "did you mean compaction.auto?"),
        ("foo.bar=1", "`trimtab config show` lists every setting"),
    ] {
        let done = home.run(&["config", "show", "--set", set]);
        assert_eq!(done.code, 2, "{set}");
        assert!(done.stderr.contains(expected), "{set}: {}", done.stderr);
    }
    let none = home.run(&["config", "show", "zzz"]);
    assert_eq!(none.code, 2);
}

#[test]
fn config_show_rejects_what_the_proxy_rejects() {
    let home = Home::new();
    for (name, value, expected) in [
        (
            "LISTEN",
            "nonsense",
            "proxy.listen = 'nonsense' is not an address",
        ),
        ("LISTEN", "0.0.0.0:9000", "hint: to let other machines in"),
        (
            "PRESET",
            "tidy",
            "preset = tidy is not valid; allowed: steady",
        ),
        ("MODE", "of", "\"of\" is not a valid value of proxy.mode"),
        (
            "LIMITS_PLAN_MS",
            "soon",
            "proxy.limits.plan_ms: invalid type",
        ),
        ("TLS_CERT", "/no/file", "proxy.tls: unknown field `cert`"),
    ] {
        let mut command = home.command();
        command.env(format!("TRIMTAB_PROXY_{name}"), value);
        let done = crate::run::finish(command.args(["config", "show", "proxy"]), b"");
        assert_eq!(done.code, 2, "{name}={value}: {}", done.stdout);
        assert!(done.stderr.contains(expected), "{name}: {}", done.stderr);
    }
    // The values are shown, so that their source can be found.
    let mut command = home.command();
    command.env("TRIMTAB_PROXY_LISTEN", "nonsense");
    let done = crate::run::finish(command.args(["config", "show", "proxy.listen"]), b"");
    let row: Vec<&str> = done.stdout.split_whitespace().collect();
    assert_eq!(
        row,
        ["proxy.listen", "\"nonsense\"", "TRIMTAB_PROXY_LISTEN"]
    );
}

#[test]
fn store_can_be_set_in_a_file() {
    let home = Home::new();
    let store = home.path().join("elsewhere");
    let text = format!("store = '{}'\n", store.display());
    let file = home.file("own.toml", text.as_bytes());
    let mut command = home.command();
    command.env_remove("TRIMTAB_STORE");
    command.args(["output", "put", "--session", "s", "-", "--config", &file]);
    let done = crate::run::finish(&mut command, b"kept");
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(store.is_dir());
}

#[test]
fn switch_that_needs_a_value_is_explained() {
    let outcome = trimtab(&["config", "show", "--set", "window"]);
    assert_eq!(outcome.code, 2);
    let expected = "hint: write window=VALUE; allowed: a whole number from 0";
    assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
}

#[test]
fn doctor_prints_several_problems_in_several_lines() {
    let home = Home::new();
    let tokens = "[[proxy.tokens]]\nname = \"a\"\nsha256 = \"zz\"\n\
                  [[proxy.tokens]]\nname = \"b\"\nsha256 = \"yy\"\n";
    let file = home.file("tokens.toml", tokens.as_bytes());
    let shown = home.run(&["doctor", "--offline", "--config", &file]).stdout;
    assert!(!shown.contains("\\n"), "{shown}");
    let lines: Vec<&str> = shown.lines().map(str::trim).collect();
    let second = lines
        .iter()
        .find(|line| line.starts_with("tokens[1].sha256 = "));
    assert!(second.is_some(), "{shown}");
    // Both have the same hint.
    assert_eq!(shown.matches("hint: ").count(), 1, "{shown}");
}

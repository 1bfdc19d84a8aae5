use std::collections::BTreeSet;
use std::fs;

use trimtab_engine::policy::PRESETS;

use super::*;

fn with(flags: &[&str], environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let mut inputs = ConfigInputs {
        environment: environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..ConfigInputs::default()
    };
    for flag in flags {
        inputs.set(flag, "--set");
    }
    Config::load(&inputs)
}

fn refused(flags: &[&str], environment: &[(&str, &str)]) -> String {
    let error = with(flags, environment).unwrap_err();
    let hint = error.hint().map(|hint| format!(" | {hint}"));
    format!("{error}{}", hint.unwrap_or_default())
}

/// Settings of the library itself, not of its policy.
const OWN: [&str; 7] = [
    "store",
    "blobs",
    "model",
    "window",
    "max_output",
    "network.ca_file",
    "network.proxy",
];

#[test]
fn every_setting_of_a_policy_is_documented() {
    let mut found = BTreeSet::new();
    for preset in PRESETS {
        let table = Table::try_from(Policy::preset(preset.name).unwrap()).unwrap();
        names("", &table, &mut found);
    }
    let listed: BTreeSet<String> = KEYS.iter().map(|key| key.name.to_owned()).collect();
    let missing: Vec<_> = found.difference(&listed).collect();
    assert!(missing.is_empty(), "not in keys.rs: {missing:?}");
    // One that has no default is not in any table.
    let optional = ["ageing.placeholder.budget.tokens"];
    let gone = listed.difference(&found);
    let gone: Vec<_> = gone
        .filter(|name| !OWN.contains(&name.as_str()) && !optional.contains(&name.as_str()))
        .collect();
    assert!(gone.is_empty(), "no such setting: {gone:?}");
}

fn names(section: &str, table: &Table, found: &mut BTreeSet<String>) {
    for (name, value) in table {
        let name = if section.is_empty() {
            name.clone()
        } else {
            format!("{section}.{name}")
        };
        let key = KEYS.iter().find(|key| key.name == name);
        match value {
            Value::Table(inner) if key.is_none() => names(&name, inner, found),
            _ => {
                let fits = key.is_none_or(|key| key.kind.admits(value));
                assert!(fits, "{name} = {value} is not of its kind");
                found.insert(name);
            }
        }
    }
}

#[test]
fn the_stronger_source_wins() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a/b");
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    fs::create_dir_all(folder.path().join("config/trimtab")).unwrap();
    let user = folder.path().join("config/trimtab/config.toml");
    let project = folder.path().join("trimtab.toml");
    fs::write(
        &user,
        "preset = 'refs'\n[recovery]\nretries = 1\n[compaction]\nshow_ref = true\nkeep_percent = 30\n",
    )
    .unwrap();
    fs::write(
        &project,
        "[recovery]\nretries = 2\n[compaction]\nkeep_percent = 31\n",
    )
    .unwrap();
    let mut inputs = ConfigInputs {
        folder: Some(deep),
        environment: vec![
            (
                "XDG_CONFIG_HOME".into(),
                folder.path().join("config").display().to_string(),
            ),
            ("TRIMTAB_RECOVERY_RETRIES".into(), "3".into()),
        ],
        ..ConfigInputs::default()
    };
    let from = |inputs: &ConfigInputs, key: &str| {
        let config = Config::load(inputs).unwrap();
        let value = config.get(key).unwrap().to_string();
        (value, config.source(key).as_str())
    };
    assert_eq!(
        from(&inputs, "recovery.retries"),
        ("3".to_owned(), "environment")
    );
    assert_eq!(
        from(&inputs, "compaction.keep_percent"),
        ("31".to_owned(), "project")
    );
    assert_eq!(
        from(&inputs, "compaction.show_ref"),
        ("true".to_owned(), "user")
    );
    assert_eq!(from(&inputs, "preset"), ("\"refs\"".to_owned(), "user"));
    assert_eq!(from(&inputs, "repair"), ("\"strip\"".to_owned(), "preset"));
    inputs.set("recovery.retries=4", "--set");
    assert_eq!(from(&inputs, "recovery.retries"), ("4".to_owned(), "flag"));
}

#[test]
fn a_preset_of_a_stronger_source_changes_what_nobody_set() {
    let config = with(
        &["preset=turns"],
        &[("TRIMTAB_PRESET", "refs"), ("TRIMTAB_FIT", "no")],
    )
    .unwrap();
    assert_eq!(config.policy.preset, "turns");
    assert!(!config.policy.fit);
    assert_eq!(
        config.policy.estimate,
        Policy::preset("turns").unwrap().estimate
    );
}

#[test]
fn shapes_are_changed_in_part_or_as_a_whole() {
    let config = with(&["preset=refs", "views.default.max_bytes=1000"], &[]).unwrap();
    let shape = toml::to_string(&config.policy.views.default).unwrap();
    assert!(
        shape.contains("max_bytes = 1000") && shape.contains("head_lines"),
        "{shape}"
    );
    let config = with(
        &[
            "preset=refs",
            "views.default={ shape = 'prefix', chars = 9 }",
        ],
        &[],
    );
    let shape = toml::to_string(&config.unwrap().policy.views.default).unwrap();
    assert!(shape.contains("chars = 9"), "{shape}");
}

/// Settings that are refused: flags, variables, and pieces of the error.
type RefusedCase = (
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
);

const NEAREST: &str = "no setting compaction.atuo | did you mean compaction.auto?";

const REFUSED: [RefusedCase; 12] = [
    (&["compaction.atuo=false"], &[], &["--set: ", NEAREST]),
    (
        &[],
        &[("TRIMTAB_COMPACTION_ATUO", "false")],
        &["TRIMTAB_COMPACTION_ATUO: ", NEAREST],
    ),
    (
        &[],
        &[("TRIMTAB_PRESTE", "refs")],
        &["TRIMTAB_PRESTE: no setting preste | did you mean preset?"],
    ),
    (
        &["preset=refs", "views.default.max_byte=1"],
        &[],
        &["max_byte"],
    ),
    (
        &["compaction.auto=perhaps"],
        &[],
        &["--set: \"perhaps\" is not a valid value of compaction.auto | allowed: true or false"],
    ),
    (
        &[],
        &[("TRIMTAB_PRESET", "tidy")],
        &[
            "TRIMTAB_PRESET: \"tidy\" is not a valid value of preset",
            "steady, refs",
        ],
    ),
    (
        &["compaction.when=usage >= soon"],
        &[],
        &["'usage >= soon'", "a whole number"],
    ),
    (
        &["compaction.when=usage >= 1.5 x window"],
        &[],
        &["compaction.when[0]", "0 to 1"],
    ),
    (
        &["window=10000", "compaction.when=log >= window - 16384"],
        &[],
        &["a reserve below the window of 10000 tokens"],
    ),
    (
        &["window=10000", "max_output=20000"],
        &[],
        &["max_output = 20000"],
    ),
    (
        &["preset=refs", "ageing.placeholder.budget.min=70000"],
        &[],
        &["--set: ", "min no larger than max"],
    ),
    (
        &["preset=refs", "recovery.retries=99", "views.protected=[a"],
        &[],
        &["recovery.retries = 99", "views = [a"],
    ),
];

#[test]
fn errors_name_the_source_and_say_what_is_allowed() {
    for (flags, environment, expected) in REFUSED {
        let told = refused(flags, environment);
        for piece in expected {
            assert!(told.contains(piece), "{told}");
        }
    }
    for other in ["TRIMTAB_SOMETHING", "TRIMTAB_MODELS", "TRIMTAB_SESSION"] {
        assert!(with(&[], &[(other, "else")]).is_ok(), "{other}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken.toml");
    fs::write(&path, "preset = 'refs'\ncompaction = [\n").unwrap();
    let inputs = ConfigInputs {
        file: Some(path),
        ..ConfigInputs::default()
    };
    let told = Config::load(&inputs).unwrap_err().to_string();
    assert!(told.contains("broken.toml: line "), "{told}");
    let inputs = ConfigInputs {
        file: Some(folder.path().join("none.toml")),
        ..ConfigInputs::default()
    };
    assert!(
        Config::load(&inputs)
            .unwrap_err()
            .to_string()
            .contains("cannot read")
    );
}

#[test]
fn the_file_to_begin_with_is_read_as_the_preset() {
    for preset in PRESETS {
        let text = commented(KEYS, preset.name, &Table::new()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trimtab.toml");
        fs::write(&path, &text).unwrap();
        let inputs = ConfigInputs {
            file: Some(path.clone()),
            ..ConfigInputs::default()
        };
        assert_eq!(
            Config::load(&inputs).unwrap().policy,
            Policy::preset(preset.name).unwrap()
        );
        // And with every comment taken for a setting.
        let setting = |line: &str| {
            line.strip_prefix("# ")
                .filter(|line| line.contains(" = "))
                .map(str::to_owned)
        };
        let all: Vec<String> = text
            .lines()
            .map(|line| setting(line).unwrap_or_else(|| line.to_owned()))
            .collect();
        fs::write(&path, all.join("\n").replace("\ntokens = 0\n", "\n")).unwrap();
        assert_eq!(
            Config::load(&inputs).unwrap().policy,
            Policy::preset(preset.name).unwrap()
        );
    }
}

#[test]
fn the_schema_names_every_setting() {
    let schema = schema(KEYS, "refs", &Table::new()).unwrap();
    for key in KEYS {
        let path: Vec<String> = key
            .name
            .split('.')
            .map(|name| format!("/properties/{name}"))
            .collect();
        let found = schema.pointer(&path.concat()).unwrap();
        assert_eq!(found["description"], key.about);
    }
    assert_eq!(schema["properties"]["repair"]["default"], "strip");
}

/// What a project's file with this text is refused for.
fn refused_in_project(text: &str, more: &[SettingKey]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(PROJECT_FILE), text).unwrap();
    let inputs = ConfigInputs {
        folder: Some(folder.path().to_owned()),
        more: more.to_vec(),
        ..ConfigInputs::default()
    };
    match Config::load(&inputs) {
        Err(ConfigError::Project { keys, .. }) => keys,
        Err(other) => panic!("{other}"),
        Ok(_) => Vec::new(),
    }
}

#[test]
fn a_project_may_decide_about_windows_and_nothing_else() {
    let allowed = "preset = 'refs'\nwindow = 1000\n[views]\nprotected = ['x']\n";
    assert!(refused_in_project(allowed, &[]).is_empty());
    let keys = refused_in_project(
        "store = '/x'\nmodel = 'scripted:x'\n[compaction]\nmodel = 'm'\nauto = false\n\
         [compaction.prompt]\nsummary = 'x'\n[network]\nproxy = 'http://x'\n",
        &[],
    );
    let expected = [
        "compaction.model",
        "compaction.prompt.summary",
        "model",
        "network.proxy",
        "store",
    ];
    assert_eq!(
        BTreeSet::from_iter(keys),
        expected.map(str::to_owned).into()
    );
}

#[test]
fn a_project_may_not_hide_a_setting_in_a_table() {
    const MORE: &[SettingKey] = &[
        SettingKey::new("own.new", SettingKind::Number, ""),
        SettingKey::new("own.policies", SettingKind::Table, "").in_project(InProject::Policies),
        SettingKey::new("own.rules", SettingKind::Table, "")
            .in_project(InProject::Fields(&["name", "window"])),
    ];
    let refused = |text: &str| refused_in_project(text, MORE);
    assert_eq!(refused("[own]\nnew = 1\n"), ["own.new"]);
    assert!(refused("[own.policies.a]\npreset = 'refs'\nwindow = 1\n").is_empty());
    let nested = "[own.policies.a.compaction]\nmodel = 'm'\nauto = true\n";
    assert_eq!(refused(nested), ["own.policies.a.compaction.model"]);
    let deep = "[own.policies.a.compaction.prompt]\nsummary = 'x'\n";
    assert_eq!(refused(deep), ["own.policies.a.compaction.prompt.summary"]);
    assert!(refused("[[own.rules]]\nname = 'a'\nwindow = 1\n").is_empty());
    assert_eq!(
        refused("[[own.rules]]\nname = 'a'\nmode = 'x'\n"),
        ["own.rules.mode"]
    );
}

#[test]
fn the_rules_of_a_project_stand_behind_those_of_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let user = folder.path().join("config/trimtab/config.toml");
    fs::create_dir_all(user.parent().unwrap()).unwrap();
    fs::write(&user, "[[own.rules]]\nname = 'user'\n").unwrap();
    let project = folder.path().join(PROJECT_FILE);
    fs::write(&project, "[[own.rules]]\nname = 'project'\n").unwrap();
    let rules = SettingKey::new("own.rules", SettingKind::Table, "")
        .in_project(InProject::Fields(&["name"]));
    let config = folder.path().join("config").display().to_string();
    let inputs = ConfigInputs {
        folder: Some(folder.path().to_owned()),
        environment: vec![("XDG_CONFIG_HOME".into(), config)],
        more: vec![rules],
        ..ConfigInputs::default()
    };
    let rules = Config::load(&inputs).unwrap();
    let rules = rules.get("own.rules").unwrap().as_array().unwrap();
    let names: Vec<_> = rules
        .iter()
        .filter_map(|rule| rule["name"].as_str())
        .collect();
    assert_eq!(names, ["user", "project"]);
}

#[test]
fn keys_and_passwords_are_not_shown() {
    let more = [
        SettingKey::new("own.token", SettingKind::Text, ""),
        SettingKey::new("own.list", SettingKind::Table, ""),
    ];
    let mut inputs = ConfigInputs {
        more: more.to_vec(),
        ..ConfigInputs::default()
    };
    inputs.set("network.proxy=me:hidden@proxy:3128", "--set");
    inputs.set("own.token=hidden", "--set");
    inputs.set(
        "own.list=[{url = 'http://me:hidden@host', key = 'hidden', n = 1}]",
        "--set",
    );
    let config = Config::load(&inputs).unwrap();
    let shown = format!("{:?} {:?}", config.settings(), config.network);
    assert!(shown.contains("***@proxy:3128") && shown.contains("http://***@host"));
    assert!(!shown.contains("hidden"), "{shown}");
    inputs.set("own.list=http://me:hidden@host", "--set");
    let told = Config::load(&inputs).unwrap_err().to_string();
    assert!(!told.contains("hidden"), "{told}");
}

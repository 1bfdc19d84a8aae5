use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;

/// A machine with variables and files, for one client.
#[derive(Default)]
struct FakeMachine {
    variables: Vec<(&'static str, &'static str)>,
    files: Vec<(&'static str, String)>,
    /// What the client prints when it is asked.
    printed: Option<String>,
    has_upstreams: bool,
    args: Vec<&'static str>,
}

impl FakeMachine {
    fn with(variables: &[(&'static str, &'static str)]) -> Self {
        let variables = [&[("HOME", "/home/me")], variables].concat();
        Self {
            variables,
            ..Self::default()
        }
    }

    fn file(mut self, path: &'static str, text: impl Into<String>) -> Self {
        self.files.push((path, text.into()));
        self
    }

    fn plan(&self, command: &str) -> Result<ClientSetup, Failure> {
        let variable = |name: &str| {
            let found = self.variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let read = |path: &Path| {
            let found = self
                .files
                .iter()
                .find(|(known, _)| Path::new(known) == path);
            found.map(|(_, text)| text.clone())
        };
        let surroundings = ClientSurroundings {
            variable: &variable,
            read: &read,
            ask: &|_| self.printed.clone(),
            has_upstreams: self.has_upstreams,
        };
        let args: Vec<OsString> = self.args.iter().map(OsString::from).collect();
        setup(command, &args, &[], &surroundings)
    }

    fn setup(&self, command: &str) -> ClientSetup {
        let plan = self.plan(command).unwrap_or_else(|_| panic!("{command}"));
        plan.at("http://127.0.0.1:9").unwrap().0
    }
}

fn of(command: &str, set: &[(&'static str, &'static str)]) -> ClientSetup {
    FakeMachine::with(set).setup(command)
}

fn urls(setup: &ClientSetup) -> Vec<&str> {
    setup.upstreams.iter().map(|one| one.url.as_str()).collect()
}

fn value<'s>(setup: &'s ClientSetup, name: &str) -> &'s str {
    let found = setup.env.iter().find(|(known, _)| known == name);
    &found.unwrap_or_else(|| panic!("{name} is not set")).1
}

/// The upstream that an address at the proxy leads to.
#[track_caller]
fn leads_to(setup: &ClientSetup, address: &str) -> String {
    let path = address.strip_prefix("http://127.0.0.1:9").unwrap();
    let fits = |one: &&UpstreamConfig| path == one.prefix;
    let found = setup.upstreams.iter().find(fits);
    found.unwrap_or_else(|| panic!("{address}")).url.clone()
}

#[test]
fn clients_are_recognised_with_a_path() {
    for command in ["claude", "/usr/local/bin/claude", "claude.exe"] {
        let setup = of(command, &[]);
        assert_eq!(value(&setup, "ANTHROPIC_BASE_URL"), "http://127.0.0.1:9");
        assert_eq!(setup.env.len(), 1, "{command}");
        assert_eq!(
            urls(&setup),
            ["https://api.anthropic.com", "https://api.openai.com"]
        );
    }
}

#[test]
fn claude_follows_an_address_of_its_settings_through_the_proxy() {
    let settings = json!({"env": {"ANTHROPIC_BASE_URL": "https://gw.example"}});
    let machine =
        FakeMachine::with(&[]).file("/home/me/.claude/settings.json", settings.to_string());
    let setup = machine.setup("claude");
    let given: Value = serde_json::from_str(&setup.args[1]).unwrap();
    let address = given["env"]["ANTHROPIC_BASE_URL"].as_str().unwrap();
    assert_eq!(setup.args[0], "--settings");
    assert_eq!(leads_to(&setup, address), "https://gw.example");
    assert!(
        FakeMachine::with(&[("CLAUDE_CODE_USE_BEDROCK", "1")])
            .plan("claude")
            .is_err()
    );
}

#[test]
fn codex_keeps_its_provider() {
    let setup = of("codex", &[("OPENAI_API_KEY", "k")]);
    assert_eq!(
        setup.args,
        ["-c", r#"openai_base_url="http://127.0.0.1:9/v1""#]
    );
    let own = "model_provider = 'my corp'\n[model_providers.'my corp']\nbase_url = 'https://gw.example/v1'\n";
    let machine = FakeMachine::with(&[]).file("/home/me/.codex/config.toml", own);
    let setup = machine.setup("codex");
    let flag = r#"model_providers."my corp".base_url=""#;
    let address = setup.args[1].strip_prefix(flag).unwrap();
    assert_eq!(
        leads_to(&setup, address.trim_end_matches('"')),
        "https://gw.example/v1"
    );
}

#[test]
fn codex_with_a_login_uses_the_account_server() {
    let login = json!({"OPENAI_API_KEY": null, "tokens": {"access_token": "t"}});
    let machine = FakeMachine::with(&[]).file("/home/me/.codex/auth.json", login.to_string());
    let setup = machine.setup("codex");
    let address = setup.args[1].strip_prefix("openai_base_url=\"").unwrap();
    let address = address.trim_end_matches('"');
    assert_eq!(
        leads_to(&setup, address),
        "https://chatgpt.com/backend-api/codex"
    );
}

#[test]
fn opencode_sends_every_provider_through_the_proxy() {
    let own = json!({"provider": {"mine": {"options": {"baseURL": "http://h:1/v1"}}, "groq": {}}});
    let content = r#"{"theme":"dark","provider":{"mine":{"name":"x"}}}"#;
    let machine = FakeMachine {
        printed: Some(own.to_string()),
        ..FakeMachine::with(&[("OPENCODE_CONFIG_CONTENT", content)])
    };
    let setup = machine.setup("opencode");
    let given: Value = serde_json::from_str(value(&setup, "OPENCODE_CONFIG_CONTENT")).unwrap();
    let base = |name: &str| given["provider"][name]["options"]["baseURL"].as_str();
    assert_eq!(base("openai"), Some("http://127.0.0.1:9/v1"));
    assert_eq!(leads_to(&setup, base("mine").unwrap()), "http://h:1/v1");
    assert_eq!(base("groq"), None);
    assert_eq!(
        (&given["theme"], &given["provider"]["mine"]["name"]),
        (&json!("dark"), &json!("x"))
    );
    // It is not asked, which takes seconds, where no file names an address.
    let quiet = FakeMachine {
        printed: Some("?".to_owned()),
        ..FakeMachine::with(&[])
    };
    let given = quiet.setup("opencode");
    assert!(value(&given, "OPENCODE_CONFIG_CONTENT").contains("anthropic"));
}

#[test]
fn clients_with_files_get_copies_with_other_addresses() {
    let pi = json!({"providers": {"mine": {"baseUrl": "http://h:1/v1"}}});
    let setup = FakeMachine::with(&[])
        .file("/home/me/.pi/agent/models.json", pi.to_string())
        .setup("pi");
    let (name, text) = &setup.files[0];
    assert!(setup.args[1].ends_with(name.as_str()), "{:?}", setup.args);
    let line = text.lines().find(|line| line.contains("\"mine\"")).unwrap();
    let address = line.split('"').nth(5).unwrap();
    assert_eq!(leads_to(&setup, address), "http://h:1/v1");

    let droid = json!({"customModels": [{"model": "m", "baseUrl": "http://h:2", "apiKey": "k"}], "theme": "x"});
    let setup = FakeMachine::with(&[])
        .file("/home/me/.factory/settings.json", droid.to_string())
        .setup("droid");
    let given: Value = serde_json::from_str(&setup.files[0].1).unwrap();
    let model = &given["customModels"][0];
    assert_eq!(
        leads_to(&setup, model["baseUrl"].as_str().unwrap()),
        "http://h:2"
    );
    assert_eq!((&model["apiKey"], given.get("theme")), (&json!("k"), None));
}

#[test]
fn clients_with_settings_get_copies_with_other_addresses() {
    let qwen = json!({"modelProviders": {"openai": [{"id": "m", "baseUrl": "http://h:7/v1"}]}});
    let setup = FakeMachine::with(&[])
        .file("/home/me/.qwen/settings.json", qwen.to_string())
        .setup("qwen");
    let given: Value = serde_json::from_str(&setup.files[0].1).unwrap();
    let address = given["modelProviders"]["openai"][0]["baseUrl"].as_str();
    assert_eq!(leads_to(&setup, address.unwrap()), "http://h:7/v1");
    assert!(value(&setup, "QWEN_CODE_SYSTEM_SETTINGS_PATH").ends_with("settings.json"));

    let cline = json!({"providers": {"o": {"settings": {"baseUrl": "http://h:3/v1"}}}});
    let file = "/home/me/.cline/data/settings/providers.json";
    let setup = FakeMachine::with(&[])
        .file(file, cline.to_string())
        .setup("cline");
    let given: Value = serde_json::from_str(&setup.files[0].1).unwrap();
    let address = given["providers"]["o"]["settings"]["baseUrl"]
        .as_str()
        .unwrap();
    assert_eq!(leads_to(&setup, address), "http://h:3/v1");
    assert!(value(&setup, "CLINE_PROVIDER_SETTINGS_PATH").ends_with("providers.json"));

    let vibe = "[[providers]]\nname = \"m\"\napi_base = \"http://h:4/v1\"\n";
    let setup = FakeMachine::with(&[])
        .file("/home/me/.vibe/config.toml", vibe)
        .setup("vibe");
    let given: Value = serde_json::from_str(value(&setup, "VIBE_PROVIDERS")).unwrap();
    assert_eq!(
        leads_to(&setup, given[0]["api_base"].as_str().unwrap()),
        "http://h:4/v1"
    );

    let yaml = "models:\n  - provider: openai\n    apiBase: http://h:5/v1\n";
    let machine = FakeMachine {
        args: vec!["--config", "my.yaml", "-p", "hello"],
        ..FakeMachine::with(&[]).file("my.yaml", yaml)
    };
    let setup = machine.setup("cn");
    assert_eq!(setup.user_args, ["-p", "hello"]);
    let address = setup.files[0].1.trim_end().rsplit(' ').next().unwrap();
    assert_eq!(leads_to(&setup, address), "http://h:5/v1");
}

#[test]
fn client_without_an_address_gives_a_hint() {
    for command in ["copilot", "cline", "droid", "vibe", "cn"] {
        let refused = FakeMachine::with(&[]).plan(command);
        assert!(refused.is_err(), "{command}");
    }
    let set = [("COPILOT_PROVIDER_BASE_URL", "http://h:6/v1")];
    let setup = of("copilot", &set);
    assert_eq!(leads_to(&setup, value(&setup, set[0].0)), "http://h:6/v1");
}

#[test]
fn own_upstreams_override_addresses_of_the_client() {
    let machine = FakeMachine {
        has_upstreams: true,
        ..FakeMachine::with(&[("COPILOT_PROVIDER_BASE_URL", "http://h:6/v1")])
    };
    let setup = machine.setup("copilot");
    assert_eq!(
        value(&setup, "COPILOT_PROVIDER_BASE_URL"),
        "http://127.0.0.1:9/v1"
    );
}

#[test]
fn temporary_files_are_private_and_removed() {
    let machine = FakeMachine::with(&[]);
    let plan = machine.plan("pi").unwrap_or_else(|_| panic!("pi"));
    let (setup, folder) = plan.at("http://127.0.0.1:9").unwrap();
    let file = PathBuf::from(&setup.args[1]);
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .contains("http://127.0.0.1:9/v1")
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = file
            .parent()
            .unwrap()
            .metadata()
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0);
    }
    drop(folder);
    assert!(!file.exists());
}

#[test]
fn unknown_command_gets_the_usual_variables() {
    for command in ["python3", "qwen", "aider"] {
        let setup = of(command, &[]);
        let names: Vec<&str> = setup.env.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, BASES.map(|(name, _)| name), "{command}");
    }
    let asked = |text: &str| {
        let nothing = ClientSurroundings {
            variable: &|_| None,
            read: &|_| None,
            ask: &|_| None,
            has_upstreams: false,
        };
        setup("python3", &[], &[text.to_owned()], &nothing)
    };
    let setup = asked("MY_URL={url}/x").unwrap_or_else(|_| panic!("asked"));
    let setup = setup.at("http://h").unwrap().0;
    assert_eq!(setup.env, [("MY_URL".to_owned(), "http://h/x".to_owned())]);
    assert!(asked("oops").is_err());
}

#[test]
fn address_in_the_environment_becomes_the_upstream() {
    let anthropic = Provider::Anthropic.url();
    let gateway = [("ANTHROPIC_BASE_URL", "https://gw.example/anthropic/")];
    assert_eq!(
        urls(&of("claude", &gateway)),
        ["https://gw.example/anthropic/", Provider::OpenAi.url()]
    );
    for name in ["OPENAI_API_BASE", "OPENAI_BASE_URL"] {
        for command in ["aider", "qwen", "codex"] {
            let local = [(name, "http://127.0.0.1:11434/v1")];
            let setup = of(command, &local);
            assert_eq!(urls(&setup), [anthropic, "http://127.0.0.1:11434/v1"]);
        }
    }
    let google = [("GOOGLE_GEMINI_BASE_URL", "https://gw.example/google")];
    assert_eq!(
        urls(&of("gemini", &google)),
        [
            "https://gw.example/google",
            anthropic,
            Provider::OpenAi.url()
        ]
    );
}

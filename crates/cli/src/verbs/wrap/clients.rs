//! How each client is pointed at the proxy: by its environment or its flags, never by a file.

use std::path::Path;

use serde_json::json;
use trimtab_model::Dialect;
use trimtab_proxy::{ProxyConfig, Upstream};

use crate::exit::Failure;

/// What stands for the proxy's address.
const URL: &str = "{url}";
/// Where Gemini's own interface is; it passes through, because we do not speak it.
const GEMINI: &str = "https://generativelanguage.googleapis.com";
/// The path under which it is reached.
const GEMINI_PATH: &str = "/gemini";
/// Variables that say where a client sends its requests, and what it sends there.
const BASES: [(&str, &[Dialect]); 3] = [
    ("ANTHROPIC_BASE_URL", &[Dialect::Messages]),
    ("OPENAI_BASE_URL", &[Dialect::Chat, Dialect::Responses]),
    ("OPENAI_API_BASE", &[Dialect::Chat, Dialect::Responses]),
];

/// How a client is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Setup {
    /// Variables to set.
    pub(super) env: Vec<(String, String)>,
    /// Arguments to put before the user's own.
    pub(super) args: Vec<String>,
    /// Where the proxy sends requests, where nothing else says so; none for the providers.
    pub(super) upstreams: Vec<Upstream>,
}

/// How the client `command` is run; `asked` are variables that the user wants set instead,
/// `variable` gives those that are set now.
pub(super) fn setup(
    command: &str,
    asked: &[String],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Setup, Failure> {
    let name = Path::new(command).file_stem();
    let name = name.and_then(|name| name.to_str()).unwrap_or(command);
    let mut setup = if asked.is_empty() {
        known(name, &variable)
    } else {
        Setup {
            env: asked
                .iter()
                .map(|text| parse(text))
                .collect::<Result<_, _>>()?,
            ..Setup::default()
        }
    };
    setup.upstreams.extend(upstreams(&variable));
    Ok(setup)
}

fn known(name: &str, variable: &impl Fn(&str) -> Option<String>) -> Setup {
    let openai = format!("{URL}/v1");
    let env = |pairs: &[(&str, &str)]| Setup {
        env: pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..Setup::default()
    };
    match name {
        "claude" => env(&[("ANTHROPIC_BASE_URL", URL)]),
        "codex" => Setup {
            args: codex(&openai, variable("OPENAI_API_KEY").is_some()),
            ..Setup::default()
        },
        "opencode" => env(&[("OPENCODE_CONFIG_CONTENT", &opencode(&openai))]),
        "aider" => env(&[
            ("OPENAI_API_BASE", &openai),
            ("ANTHROPIC_API_BASE", URL),
            ("ANTHROPIC_BASE_URL", URL),
        ]),
        "gemini" => Setup {
            upstreams: gemini(),
            ..env(&[("GOOGLE_GEMINI_BASE_URL", &format!("{URL}{GEMINI_PATH}"))])
        },
        // The names that the official libraries read.
        _ => env(&[
            ("ANTHROPIC_BASE_URL", URL),
            ("OPENAI_BASE_URL", &openai),
            ("OPENAI_API_BASE", &openai),
        ]),
    }
}

/// A provider of its own for Codex, which reads no variable for its base address.
fn codex(base: &str, has_key: bool) -> Vec<String> {
    let mut settings = vec![
        r#"model_provider="trimtab""#.to_owned(),
        r#"model_providers.trimtab.name="trimtab""#.to_owned(),
        format!("model_providers.trimtab.base_url=\"{base}\""),
        r#"model_providers.trimtab.wire_api="responses""#.to_owned(),
    ];
    settings.push(if has_key {
        r#"model_providers.trimtab.env_key="OPENAI_API_KEY""#.to_owned()
    } else {
        "model_providers.trimtab.requires_openai_auth=true".to_owned()
    });
    let flags = settings.into_iter();
    flags
        .flat_map(|setting| ["-c".to_owned(), setting])
        .collect()
}

/// Settings for opencode, which lays them over those of its files.
fn opencode(openai: &str) -> String {
    let at = |url: &str| json!({"options": {"baseURL": url}});
    json!({"provider": {"anthropic": at(openai), "openai": at(openai)}}).to_string()
}

/// Gemini under its path; everything else where it goes anyway.
fn gemini() -> Vec<Upstream> {
    let mut all = vec![Upstream {
        prefix: GEMINI_PATH.to_owned(),
        ..Upstream::new("gemini", GEMINI)
    }];
    all.extend(ProxyConfig::default().upstreams());
    all
}

/// Where the environment sends requests now: there the proxy sends them, too.
fn upstreams(variable: &impl Fn(&str) -> Option<String>) -> Vec<Upstream> {
    let mut found: Vec<Upstream> = Vec::new();
    for (name, dialects) in BASES {
        let taken = |upstream: &Upstream| upstream.dialects == dialects;
        let Some(url) = variable(name).filter(|url| !url.is_empty()) else {
            continue;
        };
        if !found.iter().any(taken) {
            let url = url.trim_end_matches('/');
            // Paths that reach us have the version already.
            let url = url.strip_suffix("/v1").unwrap_or(url);
            found.push(Upstream::new(name, url).for_dialects(dialects.iter().copied()));
        }
    }
    if found.is_empty() {
        return found;
    }
    let missing = ProxyConfig::default().upstreams().into_iter();
    let missing: Vec<_> = missing
        .filter(|provider| !found.iter().any(|set| set.dialects == provider.dialects))
        .collect();
    found.extend(missing);
    found
}

fn parse(text: &str) -> Result<(String, String), Failure> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Failure::input(
            format!("--env {text}: no name and value"),
            "write --env NAME=VALUE, with {url} where the proxy's address belongs",
        )),
    }
}

impl Setup {
    /// The same for a proxy at `url`.
    pub(super) fn at(mut self, url: &str) -> Self {
        for (_, value) in &mut self.env {
            *value = value.replace(URL, url);
        }
        for value in &mut self.args {
            *value = value.replace(URL, url);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str, set: &[(&str, &str)]) -> Setup {
        let variable = |name: &str| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        setup(command, &[], variable)
            .unwrap()
            .at("http://127.0.0.1:9")
    }

    #[test]
    fn clients_are_known_by_name_wherever_they_are() {
        for command in ["claude", "/usr/local/bin/claude", "claude.exe"] {
            let setup = of(command, &[]);
            let expected = (
                "ANTHROPIC_BASE_URL".to_owned(),
                "http://127.0.0.1:9".to_owned(),
            );
            assert_eq!(setup.env, [expected], "{command}");
            assert!(setup.upstreams.is_empty());
        }
        let codex = of("codex", &[("OPENAI_API_KEY", "k")]);
        assert!(
            codex.args.contains(
                &r#"model_providers.trimtab.base_url="http://127.0.0.1:9/v1""#.to_owned()
            )
        );
        assert!(codex.args.iter().any(|arg| arg.contains("OPENAI_API_KEY")));
        assert!(!codex.args.iter().any(|arg| arg.contains("=\"k\"")));
        let opencode = of("opencode", &[]);
        let config: serde_json::Value = serde_json::from_str(&opencode.env[0].1).unwrap();
        assert_eq!(
            config["provider"]["openai"]["options"]["baseURL"],
            "http://127.0.0.1:9/v1"
        );
    }

    #[test]
    fn any_command_gets_what_the_libraries_read() {
        let names: Vec<String> = of("python3", &[])
            .env
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(
            names,
            ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE"]
        );
        let asked = ["MY_URL={url}/x".to_owned()];
        let setup = setup("python3", &asked, |_| None).unwrap().at("http://h");
        assert_eq!(setup.env, [("MY_URL".to_owned(), "http://h/x".to_owned())]);
        assert!(super::setup("python3", &["oops".to_owned()], |_| None).is_err());
    }

    #[test]
    fn an_address_that_is_set_becomes_the_upstream() {
        let setup = of(
            "claude",
            &[("ANTHROPIC_BASE_URL", "https://gw.example/anthropic/")],
        );
        let urls: Vec<&str> = setup.upstreams.iter().map(|one| one.url.as_str()).collect();
        assert_eq!(
            urls,
            ["https://gw.example/anthropic", "https://api.openai.com"]
        );
        let setup = of("aider", &[("OPENAI_API_BASE", "http://127.0.0.1:11434/v1")]);
        let urls: Vec<&str> = setup.upstreams.iter().map(|one| one.url.as_str()).collect();
        assert_eq!(
            urls,
            ["http://127.0.0.1:11434", "https://api.anthropic.com"]
        );
    }
}

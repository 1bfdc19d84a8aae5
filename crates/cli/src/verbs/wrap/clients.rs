//! How each client is pointed at the proxy: by its environment or its flags, never by a file.

use std::path::Path;

use serde_json::json;
use trimtab::provider::Provider;
use trimtab_proxy::Upstream;

use crate::exit::Failure;
use crate::proxy::destinations::GEMINI;

/// What stands for the proxy's address.
const URL: &str = "{url}";
/// The path under which Gemini's own interface is reached; it passes through, because we do not
/// speak it.
const GEMINI_PATH: &str = "/gemini";
/// The variable that names another address for it.
const GEMINI_VARIABLE: &str = "GOOGLE_GEMINI_BASE_URL";
/// Variables that say where a client sends its requests, the strongest first.
const BASES: [(&str, Provider); 4] = [
    ("ANTHROPIC_BASE_URL", Provider::Anthropic),
    ("ANTHROPIC_API_BASE", Provider::Anthropic),
    ("OPENAI_BASE_URL", Provider::OpenAi),
    ("OPENAI_API_BASE", Provider::OpenAi),
];

/// How a client is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Setup {
    /// Variables to set.
    pub(super) env: Vec<(String, String)>,
    /// Arguments to put before the user's own.
    pub(super) args: Vec<String>,
    /// Where the proxy sends requests, where nothing else says so.
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
        "gemini" => Setup {
            upstreams: vec![gemini(variable)],
            ..env(&[(GEMINI_VARIABLE, &format!("{URL}{GEMINI_PATH}"))])
        },
        // A client reads whichever it knows: all of them must lead to us.
        _ => env(&BASES.map(|(name, provider)| match provider {
            Provider::Anthropic => (name, URL),
            Provider::OpenAi => (name, openai.as_str()),
        })),
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

/// Gemini under its path.
fn gemini(variable: &impl Fn(&str) -> Option<String>) -> Upstream {
    let set = variable(GEMINI_VARIABLE).filter(|url| !url.is_empty());
    let (name, url) = match &set {
        Some(url) => (GEMINI_VARIABLE, url.as_str()),
        None => ("gemini", GEMINI),
    };
    Upstream {
        prefix: GEMINI_PATH.to_owned(),
        ..Upstream::new(name, url)
    }
}

/// Where the environment sends requests now: there the proxy sends them, too.
fn upstreams(variable: &impl Fn(&str) -> Option<String>) -> Vec<Upstream> {
    let set = |provider: Provider| {
        let names = BASES.into_iter().filter(|(_, of)| *of == provider);
        let mut urls = names.filter_map(|(name, _)| {
            let url = variable(name).filter(|url| !url.is_empty())?;
            Some(Upstream::new(name, url).for_dialects(provider.dialects().iter().copied()))
        });
        urls.next()
    };
    Provider::ALL
        .into_iter()
        .map(|provider| set(provider).unwrap_or_else(|| Upstream::of_provider(provider)))
        .collect()
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
            let urls: Vec<&str> = setup.upstreams.iter().map(|one| one.url.as_str()).collect();
            assert_eq!(
                urls,
                ["https://api.anthropic.com", "https://api.openai.com"]
            );
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
        assert_eq!(names, BASES.map(|(name, _)| name));
        let asked = ["MY_URL={url}/x".to_owned()];
        let setup = setup("python3", &asked, |_| None).unwrap().at("http://h");
        assert_eq!(setup.env, [("MY_URL".to_owned(), "http://h/x".to_owned())]);
        assert!(super::setup("python3", &["oops".to_owned()], |_| None).is_err());
    }

    #[test]
    fn an_address_that_is_set_becomes_the_upstream() {
        let urls = |command: &str, set: &[(&str, &str)]| {
            let upstreams = of(command, set).upstreams.into_iter();
            upstreams.map(|one| one.url).collect::<Vec<_>>()
        };
        let anthropic = Provider::Anthropic.url();
        let gateway = [("ANTHROPIC_BASE_URL", "https://gw.example/anthropic/")];
        assert_eq!(
            urls("claude", &gateway),
            ["https://gw.example/anthropic/", Provider::OpenAi.url()]
        );
        for name in ["OPENAI_API_BASE", "OPENAI_BASE_URL"] {
            let local = [(name, "http://127.0.0.1:11434/v1")];
            assert_eq!(
                urls("aider", &local),
                [anthropic, "http://127.0.0.1:11434/v1"]
            );
        }
        let google = [("GOOGLE_GEMINI_BASE_URL", "https://gw.example/google")];
        assert_eq!(
            urls("gemini", &google),
            [
                "https://gw.example/google",
                anthropic,
                Provider::OpenAi.url()
            ]
        );
    }
}

//! Resolves the settings of the proxy: the table `[proxy]`, the policy around it, and the flags.

use std::net::SocketAddr;

use toml::{Table, Value};
use trimtab::config::{Config, SettingSource};
use trimtab::network::OutboundNetwork;
use trimtab_engine::policy::Policy;
use trimtab_model::Dialect;
use trimtab_proxy::{ModelRule, ProxyConfig, ProxyMode, UpstreamConfig};

use crate::common::CommonArgs;
use crate::common::StoreArgs;
use crate::exit::Failure;
use crate::proxy::config_failure;
use crate::proxy::listen::parse_listen;
use crate::settings;
use crate::ui::number::parse_tokens;

/// The name of the policy that consists of the settings outside the table `[proxy]`.
const OWN_POLICY: &str = "settings";

/// Flags that every verb with a proxy takes.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Proxy options")]
pub struct ProxyArgs {
    /// The server for requests, instead of proxy.upstreams; with DIALECT (chat, responses,
    /// messages) only for that dialect. Can be repeated
    #[arg(long, value_name = "[DIALECT=]URL")]
    pub upstream: Vec<String>,
    /// The preset to use
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Only report what the proxy would do; requests are sent unchanged
    #[arg(long)]
    pub observe: bool,
    /// The window of every model in tokens, instead of the catalogue's
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub window: Option<u64>,
}

/// The resolved settings of one run.
#[derive(Clone, Debug)]
pub struct ResolvedProxy {
    /// The settings of the proxy.
    pub proxy: ProxyConfig,
    /// The place of the store.
    pub store: StoreArgs,
    /// All settings, with their sources.
    pub config: Config,
    /// The source of the upstream setting; if unset, the name of each upstream.
    pub upstreams_from: Option<String>,
    /// Makes connections to other machines.
    pub outgoing: OutboundNetwork,
}

/// Resolves settings: flags, environment, project file, user file, defaults.
pub fn resolve(
    args: &ProxyArgs,
    listen: Option<SocketAddr>,
    common: &CommonArgs,
) -> Result<ResolvedProxy, Failure> {
    // Flags become settings, so that they are validated and reported like all others.
    let mut named: Vec<(&str, String, &str)> = Vec::new();
    named.extend(listen.map(|listen| ("proxy.listen", listen.to_string(), "--listen")));
    named.extend(args.preset.clone().map(|name| ("preset", name, "--preset")));
    if args.observe {
        named.push(("proxy.mode", "observe".to_owned(), "--observe"));
    }
    let store = common.store.store.as_ref();
    named.extend(store.map(|path| ("store", path.display().to_string(), "--store")));
    let blobs = common.store.blobs.clone();
    named.extend(blobs.map(|url| ("blobs", url, "--blobs")));
    let config = settings::load(common, &named)?;
    let mut proxy = of_config(&config, args.preset.is_some())?;
    let mut from = config.source("proxy.upstreams").to_string();
    if !args.upstream.is_empty() {
        let given = args.upstream.iter().enumerate();
        let given = given.map(|(at, text)| parse_upstream(text, at));
        proxy.upstreams = given.collect::<Result<_, _>>()?;
        "--upstream".clone_into(&mut from);
    }
    // Insert at the front: the first rule that matches a model wins.
    if let Some(window) = args.window {
        proxy.models.insert(0, rule(window));
    }
    // The settings `window` and `max_output` apply to every model without a rule of its own.
    if config.window.is_some() || config.max_output.is_some() {
        proxy.models.push(ModelRule::for_all());
    }
    for rule in &mut proxy.models {
        rule.window = rule.window.or(config.window);
        rule.max_output = rule.max_output.or(config.max_output);
    }
    proxy.check().map_err(|error| config_failure(&error))?;
    let store = StoreArgs {
        store: config.store.clone(),
        blobs: config.blobs.clone(),
    };
    Ok(ResolvedProxy {
        proxy,
        store,
        outgoing: settings::outgoing(&config)?,
        config,
        upstreams_from: Some(from),
    })
}

/// A rule that sets the window of every model.
pub fn rule(window: u64) -> ModelRule {
    ModelRule {
        window: Some(window),
        ..ModelRule::for_all()
    }
}

/// The proxy's settings in `config`. A preset given by a flag overrides all others.
fn of_config(config: &Config, asked: bool) -> Result<ProxyConfig, Failure> {
    let table = config.get("proxy").and_then(Value::as_table);
    let mut table = table.cloned().unwrap_or_default();
    // The general preset applies unless `proxy.preset` is set, and `--preset` overrides both.
    if asked || config.source("proxy.preset") == SettingSource::Default {
        let name = policy_name(config, &mut table);
        table.insert("preset".to_owned(), Value::String(name));
    }
    if let Some(Value::String(listen)) = table.get_mut("listen") {
        *listen = parse_listen(listen)
            .map_err(|hint| {
                let source = config.source("proxy.listen");
                let text =
                    format!("{source}: proxy.listen = '{listen}' is not an address to listen on");
                Failure::input(text, hint)
            })?
            .to_string();
    }
    let read: Result<ProxyConfig, _> = table.try_into();
    read.map_err(|error| Failure::input(located(&error), "docs/proxy.md describes every setting"))
}

/// Describes which setting of the proxy is wrong and why.
fn located(error: &toml::de::Error) -> String {
    let message = error.message();
    let text = error.to_string();
    // toml reports the path of the setting at the end of its text, in backticks.
    match text.rsplit_once("in `") {
        Some((_, place)) => {
            let place = place.trim_end().trim_end_matches('`');
            format!("proxy.{place}: {message}")
        }
        None => format!("settings of the proxy: {message}"),
    }
}

/// The name of the policy made of the settings outside `[proxy]`. A plain preset keeps its name;
/// anything else becomes a policy of the proxy.
fn policy_name(config: &Config, table: &mut Table) -> String {
    let name = config.policy.preset.clone();
    if Policy::preset(&name).is_ok_and(|preset| preset == config.policy) {
        return name;
    }
    let policies = table
        .entry("policies")
        .or_insert_with(|| Value::Table(Table::new()));
    if let (Value::Table(policies), Ok(policy)) = (policies, Table::try_from(&config.policy)) {
        policies.insert(OWN_POLICY.to_owned(), Value::Table(policy));
    }
    OWN_POLICY.to_owned()
}

/// Parses `URL` or `DIALECT=URL`.
fn parse_upstream(text: &str, at: usize) -> Result<UpstreamConfig, Failure> {
    let dialect = |name: &str| match name {
        "chat" => Some(Dialect::Chat),
        "responses" => Some(Dialect::Responses),
        "messages" => Some(Dialect::Messages),
        _ => None,
    };
    match text.split_once('=') {
        // A `/` before the `=` means that the `=` belongs to the query of a plain URL.
        Some((name, url)) if !name.contains('/') => match dialect(name) {
            Some(dialect) => Ok(UpstreamConfig::new(name, url).for_dialects([dialect])),
            None => Err(Failure::input(
                format!("--upstream {text}: {name} is not a dialect"),
                "use chat=URL, responses=URL or messages=URL, or a URL for all of them",
            )),
        },
        _ if at == 0 => Ok(UpstreamConfig::new("upstream", text)),
        _ => Ok(UpstreamConfig::new(format!("upstream-{at}"), text)),
    }
}

/// The name of a mode on a status line.
pub fn mode_name(mode: ProxyMode) -> &'static str {
    match mode {
        ProxyMode::On => "on",
        ProxyMode::Observe => "observe only",
        ProxyMode::Bypass => "bypass",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_are_read_with_or_without_a_dialect() {
        let all = parse_upstream("http://127.0.0.1:9/v?a=b", 0).unwrap();
        assert_eq!(
            (all.url.as_str(), all.dialects.len()),
            ("http://127.0.0.1:9/v?a=b", 0)
        );
        let one = parse_upstream("messages=http://h", 1).unwrap();
        assert_eq!(one.dialects, [Dialect::Messages]);
        let error = parse_upstream("gopher=http://h", 0).unwrap_err();
        assert!(error.to_string().contains("gopher is not a dialect"));
    }

    #[test]
    fn changed_preset_becomes_a_policy() {
        let load = |settings: &[&str]| {
            let mut inputs = trimtab::config::ConfigInputs::default();
            for setting in settings {
                inputs.set(setting, "--set");
            }
            inputs.more = settings::keys::PROXY_KEYS.to_vec();
            of_config(&Config::load(&inputs).unwrap(), false).unwrap()
        };
        assert_eq!(load(&["preset=refs"]).preset, "refs");
        let changed = load(&["preset=refs", "compaction.auto=false", "proxy.holdout=0.5"]);
        assert_eq!(changed.preset, OWN_POLICY);
        assert!((changed.holdout - 0.5).abs() < f64::EPSILON);
        changed.check().unwrap();
        assert_eq!(load(&["preset=refs", "proxy.preset=turns"]).preset, "turns");
    }
}

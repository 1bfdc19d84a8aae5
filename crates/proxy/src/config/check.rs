//! Checks the settings of the proxy, and lists everything that is wrong with them at once.

use std::fmt;

use globset::Glob;
use http::Uri;
use trimtab::redact::redact_address;
use trimtab_engine::policy::BadSetting;

use super::{ModelRule, ProxyConfig, UpstreamConfig, access_check};
use crate::config::policies::{self, Policies};

/// All problems of the settings.
pub(super) fn check(config: &ProxyConfig) -> Vec<BadSetting> {
    let mut problems = SettingProblems::default();
    access_check::check(&mut problems, config);
    if !(0.0..=1.0).contains(&config.holdout) {
        problems.add("holdout", &config.holdout, "0 to 1");
    }
    // Set before the first preset is checked: a setting may name a policy of the same file.
    problems.presets = config.policies.clone();
    for name in config.policies.keys() {
        problems.preset(&format!("policies.{name}"), name);
    }
    problems.preset("preset", &config.preset);
    for (at, upstream) in config.upstreams.iter().enumerate() {
        problems.upstream(&format!("upstreams[{at}]"), upstream);
    }
    for (at, rule) in config.models.iter().enumerate() {
        problems.glob(&format!("models[{at}].model"), &rule.model);
        problems.room(&format!("models[{at}].max_output"), rule);
        if let Some(preset) = &rule.preset {
            problems.preset(&format!("models[{at}].preset"), preset);
        }
    }
    if let Some(summariser) = &config.summariser {
        problems.url("summariser.url", &summariser.url);
    }
    for range in config.limits.ranges() {
        problems.range("limits", range);
    }
    for range in config.retention.ranges() {
        problems.range("retention", range);
    }
    problems.found
}

/// The problems found so far.
#[derive(Default)]
pub(super) struct SettingProblems {
    found: Vec<BadSetting>,
    presets: Policies,
}

impl SettingProblems {
    pub(super) fn add(&mut self, setting: &str, value: &dyn fmt::Display, allowed: &str) {
        self.found.push(BadSetting {
            setting: setting.to_owned(),
            value: value.to_string(),
            allowed: allowed.to_owned(),
        });
    }

    pub(super) fn range(&mut self, table: &str, (name, value, least, most): (&str, u64, u64, u64)) {
        if value < least || value > most {
            let setting = format!("{table}.{name}");
            self.add(&setting, &value, &format!("{least} to {most}"));
        }
    }

    fn upstream(&mut self, setting: &str, upstream: &UpstreamConfig) {
        self.url(&format!("{setting}.url"), &upstream.url);
        for (at, glob) in upstream.models.iter().enumerate() {
            self.glob(&format!("{setting}.models[{at}]"), glob);
        }
        let prefix = &upstream.prefix;
        if !prefix.is_empty() && (!prefix.starts_with('/') || prefix.ends_with('/')) {
            let allowed = "a path that begins with / and does not end with it";
            self.add(&format!("{setting}.prefix"), prefix, allowed);
        }
        if let Some(preset) = &upstream.preset {
            self.preset(&format!("{setting}.preset"), preset);
        }
    }

    fn url(&mut self, setting: &str, url: &str) {
        let parsed = url.parse::<Uri>().ok();
        let is_good = parsed.is_some_and(|uri| {
            let http = matches!(uri.scheme_str(), Some("http" | "https"));
            let plain = uri
                .authority()
                .is_some_and(|host| !host.as_str().contains('@'));
            http && plain && uri.query().is_none()
        });
        if !is_good {
            let allowed = "an http or https address without user, query and fragment";
            // A wrong address is often one with a password in it.
            self.add(setting, &redact_address(url), allowed);
        }
    }

    fn glob(&mut self, setting: &str, glob: &str) {
        if Glob::new(glob).is_err() {
            self.add(setting, &glob, "a glob such as gpt-*");
        }
    }

    /// Checks that the longest answer leaves room for a prompt.
    fn room(&mut self, setting: &str, rule: &ModelRule) {
        let Some(longest) = rule.max_output else {
            return;
        };
        if longest == 0 || rule.window.is_some_and(|window| longest >= window) {
            self.add(setting, &longest, "more than 0 and less than the window");
        }
    }

    fn preset(&mut self, setting: &str, preset: &str) {
        if let Err(allowed) = policies::find(preset, &self.presets) {
            self.add(setting, &preset, &allowed);
        }
    }
}

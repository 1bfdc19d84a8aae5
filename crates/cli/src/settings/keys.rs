//! The settings that the command line adds to those of the library: tools and proxy.

use trimtab::config::{InProject, SettingKey, SettingKind};

/// The setting that lists variables for commands.
pub const ENVIRONMENT: &str = "tools.environment";
/// The setting that allows writes without a confirmation.
pub const ALLOW_WRITES: &str = "tools.allow_writes";

/// The settings of the agent's tools. A project's file may not set them, because they lift
/// protections.
pub const TOOL_KEYS: &[SettingKey] = &[
    SettingKey::new(
        ENVIRONMENT,
        SettingKind::Texts,
        "additional environment variables that commands of the agent inherit",
    ),
    SettingKey::new(
        ALLOW_WRITES,
        SettingKind::Switch,
        "let the agent write files of the workspace without asking, like --allow-writes",
    ),
];

/// The settings of the proxy.
#[rustfmt::skip]
pub const PROXY_KEYS: &[SettingKey] = &[
    SettingKey::new("proxy.listen", SettingKind::Text, "address and port to listen on; an address that others can reach needs a token"),
    SettingKey::new("proxy.token", SettingKind::Text, "the token that every request must carry in the header x-trimtab-token; `trimtab config token` generates one"),
    SettingKey::new("proxy.tokens", SettingKind::Table, "additional tokens: a list of name, role (use or admin), and token or sha256"),
    SettingKey::new("proxy.hosts", SettingKind::Texts, "additional host names of the proxy"),
    SettingKey::new("proxy.origins", SettingKind::Texts, "origins of web pages and apps that may use the proxy without a token"),
    SettingKey::new("proxy.tenancy", SettingKind::Table, "how users are identified: credential_headers, user_header"),
    SettingKey::new("proxy.tls", SettingKind::Table, "files for TLS on incoming connections: certificate, key"),
    SettingKey::new("proxy.audit", SettingKind::Table, "the audit log: file"),
    SettingKey::new("proxy.quotas", SettingKind::Table, "limits per tenant: requests_per_minute, input_bytes_per_minute, concurrent_requests, store_bytes; 0 for no limit"),
    SettingKey::new("proxy.mode", SettingKind::Choice(&["on", "observe", "bypass"]), "manage windows, only report what would be done, or pass everything through"),
    SettingKey::new("proxy.preset", SettingKind::Text, "the preset or policy of the proxy, if it differs from the one above").in_project(InProject::Allowed),
    SettingKey::new("proxy.policies", SettingKind::Table, "named policies, each a preset with changes").in_project(InProject::Policies),
    SettingKey::new("proxy.holdout", SettingKind::Share, "share of sessions to leave unmanaged, for comparison"),
    SettingKey::new("proxy.retrieval", SettingKind::Switch, "offer the model the retrieval tools if its window contains a ref"),
    SettingKey::new("proxy.compaction", SettingKind::Choice(&["background", "wait", "off"]), "request summaries from a model in the background, wait for them, or request none"),
    SettingKey::new("proxy.summariser", SettingKind::Table, "another model for summaries: url, dialect, model, key"),
    SettingKey::new("proxy.upstreams", SettingKind::Table, "the servers for requests: a list of name, url, and optionally prefix, dialects, models, preset, mode"),
    SettingKey::new("proxy.models", SettingKind::Table, "rules for some models: a list of model, and optionally window, max_output, preset, mode").in_project(InProject::Fields(&["model", "window", "max_output", "preset"])),
    SettingKey::new("proxy.limits", SettingKind::Table, "sizes and times, such as plan_ms or body_bytes"),
    SettingKey::new("proxy.retention", SettingKind::Table, "removal of old sessions from the store: max_age_days since the last use, max_bytes in total"),
];

//! The settings that the command line adds to those of the library: tools and proxy.

use trimtab::config::{InProject, Key, Kind};

/// The setting that lists variables for commands.
pub const ENVIRONMENT: &str = "tools.environment";
/// The setting that allows writes without a confirmation.
pub const ALLOW_WRITES: &str = "tools.allow_writes";

/// The settings of the agent's tools. A project's file may not set them, because they lift
/// protections.
pub const TOOL_KEYS: &[Key] = &[
    Key::new(
        ENVIRONMENT,
        Kind::Texts,
        "additional environment variables that commands of the agent inherit",
    ),
    Key::new(
        ALLOW_WRITES,
        Kind::Switch,
        "let the agent write files of the workspace without asking, like --allow-writes",
    ),
];

/// The settings of the proxy.
#[rustfmt::skip]
pub const PROXY_KEYS: &[Key] = &[
    Key::new("proxy.listen", Kind::Text, "address and port to listen on; an address that others can reach needs a token"),
    Key::new("proxy.token", Kind::Text, "the token that every request must carry in the header x-trimtab-token; `trimtab config token` generates one"),
    Key::new("proxy.tokens", Kind::Table, "additional tokens: a list of name, role (use or admin), and token or sha256"),
    Key::new("proxy.hosts", Kind::Texts, "additional host names of the proxy"),
    Key::new("proxy.origins", Kind::Texts, "origins of web pages and apps that may use the proxy without a token"),
    Key::new("proxy.tenancy", Kind::Table, "how users are identified: credential_headers, user_header"),
    Key::new("proxy.tls", Kind::Table, "files for TLS on incoming connections: certificate, key"),
    Key::new("proxy.audit", Kind::Table, "the audit log: file"),
    Key::new("proxy.quotas", Kind::Table, "limits per tenant: requests_per_minute, input_bytes_per_minute, concurrent_requests, store_bytes; 0 for no limit"),
    Key::new("proxy.mode", Kind::Choice(&["on", "observe", "bypass"]), "manage windows, only report what would be done, or pass everything through"),
    Key::new("proxy.preset", Kind::Text, "the preset or policy of the proxy, if it differs from the one above").in_project(InProject::Allowed),
    Key::new("proxy.policies", Kind::Table, "named policies, each a preset with changes").in_project(InProject::Policies),
    Key::new("proxy.holdout", Kind::Share, "share of sessions to leave unmanaged, for comparison"),
    Key::new("proxy.retrieval", Kind::Switch, "offer the model the retrieval tools if its window contains a ref"),
    Key::new("proxy.compaction", Kind::Choice(&["background", "wait", "off"]), "request summaries from a model in the background, wait for them, or request none"),
    Key::new("proxy.summariser", Kind::Table, "another model for summaries: url, dialect, model, key"),
    Key::new("proxy.upstreams", Kind::Table, "the servers for requests: a list of name, url, and optionally prefix, dialects, models, preset, mode"),
    Key::new("proxy.models", Kind::Table, "rules for some models: a list of model, and optionally window, max_output, preset, mode").in_project(InProject::Fields(&["model", "window", "max_output", "preset"])),
    Key::new("proxy.limits", Kind::Table, "sizes and times, such as plan_ms or body_bytes"),
    Key::new("proxy.retention", Kind::Table, "removal of old sessions from the store: max_age_days since the last use, max_bytes in total"),
];

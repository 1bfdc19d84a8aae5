//! The settings that the command line adds to those of the library.

use trimtab::config::{InProject, Key, Kind};

/// The setting that names variables for commands.
pub const ENVIRONMENT: &str = "tools.environment";
/// The setting that allows writes without a question.
pub const ALLOW_WRITES: &str = "tools.allow_writes";

/// The settings of the agent's tools. No file of a project may make them.
pub const TOOL_KEYS: &[Key] = &[
    Key::new(
        ENVIRONMENT,
        Kind::Texts,
        "variables that commands of the agent are given, besides those that all commands need",
    ),
    Key::new(
        ALLOW_WRITES,
        Kind::Switch,
        "the agent writes files of the workspace without asking, as with --allow-writes",
    ),
];

/// The settings of the proxy, besides those of the library.
#[rustfmt::skip]
pub const PROXY_KEYS: &[Key] = &[
    Key::new("proxy.listen", Kind::Text, "address and port to listen on; one that others can reach needs a token"),
    Key::new("proxy.token", Kind::Text, "what every request must carry in the header x-trimtab-token; `trimtab config token` makes one"),
    Key::new("proxy.tokens", Kind::Table, "further tokens: a list of name, role (use or admin), and token or sha256"),
    Key::new("proxy.hosts", Kind::Texts, "further host names under which the proxy is called"),
    Key::new("proxy.origins", Kind::Texts, "origins of web pages and apps that may use the proxy without a token"),
    Key::new("proxy.tenancy", Kind::Table, "how users are told apart: credential_headers, user_header"),
    Key::new("proxy.tls", Kind::Table, "files for TLS on incoming connections: certificate, key"),
    Key::new("proxy.audit", Kind::Table, "where it is written down who did what: file"),
    Key::new("proxy.quotas", Kind::Table, "what one tenant may use: requests_per_minute, input_bytes_per_minute, concurrent_requests, store_bytes; 0 for no limit"),
    Key::new("proxy.mode", Kind::Choice(&["on", "observe", "bypass"]), "manage windows, only report what would be done, or pass everything"),
    Key::new("proxy.preset", Kind::Text, "the preset or policy of the proxy, where it is not the one above").in_project(InProject::Allowed),
    Key::new("proxy.policies", Kind::Table, "policies by name, each a preset and what is different").in_project(InProject::Policies),
    Key::new("proxy.holdout", Kind::Share, "share of sessions that is left unmanaged, to compare with"),
    Key::new("proxy.retrieval", Kind::Switch, "offer the model the retrieval tools where its window contains a ref"),
    Key::new("proxy.compaction", Kind::Choice(&["background", "wait", "off"]), "ask a model for summaries in the background, wait for them, or ask none"),
    Key::new("proxy.summariser", Kind::Table, "another model for summaries: url, dialect, model, key"),
    Key::new("proxy.upstreams", Kind::Table, "where requests go: a list of name, url, and optionally prefix, dialects, models, preset, mode"),
    Key::new("proxy.models", Kind::Table, "what holds for some models: a list of model, and optionally window, max_output, preset, mode").in_project(InProject::Fields(&["model", "window", "max_output", "preset"])),
    Key::new("proxy.limits", Kind::Table, "sizes and times, such as plan_ms or body_bytes"),
    Key::new("proxy.retention", Kind::Table, "what is removed from the store: max_age_days since the last use, max_bytes in all"),
];

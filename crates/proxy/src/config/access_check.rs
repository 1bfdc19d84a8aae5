//! Checks the settings of access: tokens, hosts, origins and tenants.

use std::collections::BTreeSet;

use http::HeaderName;

use super::check::SettingProblems;
use super::{NamedToken, ProxyConfig, Secret};

/// The least characters of a token: 128 random bits have as many in base64.
const LEAST_CHARACTERS: usize = 22;
/// The least different characters of a token, so that no repetition passes.
const LEAST_DISTINCT: usize = 8;
/// The hint about new tokens.
const MAKE_ONE: &str = "hint: `trimtab config token` makes one";

/// Adds all problems.
pub(super) fn check(problems: &mut SettingProblems, config: &ProxyConfig) {
    exposure(problems, config);
    if let Some(token) = &config.token {
        strength(problems, "token", token);
    }
    let mut names = BTreeSet::from(["default"]);
    for (at, token) in config.tokens.iter().enumerate() {
        let setting = format!("tokens[{at}]");
        named_token(problems, &setting, token);
        if !names.insert(&token.name) {
            let allowed = "a name that no other token has; token is called default";
            problems.add(&format!("{setting}.name"), &token.name, allowed);
        }
    }
    for (at, origin) in config.origins.iter().enumerate() {
        if !is_origin(origin) {
            let allowed = "an origin such as https://app.example or vscode-file://vscode-app\n\
                hint: any page can have the origin null; let such a client send a token";
            problems.add(&format!("origins[{at}]"), origin, allowed);
        }
    }
    tenancy(problems, config);
}

/// An address that others can reach needs a token.
fn exposure(problems: &mut SettingProblems, config: &ProxyConfig) {
    let has_token = config.token.is_some() || !config.tokens.is_empty();
    if !config.listen.ip().is_loopback() && !has_token {
        let allowed = "a loopback address such as 127.0.0.1, as long as no token is set\n\
            hint: to let other machines in, set TRIMTAB_PROXY_TOKEN or proxy.token; `trimtab config \
            token` makes one";
        problems.add("listen", &config.listen, allowed);
    }
}

fn named_token(problems: &mut SettingProblems, setting: &str, token: &NamedToken) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    let name = &token.name;
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
        let allowed = "1 to 64 letters, digits and the signs - _ . @";
        problems.add(&format!("{setting}.name"), name, allowed);
    }
    match (&token.token, &token.sha256) {
        (Some(token), None) => strength(problems, &format!("{setting}.token"), token),
        (None, Some(digest)) => {
            if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                let allowed = format!("64 hexadecimal digits\n{MAKE_ONE}");
                // The value is never shown: a token may have been pasted here instead of its
                // digest.
                problems.add(&format!("{setting}.sha256"), &"***", &allowed);
            }
        }
        _ => {
            let allowed = format!("either token or sha256\n{MAKE_ONE}");
            problems.add(setting, name, &allowed);
        }
    }
}

fn strength(problems: &mut SettingProblems, setting: &str, token: &Secret) {
    let characters = token.reveal().chars();
    let distinct: BTreeSet<char> = characters.clone().collect();
    if characters.count() < LEAST_CHARACTERS || distinct.len() < LEAST_DISTINCT {
        let allowed = format!("a random text of at least 128 bits\n{MAKE_ONE}");
        problems.add(setting, &"***", &allowed);
    }
}

fn is_origin(origin: &str) -> bool {
    let parts = origin.split_once("://");
    parts.is_some_and(|(scheme, rest)| {
        let in_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        // An origin has no path and no pattern. A value with either would never match anything.
        let in_rest = |byte: u8| byte.is_ascii_graphic() && !b"/*?#@\\".contains(&byte);
        !scheme.is_empty()
            && scheme.bytes().all(in_scheme)
            && !rest.is_empty()
            && rest.bytes().all(in_rest)
    })
}

fn tenancy(problems: &mut SettingProblems, config: &ProxyConfig) {
    let tenancy = &config.tenancy;
    for (at, name) in tenancy.credential_headers.iter().enumerate() {
        if name.parse::<HeaderName>().is_err() {
            let setting = format!("tenancy.credential_headers[{at}]");
            problems.add(&setting, name, "the name of a header");
        }
    }
    let user = &tenancy.user_header;
    if !user.is_empty() && user.parse::<HeaderName>().is_err() {
        problems.add("tenancy.user_header", user, "the name of a header");
    }
}

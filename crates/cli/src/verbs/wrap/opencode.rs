//! opencode: settings in a variable that it merges over its files.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::setup::{ClientSetup, ClientSurroundings, URL};

/// The variable with these settings.
const CONTENT: &str = "OPENCODE_CONFIG_CONTENT";
/// The field with the address of a provider.
const BASE: &str = "baseURL";
/// The providers whose addresses the proxy knows.
const PROVIDERS: [&str; 2] = ["anthropic", "openai"];

pub(super) fn opencode(surroundings: &ClientSurroundings<'_>, setup: &mut ClientSetup) {
    let set = (surroundings.variable)(CONTENT);
    let mut content = set.as_deref().map_or_else(
        || json!({}),
        |text| serde_json::from_str(text).unwrap_or_else(|_| json!({})),
    );
    let mut addresses: Map<String, Value> = PROVIDERS
        .map(|name| (name.to_owned(), Value::from(format!("{URL}/v1"))))
        .into_iter()
        .collect();
    // An address in the settings of the user replaces the default one.
    for (name, base) in own_addresses(surroundings) {
        let from = format!("the provider {name} of opencode");
        let address = setup.redirect(surroundings, &base, &from);
        addresses.insert(name, Value::from(address));
    }
    for (name, address) in addresses {
        put(&mut content, &["provider", &name, "options", BASE], address);
    }
    setup.set(CONTENT, &content.to_string());
}

/// The addresses in the user's settings. Only opencode itself can merge its many settings files.
/// Starting it takes seconds, so it is not started if no file mentions an address.
fn own_addresses(surroundings: &ClientSurroundings<'_>) -> Vec<(String, String)> {
    let names_one =
        |file: PathBuf| (surroundings.read)(&file).is_some_and(|text| text.contains(BASE));
    if !surroundings.is_set(CONTENT) && !files(surroundings).into_iter().any(names_one) {
        return Vec::new();
    }
    let config = (surroundings.ask)(&["debug", "config"]);
    let config = config.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let providers = config
        .as_ref()
        .and_then(|config| config.get("provider")?.as_object());
    let addresses = providers
        .into_iter()
        .flatten()
        .filter_map(|(name, provider)| {
            let base = provider.get("options")?.get(BASE)?.as_str()?;
            Some((name.clone(), base.to_owned()))
        });
    addresses.collect()
}

/// The files that opencode may read.
fn files(surroundings: &ClientSurroundings<'_>) -> Vec<PathBuf> {
    let global = surroundings
        .folder("XDG_CONFIG_HOME", ".config")
        .join("opencode");
    let mut folders = vec![global];
    let here = std::env::current_dir().unwrap_or_default();
    for folder in here.ancestors() {
        folders.push(folder.to_owned());
        folders.push(folder.join(".opencode"));
    }
    let names = ["opencode.json", "opencode.jsonc", "config.json"];
    let files = folders
        .iter()
        .flat_map(|folder| names.map(|name| folder.join(name)));
    let own = (surroundings.variable)("OPENCODE_CONFIG").map(PathBuf::from);
    files.chain(own).collect()
}

/// Sets a value at a path of names.
fn put(object: &mut Value, path: &[&str], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *object = value;
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    if let Value::Object(fields) = object {
        let inner = fields.entry((*first).to_owned()).or_insert(Value::Null);
        put(inner, rest, value);
    }
}

//! Clients that read addresses from files: they get temporary copies with other addresses.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::setup::{ClientSetup, ClientSurroundings, FOLDER, URL};
use crate::exit::Failure;

/// The variable that names Cline's file of providers.
const CLINE_PROVIDERS: &str = "CLINE_PROVIDER_SETTINGS_PATH";

/// The variable that names Qwen Code's system settings, and their default path.
const QWEN_SYSTEM: &str = "QWEN_CODE_SYSTEM_SETTINGS_PATH";
const QWEN_SYSTEM_FILE: &str = "/etc/qwen-code/settings.json";

/// pi: an extension that changes the addresses of its providers.
pub(super) fn pi(surroundings: &ClientSurroundings<'_>, setup: &mut ClientSetup) {
    let file = surroundings
        .folder("PI_CODING_AGENT_DIR", ".pi/agent")
        .join("models.json");
    let mut addresses = vec![
        ("anthropic".to_owned(), URL.to_owned()),
        ("openai".to_owned(), format!("{URL}/v1")),
    ];
    let models = surroundings.json(&file).unwrap_or_default();
    let own = models.get("providers").and_then(Value::as_object);
    for (name, provider) in own.into_iter().flatten() {
        if let Some(base) = provider.get("baseUrl").and_then(Value::as_str) {
            let address = setup.redirect(surroundings, base, &file.display().to_string());
            // A provider in models.json may override a built-in one.
            addresses.retain(|(known, _)| known != name);
            addresses.push((name.clone(), address));
        }
    }
    let mut calls = String::new();
    for (name, address) in &addresses {
        let (name, options) = (json!(name), json!({"baseUrl": address}));
        let _ = writeln!(calls, "  pi.registerProvider({name}, {options});");
    }
    let text = format!("export default function (pi) {{\n{calls}}}\n");
    setup.files.push(("trimtab.js".to_owned(), text));
    setup.pass(["--extension", &format!("{FOLDER}/trimtab.js")]);
}

/// Cline: a copy of its providers.
pub(super) fn cline(
    surroundings: &ClientSurroundings<'_>,
    setup: &mut ClientSetup,
) -> Result<(), Failure> {
    let data = surroundings.folder("CLINE_DATA_DIR", ".cline/data");
    let named = (surroundings.variable)(CLINE_PROVIDERS).map(PathBuf::from);
    let file = named.unwrap_or_else(|| data.join("settings").join("providers.json"));
    let mut providers = surroundings.json(&file).unwrap_or_default();
    let from = file.display().to_string();
    if setup.redirect_all(surroundings, &mut providers, ("baseUrl", &from)) == 0 {
        return Err(Failure::input(
            format!("{from} contains no address, and Cline's own providers have fixed ones"),
            "set one up first, for example: cline auth -p openai -k KEY -m MODEL -b \
             https://api.openai.com/v1",
        ));
    }
    // Write the whole file with changed addresses, because Cline reads only one file.
    let text = providers.to_string();
    setup.files.push(("providers.json".to_owned(), text));
    setup.set(CLINE_PROVIDERS, &format!("{FOLDER}/providers.json"));
    // A background process of Cline would keep its old settings.
    setup.set("CLINE_SESSION_BACKEND_MODE", "local");
    Ok(())
}

/// Qwen Code: system settings, which override the user's, with the models of the user's settings.
pub(super) fn qwen_models(surroundings: &ClientSurroundings<'_>, setup: &mut ClientSetup) {
    let file = surroundings.folder("HOME", "").join(".qwen/settings.json");
    let settings = surroundings.json(&file).unwrap_or_default();
    let mut models = settings.get("modelProviders").cloned().unwrap_or_default();
    let from = file.display().to_string();
    if setup.redirect_all(surroundings, &mut models, ("baseUrl", &from)) == 0 {
        return;
    }
    let system =
        (surroundings.variable)(QWEN_SYSTEM).unwrap_or_else(|| QWEN_SYSTEM_FILE.to_owned());
    let system = surroundings.json(Path::new(&system));
    // Our file replaces the system settings, so keep their content.
    let mut settings = system
        .and_then(|it| it.as_object().cloned())
        .unwrap_or_default();
    settings.insert("modelProviders".to_owned(), models);
    let text = Value::from(settings).to_string();
    setup.files.push(("settings.json".to_owned(), text));
    setup.set(QWEN_SYSTEM, &format!("{FOLDER}/settings.json"));
}

/// Factory's droid: settings with the user's own models, merged over its settings.
pub(super) fn droid(
    surroundings: &ClientSurroundings<'_>,
    setup: &mut ClientSetup,
) -> Result<(), Failure> {
    let file = surroundings
        .folder("FACTORY_HOME_OVERRIDE", "")
        .join(".factory")
        .join("settings.json");
    let settings = surroundings.json(&file).unwrap_or_default();
    let mut models = settings.get("customModels").cloned().unwrap_or_default();
    let from = file.display().to_string();
    if setup.redirect_all(surroundings, &mut models, ("baseUrl", &from)) == 0 {
        return Err(Failure::input(
            format!(
                "{from} has no customModels, and Factory's own models do not go through a proxy"
            ),
            "add your own model there, with model, baseUrl, apiKey and provider, and select it \
             with -m custom:MODEL",
        ));
    }
    // droid reads only one --settings file.
    if setup.user_args.iter().any(|arg| arg == "--settings") {
        return Err(Failure::input(
            "droid --settings conflicts with wrap, which uses it to change addresses",
            "put these settings into ~/.factory/settings.json",
        ));
    }
    let text = json!({"customModels": models}).to_string();
    setup.files.push(("settings.json".to_owned(), text));
    setup.pass(["--settings", &format!("{FOLDER}/settings.json")]);
    Ok(())
}

/// Mistral's vibe: its providers in a variable.
pub(super) fn vibe(
    surroundings: &ClientSurroundings<'_>,
    setup: &mut ClientSetup,
) -> Result<(), Failure> {
    let user = surroundings
        .folder("VIBE_HOME", ".vibe")
        .join("config.toml");
    let project = Path::new(".vibe").join("config.toml");
    // The file of the project takes precedence.
    let found = [project, user.clone()].into_iter().find_map(|file| {
        let providers = surroundings.toml(&file)?.get("providers")?.clone();
        Some((file, providers))
    });
    let from = found
        .as_ref()
        .map_or(&user, |(file, _)| file)
        .display()
        .to_string();
    let mut providers = found.map(|(_, providers)| providers).unwrap_or_default();
    if setup.redirect_all(surroundings, &mut providers, ("api_base", &from)) == 0 {
        return Err(Failure::input(
            format!("{from} contains no provider"),
            "add your provider to it as [[providers]], with name, api_base and api_key_env_var",
        ));
    }
    setup.set("VIBE_PROVIDERS", &providers.to_string());
    Ok(())
}

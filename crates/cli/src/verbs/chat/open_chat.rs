//! An open chat: the agent with its options.

use std::path::Path;
use std::sync::Arc;

use toml::Value;
use trimtab::config::{Config, ConfigInputs};
use trimtab::store::{Error, SessionId, Store};
use trimtab::wire::catalogue::{Catalogue, ModelInfo as CatalogueModel};
use trimtab_agent::model::{Model, ModelClient};
use trimtab_agent::tools::{CommandEnvironment, Confirm, Shell, Workspace};
use trimtab_agent::{Agent, AgentError, AgentEvents, AgentSettings};

use super::choice::ChatChoice;
use super::{ChatArgs, sessions};
use crate::common::CommonArgs;
use crate::exit::{Failure, with_hint};
use crate::model::{ModelChoice, SCRIPTED};
use crate::settings::keys::{ALLOW_WRITES, ENVIRONMENT};
use crate::{catalogue, model, settings};

/// The default system prompt.
const SYSTEM: &str = "\
You are an agent in a terminal. You help with the files in the workspace, which is the folder \
that your tools work in: read before you change, change as little as does the job, and check \
what you did. Paths are relative to the workspace. Long outputs are shown to you in short, \
with a ref by which you get the rest. Answer in plain text, briefly, and say what you did not \
do or could not check.";

/// The default window of a script.
const SCRIPTED_WINDOW: u64 = 200_000;
/// The default reserve for an answer, in tokens.
const ANSWER: u64 = 16_384;

/// An open chat.
pub(super) struct OpenChat {
    /// The agent.
    pub(super) agent: Agent,
    /// Its options.
    pub(super) choice: ChatChoice,
    /// True if the session existed before.
    pub(super) resumed: bool,
    store: Arc<dyn Store>,
    id: SessionId,
    environment: ChatEnvironment,
}

/// The parts that stay when the model or the preset changes.
struct ChatEnvironment {
    catalogue: Catalogue,
    /// Asks for permissions that no flag gives.
    ask: Confirm,
    allow_shell: bool,
    allow_writes: bool,
    allow_protected: bool,
    environment: CommandEnvironment,
    system: String,
    /// The sources of the settings.
    inputs: ConfigInputs,
}

impl OpenChat {
    /// Opens the chat for the flags. `ask` decides about actions that no flag allows.
    pub(super) fn open(
        args: &ChatArgs,
        common: &CommonArgs,
        ask: &Confirm,
    ) -> Result<(Self, AgentEvents), Failure> {
        let chat_environment = ChatEnvironment {
            catalogue: catalogue::load()?,
            ask: ask.clone(),
            allow_shell: args.allowed.allow_shell,
            allow_writes: args.allowed.allow_writes || allows_writes(common)?,
            allow_protected: args.allowed.allow_protected_files,
            environment: environment(args, common)?,
            system: system(args)?,
            inputs: settings::inputs(common, &[]),
        };
        let store = common.store.make()?.store;
        let (id, remembered) = session_to_open(args, &*store)?;
        // Flags override the saved options, and these override the settings.
        let chosen = ChatChoice::of_flags(args).or(remembered);
        let config = chat_environment.config(chosen.preset.as_deref())?;
        let choice = chosen.or(of_config(&config));
        let answered = || sessions::answers(&*store, &id);
        let model = open_model(&choice, &chat_environment.catalogue, &config, answered)?;
        let ChatSetup { settings, choice } = chat_environment.settings(model, choice, config)?;
        let opened = Agent::open(Arc::clone(&store), id.clone(), settings);
        let (agent, events) = opened.map_err(|error| agent_failure(&error))?;
        let chat = Self {
            agent,
            choice,
            resumed: args.resume.is_some(),
            store,
            id,
            environment: chat_environment,
        };
        // Save the options at once: a killed chat must be resumable.
        chat.remember()?;
        Ok((chat, events))
    }

    /// Continues with other options. The plans of the session stay.
    pub(super) fn change(&mut self, choice: ChatChoice) -> Result<(), Failure> {
        let chat_environment = &self.environment;
        let config = chat_environment.config(choice.preset.as_deref())?;
        // Keep the client, which reuses the JSON of earlier requests.
        let model = if choice.model == self.choice.model {
            self.agent.settings().model.clone()
        } else {
            open_model(&choice, &chat_environment.catalogue, &config, || Ok(0))?
        };
        let made = chat_environment.settings(model, choice, config)?;
        let changed = self.agent.change(made.settings);
        changed.map_err(|error| agent_failure(&error))?;
        self.choice = made.choice;
        self.remember()
    }

    /// Starts a new session with the same options and returns its events.
    pub(super) fn clear(&mut self) -> Result<AgentEvents, Failure> {
        let id = sessions::new_id().map_err(|error| sessions::store_failure(&error))?;
        let settings = self.agent.settings().clone();
        let opened = Agent::open(Arc::clone(&self.store), id.clone(), settings);
        let (agent, events) = opened.map_err(|error| agent_failure(&error))?;
        // Remove the old session only after the new one has opened.
        self.forget_empty()?;
        self.agent = agent;
        self.id = id;
        self.resumed = false;
        self.remember()?;
        Ok(events)
    }

    /// The name of the session.
    pub(super) fn id(&self) -> &SessionId {
        &self.id
    }

    /// The store of the session.
    pub(super) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// True if the user has sent a message.
    pub(super) fn has_begun(&self) -> bool {
        let log = self.agent.session().projection().log().messages();
        log.iter().any(|message| message.is_real_user())
    }

    /// Removes an empty session, else saves the learned window.
    pub(super) fn close(mut self) -> Result<(), Failure> {
        self.keep_learned_window()?;
        self.forget_empty()
    }

    /// Saves a window that was learned from an error of the provider.
    pub(super) fn keep_learned_window(&mut self) -> Result<(), Failure> {
        let learned = self.agent.session().setup().limits.window;
        let is_news = learned != self.agent.settings().limits.window;
        if is_news && learned != self.choice.window {
            self.choice.window = learned;
            self.remember()?;
        }
        Ok(())
    }

    /// Removes the session if it is empty.
    fn forget_empty(&self) -> Result<(), Failure> {
        // A resumed session existed before, so never delete it.
        if self.resumed || self.has_begun() {
            return Ok(());
        }
        let deleted = self.store.delete_session(&self.id);
        deleted.map_err(|error| sessions::store_failure(&error))
    }

    fn remember(&self) -> Result<(), Failure> {
        let choice = self.choice.clone().absolute();
        let remembered = sessions::save_choice(&*self.store, &self.id, &choice);
        remembered.map_err(|error| sessions::store_failure(&error))
    }
}

/// Opens the chosen model. `answered` is the number of answers in the session, after which a script
/// continues.
fn open_model(
    choice: &ChatChoice,
    catalogue: &Catalogue,
    config: &Config,
    answered: impl FnOnce() -> Result<usize, Error>,
) -> Result<Model, Failure> {
    let name = choice.model.as_deref().map(str::trim).unwrap_or_default();
    if name.is_empty() {
        return Err(Failure::input(
            "no model is set",
            "use --model NAME or TRIMTAB_MODEL; --model scripted:examples/script.json needs no key",
        ));
    }
    // A script continues after the answers that the session already has.
    if let Some(script) = model::script(name)? {
        let answered = answered().map_err(|error| sessions::store_failure(&error))?;
        let client = ModelClient::new(script.from_position(answered));
        return Ok(Model::new(client, name));
    }
    let wanted = ModelChoice {
        name,
        base_url: choice.base_url.as_deref(),
        dialect: choice.dialect.map(Into::into),
    };
    model::find(&wanted, catalogue, settings::outgoing(config)?)
}

/// The failure for an error of the agent.
pub(super) fn agent_failure(error: &AgentError) -> Failure {
    let (message, hint) = with_hint(&error.to_string());
    Failure::WithHint { message, hint }
}

/// The session to open, and its saved options.
fn session_to_open(args: &ChatArgs, store: &dyn Store) -> Result<(SessionId, ChatChoice), Failure> {
    let found = match &args.resume {
        Some(given) => {
            let id = sessions::find(store, given.trim())?;
            sessions::saved_choice(store, &id).map(|choice| (id, choice))
        }
        None => sessions::new_id().map(|id| (id, ChatChoice::default())),
    };
    found.map_err(|error| sessions::store_failure(&error))
}

/// The options from the settings.
fn of_config(config: &Config) -> ChatChoice {
    ChatChoice {
        model: config.model.clone(),
        window: config.window,
        max_output: config.max_output,
        ..ChatChoice::default()
    }
}

/// The result of resolving the options.
struct ChatSetup {
    /// The settings of the agent.
    settings: AgentSettings,
    /// The options with all defaults filled in.
    choice: ChatChoice,
}

/// True if the settings allow writes without a confirmation.
fn allows_writes(common: &CommonArgs) -> Result<bool, Failure> {
    let set = settings::lookup(common, ALLOW_WRITES)?;
    Ok(set.and_then(|set| set.as_bool()).unwrap_or(false))
}

/// The environment of commands.
pub(super) fn environment(
    args: &ChatArgs,
    common: &CommonArgs,
) -> Result<CommandEnvironment, Failure> {
    let set = settings::lookup(common, ENVIRONMENT)?;
    let set = set.as_ref().and_then(Value::as_array);
    let set = set.into_iter().flatten().filter_map(Value::as_str);
    let named = set.chain(args.env.iter().map(String::as_str));
    CommandEnvironment::new(named).map_err(|why| {
        Failure::input(
            why,
            "name other variables with --env NAME or tools.environment",
        )
    })
}

/// The system prompt.
fn system(args: &ChatArgs) -> Result<String, Failure> {
    let Some(given) = &args.system else {
        return Ok(SYSTEM.to_owned());
    };
    let path = Path::new(given);
    // A text that is not a file is the prompt itself.
    if !path.is_file() {
        return Ok(given.clone());
    }
    std::fs::read_to_string(path).map_err(|error| {
        Failure::input(
            format!("--system {given}: {error}"),
            "give a text file, or the text itself",
        )
    })
}

impl ChatEnvironment {
    /// The confirmation for an action that a flag may allow.
    fn confirm(&self, allowed: bool) -> Confirm {
        if allowed {
            Confirm::Always
        } else {
            self.ask.clone()
        }
    }

    /// The settings, with this preset if one was chosen.
    fn config(&self, preset: Option<&str>) -> Result<Config, Failure> {
        let mut inputs = self.inputs.clone();
        if let Some(preset) = preset {
            let flag = ("preset", preset, "--preset");
            let flag = (flag.0.to_owned(), flag.1.to_owned(), flag.2.to_owned());
            inputs.flags.push(flag);
        }
        Config::load(&inputs).map_err(|error| settings::failure(&error))
    }

    /// The settings of the agent, and the options with all defaults filled in.
    fn settings(
        &self,
        model: Model,
        mut choice: ChatChoice,
        config: Config,
    ) -> Result<ChatSetup, Failure> {
        let folder = choice.workspace.as_deref().unwrap_or(Path::new("."));
        let workspace =
            Workspace::new(folder, self.confirm(self.allow_shell)).map_err(|error| {
                Failure::input(
                    format!("workspace {}: {error}", folder.display()),
                    "name an existing folder with --workspace DIR",
                )
            })?;
        // Save the resolved path, because the chat may be resumed from another folder.
        choice.workspace = Some(workspace.root().to_owned());
        let protected = self.confirm(self.allow_protected);
        let workspace = workspace
            .confirm_protected(protected)
            .confirm_writes(self.confirm(self.allow_writes));
        let mut made = AgentSettings::new(model, workspace);
        let shell = Shell::default().environment(self.environment.clone());
        // We start no other children while a command runs, so every orphan belongs to one.
        made.tools = made.tools.with(shell.ends_orphans());
        set_limits(&mut made, &choice, &self.catalogue)?;
        // Some settings depend on the window, so check them once it is known.
        let checked = config.check(made.limits.window);
        checked.map_err(|error| settings::failure(&error))?;
        made.policy = config.policy;
        made.system.clone_from(&self.system);
        Ok(ChatSetup {
            settings: made,
            choice,
        })
    }
}

/// Sets the limits of the model: from the options, else from the user's catalogue.
fn set_limits(
    settings: &mut AgentSettings,
    choice: &ChatChoice,
    catalogue: &Catalogue,
) -> Result<(), Failure> {
    let name = &settings.model.name;
    let scripted = name.starts_with(SCRIPTED).then_some(SCRIPTED_WINDOW);
    let known = catalogue.find(name).ok().map(|found| found.model);
    let limits = &mut settings.limits;
    let window = choice
        .window
        .or(known.as_ref().map(CatalogueModel::call_limit));
    limits.window = window.or(scripted);
    let most = limits.max_output.unwrap_or(ANSWER);
    // A quarter of the window at most, so that small models keep room for the conversation.
    let fitting = limits.window.map(|window| most.min(window / 4));
    limits.max_output = choice.max_output.or(fitting).or(limits.max_output);
    if let Some(known) = known {
        settings.prices = known.prices;
        settings.tiers = known.tiers;
        settings.cache_lifetime = known.cache.lifetime;
    }
    match (limits.window, limits.max_output) {
        (Some(window), Some(answer)) if answer >= window => Err(Failure::input(
            format!("an answer of {answer} tokens leaves no room in a window of {window} tokens"),
            "give a smaller --max-output or a larger --window",
        )),
        _ => Ok(()),
    }
}

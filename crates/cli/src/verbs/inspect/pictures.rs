//! `--html` and `--svg`: the longest conversation of the files as a picture.

use std::sync::Arc;

use trimtab::engine::policy::{PRESETS, Policy};
use trimtab::film::replayed_film;
use trimtab::replay::{ReplayError, ReplaySettings, parallel, replay_everything};
use trimtab_model::Message;
use trimtab_wire::transcript::Conversation;

use super::InspectArgs;
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::out_file;
use crate::picture::SessionPicture;
use crate::recorded_models::RecordedModels;
use crate::settings;

/// The longest conversation so far.
#[derive(Default)]
pub(super) struct LongestConversation {
    found: Option<PictureSource>,
}

/// The data of a picture.
struct PictureSource {
    title: String,
    log: Vec<Arc<Message>>,
    settings: ReplaySettings,
}

impl LongestConversation {
    /// Keeps a conversation if it is longer than those before.
    pub(super) fn consider(
        &mut self,
        name: &str,
        conversation: &Conversation,
        models: &mut RecordedModels,
    ) {
        let longest = self.found.as_ref().map_or(0, |found| found.log.len());
        if conversation.messages.len() <= longest {
            return;
        }
        self.found = Some(PictureSource {
            title: conversation.id.clone().unwrap_or_else(|| name.to_owned()),
            log: conversation
                .messages
                .iter()
                .cloned()
                .map(Arc::new)
                .collect(),
            settings: models.settings(conversation),
        });
    }

    /// Writes the pictures that were asked for.
    pub(super) fn draw(self, args: &InspectArgs, common: &CommonArgs) -> Result<(), Failure> {
        let Some(source) = self.found else {
            let hint = "give a file with a conversation";
            return Err(Failure::input("there is no conversation to draw", hint));
        };
        let chosen = settings::load(common, &[])?.policy;
        // Only the page shows other presets.
        let others: Vec<&str> = PRESETS
            .iter()
            .map(|preset| preset.name)
            .filter(|name| args.html.is_some() && *name != chosen.preset && *name != "none")
            .collect();
        let picture = source.picture(chosen, &others)?;
        if let Some(path) = &args.html {
            out_file::write(path, picture.page())?;
        }
        if let Some(path) = &args.svg {
            out_file::write(path, picture.image())?;
        }
        Ok(())
    }
}

impl PictureSource {
    fn picture(self, chosen: Policy, others: &[&str]) -> Result<SessionPicture, Failure> {
        let Self {
            title,
            log,
            settings,
        } = self;
        let preset = chosen.preset.clone();
        let failed = |error: ReplayError| {
            Failure::input(
                format!("{title}: {error}"),
                "trimtab inspect shows its faults",
            )
        };
        let (film, report) = replayed_film(&log, chosen, &settings).map_err(failed)?;
        let everything = replay_everything(&log, &settings, &mut |_| {}).map_err(failed)?;
        let others = parallel::map(others, |name| {
            let policy = Policy::preset(name).ok()?;
            // A preset that cannot manage this conversation is left out of the picture.
            let (film, report) = replayed_film(&log, policy, &settings).ok()?;
            let sizes = film.columns.iter().map(|column| column.tokens);
            Some(((*name).to_owned(), sizes.collect(), report))
        });
        Ok(SessionPicture {
            title,
            preset,
            film,
            report,
            everything,
            others: others.into_iter().flatten().collect(),
            window: settings.window,
        })
    }
}

//! The commands `/model` and `/preset`.

use trimtab::engine::policy::PRESETS;

use super::choice::ChatChoice;
use super::open_chat::OpenChat;
use super::screen::Screen;
use super::text::{nearest, on_one_line};
use crate::exit::Failure;
use crate::ui::columns::{Align, lined_up};
use crate::ui::number::grouped;
use crate::ui::style;

/// Shows or changes the model.
pub(super) fn model(
    chat: &mut OpenChat,
    name: &str,
    screen: &mut Screen<'_>,
) -> Result<(), Failure> {
    if !name.is_empty() {
        chat.change(chat.choice.clone().with_model(name))?;
    }
    let settings = chat.agent.settings();
    let window = settings.limits.window;
    let is_unknown = window.is_none();
    let window = window.map_or("window unknown".to_owned(), |window| {
        format!("window {} tokens", grouped(window))
    });
    let dialect = format!("{:?}", settings.model.client.dialect()).to_lowercase();
    let text = format!("{}, {dialect}, {window}", on_one_line(&settings.model.name));
    screen.line(style::STRONG, &text);
    if is_unknown {
        screen.line(style::WARN, "set it with --window TOKENS");
    }
    Ok(())
}

/// Lists the presets, or changes to one.
pub(super) fn preset(
    chat: &mut OpenChat,
    name: &str,
    screen: &mut Screen<'_>,
) -> Result<(), Failure> {
    if name.is_empty() {
        let now = &chat.agent.settings().policy.preset;
        let row = |preset: &trimtab::engine::policy::Preset| {
            let mark = if preset.name == now { "*" } else { " " };
            [
                mark.to_owned(),
                preset.name.to_owned(),
                preset.about.to_owned(),
            ]
        };
        let rows: Vec<_> = PRESETS.iter().map(row).collect();
        screen.lines(&lined_up(&rows, [Align::Left; 3]));
        return Ok(());
    }
    let names = || PRESETS.iter().map(|preset| preset.name);
    if !names().any(|known| known == name) {
        let near = nearest(name, names()).map(|near| format!("did you mean {near}? "));
        return Err(Failure::input(
            format!("there is no preset '{}'", on_one_line(name)),
            format!("{}/preset shows all presets", near.unwrap_or_default()),
        ));
    }
    let choice = ChatChoice {
        preset: Some(name.to_owned()),
        ..chat.choice.clone()
    };
    chat.change(choice)?;
    let text = format!("preset {name} from now on; earlier plans stay");
    screen.line(style::STRONG, &text);
    Ok(())
}

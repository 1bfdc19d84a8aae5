//! Images and other media: large in bytes, and the oldest are the first to go.

use trimtab_model::{Media, Output, Part};

use super::ageing::position;
use super::survivors::must_stay;
use super::{Conditions, Conversation};
use crate::plan::Edit;

/// A part with media in it, which is to be shown as text.
#[derive(Clone, Debug)]
pub struct MediaPlace {
    message: usize,
    part: usize,
    what: Shown,
}

#[derive(Clone, Debug)]
enum Shown {
    /// A part of its own: nobody has stored it yet.
    Alone(Media),
    /// Inside an output, which is stored.
    InOutput(Output),
}

/// The oldest media, as many as it takes to get below the limit by bytes; never those that the
/// next answer is about.
pub(super) fn media_to_shed(
    conversation: &Conversation<'_>,
    conditions: &Conditions<'_>,
) -> Vec<MediaPlace> {
    let Some(mut over) = conditions.excess_bytes(conversation.window) else {
        return Vec::new();
    };
    // Of the task the words stay.
    let must = must_stay(conversation.slots, 0);
    let mut places = Vec::new();
    for (at, slot) in conversation.slots.iter().enumerate() {
        let Some(message) = position(slot).filter(|_| !must.contains(&at)) else {
            continue;
        };
        for (part, found) in slot.message.parts.iter().enumerate() {
            if over == 0 {
                return places;
            }
            let (what, bytes) = match found {
                Part::Media(media) => (Shown::Alone(media.clone()), bytes(found)),
                Part::Output(output) if output.content.iter().any(is_media) => {
                    let media = output.content.iter().filter(|part| is_media(part));
                    (Shown::InOutput(output.clone()), media.map(bytes).sum())
                }
                _ => continue,
            };
            over = over.saturating_sub(bytes);
            places.push(MediaPlace {
                message,
                part,
                what,
            });
        }
    }
    places
}

impl MediaPlace {
    /// What has to be stored before the edit can name it, as JSON; none if it is stored.
    pub fn to_store(&self) -> Option<&str> {
        match &self.what {
            Shown::Alone(media) => Some(media.raw.as_str()),
            Shown::InOutput(_) => None,
        }
    }

    /// The edit that shows it as text; `id` is that of the ref where it was stored.
    pub fn edit(self, id: Option<&str>) -> Edit {
        let (message, part) = (self.message, self.part);
        match self.what {
            Shown::Alone(media) => Edit::ShowAsText {
                message,
                part,
                text: placeholder(&Part::Media(media), id),
            },
            Shown::InOutput(mut output) => {
                let stored = output.stored.as_ref().map(|stored| stored.id().to_owned());
                for content in &mut output.content {
                    if is_media(content) {
                        *content = Part::text(placeholder(content, stored.as_deref()));
                    }
                }
                output.trimmed = true;
                Edit::Show {
                    message,
                    part,
                    output,
                }
            }
        }
    }
}

fn is_media(part: &Part) -> bool {
    matches!(part, Part::Media(_))
}

fn bytes(part: &Part) -> u64 {
    match part {
        Part::Media(media) => media.raw.as_str().len() as u64,
        _ => 0,
    }
}

fn placeholder(part: &Part, id: Option<&str>) -> String {
    let kind = match part {
        Part::Media(media) => media.kind.name(),
        _ => "media",
    };
    let size = bytes(part);
    id.map_or_else(
        || format!("[{kind} left out; {size} bytes]"),
        |id| format!("[{kind} left out; {size} bytes; ref={id}]"),
    )
}

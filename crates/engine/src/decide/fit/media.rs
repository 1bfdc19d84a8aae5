//! Removes images and other media, oldest first, if a request has too many bytes.

use trimtab_model::{Part, Ref};

use crate::decide::must_stay::MustStay;
use crate::decide::{ConversationState, PlanStep};
use crate::plan::Edit;

/// A part with media that is to be shown as text.
#[derive(Clone, Debug)]
pub struct MediaPlace {
    message: usize,
    part: usize,
    /// Media that are not stored yet, or an output with media, which is stored.
    shown: Part,
}

/// A step that removes the oldest media, as many as needed to get below the byte limit; never those
/// that the next answer depends on. A request with too many bytes is rejected however many tokens
/// are free.
pub fn shed_media(conversation: &ConversationState<'_>) -> Option<PlanStep> {
    let mut over = conversation.excess_bytes();
    if over == 0 {
        return None;
    }
    // The text of the task stays, but its media may go.
    let slots = conversation.slots;
    let must = MustStay::of(conversation, slots).newest(slots);
    let mut places = Vec::new();
    for (at, slot) in slots.iter().enumerate() {
        let Some(message) = slot.source.in_log().filter(|_| !must.contains(&at)) else {
            continue;
        };
        for (part, shown) in slot.message.parts.iter().enumerate() {
            let bytes = bytes(shown);
            if bytes > 0 && over > 0 && !conversation.log.is_whole(message, part) {
                over = over.saturating_sub(bytes);
                let shown = shown.clone();
                places.push(MediaPlace {
                    message,
                    part,
                    shown,
                });
            }
        }
    }
    (!places.is_empty()).then_some(PlanStep::Media(places))
}

impl MediaPlace {
    /// The JSON that must be stored before the edit can name it; none if it is stored.
    pub fn to_store(&self) -> Option<&str> {
        match &self.shown {
            Part::Media(media) => Some(media.raw.as_str()),
            _ => None,
        }
    }

    /// The edit that shows it as text. `id` is its ref, if it was stored.
    pub fn edit(self, id: Option<&str>) -> Edit {
        let (message, part) = (self.message, self.part);
        let Part::Output(mut output) = self.shown else {
            let text = placeholder(&self.shown, id);
            return Edit::ShowAsText {
                message,
                part,
                text,
            };
        };
        let stored = output.stored.clone();
        for content in &mut output.content {
            if bytes(content) > 0 {
                *content = Part::text(placeholder(content, stored.as_ref().map(Ref::id)));
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

/// The bytes of the media in a part.
fn bytes(part: &Part) -> u64 {
    match part {
        Part::Media(media) => media.raw.as_str().len() as u64,
        Part::Output(output) => output.content.iter().map(bytes).sum(),
        _ => 0,
    }
}

fn placeholder(part: &Part, id: Option<&str>) -> String {
    let kind = match part {
        Part::Media(media) => media.kind.name(),
        _ => "media",
    };
    let size = bytes(part);
    let named = id.map_or_else(String::new, |id| format!("; ref={id}"));
    format!("[{kind} left out; {size} bytes{named}]")
}

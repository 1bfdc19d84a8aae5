//! The provider's ids of entries.

use trimtab_model::{ExtraFields, Message, Part, RawJson};

use crate::spelling_marks;

/// The message without the ids of its entries.
///
/// A provider rejects an entry with a known id if the reasoning that came with it is missing, so
/// ids are removed together with reasoning. Calls keep the id that their outputs name.
///
/// ```
/// use trimtab_wire::responses::{read_input, without_ids, write_input};
///
/// let json = r#"[{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"}]"#;
/// let call = &read_input(json).unwrap()[0];
/// let written = write_input(&[without_ids(call)]);
/// assert!(!written[0].as_str().contains("fc_1") && written[0].as_str().contains("call_id"));
/// ```
#[must_use]
pub fn without_ids(message: &Message) -> Message {
    let mut message = message.clone();
    for part in &mut message.parts {
        let extra = match part {
            Part::Text(text) => &mut text.extra,
            Part::Call(call) => &mut call.extra,
            Part::Output(output) => &mut output.extra,
            Part::Opaque(opaque) => {
                forget_own_id(&mut opaque.raw);
                continue;
            }
            Part::Reasoning(_) | Part::Media(_) => continue,
        };
        forget(extra);
    }
    message
}

/// Programs and other entries of the provider are found by their `call_id` as well.
fn forget_own_id(json: &mut RawJson) {
    let mut value = json.to_value();
    let fields = value.as_object_mut();
    let fields = fields.filter(|fields| fields.contains_key("call_id"));
    if fields.is_some_and(|fields| fields.remove("id").is_some()) {
        *json = RawJson::of(&value);
    }
}

fn forget(extra: &mut ExtraFields) {
    extra.retain(|(name, _)| name != "id");
    for (name, json) in extra {
        // These marks hold JSON of the original entry, which is written back and contains the id as
        // well.
        if name == spelling_marks::ITEM || name == spelling_marks::RAW {
            let mut value = json.to_value();
            let known = value.as_object_mut().and_then(|fields| fields.remove("id"));
            if known.is_some() {
                *json = RawJson::of(&value);
            }
        }
    }
}

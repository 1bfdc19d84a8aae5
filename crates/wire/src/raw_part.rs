//! Parts that are kept in their original form.

use serde_json::value::RawValue;
use trimtab_model::{Media, MediaKind, Opaque, Part};

use crate::json::owned;

/// An image, a document or audio.
pub(crate) fn media(kind: MediaKind, raw: &RawValue) -> Part {
    let raw = owned(raw);
    Part::Media(Media { kind, raw })
}

/// A part that the model of a conversation does not know.
pub(crate) fn opaque(type_name: &str, raw: &RawValue) -> Part {
    Part::Opaque(Opaque {
        type_name: type_name.to_owned(),
        raw: owned(raw),
    })
}

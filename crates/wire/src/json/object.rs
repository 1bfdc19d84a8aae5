//! Writes JSON by appending to a string.

use serde_json::value::RawValue;
use trimtab_model::{ExtraFields, RawJson, marks};

/// An object under construction.
#[derive(Debug)]
pub(crate) struct ObjectWriter(String);

impl ObjectWriter {
    /// An empty object.
    pub(crate) fn new() -> Self {
        Self(String::from("{"))
    }

    /// Adds a field with a JSON value.
    #[must_use]
    pub(crate) fn raw(mut self, name: &str, json: &str) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&quoted(name));
        self.0.push(':');
        self.0.push_str(json);
        self
    }

    /// Adds a text field.
    #[must_use]
    pub(crate) fn text(self, name: &str, text: &str) -> Self {
        self.raw(name, &quoted(text))
    }

    /// Adds a field, if there is a value.
    #[must_use]
    pub(crate) fn maybe(self, name: &str, json: Option<String>) -> Self {
        match json {
            Some(json) => self.raw(name, &json),
            None => self,
        }
    }

    /// Adds `name: true` if `set`.
    #[must_use]
    pub(crate) fn flag(self, name: &str, set: bool) -> Self {
        if set { self.raw(name, "true") } else { self }
    }

    /// Adds the unknown fields, except our marks and the names in `but`.
    #[must_use]
    pub(crate) fn extra(mut self, extra: &ExtraFields, but: &[&str]) -> Self {
        for (name, value) in extra {
            if !marks::is_mark(name) && !but.contains(&name.as_str()) {
                self = self.raw(&marks::sent_name(name), value.as_str());
            }
        }
        self
    }

    /// The finished object.
    pub(crate) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }

    /// The finished object, as a value of the model.
    pub(crate) fn end_raw(self) -> RawJson {
        let text = self.end();
        // The writer produces valid JSON if its callers pass valid JSON; `null` is the harmless
        // default.
        RawValue::from_string(text).map_or_else(|_| RawJson::of(&()), RawJson::from)
    }
}

/// `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// The elements as a JSON list.
pub(crate) fn array<S: AsRef<str>>(elements: impl IntoIterator<Item = S>) -> String {
    let mut list = String::from("[");
    for element in elements {
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(element.as_ref());
    }
    list.push(']');
    list
}

//! A prompt in one form, so that two of them can be compared from the front.
//!
//! Tools come first, then the system, then the messages, as providers lay them out. Keys are
//! sorted and cache markers left out: neither changes what the model sees.

use blake3::{Hash, Hasher};
use serde_json::Value;
use trimtab_model::Dialect;

/// Fields that only steer the cache.
const MARKERS: [&str; 2] = ["cache_control", "prompt_cache_breakpoint"];

/// A prompt in canonical form.
pub(super) struct CanonicalPrompt {
    pub(super) bytes: Vec<u8>,
    /// Where the last part with a cache marker ends.
    pub(super) marked: Option<usize>,
    /// The same for markers that ask for the long lifetime.
    pub(super) marked_long: Option<usize>,
    /// The sealed thoughts in it.
    pub(super) claims: Vec<SealClaim>,
    /// Digest of everything but thoughts. They do not count: a provider takes old ones out
    /// by itself.
    pub(super) digest: Hash,
}

/// A sealed thought that is sent back.
pub(super) struct SealClaim {
    /// How the provider names it in an error.
    pub(super) path: String,
    /// The readable thought.
    pub(super) thought: String,
    pub(super) seal: String,
    /// Digest of everything before it.
    pub(super) before: Hash,
}

#[derive(Default)]
struct CanonicalWriter {
    bytes: Vec<u8>,
    marked: Option<usize>,
    marked_long: Option<usize>,
    claims: Vec<SealClaim>,
    hasher: Hasher,
}

impl CanonicalPrompt {
    /// The canonical form of `body`.
    pub(super) fn new(body: &Value, dialect: Dialect) -> Self {
        let mut writer = CanonicalWriter::default();
        writer.tools(body.get("tools"));
        match dialect {
            Dialect::Chat => writer.units("", body.get("messages")),
            Dialect::Responses => {
                writer.parts("system", body.get("instructions"), "");
                match body.get("input") {
                    Some(Value::String(text)) => writer.text("user", text),
                    input => writer.units("", input),
                }
            }
            Dialect::Messages => writer.messages(body),
        }
        // A marker of the whole request stands for one at its end.
        writer.mark(body);
        let digest = writer.hasher.finalize();
        Self {
            bytes: writer.bytes,
            marked: writer.marked,
            marked_long: writer.marked_long,
            claims: writer.claims,
            digest,
        }
    }
}

impl CanonicalWriter {
    fn messages(&mut self, body: &Value) {
        self.parts("system", body.get("system"), "system");
        let messages = body.get("messages").and_then(Value::as_array);
        for (at, message) in messages.into_iter().flatten().enumerate() {
            let role = message.get("role").and_then(Value::as_str);
            let path = format!("messages.{at}.content");
            self.parts(role.unwrap_or_default(), message.get("content"), &path);
        }
    }

    /// A text, or a list of parts: a text is a list of one.
    fn parts(&mut self, role: &str, content: Option<&Value>, path: &str) {
        match content {
            Some(Value::String(text)) => self.text(role, text),
            Some(Value::Array(parts)) => {
                for (at, part) in parts.iter().enumerate() {
                    self.unit(role, part, || format!("{path}.{at}"));
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, role: &str, text: &str) {
        let part = serde_json::json!({"type": "text", "text": text});
        self.unit(role, &part, String::new);
    }

    /// The definitions that the model sees from the start: a deferred one enters the prompt only
    /// where it is found.
    fn tools(&mut self, list: Option<&Value>) {
        for tool in list.and_then(Value::as_array).into_iter().flatten() {
            if tool.get("defer_loading") != Some(&Value::Bool(true)) {
                self.unit("tools", tool, String::new);
            }
        }
    }

    /// Notes the marker of `value`, which ends here.
    fn mark(&mut self, value: &Value) {
        let markers = MARKERS.iter().filter_map(|name| value.get(name));
        for marker in markers.filter(|marker| !marker.is_null()) {
            self.marked = Some(self.bytes.len());
            if marker.get("ttl").and_then(Value::as_str) == Some("1h") {
                self.marked_long = self.marked;
            }
        }
    }

    fn units(&mut self, role: &str, list: Option<&Value>) {
        for value in list.and_then(Value::as_array).into_iter().flatten() {
            let id = value.get("id").and_then(Value::as_str).unwrap_or_default();
            self.unit(role, value, || id.to_owned());
        }
    }

    fn unit(&mut self, role: &str, value: &Value, path: impl Fn() -> String) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(role.as_bytes());
        write(value, &mut self.bytes);
        self.bytes.push(b'\n');
        self.mark(value);
        if let Some((thought, seal)) = reasoning(value) {
            if let Some(seal) = seal {
                let before = self.hasher.finalize();
                self.claims.push(SealClaim {
                    path: path(),
                    thought: thought.to_owned(),
                    seal: seal.to_owned(),
                    before,
                });
            }
        } else if let Some(written) = self.bytes.get(start..) {
            self.hasher.update(written);
        }
    }
}

/// The readable thought and its seal, if `value` is a thought.
fn reasoning(value: &Value) -> Option<(&str, Option<&str>)> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    match text("type")? {
        "thinking" => Some((text("thinking").unwrap_or_default(), text("signature"))),
        "redacted_thinking" => Some(("", text("data"))),
        "reasoning" => Some(("", text("encrypted_content"))),
        _ => None,
    }
}

/// Writes `value` with its keys in order and without cache markers.
fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(object) => {
            let mut fields: Vec<_> = object.iter().collect();
            fields.retain(|(name, _)| !MARKERS.contains(&name.as_str()));
            fields.sort_unstable_by_key(|(name, _)| *name);
            out.push(b'{');
            for (name, value) in fields {
                scalar(&Value::String(name.clone()), out);
                write(value, out);
            }
            out.push(b'}');
        }
        Value::Array(list) => {
            out.push(b'[');
            for value in list {
                write(value, out);
                out.push(b',');
            }
            out.push(b']');
        }
        other => scalar(other, out),
    }
}

fn scalar(value: &Value, out: &mut Vec<u8>) {
    // Writing a scalar to memory cannot fail.
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bytes(body: &Value) -> Vec<u8> {
        CanonicalPrompt::new(body, Dialect::Messages).bytes
    }

    #[test]
    fn markers_order_of_keys_and_the_short_form_make_no_difference() {
        let one = json!({"system": "s", "messages": [{"role": "user", "content": "hi"}]});
        let two = json!({
            "messages": [{"content": [{"text": "hi", "type": "text"}], "role": "user"}],
            "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        });
        assert_eq!(bytes(&one), bytes(&two));
        let three = json!({"system": "s", "messages": [{"role": "user", "content": "ho"}]});
        assert_ne!(bytes(&one), bytes(&three));
    }

    #[test]
    fn a_longer_conversation_begins_with_the_shorter_one() {
        let user = json!({"role": "user", "content": "hi"});
        let said = json!({"role": "assistant", "content": "ho"});
        for dialect in Dialect::ALL {
            let name = if dialect == Dialect::Responses {
                "input"
            } else {
                "messages"
            };
            let short = CanonicalPrompt::new(&json!({name: [user]}), dialect);
            let long = CanonicalPrompt::new(&json!({name: [user, said]}), dialect);
            assert!(long.bytes.starts_with(&short.bytes), "{dialect}");
        }
    }
}

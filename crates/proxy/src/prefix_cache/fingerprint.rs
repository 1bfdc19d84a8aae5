//! Fingerprints of messages, by which a conversation is recognised when it comes back longer.
//!
//! A client sends its whole conversation every time. Between two requests cache markers move
//! and a text flips between a string and a list of one part; neither makes it another
//! message. A fingerprint is a keyed hash of what is left, taken from the bytes of the body without
//! reading the messages.

use trimtab_model::{Role, work};
use trimtab_wire::scan::{BodyScan, PartKind, PartSpan, Span};
use xxhash_rust::xxh3::{Xxh3, xxh3_128_with_secret};

use serde_json::value::RawValue;

/// The fingerprint of a message, or of a chain of them.
pub(crate) type Fingerprint = u128;

/// The fingerprints of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FingerprintChain {
    /// The number of leading system messages.
    head: usize,
    /// For each leading system message its own fingerprint. For each later message the fingerprint
    /// of all messages after the system messages, up to it.
    fingerprints: Vec<Fingerprint>,
    /// The positions at which answers of the model begin.
    answers: Vec<usize>,
    /// True if the last message belongs to an answer.
    ends_with_answer: bool,
}

impl FingerprintChain {
    /// The fingerprints of a body.
    pub(crate) fn of(scan: &BodyScan<'_>, key: &[u8; 192]) -> Self {
        let printer = Fingerprinter::new(scan, key);
        let mut chain = Self::default();
        for message in 0..scan.len() {
            let role = scan.role(message).unwrap_or(Role::User);
            chain.push(printer.message(message, role), role);
        }
        chain
    }

    /// The fingerprints of a body whose list of messages begins with the first `listed` messages of
    /// the list that these are the fingerprints of. `head` messages are before that list.
    ///
    /// Known fingerprints stay where they are, so that only new messages cost anything.
    pub(crate) fn continued(
        mut self,
        scan: &BodyScan<'_>,
        key: &[u8; 192],
        head: usize,
        listed: usize,
    ) -> Self {
        // A system field that came or went moves all positions.
        if scan.first_in_list() != head {
            return Self::of(scan, key);
        }
        let printer = Fingerprinter::new(scan, key);
        let role = |at: usize| scan.role(at).unwrap_or(Role::User);
        let known = head + listed;
        self.truncate(known);
        self.ends_with_answer = known.checked_sub(1).map(role) == Some(Role::Assistant);
        // The system field may stand behind the list, so its message may be new.
        if head > 0
            && let Some(first) = self.fingerprints.first_mut()
        {
            *first = printer.message(0, Role::System);
        }
        for message in known..scan.len() {
            let role = role(message);
            self.push(printer.message(message, role), role);
        }
        self
    }

    fn truncate(&mut self, length: usize) {
        self.fingerprints.truncate(length);
        self.head = self.head.min(length);
        let answers = self.answers.partition_point(|answer| *answer < length);
        self.answers.truncate(answers);
    }

    /// Adds a message with its own fingerprint.
    pub(crate) fn push(&mut self, own: Fingerprint, role: Role) {
        let at = self.fingerprints.len();
        // Leading system messages are not chained: a client may change them in every call, and the
        // rest of the conversation must still be recognised.
        if role == Role::System && at == self.head {
            self.head += 1;
            return self.fingerprints.push(own);
        }
        self.note_role(at, role);
        let before = if at > self.head {
            self.fingerprints.last().copied().unwrap_or_default()
        } else {
            0
        };
        self.fingerprints.push(chained(before, own));
    }

    /// Number of messages.
    pub(crate) fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// The fingerprint at a position.
    pub(crate) fn get(&self, at: usize) -> Option<Fingerprint> {
        self.fingerprints.get(at).copied()
    }

    /// The fingerprint of the first message after the system messages, which identifies a
    /// conversation.
    pub(crate) fn first_message(&self) -> Option<Fingerprint> {
        self.get(self.head)
    }

    /// Adds a message whose chained fingerprint is known.
    pub(crate) fn restore(&mut self, fingerprint: Fingerprint, role: Role) {
        let at = self.fingerprints.len();
        if role == Role::System && at == self.head {
            self.head += 1;
        } else {
            self.note_role(at, role);
        }
        self.fingerprints.push(fingerprint);
    }

    /// Notes where answers begin. In one dialect an answer is several messages.
    fn note_role(&mut self, at: usize, role: Role) {
        let is_answer = role == Role::Assistant;
        if is_answer && !self.ends_with_answer {
            self.answers.push(at);
        }
        self.ends_with_answer = is_answer;
    }

    /// The number of messages that both have in common at their beginning.
    ///
    /// System messages may change from call to call, because some clients put the time into them.
    /// They count only before the first answer, where nothing else can distinguish two
    /// conversations.
    pub(crate) fn common_length(&self, other: &Self) -> usize {
        if self.head != other.head {
            return 0;
        }
        let ours = self.fingerprints.get(self.head..).unwrap_or_default();
        let theirs = other.fingerprints.get(self.head..).unwrap_or_default();
        // Each fingerprint covers all before it, so chains that are equal at one place are equal
        // everywhere before. A binary search finds the last such place.
        let pairs = ours.len().min(theirs.len());
        let (mut equal, mut unequal) = (0, pairs + 1);
        while equal + 1 < unequal {
            let middle = usize::midpoint(equal, unequal);
            let same = ours.get(middle - 1) == theirs.get(middle - 1);
            if same {
                equal = middle;
            } else {
                unequal = middle;
            }
        }
        let common = self.head + equal;
        if self.has_answer_before(common)
            || self.fingerprints.get(..self.head) == other.fingerprints.get(..self.head)
        {
            common
        } else {
            0
        }
    }

    /// True if there is an answer before `length`.
    pub(crate) fn has_answer_before(&self, length: usize) -> bool {
        self.answers.first().is_some_and(|answer| *answer < length)
    }

    /// The number of answers that begin at `length` or later.
    pub(crate) fn answers_from(&self, length: usize) -> usize {
        let before = self.answers.partition_point(|answer| *answer < length);
        self.answers.len() - before
    }
}

fn chained(before: Fingerprint, own: Fingerprint) -> Fingerprint {
    let mut bytes = [0; 32];
    let (first, second) = bytes.split_at_mut(16);
    first.copy_from_slice(&before.to_le_bytes());
    second.copy_from_slice(&own.to_le_bytes());
    // Both inputs are keyed already, so this hash needs no key.
    xxhash_rust::xxh3::xxh3_128(&bytes)
}

/// Computes the fingerprints of a body.
struct Fingerprinter<'s, 'a> {
    scan: &'s BodyScan<'a>,
    key: &'s [u8; 192],
    /// The fields of cache markers, by position.
    markers: Vec<Span>,
}

impl<'s, 'a> Fingerprinter<'s, 'a> {
    fn new(scan: &'s BodyScan<'a>, key: &'s [u8; 192]) -> Self {
        let markers = scan.request().markers.iter();
        let mut markers: Vec<Span> = markers.map(|marker| marker.field).collect();
        markers.sort_unstable();
        Self { scan, key, markers }
    }

    fn message(&self, at: usize, role: Role) -> Fingerprint {
        work::step(1 + self.scan.parts(at).len());
        let mut hasher = Xxh3::with_secret(*self.key);
        hasher.update(&[role as u8]);
        for part in self.scan.parts(at) {
            self.part(part, &mut hasher);
        }
        hasher.digest128()
    }

    fn part(&self, part: &PartSpan, hasher: &mut Xxh3) {
        // Only what a provider reads is hashed: the text, the id and the arguments. Field order and
        // unknown fields of the part may change without making another message.
        let (tag, name) = match part.kind {
            PartKind::Text => (0, None),
            PartKind::Reasoning { .. } => (1, None),
            PartKind::Media(_) => (2, None),
            PartKind::Call => (3, self.scan.call_name(part)),
            PartKind::Output => (4, None),
            PartKind::Opaque => (5, None),
        };
        hasher.update(&[tag]);
        match part.kind {
            PartKind::Text => self.add(part.content, hasher),
            PartKind::Call => {
                add_text(name.as_deref().unwrap_or_default(), hasher);
                self.add(part.id, hasher);
                self.add(part.content, hasher);
            }
            PartKind::Output => {
                self.add(part.id, hasher);
                self.output(part.content, hasher);
            }
            // These parts have no text that stands for them, so all of their bytes count.
            _ => self.unmarked(part.span, hasher),
        }
    }

    /// Hashes the content of an output. A string and a list with one text part are equal.
    fn output(&self, content: Span, hasher: &mut Xxh3) {
        let json = self.scan.json(content);
        if !json.starts_with('[') {
            return add_text(json, hasher);
        }
        let Ok(parts) = serde_json::from_str::<Vec<&RawValue>>(json) else {
            return self.unmarked(content, hasher);
        };
        for part in parts {
            match serde_json::from_str::<TextPart<'_>>(part.get()) {
                Ok(TextPart {
                    kind: "text" | "input_text" | "output_text",
                    text,
                }) => {
                    add_text(text.get(), hasher);
                }
                _ => self.unmarked(Span::of_slice(self.scan.text(), part.get()), hasher),
            }
        }
    }

    fn add(&self, span: Span, hasher: &mut Xxh3) {
        add_text(self.scan.json(span), hasher);
    }

    /// Hashes the bytes of a part as if it had no cache markers.
    fn unmarked(&self, span: Span, hasher: &mut Xxh3) {
        let before = |place: u32| self.markers.partition_point(|marker| marker.start < place);
        let inside = self.markers.get(before(span.start)..before(span.end));
        let mut at = span.start;
        for marker in inside.unwrap_or_default() {
            let before = Span {
                start: at,
                end: marker.start,
            };
            let before = self.scan.json(before).trim_end();
            at = marker.end;
            // A field is removed with one of its commas: the one before it, or, as the first field
            // of its object, the one after it.
            if let Some(kept) = before.strip_suffix(',') {
                hasher.update(kept.as_bytes());
            } else {
                hasher.update(before.as_bytes());
                at += self.comma_at(at, span.end);
            }
        }
        hasher.update(
            self.scan
                .json(Span {
                    start: at,
                    end: span.end,
                })
                .as_bytes(),
        );
        hasher.update(&[0]);
    }

    /// The length of the comma at an offset, with white space around it.
    fn comma_at(&self, start: u32, end: u32) -> u32 {
        let rest = self.scan.json(Span { start, end });
        let Some(after) = rest.trim_start().strip_prefix(',') else {
            return 0;
        };
        u32::try_from(rest.len() - after.trim_start().len()).unwrap_or(0)
    }
}

/// Hashes a text and a terminator, so that no two lists of texts give the same bytes.
fn add_text(text: &str, hasher: &mut Xxh3) {
    hasher.update(text.as_bytes());
    hasher.update(&[0]);
}

#[derive(serde::Deserialize)]
struct TextPart<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    text: &'a RawValue,
}

/// The fingerprint of a single text.
pub(crate) fn fingerprint_of(text: &[u8], key: &[u8; 192]) -> Fingerprint {
    xxh3_128_with_secret(text, key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::Dialect;

    const KEY: [u8; 192] = [7; 192];

    fn chain(dialect: Dialect, body: &str) -> FingerprintChain {
        FingerprintChain::of(&BodyScan::new(body.as_bytes(), dialect).unwrap(), &KEY)
    }

    fn messages(list: &str) -> FingerprintChain {
        chain(Dialect::Messages, &format!(r#"{{"messages": [{list}]}}"#))
    }

    #[test]
    fn markers_and_shape_make_no_other_message() {
        let plain = messages(
            r#"{"role":"user","content":"hi"},
            {"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"c","name":"f","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"out"}]},
            {"role":"user","content":[{"type":"image","source":{"x":1}}]}"#,
        );
        let marked = messages(
            r#"{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]},
            {"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"c","name":"f","input":{}}]},
            {"role":"user","content":[{"cache_control":{"type":"ephemeral"},"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"out"}]}]},
            {"role":"user","content":[{"type":"image","source":{"x":1},"cache_control":{"type":"ephemeral"}}]}"#,
        );
        assert_eq!(plain, marked);
        let first = messages(
            r#"{"role":"user","content":[{"cache_control":{"a":1}, "type":"image","source":{"x":1}}]}"#,
        );
        let none = messages(r#"{"role":"user","content":[{"type":"image","source":{"x":1}}]}"#);
        assert_eq!(first, none);
    }

    #[test]
    fn different_messages_have_different_fingerprints() {
        let one = r#"{"role":"user","content":"q"}"#;
        let same = messages(one);
        let others = [
            r#"{"role":"user","content":"Q"}"#,
            r#"{"role":"assistant","content":"q"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"q"},{"type":"text","text":""}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"q"}]}"#,
        ];
        for other in others {
            assert_eq!(same.common_length(&messages(other)), 0, "{other}");
        }
        let call = |id: &str, name: &str, input: &str| {
            messages(&format!(
                r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}]}}"#
            ))
        };
        let asked = call("c", "f", "{}");
        for other in [
            call("d", "f", "{}"),
            call("c", "g", "{}"),
            call("c", "f", "{\"a\":1}"),
        ] {
            assert_eq!(asked.common_length(&other), 0);
        }
    }

    #[test]
    fn a_longer_conversation_is_recognised_by_its_beginning() {
        let chat = |list: &str| chain(Dialect::Chat, &format!(r#"{{"messages": [{list}]}}"#));
        let system = r#"{"role":"system","content":"12:00"}"#;
        let later = r#"{"role":"system","content":"12:01"}"#;
        let said = r#"{"role":"user","content":"q"},{"role":"assistant","content":"a"}"#;
        let before = chat(&format!("{system},{said}"));
        let grown = chat(&format!(
            r#"{system},{said},{{"role":"user","content":"more"}}"#
        ));
        assert_eq!(
            (before.common_length(&grown), grown.common_length(&before)),
            (3, 3)
        );
        // The system may change once the model has spoken, and not before.
        assert_eq!(before.common_length(&chat(&format!("{later},{said}"))), 3);
        let asked = |system: &str| chat(&format!(r#"{system},{{"role":"user","content":"q"}}"#));
        assert_eq!(asked(system).common_length(&asked(later)), 0);
        assert_eq!(asked(system).common_length(&asked(system)), 2);
        let forked = chat(&format!(
            r#"{system},{{"role":"user","content":"q"}},{{"role":"assistant","content":"b"}}"#
        ));
        assert_eq!(before.common_length(&forked), 2);
        assert_eq!(before.common_length(&chat(said)), 0);
    }

    #[test]
    fn a_kept_trail_is_the_same_trail() {
        let whole = messages(
            r#"{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"r"}"#,
        );
        let mut kept = FingerprintChain::default();
        for (at, role) in [Role::User, Role::Assistant, Role::User]
            .into_iter()
            .enumerate()
        {
            kept.restore(whole.get(at).unwrap(), role);
        }
        assert_eq!(kept, whole);
    }
}

//! Request bodies of every shape that clients send, in every JSON spelling.
//!
//! None of them needs management: outputs are short, and no text repeats.

use std::fmt::Write as _;

use trimtab_model::Dialect;

use crate::shapes_chat::chat;
use crate::shapes_messages::messages;
use crate::shapes_responses::responses;

/// Random numbers, the same in every run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number.
    pub(crate) fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    /// A number below `most`.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.number()).unwrap() % most
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// A text that no other one is like.
    pub(crate) fn text(&mut self) -> String {
        const WORDS: [&str; 10] = [
            "read",
            "the",
            "log",
            "naïve",
            "日本語",
            "\"quoted\"",
            "a\\b",
            "line\nbreak",
            "😀",
            "tab\t",
        ];
        let mut text = format!("{:x}", self.number());
        for _ in 0..self.below(12) {
            text.push(' ');
            text.push_str(self.pick(&WORDS));
        }
        text
    }

    /// A text of about so many bytes.
    pub(crate) fn long_text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 32);
        while text.len() < bytes {
            let _ = write!(text, "{:x} some words of a long text. ", self.number());
        }
        text
    }
}

/// A JSON value that remembers its order, and may name a key twice.
#[derive(Clone, Debug)]
pub(crate) enum Json {
    /// As it is.
    Raw(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

pub(crate) fn raw(json: &str) -> Json {
    Json::Raw(json.to_owned())
}

pub(crate) fn text(text: impl Into<String>) -> Json {
    Json::Text(text.into())
}

pub(crate) fn object<const N: usize>(fields: [(&str, Json); N]) -> Json {
    let fields = fields.into_iter();
    Json::Object(
        fields
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

impl Json {
    pub(crate) fn with(mut self, name: &str, value: Json) -> Json {
        if let Json::Object(fields) = &mut self {
            fields.push((name.to_owned(), value));
        }
        self
    }

    fn write(&self, dice: &mut Dice, style: usize, out: &mut String) {
        let space = |dice: &mut Dice, out: &mut String| match style {
            1 => out.push(' '),
            2 => out.push_str("\n  "),
            3 => out.push_str(dice.pick(&["", " ", "\t", "\r\n"])),
            _ => {}
        };
        match self {
            Json::Raw(json) => out.push_str(json),
            Json::Text(text) => quote(text, style, out),
            Json::List(list) => {
                out.push('[');
                for (at, value) in list.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    space(dice, out);
                    value.write(dice, style, out);
                }
                space(dice, out);
                out.push(']');
            }
            Json::Object(fields) => {
                out.push('{');
                for (at, (name, value)) in fields.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    space(dice, out);
                    quote(name, 0, out);
                    space(dice, out);
                    out.push(':');
                    space(dice, out);
                    value.write(dice, style, out);
                }
                space(dice, out);
                out.push('}');
            }
        }
    }
}

fn quote(text: &str, style: usize, out: &mut String) {
    if style != 3 {
        out.push_str(&serde_json::to_string(text).unwrap());
        return;
    }
    out.push('"');
    for unit in text.encode_utf16() {
        match unit {
            0x20..=0x21 | 0x23..=0x5b | 0x5d..=0x7e => {
                out.push(char::from_u32(unit.into()).unwrap());
            }
            _ => {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out.push('"');
}

/// A body, and whether its provider is known to refuse it for something that we repair.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) dialect: Dialect,
    pub(crate) body: Vec<u8>,
    pub(crate) is_refused: bool,
}

/// The entries of a conversation while it is made.
#[derive(Default)]
pub(crate) struct Entries {
    pub(crate) list: Vec<Json>,
    pub(crate) is_refused: bool,
    calls: usize,
}

impl Entries {
    pub(crate) fn push(&mut self, entry: Json) {
        self.list.push(entry);
    }

    /// An id for a call that no other one has.
    pub(crate) fn call_id(&mut self) -> String {
        self.calls += 1;
        format!("call_{}", self.calls)
    }
}

/// The body with the number `number`: the same in every run.
pub(crate) fn shape(number: u64) -> Shape {
    let mut dice = Dice::new(number + 1);
    let dialect = Dialect::ALL[usize::try_from(number).unwrap() % 3];
    // On both sides of the size from which bodies are looked into, and some far above it.
    let bytes = match dice.below(40) {
        0 => 200_000 + dice.below(800_000),
        1..=4 => 30_000 + dice.below(60_000),
        5..=12 => dice.below(8_000),
        _ => 8_000 + dice.below(6_000),
    };
    let (body, is_refused) = match dialect {
        Dialect::Chat => chat(&mut dice, bytes),
        Dialect::Messages => messages(&mut dice, bytes),
        Dialect::Responses => responses(&mut dice, bytes),
    };
    let style = dice.below(4);
    let mut written = String::new();
    body.write(&mut dice, style, &mut written);
    if dice.once_in(9) {
        written.push('\n');
    }
    Shape {
        dialect,
        body: written.into_bytes(),
        is_refused,
    }
}

/// Fields that any request may have, known or not.
pub(crate) fn common_fields(dice: &mut Dice, mut body: Json) -> Json {
    let fields = [
        ("stream", raw("true")),
        ("stream", raw("false")),
        ("temperature", raw("0.70")),
        ("top_p", raw("1e-2")),
        ("seed", raw("184467440737095516160")),
        (
            "x_unknown",
            raw(r#"{"a": [1, 2.50, -0, 1E400], "a": null}"#),
        ),
        ("metadata", raw(r#"{"user_id": "u"}"#)),
        ("service_tier", text("auto")),
        ("", raw("[]")),
    ];
    for (name, value) in fields {
        if dice.once_in(3) {
            body = body.with(name, value);
        }
    }
    if dice.once_in(20) {
        body = body.with("x_unknown", raw("1")).with("x_unknown", raw("2"));
    }
    body
}

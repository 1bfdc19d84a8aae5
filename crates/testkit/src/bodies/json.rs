//! JSON spelled in as many ways as it allows.

use std::fmt::Write;

/// A piece of JSON.
#[derive(Clone, Debug)]
pub enum GeneratedJson {
    /// Anything, as it is written.
    Raw(String),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<GeneratedJson>),
    /// An object.
    Object(Vec<(String, GeneratedJson)>),
}

impl GeneratedJson {
    /// A string.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// An object.
    pub fn object<const N: usize>(fields: [(&str, GeneratedJson); N]) -> Self {
        let owned = fields.map(|(name, node)| (name.to_owned(), node));
        Self::Object(owned.into())
    }

    /// The same object with one more field.
    #[must_use]
    pub fn with(mut self, name: &str, node: GeneratedJson) -> Self {
        if let Self::Object(fields) = &mut self {
            fields.push((name.to_owned(), node));
        }
        self
    }

    /// The same object, with one more field if `wanted`.
    #[must_use]
    pub fn with_if(self, wanted: bool, name: &str, node: GeneratedJson) -> Self {
        if wanted { self.with(name, node) } else { self }
    }
}

/// Values that nobody asked for: they must survive as they are.
const ODD: [&str; 8] = [
    "1.50",
    "-0",
    "1e2",
    "123456789012345678901234567890",
    "\"\\ud83d\"",
    "\"\\/\\u00e9\"",
    "{\"a\": [[], {}, [null]], \"a\": {\"b\" :true}}",
    "[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]",
];

/// A way to spell JSON: the same number gives the same spelling. Zero is the plain way.
#[derive(Clone, Copy, Debug)]
pub struct JsonStyle(pub u64);

impl JsonStyle {
    /// Spells `node`.
    pub fn spell(mut self, node: &GeneratedJson) -> String {
        let mut out = String::new();
        self.node(node, &mut out);
        out
    }

    /// A number below `bound`; 0 in the plain style.
    fn roll(&mut self, bound: u64) -> u64 {
        if self.0 == 0 {
            return 0;
        }
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn space(&mut self, out: &mut String) {
        out.push_str(match self.roll(12) {
            9 => " ",
            10 => "\n\t",
            11 => "\r\n  ",
            _ => "",
        });
    }

    fn node(&mut self, node: &GeneratedJson, out: &mut String) {
        match node {
            GeneratedJson::Raw(raw) => out.push_str(raw),
            GeneratedJson::Text(text) => self.text(text, out),
            GeneratedJson::List(nodes) => {
                out.push('[');
                for (index, node) in nodes.iter().enumerate() {
                    self.separate(index, out);
                    self.node(node, out);
                    self.space(out);
                }
                self.space(out);
                out.push(']');
            }
            GeneratedJson::Object(fields) => self.object(fields, out),
        }
    }

    fn object(&mut self, fields: &[(String, GeneratedJson)], out: &mut String) {
        out.push('{');
        let mut index = 0;
        for (name, node) in fields {
            // A field that comes twice: the last one counts.
            if self.roll(25) == 24 {
                self.field(
                    index,
                    name,
                    &GeneratedJson::Raw("\"overruled\"".to_owned()),
                    out,
                );
                index += 1;
            }
            self.field(index, name, node, out);
            index += 1;
            if self.roll(14) == 13 {
                let odd = usize::try_from(self.roll(8)).unwrap_or(0);
                let raw = ODD.get(odd).copied().unwrap_or("0");
                self.field(index, "x_odd", &GeneratedJson::Raw(raw.to_owned()), out);
                index += 1;
            }
        }
        self.space(out);
        out.push('}');
    }

    fn field(&mut self, index: usize, name: &str, node: &GeneratedJson, out: &mut String) {
        self.separate(index, out);
        self.text(name, out);
        self.space(out);
        out.push(':');
        self.space(out);
        self.node(node, out);
        self.space(out);
    }

    fn separate(&mut self, index: usize, out: &mut String) {
        if index > 0 {
            out.push(',');
        }
        self.space(out);
    }

    fn text(&mut self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            let escaped = self.roll(40) == 39;
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                c if escaped || c < ' ' => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

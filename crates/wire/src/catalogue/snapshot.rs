//! The registry as text that is searched without parsing.
//!
//! One line a model, sorted by id, fields separated by tabs, trailing empty fields left out:
//!
//! ```text
//! id  provider  max_input  max_output  input  output  read  write  write_long  minimum  flags  retires  tiers
//! ```
//!
//! `provider` is empty where it is what stands before the first `/` of the id. Token counts end in
//! `k` where they are whole thousands. Prices are dollars per million tokens. `flags` are letters:
//! `r` reasons, `c` has a prompt cache. `tiers` are `above:input,output,read,write,write_long`,
//! joined by `;`. Lines that start with `#` come first and say where the data is from.
//!
//! Nothing is parsed until a model is asked for: a lookup is a binary search.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::price::Price;

/// The text of a whole registry, known to be well formed.
#[derive(Clone, Debug)]
pub(super) struct Snapshot(Cow<'static, str>);

/// A parsed line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SnapshotEntry<'a> {
    pub(super) id: &'a str,
    pub(super) provider: &'a str,
    pub(super) max_input: u64,
    pub(super) max_output: Option<u64>,
    pub(super) prices: RawPrices,
    pub(super) minimum: Option<u64>,
    pub(super) reasons: bool,
    pub(super) caches: bool,
    pub(super) retires: Option<&'a str>,
    pub(super) tiers: Vec<(u64, RawPrices)>,
}

/// Prices as in the registry; none if missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RawPrices {
    pub(super) input: Option<Price>,
    pub(super) output: Option<Price>,
    pub(super) read: Option<Price>,
    pub(super) write: Option<Price>,
    pub(super) write_long: Option<Price>,
}

impl Snapshot {
    /// The embedded snapshot: the registry with our own lines, merged on first use.
    pub(super) fn embedded() -> Self {
        static MERGED: LazyLock<Snapshot> = LazyLock::new(|| {
            let own = include_str!("../../data/own_models.tsv");
            Snapshot::registry().merged(&Snapshot(Cow::Borrowed(own)))
        });
        Self(Cow::Borrowed(MERGED.as_str()))
    }

    /// The embedded registry.
    pub(super) const fn registry() -> Self {
        Self(Cow::Borrowed(include_str!("../../data/models.tsv")))
    }

    /// Validates a snapshot; the error is the number of the first bad line, from 1.
    pub(super) fn parse(text: String) -> Result<Self, usize> {
        let mut before = "";
        for (number, line) in text
            .lines()
            .enumerate()
            .skip_while(|(_, line)| line.starts_with('#'))
        {
            match SnapshotEntry::parse(line) {
                // A binary search needs ascending ids.
                Some(entry) if entry.id > before => before = entry.id,
                _ => return Err(number + 1),
            }
        }
        Ok(Self(Cow::Owned(text)))
    }

    /// Accepts sorted lines written by [`SnapshotEntry::write`].
    pub(super) fn from_lines(lines: String) -> Self {
        Self(Cow::Owned(lines))
    }

    /// Merges both; for equal ids, the newer line wins.
    pub(super) fn merged(&self, newer: &Self) -> Self {
        let lines = self.lines().chain(newer.lines());
        // The map sorts by bytes, as the search expects, and a later line replaces an earlier one.
        let lines: BTreeMap<&str, &str> = lines.map(|line| (id_of(line), line)).collect();
        // The comments of the older snapshot say where the data comes from, and are kept.
        let about = self
            .as_str()
            .lines()
            .take_while(|line| line.starts_with('#'));
        let mut text = String::with_capacity(self.as_str().len() + newer.as_str().len());
        for line in about.chain(lines.into_values()) {
            text.push_str(line);
            text.push('\n');
        }
        Self(Cow::Owned(text))
    }

    /// The text.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Every line with a model, in order.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.body().lines()
    }

    /// The model with exactly this id.
    pub(super) fn get(&self, id: &str) -> Option<SnapshotEntry<'_>> {
        let line = self.starting_at(id).next()?;
        (id_of(line) == id)
            .then(|| SnapshotEntry::parse(line))
            .flatten()
    }

    /// The lines from the first id that is not less than `id`.
    pub(super) fn starting_at(&self, id: &str) -> impl Iterator<Item = &str> {
        let body = self.body();
        // Both are starts of lines (or the end), and the target line starts between them.
        let (mut low, mut high) = (0, body.len());
        while low < high {
            // The middle is a byte inside some line. Both bounds move to starts of lines, so the
            // range shrinks in every step.
            let (start, line) = line_around(body, low.midpoint(high));
            if id_of(line) < id {
                low = (start + line.len() + 1).min(body.len());
            } else {
                high = start;
            }
        }
        body.get(low..).unwrap_or_default().lines()
    }

    fn body(&self) -> &str {
        let mut rest: &str = &self.0;
        while rest.starts_with('#') {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        }
        rest
    }
}

/// The line that contains the byte at `offset`, and its start.
fn line_around(body: &str, offset: usize) -> (usize, &str) {
    let before = body.as_bytes().get(..offset).unwrap_or_default();
    let start = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |newline| newline + 1);
    (
        start,
        body.get(start..)
            .unwrap_or_default()
            .lines()
            .next()
            .unwrap_or_default(),
    )
}

/// The id of a line.
pub(super) fn id_of(line: &str) -> &str {
    line.split('\t').next().unwrap_or_default()
}

impl<'a> SnapshotEntry<'a> {
    /// Parses a line; none if it is invalid.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split('\t');
        let mut next = || fields.next().unwrap_or_default();
        let (id, provider) = (next(), next());
        let (max_input, max_output) = (optional(next(), tokens)?, optional(next(), tokens)?);
        let prices = RawPrices::read(&mut next)?;
        let minimum = optional(next(), tokens)?;
        let (flags, retires, tiers) = (next(), next(), next());
        let before_slash = id.split_once('/').map_or("", |(provider, _)| provider);
        // More fields than known mean a newer format, which must not be misread.
        (!id.is_empty() && fields.next().is_none()).then_some(Self {
            id,
            provider: if provider.is_empty() {
                before_slash
            } else {
                provider
            },
            max_input: max_input?,
            max_output,
            prices,
            minimum,
            reasons: flags.contains('r'),
            caches: flags.contains('c'),
            retires: Some(retires).filter(|date| !date.is_empty()),
            tiers: tiers
                .split_terminator(';')
                .map(tier)
                .collect::<Option<_>>()?,
        })
    }

    /// Appends the line, including its newline, to `text`.
    pub(super) fn write(&self, text: &mut String) {
        let before_slash = self.id.split_once('/').map_or("", |(provider, _)| provider);
        let provider = if self.provider == before_slash {
            ""
        } else {
            self.provider
        };
        let tiers: Vec<String> = self
            .tiers
            .iter()
            .map(|(above, prices)| format!("{}:{}", written(*above), joined(&prices.fields(), ',')))
            .collect();
        let [input, output, read, write, long] = self.prices.fields();
        let flags = [(self.reasons, 'r'), (self.caches, 'c')];
        let flags = flags
            .iter()
            .filter(|(set, _)| *set)
            .map(|(_, letter)| *letter)
            .collect();
        let fields = [
            self.id.to_owned(),
            provider.to_owned(),
            written(self.max_input),
            shown(self.max_output.map(written)),
            input,
            output,
            read,
            write,
            long,
            shown(self.minimum.map(written)),
            flags,
            self.retires.unwrap_or_default().to_owned(),
            tiers.join(";"),
        ];
        text.push_str(&joined(&fields, '\t'));
        text.push('\n');
    }
}

impl RawPrices {
    /// Parses five fields; none if one is not a price.
    fn read<'a>(next: &mut impl FnMut() -> &'a str) -> Option<Self> {
        let mut price = || optional(next(), Price::parse);
        Some(Self {
            input: price()?,
            output: price()?,
            read: price()?,
            write: price()?,
            write_long: price()?,
        })
    }

    fn fields(&self) -> [String; 5] {
        [
            self.input,
            self.output,
            self.read,
            self.write,
            self.write_long,
        ]
        .map(shown)
    }

    /// True if there is no price at all.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn tier(text: &str) -> Option<(u64, RawPrices)> {
    let (above, prices) = text.split_once(':')?;
    let mut fields = prices.split(',');
    let prices = RawPrices::read(&mut || fields.next().unwrap_or_default())?;
    Some((tokens(above)?, prices))
}

/// An optional field: the outer option tells whether the text is valid.
#[expect(clippy::option_option, reason = "wrong and absent are two things")]
fn optional<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Option<T>> {
    if text.is_empty() {
        Some(None)
    } else {
        parse(text).map(Some)
    }
}

/// A count of tokens, as `200000` or `200k`.
fn tokens(text: &str) -> Option<u64> {
    match text.strip_suffix('k') {
        Some(thousands) => thousands.parse::<u64>().ok()?.checked_mul(1000),
        None => text.parse().ok(),
    }
}

fn written(tokens: u64) -> String {
    if tokens > 0 && tokens.is_multiple_of(1000) {
        format!("{}k", tokens / 1000)
    } else {
        tokens.to_string()
    }
}

fn shown<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Joins the fields, without empty ones at the end.
fn joined(fields: &[String], separator: char) -> String {
    let mut text = fields.join(separator.encode_utf8(&mut [0; 4]));
    text.truncate(text.trim_end_matches(separator).len());
    text
}

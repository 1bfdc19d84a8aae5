//! Triggers as text, for settings and reports.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use thiserror::Error;

use super::{Comparison, Metric, Threshold, Trigger};
use crate::pattern::LazyRegex;

/// The measured figures by name.
const METRICS: [(&str, Metric); 5] = [
    ("usage", Metric::UsageTotal),
    ("usage_input", Metric::UsageInput),
    ("log", Metric::Log),
    ("call", Metric::Call),
    ("messages", Metric::Messages),
];

/// A text that is not a condition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a condition: expected {expected}\n\
     hint: write for example `usage >= 0.8 x window`, `log > 75 % of window`, \
     `log >= window - 16384`, `call > window` or `messages > 20`"
)]
pub struct BadTrigger {
    /// The text.
    pub text: String,
    /// What was expected.
    pub expected: String,
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = METRICS.iter();
        let metric = names
            .filter(|(_, metric)| *metric == self.metric)
            .map(|(name, _)| *name);
        let is = match self.is {
            Comparison::AtLeast => ">=",
            Comparison::MoreThan => ">",
        };
        write!(f, "{} {is} ", metric.collect::<String>())?;
        match self.value {
            Threshold::Fixed(value) => write!(f, "{value}"),
            Threshold::WindowRatio(ratio) => write!(f, "{ratio} x window"),
            Threshold::WindowPercent(percent) => write!(f, "{percent} % of window"),
            Threshold::WindowLess(reserve) => write!(f, "window - {reserve}"),
            Threshold::Window => f.write_str("window"),
        }
    }
}

impl FromStr for Trigger {
    type Err = BadTrigger;

    /// Parses a condition: a figure, `>=` or `>`, and a limit.
    ///
    /// Spaces and the word `the` are ignored; numbers may have underscores.
    ///
    /// ```
    /// # use trimtab_engine::trigger::Trigger;
    /// let trigger: Trigger = "usage>=0.8 x the window".parse().unwrap();
    /// assert_eq!(trigger.to_string(), "usage >= 0.8 x window");
    ///
    /// let error = "usage = 10".parse::<Trigger>().unwrap_err();
    /// assert!(error.to_string().contains("`>=` or `>`"));
    /// ```
    fn from_str(text: &str) -> Result<Self, BadTrigger> {
        let bad = |expected: String| BadTrigger {
            text: text.trim().to_owned(),
            expected,
        };
        let (measured, limit) = text
            .split_once('>')
            .ok_or_else(|| bad("`>=` or `>` between what is measured and its limit".to_owned()))?;
        let metric = metric(measured).map_err(bad)?;
        let (is, limit) = match limit.strip_prefix('=') {
            Some(limit) => (Comparison::AtLeast, limit),
            None => (Comparison::MoreThan, limit),
        };
        let value = threshold(limit).map_err(bad)?;
        Ok(Self { metric, is, value })
    }
}

fn metric(text: &str) -> Result<Metric, String> {
    // `usage input` and `usage_input` mean the same.
    let name = words(text).join("_");
    let found = METRICS.iter().find(|(known, _)| *known == name);
    found.map(|(_, metric)| *metric).ok_or_else(|| {
        let names: Vec<_> = METRICS.iter().map(|(name, _)| *name).collect();
        format!("one of {} in front of `>`", names.join(", "))
    })
}

fn threshold(text: &str) -> Result<Threshold, String> {
    let words = words(text);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["window"] => Ok(Threshold::Window),
        ["window", "-", reserve] => parse_whole(reserve).map(Threshold::WindowLess),
        [percent, "%", "window"] => parse_whole(percent).map(Threshold::WindowPercent),
        [ratio, "x", "window"] => share(ratio).map(Threshold::WindowRatio),
        [value] => parse_whole(value).map(Threshold::Fixed),
        _ => Err(
            "a number, `window`, `window - N`, `R x window` or `P % of window` behind it"
                .to_owned(),
        ),
    }
}

fn parse_whole(text: &str) -> Result<u64, String> {
    let digits = text.replace('_', "");
    digits
        .parse()
        .map_err(|_| format!("a whole number in place of `{text}`"))
}

fn share(text: &str) -> Result<f64, String> {
    let ratio = text.parse::<f64>().ok();
    ratio
        .filter(|ratio| ratio.is_finite() && *ratio >= 0.0)
        .ok_or_else(|| format!("a share such as 0.8 in place of `{text}`"))
}

/// A number, a word, or a single sign. `x` is left out of the letters, so that `0.8xwindow` is
/// three words.
static WORD: LazyRegex = LazyRegex::new(r"[0-9][0-9._]*|window|[a-wyz_]+|\S");

/// The words of a text, in lower case and without fillers.
fn words(text: &str) -> Vec<String> {
    // Users also type a multiplication sign or an asterisk.
    let lower = text.to_lowercase().replace(['\u{d7}', '*'], "x");
    let words = WORD.find_iter(&lower).map(|word| word.as_str());
    let words = words.filter(|word| !matches!(*word, "the" | "of"));
    words.map(str::to_owned).collect()
}

impl Serialize for Trigger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Trigger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> String {
        let trigger: Result<Trigger, _> = text.parse();
        trigger.map_or_else(|error| error.expected, |trigger| trigger.to_string())
    }

    #[test]
    fn spaces_fillers_and_signs_do_not_matter() {
        let same = [
            "usage>=0.8xwindow",
            " Usage >= 0.8x the window ",
            "usage >= 0.8 * window",
            "usage >= 0.8\u{d7}window",
            "the usage >= 0.8 x of the window",
        ];
        for text in same {
            assert_eq!(read(text), "usage >= 0.8 x window", "{text}");
        }
        assert_eq!(read("log>75%window"), "log > 75 % of window");
        assert_eq!(read("log >= the window-16_384"), "log >= window - 16384");
        assert_eq!(read("usage input > 40_000"), "usage_input > 40000");
    }

    #[test]
    fn error_about_a_condition_names_the_mistake() {
        assert!(read("usage = 3").contains("`>=` or `>`"));
        assert!(read("tokens > 3").contains("one of usage, usage_input, log, call, messages"));
        assert!(read("log > many").contains("`many`"));
        assert!(read("log > 75.5 % of window").contains("`75.5`"));
        assert!(read("log > -1 x window").contains("behind it"));
        assert!(read("log > window + 3").contains("behind it"));
        let error = "soon".parse::<Trigger>().unwrap_err().to_string();
        assert!(error.starts_with("`soon` is not a condition: expected "));
        assert!(error.contains("\nhint: "));
    }

    fn any_trigger() -> impl Strategy<Value = Trigger> {
        let metric = prop::sample::select(METRICS.map(|(_, metric)| metric).to_vec());
        let is = prop::sample::select(vec![Comparison::AtLeast, Comparison::MoreThan]);
        let value = prop_oneof![
            any::<u64>().prop_map(Threshold::Fixed),
            any::<u64>().prop_map(Threshold::WindowPercent),
            any::<u64>().prop_map(Threshold::WindowLess),
            (0.0..10.0).prop_map(Threshold::WindowRatio),
            Just(Threshold::Window),
        ];
        (metric, is, value).prop_map(|(metric, is, value)| Trigger { metric, is, value })
    }

    proptest! {
        #[test]
        fn written_condition_reads_as_the_same_trigger(trigger in any_trigger()) {
            prop_assert_eq!(trigger.to_string().parse::<Trigger>(), Ok(trigger));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,30}", limit in "[0-9x%>= a-z-]{0,30}") {
            let _ = text.parse::<Trigger>();
            let _ = format!("log > {limit}").parse::<Trigger>();
        }
    }
}

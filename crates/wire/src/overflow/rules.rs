//! The rules, as data.

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder, SetMatches};
use serde::Deserialize;
use thiserror::Error;

use super::kind::{Action, Kind};
use super::sizes::Figure;

/// Bounds on what a pattern may cost, in bytes of compiled program and of cache.
const PROGRAM: usize = 16 << 20;
const CACHE: usize = 4 << 20;

/// Rules by which answers are judged, in order: the first that fits decides.
#[derive(Clone, Debug)]
pub struct Rules {
    ordered: Vec<Rule>,
    pub(super) figures: Vec<Figure>,
    /// Every pattern of every rule, searched in one pass.
    set: RegexSet,
    texts: Vec<RuleText>,
    figure_texts: Vec<FigureText>,
}

/// One rule, with its patterns as indices into the set.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) action: Option<Action>,
    provider: Option<String>,
    status: Vec<Status>,
    any: Vec<usize>,
    all: Vec<usize>,
    none: Vec<usize>,
}

/// A rule as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    name: String,
    kind: Kind,
    action: Option<Action>,
    provider: Option<String>,
    #[serde(default)]
    status: Vec<String>,
    #[serde(default)]
    any: Vec<String>,
    #[serde(default)]
    all: Vec<String>,
    #[serde(default)]
    none: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureText {
    pattern: String,
    #[serde(default)]
    sum: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<RuleText>,
    #[serde(default)]
    figure: Vec<FigureText>,
}

/// `413`, or a class such as `5xx`.
#[derive(Clone, Copy, Debug)]
enum Status {
    Exact(u16),
    Class(u16),
}

/// Why rules were refused.
#[derive(Debug, Error)]
pub enum RulesError {
    /// They are not TOML of the right shape.
    #[error("the overflow rules cannot be read: {0}")]
    Toml(#[from] toml::de::Error),
    /// A pattern is not a regular expression, or too large a one.
    #[error("overflow rule `{rule}`: pattern `{pattern}` cannot be used: {problem}")]
    Pattern {
        /// The rule's name.
        rule: String,
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A status is neither a number nor a class.
    #[error(
        "overflow rule `{rule}`: status `{status}` is neither a number such as 413 nor a class such as 5xx"
    )]
    Status {
        /// The rule's name.
        rule: String,
        /// The status.
        status: String,
    },
    /// A rule without any condition would fit everything.
    #[error("overflow rule `{rule}` has no condition\nhint: give it `status`, `any` or `all`")]
    Unconditional {
        /// The rule's name.
        rule: String,
    },
}

impl Rules {
    /// The rules that are part of this crate (`data/overflow.toml`), compiled when first used.
    pub fn embedded() -> &'static Self {
        static RULES: LazyLock<Rules> = LazyLock::new(|| {
            // A test compiles them; should they ever be broken, nothing is an overflow.
            Rules::parse(include_str!("../../data/overflow.toml")).unwrap_or_else(|_| Rules {
                ordered: Vec::new(),
                figures: Vec::new(),
                set: RegexSet::empty(),
                texts: Vec::new(),
                figure_texts: Vec::new(),
            })
        });
        &RULES
    }

    /// Reads rules.
    pub fn parse(toml: &str) -> Result<Self, RulesError> {
        let file: File = toml::from_str(toml)?;
        Self::compile(file.rule, file.figure)
    }

    /// These rules with others before them: an extra rule that fits wins.
    ///
    /// ```
    /// # use trimtab_wire::overflow::{Kind, Response, Rules};
    /// let rules = Rules::embedded()
    ///     .with_extra("[[rule]]\nname = 'house'\nkind = 'prompt'\nany = ['^too much$']")
    ///     .unwrap();
    /// let response = Response::new(400, b"{\"error\": \"Too much\"}");
    /// assert_eq!(rules.classify(&response).kind, Kind::Prompt);
    /// assert_eq!(Rules::embedded().classify(&response).kind, Kind::Other);
    /// ```
    pub fn with_extra(&self, toml: &str) -> Result<Self, RulesError> {
        let mut file: File = toml::from_str(toml)?;
        file.rule.extend(self.texts.iter().cloned());
        file.figure.extend(self.figure_texts.iter().cloned());
        Self::compile(file.rule, file.figure)
    }

    /// These rules without the patterns of `any` that `drop` names by rule and index; a rule that
    /// loses all of them is gone.
    #[must_use]
    pub fn without(&self, drop: impl Fn(&str, usize) -> bool) -> Self {
        let mut rules = self.clone();
        rules.ordered.retain_mut(|rule| {
            let before = rule.any.len();
            let kept = rule
                .any
                .iter()
                .enumerate()
                .filter(|(index, _)| !drop(&rule.name, *index));
            rule.any = kept.map(|(_, pattern)| *pattern).collect();
            before == 0 || !rule.any.is_empty()
        });
        rules
    }

    fn compile(texts: Vec<RuleText>, figure_texts: Vec<FigureText>) -> Result<Self, RulesError> {
        let mut patterns = Vec::new();
        let rules = texts.iter().map(|text| Rule::new(text, &mut patterns));
        let ordered = rules.collect::<Result<Vec<Rule>, RulesError>>()?;
        let set = RegexSetBuilder::new(&patterns)
            .multi_line(true)
            .size_limit(PROGRAM)
            .dfa_size_limit(CACHE)
            .build()
            .map_err(|error| culprit(&texts, &error))?;
        let figures = figure_texts
            .iter()
            .map(Figure::new)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            ordered,
            figures,
            set,
            texts,
            figure_texts,
        })
    }

    /// The first rule that fits.
    pub(super) fn first(
        &self,
        status: u16,
        provider: Option<&str>,
        lines: &str,
    ) -> Option<Hit<'_>> {
        let found = self.set.matches(lines);
        let rule = self
            .ordered
            .iter()
            .find(|rule| rule.fits(status, provider, &found))?;
        let patterns = rule
            .any
            .iter()
            .enumerate()
            .filter(|(_, pattern)| found.matched(**pattern));
        Some(Hit {
            rule,
            patterns: patterns.map(|(index, _)| index).collect(),
        })
    }
}

/// A rule that fits, and which of its patterns did.
pub(super) struct Hit<'a> {
    pub(super) rule: &'a Rule,
    pub(super) patterns: Vec<usize>,
}

impl Rule {
    fn new(text: &RuleText, patterns: &mut Vec<String>) -> Result<Self, RulesError> {
        if text.any.is_empty() && text.all.is_empty() && text.status.is_empty() {
            return Err(RulesError::Unconditional {
                rule: text.name.clone(),
            });
        }
        let mut add = |list: &[String]| {
            let start = patterns.len();
            patterns.extend_from_slice(list);
            (start..patterns.len()).collect::<Vec<usize>>()
        };
        let status = text.status.iter().map(|status| {
            Status::parse(status).ok_or_else(|| RulesError::Status {
                rule: text.name.clone(),
                status: status.clone(),
            })
        });
        Ok(Self {
            name: text.name.clone(),
            kind: text.kind,
            action: text.action,
            provider: text.provider.clone(),
            any: add(&text.any),
            all: add(&text.all),
            none: add(&text.none),
            status: status.collect::<Result<_, _>>()?,
        })
    }

    fn fits(&self, status: u16, provider: Option<&str>, found: &SetMatches) -> bool {
        // A rule for one provider holds for all as long as it is not known who answered.
        let provider = match (&self.provider, provider) {
            (Some(wanted), Some(provider)) => wanted == provider,
            _ => true,
        };
        let has = |pattern: &usize| found.matched(*pattern);
        provider
            && (self.status.is_empty() || self.status.iter().any(|wanted| wanted.fits(status)))
            && (self.any.is_empty() || self.any.iter().any(has))
            && self.all.iter().all(has)
            && !self.none.iter().any(has)
    }
}

impl Status {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix("xx") {
            Some(class) => class.parse().ok().map(Self::Class),
            None => text.parse().ok().map(Self::Exact),
        }
    }

    fn fits(self, status: u16) -> bool {
        match self {
            Self::Exact(wanted) => status == wanted,
            Self::Class(class) => status / 100 == class,
        }
    }
}

impl Figure {
    fn new(text: &FigureText) -> Result<Self, RulesError> {
        Ok(Self {
            pattern: compiled("(figure)", &text.pattern)?,
            sum: text.sum,
        })
    }
}

/// Which pattern it is that the set could not be made with.
fn culprit(texts: &[RuleText], error: &regex::Error) -> RulesError {
    let patterns = texts.iter().flat_map(|text| {
        let lists = text.any.iter().chain(&text.all).chain(&text.none);
        lists.map(|pattern| compiled(&text.name, pattern).err())
    });
    patterns
        .flatten()
        .next()
        .unwrap_or_else(|| RulesError::Pattern {
            rule: "(all)".to_owned(),
            pattern: "(all)".to_owned(),
            problem: error.to_string(),
        })
}

fn compiled(rule: &str, pattern: &str) -> Result<Regex, RulesError> {
    RegexBuilder::new(pattern)
        .multi_line(true)
        .size_limit(PROGRAM)
        .build()
        .map_err(|error| RulesError::Pattern {
            rule: rule.to_owned(),
            pattern: pattern.to_owned(),
            problem: error.to_string(),
        })
}

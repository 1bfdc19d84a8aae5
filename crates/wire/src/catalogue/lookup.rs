//! Finds the registry entry for the name that a client uses.

use super::names::{bare, distance, families, trimmed, undated};
use super::overlay::Overlay;
use super::snapshot::{Snapshot, SnapshotEntry, id_of};

/// How a name matched a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelMatch {
    /// It is the model's id.
    Exact,
    /// It is the id with or without a date.
    Undated,
    /// It is the id with or without a provider before it.
    Provider,
    /// It is an alias of the model.
    Alias,
    /// It begins with the name of this model, the closest known one.
    Family,
    /// It is not known. It is assumed to be like this model, the newest known one of its family.
    Assumed,
}

/// Providers that serve their own models, in the order in which a bare name is attributed to them.
const MAKERS: [&str; 14] = [
    "anthropic",
    "openai",
    "gemini",
    "vertex_ai-language-models",
    "xai",
    "deepseek",
    "mistral",
    "moonshot",
    "zai",
    "minimax",
    "dashscope",
    "meta_llama",
    "cohere_chat",
    "perplexity",
];

/// The longest name that is looked up, in bytes. No model has a longer one, and the search tries
/// every beginning of a name.
const LONGEST_NAME: usize = 256;

/// Finds the entry for `name`.
pub(super) fn find<'a>(
    snapshot: &'a Snapshot,
    overlay: &Overlay,
    name: &str,
) -> Option<(SnapshotEntry<'a>, ModelMatch)> {
    let name = Some(trimmed(name)).filter(|name| name.len() <= LONGEST_NAME)?;
    let tagged = |how| move |entry| (entry, how);
    // From the safest match to the loosest, because each later step also matches names of other
    // models.
    snapshot
        .exact_in_any_case(name)
        .map(tagged(ModelMatch::Exact))
        .or_else(|| snapshot.undated(name).map(tagged(ModelMatch::Undated)))
        .or_else(|| snapshot.provider(name).map(tagged(ModelMatch::Provider)))
        .or_else(|| snapshot.alias(overlay, name).map(tagged(ModelMatch::Alias)))
        .or_else(|| snapshot.family(name).map(tagged(ModelMatch::Family)))
        .or_else(|| {
            let newest = snapshot.newest_of_family(name);
            newest.map(tagged(ModelMatch::Assumed))
        })
}

/// The most similar known names, at most three.
pub(super) fn closest(snapshot: &Snapshot, name: &str) -> Vec<String> {
    const MOST: usize = 3;
    let wanted = bare(trimmed(name));
    let furthest = (wanted.len() / 2).max(2);
    let mut known: Vec<(usize, String)> = snapshot
        .lines()
        .map(|line| bare(id_of(line)))
        // The difference in length is a lower bound of the distance.
        .filter(|known| known.len().abs_diff(wanted.len()) <= furthest)
        .map(|known| (distance(&wanted, &known), known))
        .filter(|(distance, _)| *distance <= furthest)
        .collect();
    known.sort_unstable();
    known.dedup();
    known.into_iter().take(MOST).map(|(_, name)| name).collect()
}

impl Snapshot {
    /// Ignores case, by a scan of all lines.
    fn exact_in_any_case(&self, name: &str) -> Option<SnapshotEntry<'_>> {
        let same = |line: &&str| id_of(line).eq_ignore_ascii_case(name);
        self.get(name)
            .or_else(|| SnapshotEntry::parse(self.lines().find(same)?))
    }

    /// The name without its date, or the newest dated version of the name.
    fn undated(&self, name: &str) -> Option<SnapshotEntry<'_>> {
        if let Some(entry) = undated(name).and_then(|name| self.get(name)) {
            return Some(entry);
        }
        let stem = undated(name).unwrap_or(name);
        let dated = |line: &&str| undated(id_of(line)) == Some(stem);
        let with_prefix = |line: &&str| line.starts_with(stem);
        let newest = self
            .starting_at(stem)
            .take_while(with_prefix)
            .filter(dated)
            // Dates sort as text, so the last line is the newest version.
            .last();
        newest.and_then(SnapshotEntry::parse)
    }

    /// `provider/id` where only the id is known, or the id where it is known as `provider/id`.
    fn provider(&self, name: &str) -> Option<SnapshotEntry<'_>> {
        let mut rest = name;
        while let Some((_, id)) = rest.split_once('/') {
            rest = id;
            // Gateways put their own name before the provider's, so one prefix after the other is
            // removed.
            if let Some(entry) = self.get(id).or_else(|| self.undated(id)) {
                return Some(entry);
            }
        }
        // Prefer the maker's own spelling to a reseller's.
        self.get(&bare(rest))
            .or_else(|| self.served(rest))
            .or_else(|| self.served(undated(rest)?))
    }

    /// The best entry whose id ends with this name.
    fn served(&self, name: &str) -> Option<SnapshotEntry<'_>> {
        let ends = |line: &&str| {
            let before = strip_suffix_ignoring_case(id_of(line), name);
            before.is_some_and(|before| before.ends_with(['/', '.']))
        };
        let entries = self.lines().filter(ends).filter_map(SnapshotEntry::parse);
        entries.min_by_key(|entry| {
            let maker = MAKERS.iter().position(|maker| *maker == entry.provider);
            let parts = entry.id.matches(['/', '*']).count();
            // The maker knows its own limits best. Among resellers the smallest limit is the safe
            // choice.
            (maker.unwrap_or(MAKERS.len()), parts, entry.max_input)
        })
    }

    fn alias(&self, overlay: &Overlay, name: &str) -> Option<SnapshotEntry<'_>> {
        let bare = bare(name);
        let known = |name: &str| self.get(name).or_else(|| self.undated(name));
        overlay
            .alias(name)
            .or_else(|| overlay.alias(&bare))
            .and_then(|target| self.get(target))
            .or_else(|| known(&bare))
    }

    /// The longest known name that is a prefix of `name`.
    fn family(&self, name: &str) -> Option<SnapshotEntry<'_>> {
        let bare = bare(name);
        let known = |name: &str| {
            self.get(name)
                .or_else(|| self.undated(name))
                .or_else(|| self.served(name))
        };
        families(name)
            .chain(families(&bare))
            .filter(|family| is_telling(family) && !is_older_version(family, name))
            .find_map(known)
    }
}

/// True if a name is specific enough to stand for a family: one word such as `gpt` or `v1` is not,
/// unless it contains a version, as `o3` does.
fn is_telling(name: &str) -> bool {
    name.bytes().any(|byte| byte.is_ascii_digit()) && name.bytes().any(|b| b.is_ascii_alphabetic())
}

/// True if `name` continues the version in `family`: `claude-opus-5` is no family of
/// `claude-opus-5-9`. Only Claude's versions are written with a hyphen.
fn is_older_version(family: &str, name: &str) -> bool {
    let (family, name) = (bare(family), bare(name));
    let rest = name
        .strip_prefix(family.as_str())
        .and_then(|rest| rest.strip_prefix('-'));
    let next = rest
        .and_then(|rest| rest.split('-').next())
        .unwrap_or_default();
    let is_number = !next.is_empty() && next.bytes().all(|byte| byte.is_ascii_digit());
    let ends_in_number = family.ends_with(|c: char| c.is_ascii_digit());
    name.starts_with("claude") && ends_in_number && is_number && next.len() <= 2
}

fn strip_suffix_ignoring_case<'a>(text: &'a str, suffix: &str) -> Option<&'a str> {
    let (before, end) = text.split_at_checked(text.len().checked_sub(suffix.len())?)?;
    (!suffix.is_empty() && end.eq_ignore_ascii_case(suffix)).then_some(before)
}

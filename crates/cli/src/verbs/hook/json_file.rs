//! Edits the entries of one list in a JSON file. All other bytes stay as they are, so that removing
//! what was added gives the file as it was.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The indentation of a file that has none.
const INDENT: &str = "  ";

/// Adds `entry` at the end of the list at `path`. Objects and the list are created if missing.
pub(super) fn add(json: &str, path: &[&str], entry: &str) -> serde_json::Result<String> {
    let items = Items::of_object(json)?;
    let space = items.space_before_last(json);
    let unit = space.rsplit_once('\n').map_or("", |(_, unit)| unit);
    let unit = if unit.is_empty() { INDENT } else { unit };
    add_below(json, path, entry, (unit, 0))
}

fn add_below(
    json: &str,
    path: &[&str],
    entry: &str,
    (unit, depth): (&str, usize),
) -> serde_json::Result<String> {
    let Some((&name, rest)) = path.split_first() else {
        return Ok(Items::of_list(json)?.append(json, entry, (unit, depth)));
    };
    let items = Items::of_object(json)?;
    if let Some(place) = items.place(name) {
        let old = part(json, place.clone());
        let new = add_below(old, rest, entry, (unit, depth + 1))?;
        return Ok(replaced(json, place, &new));
    }
    let empty = if rest.is_empty() { "[]" } else { "{}" };
    let value = add_below(empty, rest, entry, (unit, depth + 1))?;
    let name = serde_json::Value::from(name);
    Ok(items.append(json, &format!("{name}: {value}"), (unit, depth)))
}

/// Removes the entries of the list at `path` for which `is_ours` is true, with the list and the
/// objects that are empty then.
pub(super) fn remove(
    json: &str,
    path: &[&str],
    is_ours: &dyn Fn(&str) -> bool,
) -> serde_json::Result<String> {
    Ok(remove_below(json, path, is_ours)?.unwrap_or_else(|| "{}\n".to_owned()))
}

/// None if nothing is left.
fn remove_below(
    json: &str,
    path: &[&str],
    is_ours: &dyn Fn(&str) -> bool,
) -> serde_json::Result<Option<String>> {
    let Some((name, rest)) = path.split_first() else {
        return remove_entries(json, is_ours);
    };
    let items = Items::of_object(json)?;
    let Some(place) = items.place(name) else {
        return Ok(Some(json.to_owned()));
    };
    Ok(
        match remove_below(part(json, place.clone()), rest, is_ours)? {
            Some(new) => Some(replaced(json, place, &new)),
            None => items.without(json, |one| *one == place),
        },
    )
}

fn remove_entries(
    json: &str,
    is_ours: &dyn Fn(&str) -> bool,
) -> serde_json::Result<Option<String>> {
    let mut json = json.to_owned();
    loop {
        let items = Items::of_list(&json)?;
        let is_removed = |place: &Range<usize>| is_ours(part(&json, place.clone()));
        if !items.0.iter().any(|(_, place)| is_removed(place)) {
            return Ok(Some(json));
        }
        match items.without(&json, is_removed) {
            Some(left) => json = left,
            None => return Ok(None),
        }
    }
}

/// The members of an object or the entries of a list: their names, which entries do not have, and
/// the places of their values.
struct Items(Vec<(String, Range<usize>)>);

impl Items {
    fn of_object(json: &str) -> serde_json::Result<Self> {
        let members: Members<'_> = serde_json::from_str(json)?;
        let members = members.0.into_iter();
        Ok(Self(
            members
                .map(|(name, value)| (name, place(json, value)))
                .collect(),
        ))
    }

    fn of_list(json: &str) -> serde_json::Result<Self> {
        let entries: Vec<&RawValue> = serde_json::from_str(json)?;
        let entries = entries.into_iter();
        Ok(Self(
            entries
                .map(|value| (String::new(), place(json, value)))
                .collect(),
        ))
    }

    fn place(&self, name: &str) -> Option<Range<usize>> {
        let mut named = self.0.iter().filter(|(known, _)| known == name);
        named.next().map(|(_, place)| place.clone())
    }

    /// The white space in front of the last item.
    fn space_before_last<'a>(&self, json: &'a str) -> &'a str {
        let mut places = self.0.iter().rev().map(|(_, place)| place);
        let Some(last) = places.next() else {
            return "";
        };
        // The comma behind the item before, or the bracket.
        let start = places.next().map_or(opening(json), |place| place.end);
        let gap = part(json, start..last.start).trim_start();
        let gap = gap.strip_prefix([',', '{', '[']).unwrap_or(gap);
        let length = gap.len() - gap.trim_start().len();
        part(gap, 0..length)
    }

    /// The text with one more item at the end.
    fn append(&self, json: &str, item: &str, (unit, depth): (&str, usize)) -> String {
        if let Some((_, last)) = self.0.last() {
            let space = self.space_before_last(json);
            return replaced(json, last.end..last.end, &format!(",{space}{item}"));
        }
        let (outer, inner) = (unit.repeat(depth), unit.repeat(depth + 1));
        let inside = opening(json) + 1..json.trim_end().len() - 1;
        replaced(json, inside, &format!("\n{inner}{item}\n{outer}"))
    }

    /// The text without the first item for which `is_removed` is true; none if it is the only one.
    fn without(&self, json: &str, is_removed: impl Fn(&Range<usize>) -> bool) -> Option<String> {
        let at = self.0.iter().position(|(_, place)| is_removed(place))?;
        let (_, removed) = self.0.get(at)?;
        let before = at.checked_sub(1).and_then(|before| self.0.get(before));
        let gap = if let Some((_, before)) = before {
            before.end..removed.end
        } else {
            let (_, next) = self.0.get(1)?;
            let comma = part(json, removed.end..next.start).find(',')?;
            opening(json) + 1..removed.end + comma + 1
        };
        Some(replaced(json, gap, ""))
    }
}

/// The place of the bracket that opens an object or a list.
fn opening(json: &str) -> usize {
    json.len() - json.trim_start().len()
}

/// The place of a value that was parsed from `json`.
fn place(json: &str, value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr().addr() - json.as_ptr().addr();
    start..start + value.get().len()
}

fn part(json: &str, place: Range<usize>) -> &str {
    json.get(place).unwrap_or_default()
}

fn replaced(json: &str, place: Range<usize>, by: &str) -> String {
    let (before, behind) = (
        part(json, 0..place.start),
        part(json, place.end..json.len()),
    );
    format!("{before}{by}{behind}")
}

struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: [&str; 2] = ["hooks", "PostToolUse"];

    #[test]
    fn entry_is_added_in_the_form_of_the_file() {
        let before = "{\n    \"z\": [1,  2.50]\n}\n";
        let after = "{\n    \"z\": [1,  2.50],\n    \"hooks\": {\n        \"PostToolUse\": [\n            \
                     true\n        ]\n    }\n}\n";
        assert_eq!(add(before, &PATH, "true").unwrap(), after);
    }

    #[test]
    fn removing_what_was_added_gives_the_same_bytes() {
        for before in [
            "{\n  \"a\": 1\n}\n",
            "{\n\t\"a\": 1,\n\t\"hooks\": {\n\t\t\"Stop\": [ {\"hooks\": []} ]\n\t},\n\t\"b\": 2\n}",
            "{\r\n    \"hooks\": {\"PostToolUse\": [\r\n  1 , 2 ] }\r\n}\r\n",
            "{\"a\":1}",
            " { \"hooks\" : { \"PostToolUse\" : [ 1 ] } } \n",
            "{}\n",
        ] {
            let added = add(before, &PATH, "{\"ours\":[]}").unwrap();
            assert_ne!(added, before);
            let is_ours = |entry: &str| entry.contains("ours");
            assert_eq!(remove(&added, &PATH, &is_ours).unwrap(), before, "{added}");
        }
    }

    #[test]
    fn entries_of_others_stay_where_they_are() {
        let is_ours = |entry: &str| entry == "0";
        let json = "{\"hooks\": {\"PostToolUse\": [0, 1, 0, 2, 0], \"Stop\": []}}";
        let left = "{\"hooks\": {\"PostToolUse\": [ 1, 2], \"Stop\": []}}";
        assert_eq!(remove(json, &PATH, &is_ours).unwrap(), left);
    }
}

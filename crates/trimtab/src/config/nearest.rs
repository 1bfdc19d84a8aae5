//! Which name somebody meant who mistyped one.

/// The known name that `name` was probably meant to be; none if no name is near. The right key
/// in the wrong section is near, too.
///
/// ```
/// use trimtab::config::nearest_name;
///
/// let known = ["preset", "compaction.auto"];
/// assert_eq!(nearest_name("presset", known), Some("preset"));
/// assert_eq!(nearest_name("auto", known), Some("compaction.auto"));
/// assert_eq!(nearest_name("foo.bar", known), None);
/// ```
pub fn nearest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let rank = |known: &str| {
        let whole = near(name, known);
        let key = near(&last(name), &last(known)).map(|far| far + 2);
        whole.into_iter().chain(key).min()
    };
    let ranked = known
        .into_iter()
        .filter_map(|known| Some((rank(known)?, known)));
    ranked.min_by_key(|(rank, _)| *rank).map(|(_, known)| known)
}

/// How far two names are apart, if at most a third of the first has to be changed.
fn near(one: &str, two: &str) -> Option<usize> {
    let far = distance(one, two);
    (far <= one.chars().count() / 3).then_some(far)
}

/// How many characters must be changed, added, taken away or swapped with their neighbour to make
/// one name the other.
fn distance(one: &str, two: &str) -> usize {
    let (one, two): (Vec<char>, Vec<char>) = (one.chars().collect(), two.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=two.len()).collect()];
    for (i, left) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, right) in two.iter().enumerate() {
            let at = |i: usize, j: usize| rows.get(i).and_then(|row| row.get(j)).copied();
            let changed = at(i, j).map(|far| far + usize::from(left != right));
            let gone = at(i, j + 1).map(|far| far + 1);
            let added = row.last().map(|far| far + 1);
            let is_swapped =
                i > 0 && j > 0 && one.get(i - 1) == Some(right) && two.get(j - 1) == Some(left);
            let swapped = at(i.wrapping_sub(1), j.wrapping_sub(1)).map(|far| far + 1);
            let swapped = swapped.filter(|_| is_swapped);
            let ways = [changed, gone, added, swapped];
            row.push(ways.into_iter().flatten().min().unwrap_or_default());
        }
        rows.push(row);
    }
    rows.last()
        .and_then(|row| row.last())
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::KEYS;
    use super::*;

    #[test]
    fn only_near_names_are_suggested() {
        let nearest = |name: &str| nearest_name(name, KEYS.iter().map(|key| key.name));
        assert_eq!(nearest("compaction.atuo"), Some("compaction.auto"));
        assert_eq!(nearest("presset"), Some("preset"));
        assert_eq!(nearest("auto"), Some("compaction.auto"));
        assert_eq!(nearest("zzzzzz"), None);
        assert_eq!(nearest("foo.bar"), None);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("udno", "undo"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}

//! Finds the name that a user probably meant.

/// The known name that is nearest to `name`; none if no name is near. The right key in the wrong
/// section counts as near.
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
        let whole = distance_if_close(name, known);
        // A penalty, so that the same section wins.
        let key = distance_if_close(&last(name), &last(known)).map(|far| far + 2);
        whole.into_iter().chain(key).min()
    };
    let ranked = known
        .into_iter()
        .filter_map(|known| Some((rank(known)?, known)));
    ranked.min_by_key(|(rank, _)| *rank).map(|(_, known)| known)
}

/// The distance of two names, if at most a third of the first must change.
fn distance_if_close(one: &str, two: &str) -> Option<usize> {
    let far = strsim::osa_distance(one, two);
    (far <= one.chars().count() / 3).then_some(far)
}

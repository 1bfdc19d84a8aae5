//! Names of the sessions that a family has in the store.

/// The name of a family's branch.
pub(crate) fn branch_name(family: &str, number: usize) -> String {
    if number == 0 {
        family.to_owned()
    } else {
        format!("{family}.{number}")
    }
}

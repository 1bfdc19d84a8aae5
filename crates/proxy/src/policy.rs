//! Presets by name.

/// The presets there are.
const PRESETS: [&str; 7] = [
    "refs",
    "checkpoint",
    "turns",
    "archive",
    "retention",
    "steady",
    "none",
];

/// Fails with what is allowed if there is no such preset.
pub(crate) fn known(preset: &str) -> Result<(), String> {
    if PRESETS.contains(&preset) {
        Ok(())
    } else {
        Err(PRESETS.join(", "))
    }
}

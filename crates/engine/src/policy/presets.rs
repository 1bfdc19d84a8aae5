//! The presets: policies with a name, as data files.

use std::sync::LazyLock;

use thiserror::Error;

use super::Policy;

/// A named policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Its settings as TOML.
    pub toml: &'static str,
}

impl Preset {
    /// True if it makes every window fit.
    pub fn fit(&self) -> bool {
        Policy::preset(self.name).is_ok_and(|policy| policy.fit)
    }
}

macro_rules! presets {
    ($(($name:literal, $about:literal)),* $(,)?) => {
        /// All presets, the default one first.
        pub const PRESETS: &[Preset] = &[
            $(Preset {
                name: $name,
                about: $about,
                toml: include_str!(concat!("../../presets/", $name, ".toml")),
            }),*
        ];
    };
}

presets! {
    ("steady", "ours: show outputs whole, keep old text short, rewrite when that is cheapest"),
    ("refs", "outputs stored behind refs; a summary once the window is 80 % full"),
    ("checkpoint", "outputs cut in the middle; user messages stay, and a summary replaces the rest"),
    ("turns", "recent turns stay whole; a summary in the system prompt replaces the others"),
    ("archive", "old outputs archived one by one; recent messages stay, up to a number of tokens"),
    ("retention", "old outputs cut to 500 chars above 40,000 input tokens"),
    ("none", "no management: requests are sent unchanged, except for repairs"),
}

/// There is no preset of that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("preset = '{0}' is not known\nhint: one of {names}", names = preset_names())]
pub struct UnknownPreset(pub String);

fn preset_names() -> String {
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    names.join(", ")
}

/// The data of a preset.
pub fn preset_file(name: &str) -> Result<&'static Preset, UnknownPreset> {
    PRESETS
        .iter()
        .find(|preset| preset.name == name)
        .ok_or_else(|| UnknownPreset(name.to_owned()))
}

impl Policy {
    /// The preset of that name.
    ///
    /// ```
    /// # use trimtab_engine::policy::Policy;
    /// assert!(Policy::preset("archive")?.ageing.archive.enabled);
    /// assert!(Policy::preset("tidy").is_err());
    /// # Ok::<_, trimtab_engine::policy::UnknownPreset>(())
    /// ```
    pub fn preset(name: &str) -> Result<Self, UnknownPreset> {
        let file = preset_file(name)?;
        // The files are part of the program, and a test reads every one of them.
        let policy: Self = toml::from_str(file.toml).unwrap_or_default();
        Ok(Self {
            preset: name.to_owned(),
            ..policy
        })
    }

    /// True if it changes no request, except for repairs, as the preset `none`.
    ///
    /// ```
    /// # use trimtab_engine::policy::Policy;
    /// assert!(Policy::preset("none")?.sends_unchanged());
    /// assert!(!Policy::preset("retention")?.sends_unchanged());
    /// # Ok::<_, trimtab_engine::policy::UnknownPreset>(())
    /// ```
    pub fn sends_unchanged(&self) -> bool {
        static NONE: LazyLock<Policy> =
            LazyLock::new(|| Policy::preset("none").unwrap_or_default());
        // Without these, nothing is decided before a call or after an overflow.
        let is_idle = !self.fit && !self.compaction.enabled && self.recovery.retries == 0;
        is_idle && self.views == NONE.views && self.ageing == NONE.ageing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_read_and_passes_its_own_check() {
        for preset in PRESETS {
            let policy: Policy = toml::from_str(preset.toml)
                .unwrap_or_else(|error| panic!("{}: {error}", preset.name));
            assert_eq!(policy.preset, preset.name);
            assert_eq!(policy.check(Some(200_000)), Ok(()), "{}", preset.name);
        }
    }

    #[test]
    fn written_preset_reads_as_the_same_policy() {
        for preset in PRESETS {
            let policy = Policy::preset(preset.name).unwrap();
            let written = toml::to_string(&policy).unwrap();
            assert_eq!(toml::from_str::<Policy>(&written).unwrap(), policy);
        }
    }

    #[test]
    fn an_unknown_preset_is_named_with_those_that_are() {
        let error = Policy::preset("tidy").unwrap_err().to_string();
        assert!(
            error.contains("'tidy'") && error.contains("steady"),
            "{error}"
        );
    }
}

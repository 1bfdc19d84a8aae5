//! What a screen with a session has already.

use std::fmt;
use std::str::FromStr;

use trimtab::film::FilmMark;

/// What a screen with a session has already. A page gets it as text and gives it back to learn
/// what is new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScreenVersion {
    /// The number of the film; 0 if it has none.
    pub(super) film: u64,
    /// How much of that film it has.
    pub(super) mark: FilmMark,
    /// The number of entries of the journal.
    pub(super) entries: usize,
    /// The version of the calls.
    pub(super) calls: u64,
}

impl fmt::Display for ScreenVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FilmMark {
            columns,
            switches,
            scenes,
            bands,
            joins,
        } = self.mark;
        let Self {
            film,
            entries,
            calls,
            ..
        } = self;
        write!(
            f,
            "{film}.{columns}.{switches}.{scenes}.{bands}.{joins}.{entries}.{calls}"
        )
    }
}

impl FromStr for ScreenVersion {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut fields = text.split('.').map(str::parse::<u64>);
        let mut next = || fields.next().and_then(Result::ok).ok_or(());
        let film = next()?;
        let mut count = || next().and_then(|count| usize::try_from(count).map_err(drop));
        let mark = FilmMark {
            columns: count()?,
            switches: count()?,
            scenes: count()?,
            bands: count()?,
            joins: count()?,
        };
        Ok(Self {
            film,
            mark,
            entries: count()?,
            calls: next()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_as_it_was_written() {
        let version = ScreenVersion {
            film: 1,
            mark: FilmMark {
                columns: 2,
                switches: 3,
                scenes: 4,
                bands: 5,
                joins: 6,
            },
            entries: 7,
            calls: 8,
        };
        assert_eq!(version.to_string().parse(), Ok(version));
        for text in ["", "1.2.3", "1.2.3.4.5.6.7.x", "-1.2.3.4.5.6.7.8"] {
            assert_eq!(text.parse::<ScreenVersion>(), Err(()), "{text}");
        }
    }
}

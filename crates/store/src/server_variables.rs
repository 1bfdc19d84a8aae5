//! Environment variables that say how to reach a database or an object store.

use std::fmt;

/// The variables of PostgreSQL that are used. The URL contains the address, so its variables are
/// not.
const POSTGRES: [&str; 4] = ["PGPASSWORD", "PGSSLMODE", "PGSSLROOTCERT", "PGUSER"];
/// The prefixes of the variables of object stores.
const OBJECT_STORES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

/// Credentials and settings of servers, as the tools of each server read them from the environment.
///
/// ```
/// use trimtab_store::ServerVariables;
///
/// assert!(ServerVariables::includes("PGPASSWORD"));
/// assert!(ServerVariables::includes("AWS_REGION"));
/// assert!(!ServerVariables::includes("PATH"));
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ServerVariables(Vec<(String, String)>);

impl ServerVariables {
    /// The variables of this process.
    pub fn of_process() -> Self {
        let variables = std::env::vars_os();
        let texts = variables.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        texts.collect()
    }

    /// True if a store reads the variable with this name.
    pub fn includes(name: &str) -> bool {
        POSTGRES.contains(&name) || OBJECT_STORES.iter().any(|start| name.starts_with(start))
    }

    /// Their names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.0.iter();
        all.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of a variable. An empty one counts as not set, as in the tools of PostgreSQL.
    #[cfg(feature = "shared")]
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, value)| value)
            .filter(|value| !value.is_empty())
    }
}

/// Ignores variables that no store reads.
impl FromIterator<(String, String)> for ServerVariables {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        let variables = variables.into_iter();
        Self(variables.filter(|(name, _)| Self::includes(name)).collect())
    }
}

/// Names only: values may be passwords.
impl fmt::Debug for ServerVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.iter().map(|(name, _)| name))
            .finish()
    }
}

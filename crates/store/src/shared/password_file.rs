//! Passwords in the file `~/.pgpass`, in the form that all tools of PostgreSQL read.

use std::path::{Path, PathBuf};

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::{Error, Result};

/// The port of PostgreSQL if a URL has none.
const DEFAULT_PORT: u16 = 5432;

/// The password for a connection, from the file `named` or from the user's own file. None if the
/// file does not exist, is readable by others, or has no entry for the connection.
pub(super) fn find_password(config: &Config, named: Option<&str>) -> Result<Option<String>> {
    let own = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".pgpass"));
    let Some(path) = named.map(PathBuf::from).or_else(own) else {
        return Ok(None);
    };
    if !is_private(&path) {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|error| Error::io("read", &path, error))?;
    Ok(password_in(&text, &wanted_fields(config)))
}

/// True if only its owner can read the file. Others are ignored, as the tools of PostgreSQL do.
#[cfg(unix)]
fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let others = 0o077;
    let found = std::fs::metadata(path);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & others == 0)
}

#[cfg(not(unix))]
fn is_private(path: &Path) -> bool {
    path.is_file()
}

/// Host, port, database and user of a connection.
fn wanted_fields(config: &Config) -> [String; 4] {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        // The file has this name for every local socket.
        _ => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(DEFAULT_PORT);
    let user = config.get_user().unwrap_or_default().to_owned();
    let database = config
        .get_dbname()
        .map_or_else(|| user.clone(), str::to_owned);
    [host, port.to_string(), database, user]
}

/// The password of the first line that fits.
fn password_in(text: &str, wanted: &[String; 4]) -> Option<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut entries = lines.map(fields);
    entries.find_map(|fields| {
        let (password, known) = fields.split_last()?;
        let fits = known.len() == wanted.len()
            && known
                .iter()
                .zip(wanted)
                .all(|(known, wanted)| known == "*" || known == wanted);
        fits.then(|| password.clone())
    })
}

/// The fields of a line. A backslash precedes a colon or a backslash that is part of a field.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let letter = match letter {
            ':' => {
                fields.push(String::new());
                continue;
            }
            '\\' => letters.next().unwrap_or('\\'),
            other => other,
        };
        if let Some(field) = fields.last_mut() {
            field.push(letter);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_that_fits_has_the_password() {
        let text = "# comment\nother:*:*:*:no\ndb:5432:trimtab:ann:a\\:b\\\\c\n*:*:*:*:any\n";
        let found = |host: &str| {
            let wanted = [host, "5432", "trimtab", "ann"].map(str::to_owned);
            password_in(text, &wanted)
        };
        assert_eq!(found("db").as_deref(), Some("a:b\\c"));
        assert_eq!(found("other").as_deref(), Some("no"));
        assert_eq!(found("elsewhere").as_deref(), Some("any"));
    }
}

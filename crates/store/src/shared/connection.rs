//! Settings of a connection to PostgreSQL, from the URL and from environment variables.

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::tls::{CertificateCheck, ServerTrust};
use crate::{Error, Result, ServerVariables};

/// Limits of the database itself, for statements whose process no longer waits. A call waits longer
/// for its answer than a statement for a lock, so a held lock is reported as busy and not as an
/// unreachable database.
const SERVER_LIMITS: &str = "-c lock_timeout=2500 -c idle_in_transaction_session_timeout=60000";

/// After this time without traffic, the system checks that the server is still there. Otherwise a
/// long statement would wait for its whole time limit after the server's machine has gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The settings of a connection.
pub(super) struct ConnectionSettings {
    pub(super) config: Config,
    pub(super) trust: ServerTrust,
}

/// The TLS parameters of the URL. The driver does not know all their values.
#[derive(Default)]
struct TlsParameters {
    mode: Option<String>,
    root_certificate: Option<String>,
}

impl ConnectionSettings {
    /// Takes the settings from `url`, and those that it lacks from `variables`. An attempt to
    /// connect ends after `patience`.
    pub(super) fn new(url: &str, variables: &ServerVariables, patience: Duration) -> Result<Self> {
        let (url, parameters) = without_tls_parameters(url);
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let why = std::error::Error::source(&error);
            bad_url(why.map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        let trust = parameters.apply(&mut config, variables)?;
        add_credentials(&mut config, variables);
        if config.get_application_name().is_none() {
            config.application_name("trimtab");
        }
        let options = config.get_options().unwrap_or_default();
        // The last option wins, so the URL can replace our limits.
        let options = format!("{SERVER_LIMITS} {options}");
        config.options(options);
        config.connect_timeout(patience);
        config.tcp_user_timeout(patience);
        config.keepalives_idle(KEEP_ALIVE);
        Ok(Self { config, trust })
    }

    /// The host names, for error texts. They contain no password.
    pub(super) fn host_names(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(host_name);
        let names: Vec<String> = hosts.collect();
        names.join(", ")
    }
}

impl TlsParameters {
    /// Sets the mode of TLS. The values mean what they mean to the tools of PostgreSQL.
    fn apply(self, config: &mut Config, variables: &ServerVariables) -> Result<ServerTrust> {
        let mode = self.mode.as_deref().or(variables.get("PGSSLMODE"));
        let root = self.root_certificate.as_deref();
        let root = root.or(variables.get("PGSSLROOTCERT"));
        // `system` stands for the certificates of the system.
        let root = root.filter(|root| *root != "system").map(PathBuf::from);
        let (mode, check) = match mode.unwrap_or("prefer") {
            "disable" => (SslMode::Disable, CertificateCheck::Nothing),
            // In libpq, `allow` tries without TLS first. Preferring TLS is never worse.
            "allow" | "prefer" => (SslMode::Prefer, CertificateCheck::Nothing),
            "require" if root.is_none() => (SslMode::Require, CertificateCheck::Nothing),
            "require" | "verify-ca" => (SslMode::Require, CertificateCheck::Issuer),
            "verify-full" => (SslMode::Require, CertificateCheck::IssuerAndName),
            other => {
                return Err(bad_url(format!(
                    "sslmode '{other}' is not one of disable, prefer, require, verify-ca, verify-full"
                )));
            }
        };
        config.ssl_mode(mode);
        Ok(ServerTrust { check, root })
    }
}

/// Adds the user and the password of variables.
fn add_credentials(config: &mut Config, variables: &ServerVariables) {
    if let (None, Some(user)) = (config.get_user(), variables.get("PGUSER")) {
        config.user(user);
    }
    if let (None, Some(password)) = (config.get_password(), variables.get("PGPASSWORD")) {
        config.password(password);
    }
}

/// The URL without the parameters of TLS, and these parameters.
fn without_tls_parameters(url: &str) -> (String, TlsParameters) {
    let mut parameters = TlsParameters::default();
    let Some((place, query)) = url.split_once('?') else {
        return (url.to_owned(), parameters);
    };
    let others = query.split('&').filter(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
        match name {
            "sslmode" => parameters.mode = Some(value),
            "sslrootcert" => parameters.root_certificate = Some(value),
            _ => return true,
        }
        false
    });
    let others: Vec<&str> = others.collect();
    let mut place = place.to_owned();
    if !others.is_empty() {
        place = format!("{place}?{}", others.join("&"));
    }
    (place, parameters)
}

fn host_name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    }
}

fn bad_url(why: String) -> Error {
    Error::BadUrl {
        what: "the database",
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str, variables: &[(&str, &str)]) -> ConnectionSettings {
        let variables = variables.iter();
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ConnectionSettings::new(url, &variables.collect(), Duration::from_secs(1)).unwrap()
    }

    #[test]
    fn url_precedes_variables() {
        let variables = [
            ("PGUSER", "ann"),
            ("PGPASSWORD", "pw"),
            ("PGSSLMODE", "disable"),
        ];
        let of_url = settings(
            "postgres://bob:own@h/d?sslmode=verify-full&application_name=x",
            &variables,
        );
        assert_eq!(of_url.config.get_user(), Some("bob"));
        assert_eq!(of_url.config.get_password(), Some("own".as_bytes()));
        assert_eq!(of_url.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(of_url.trust.check, CertificateCheck::IssuerAndName);
        assert_eq!(of_url.config.get_application_name(), Some("x"));
        let of_variables = settings("postgres://h/d", &variables);
        assert_eq!(of_variables.config.get_user(), Some("ann"));
        assert_eq!(of_variables.config.get_password(), Some("pw".as_bytes()));
        assert_eq!(of_variables.config.get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn require_checks_the_issuer_if_a_root_certificate_is_named() {
        let plain = settings("postgres://h/d?sslmode=require", &[]);
        assert_eq!(plain.trust.check, CertificateCheck::Nothing);
        let url = "postgres://h/d?sslrootcert=%2Fa%20b&sslmode=require";
        let named = settings(url, &[("PGSSLROOTCERT", "/other")]);
        assert_eq!(named.trust.check, CertificateCheck::Issuer);
        assert_eq!(named.trust.root, Some(PathBuf::from("/a b")));
        let system = settings("postgres://h/d?sslmode=verify-ca&sslrootcert=system", &[]);
        assert_eq!(system.trust.root, None);
    }

    #[test]
    fn unknown_mode_is_an_error_that_lists_the_modes() {
        let unknown = "postgres://h/d?sslmode=always";
        let error = ConnectionSettings::new(unknown, &ServerVariables::default(), Duration::ZERO);
        let text = error.err().unwrap().to_string();
        assert!(
            text.contains("'always'") && text.contains("verify-full"),
            "{text}"
        );
    }
}

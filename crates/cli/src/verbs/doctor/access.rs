//! Checks the access settings: tokens, encryption, the audit log.

use std::path::Path;

use trimtab_proxy::{ProxyConfig, TlsFiles};

use super::check::DoctorCheck;

/// Checks the access settings.
pub(super) fn check(config: &ProxyConfig) -> Vec<DoctorCheck> {
    let mut checks = vec![exposure(config)];
    checks.extend(config.tls.as_ref().map(tls));
    checks.extend(config.audit.file.as_deref().map(audit));
    checks
}

fn exposure(config: &ProxyConfig) -> DoctorCheck {
    let tokens = config.tokens.len() + usize::from(config.token.is_some());
    let asked = match tokens {
        0 => "no token required".to_owned(),
        1 => "a token is required".to_owned(),
        tokens => format!("one of {tokens} tokens is required"),
    };
    let is_local = config.listen.ip().is_loopback();
    match (is_local, &config.tls) {
        (true, _) => DoctorCheck::ok("access", format!("from this machine only; {asked}")),
        (false, Some(_)) => {
            DoctorCheck::ok("access", format!("from other machines, over TLS; {asked}"))
        }
        (false, None) => DoctorCheck::warning(
            "access",
            format!("from other machines, not encrypted; {asked}"),
            "set proxy.tls, or listen on a loopback address behind a proxy that encrypts",
        ),
    }
}

fn tls(files: &TlsFiles) -> DoctorCheck {
    if let Err(problem) = files.check() {
        let problem = problem.to_string();
        let (message, hint) = problem.split_once("\nhint: ").unwrap_or((&problem, ""));
        return DoctorCheck::problem("tls", message, hint);
    }
    let certificate = files.certificate.display();
    if others_can_read(&files.key) {
        return DoctorCheck::warning(
            "tls",
            format!("other users can read the key {}", files.key.display()),
            "make it readable only by the proxy's user: chmod 600",
        );
    }
    DoctorCheck::ok("tls", format!("{certificate} and its key are usable"))
}

fn audit(file: &Path) -> DoctorCheck {
    let shown = file.display();
    let opened = std::fs::OpenOptions::new().append(true).open(file);
    let is_new = opened
        .as_ref()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    match opened {
        Ok(_) if others_can_read(file) => DoctorCheck::warning(
            "audit log",
            format!("other users can read {shown}"),
            "make it readable only by the proxy's user: chmod 600",
        ),
        Ok(_) => DoctorCheck::ok("audit log", format!("{shown} is writable")),
        Err(_) if is_new && folder.is_none_or(Path::is_dir) => {
            DoctorCheck::ok("audit log", format!("{shown} will be created"))
        }
        Err(error) => DoctorCheck::problem(
            "audit log",
            format!("{shown}: {error}"),
            "set audit.file to a file that the proxy can write",
        ),
    }
}

#[cfg(unix)]
fn others_can_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let found = std::fs::metadata(path);
    found.is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn others_can_read(_: &Path) -> bool {
    false
}

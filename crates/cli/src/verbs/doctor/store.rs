//! Checks whether the store is writable, has room, and is intact.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use trimtab::store::{Error, FolderStore, OutputForm, Put, SessionId, Store};

use super::check::DoctorCheck;
use crate::proxy::settings::ResolvedProxy;
use crate::ui::units::size;
use crate::verbs::output::store_location::explain;

/// Below this, a busy day of outputs could fill the disk: a problem.
const LITTLE: u64 = 100 << 20;
/// Below this, a warning.
const SCARCE: u64 = 1 << 30;
/// How long stored outputs are read.
const READING: Duration = Duration::from_secs(5);
/// The session of the write test, which is removed afterwards.
const PROBE: &str = "trimtab-doctor/probe";

pub(super) fn check(resolved: &ResolvedProxy) -> Vec<DoctorCheck> {
    let path = match resolved.store.path() {
        Ok(path) => path,
        Err(failure) => return vec![DoctorCheck::of_failure("store", &failure)],
    };
    let mut checks = Vec::new();
    if FolderStore::is_at(&path) {
        match FolderStore::open(&path) {
            Ok(store) => {
                checks.extend([writable(&store, &path), whole(&store)]);
                checks.extend(secret(&store, &path));
            }
            Err(error) => checks.push(DoctorCheck::of_failure("store", &explain(&path, &error))),
        }
    } else {
        checks.push(not_yet(&path));
    }
    checks.extend(room(&path));
    checks
}

/// The check for a store that does not exist yet and will be created on first use.
fn not_yet(path: &Path) -> DoctorCheck {
    let shown = path.display();
    if path.exists() && !path.is_dir() {
        let message = format!("{shown} is not a folder");
        return DoctorCheck::problem(
            "store",
            message,
            "give a folder with --store or TRIMTAB_STORE",
        );
    }
    let above = existing(path);
    match tempfile::tempfile_in(&above) {
        Ok(_) => DoctorCheck::ok(
            "store",
            format!("{shown}: does not exist yet, will be created on first use"),
        ),
        Err(error) => DoctorCheck::problem(
            "store",
            format!("cannot create {shown}: {}: {error}", above.display()),
            "give a folder that you may write to with --store or TRIMTAB_STORE",
        ),
    }
}

/// The nearest existing parent folder.
fn existing(path: &Path) -> PathBuf {
    let found = path.ancestors().find(|folder| folder.is_dir());
    found.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Writes a value, reads it back and removes it.
fn writable(store: &FolderStore, path: &Path) -> DoctorCheck {
    let text = "is the store well?";
    let tried = SessionId::new(PROBE).and_then(|session| {
        let kept = store.put(&session, Put::new("probe", text))?;
        let back = store.get(&session, kept.id());
        store.delete_session(&session)?;
        back
    });
    match tried {
        Ok(back) if back == text.as_bytes() => DoctorCheck::ok(
            "store",
            format!("{}: written and read back", path.display()),
        ),
        Ok(_) => DoctorCheck::problem(
            "store",
            format!("{}: returns other bytes than were written", path.display()),
            "the disk or its file system is damaged; use another folder with --store",
        ),
        Err(Error::ReadOnly) => DoctorCheck::warning(
            "store",
            format!("{} is read-only", path.display()),
            "stored outputs are readable; a proxy passes requests through unchanged until the \
             store is writable",
        ),
        Err(error) => DoctorCheck::of_failure("store", &explain(path, &error)),
    }
}

/// Without the secret of the store, a proxy manages no requests.
fn secret(store: &FolderStore, path: &Path) -> Option<DoctorCheck> {
    let error = store.secret().err()?;
    let check = DoctorCheck::of_failure("store secret", &explain(path, &error));
    Some(check)
}

/// Reads stored outputs for a while, the newest sessions first.
fn whole(store: &FolderStore) -> DoctorCheck {
    let name = "stored outputs";
    let mut sessions = match store.sessions() {
        Ok(sessions) => sessions,
        Err(error) => {
            return DoctorCheck::problem(
                name,
                error.to_string().lines().next().unwrap_or_default(),
                "`trimtab store check` reports what is lost, `trimtab store repair` saves the rest",
            );
        }
    };
    sessions.sort_by_key(|info| std::cmp::Reverse(info.used));
    let until = Instant::now() + READING;
    let outputs: u64 = sessions.iter().map(|info| info.outputs).sum();
    let mut read = 0_u64;
    let mut damaged = Vec::new();
    'all: for info in &sessions {
        for output in store.list(&info.session).unwrap_or_default() {
            if Instant::now() > until {
                break 'all;
            }
            read += 1;
            let id = output.reference.id();
            if !is_whole(store, &info.session, id) {
                damaged.push(id.to_owned());
            }
        }
    }
    let Some(first) = damaged.first() else {
        let all = if read < outputs {
            format!(" of {outputs}")
        } else {
            String::new()
        };
        let count = sessions.len();
        return DoctorCheck::ok(
            name,
            format!("{read}{all} read, none damaged, {count} sessions"),
        );
    };
    DoctorCheck::problem(
        name,
        format!(
            "{} of {read} are damaged, for example {first}",
            damaged.len()
        ),
        "the rest is not affected; `trimtab store check` lists them all; check the disk",
    )
}

fn is_whole(store: &FolderStore, session: &SessionId, id: &str) -> bool {
    let read = store
        .open(session, id, OutputForm::Whole)
        .map(|stored| std::io::copy(&mut stored.reader(), &mut std::io::sink()));
    matches!(read, Ok(Ok(_)))
}

/// The free disk space.
#[cfg(unix)]
fn room(path: &Path) -> Option<DoctorCheck> {
    let place = existing(path);
    let found = rustix::fs::statvfs(&place).ok()?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let message = format!("{} free at {}", size(free), place.display());
    let hint = "free disk space, or remove old sessions with `trimtab output gc`";
    Some(if free < LITTLE {
        DoctorCheck::problem("room", message, hint)
    } else if free < SCARCE {
        DoctorCheck::warning("room", message, hint)
    } else {
        DoctorCheck::ok("room", message)
    })
}

#[cfg(not(unix))]
fn room(_: &Path) -> Option<DoctorCheck> {
    None
}

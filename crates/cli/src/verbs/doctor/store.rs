//! Checks whether the store is writable, has room, and is intact.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use trimtab::store::{Error, FolderStore, OutputForm, Put, SessionId, Store};
use trimtab::store_place::StorePlace;

use super::check::DoctorCheck;
use crate::proxy::settings::ResolvedProxy;
use crate::ui::number::counted;
use crate::ui::units::size;
use crate::verbs::output::store_location::explain;

/// Below this, a busy day of outputs could fill the disk: a problem.
const LITTLE: u64 = 100 << 20;
/// Below this, a warning.
const SCARCE: u64 = 1 << 30;
/// How long stored outputs are read.
const READING: Duration = Duration::from_secs(5);
/// The size of a large output.
const LARGE: usize = 512 << 10;
/// The session of the write test, which is removed afterwards.
const PROBE: &str = "trimtab-doctor/probe";

pub(super) fn check(resolved: &ResolvedProxy) -> Vec<DoctorCheck> {
    let place = match resolved.store.place() {
        Ok(place) => place,
        Err(failure) => return vec![DoctorCheck::of_failure("store", &failure)],
    };
    let mut checks = match &place {
        StorePlace::Folder(path) if !FolderStore::is_at(path) => vec![missing_folder(path)],
        place => of_store(place),
    };
    if let StorePlace::Folder(path) = &place {
        checks.extend(room(path));
    }
    checks
}

fn of_store(place: &StorePlace) -> Vec<DoctorCheck> {
    let store = match place.open() {
        Ok(store) => store,
        Err(Error::NoTables) => return vec![missing_tables(place)],
        Err(error) => return vec![DoctorCheck::of_failure("store", &explain(place, &error))],
    };
    let mut checks = vec![writable(store.as_ref(), place)];
    if let StorePlace::Shared { blobs, .. } = place {
        checks.push(large_output(store.as_ref(), place, blobs.is_some()));
    }
    checks.push(stored_outputs(store.as_ref(), place));
    checks.extend(secret(store.as_ref(), place));
    checks
}

/// The check for tables that do not exist yet and will be created on first use.
fn missing_tables(place: &StorePlace) -> DoctorCheck {
    match place.rehearse() {
        Ok(()) => DoctorCheck::ok(
            "store",
            format!("{place}: no store yet, will be created on first use"),
        ),
        Err(error) => DoctorCheck::of_failure("store", &explain(place, &error)),
    }
}

/// Writes and reads an output that is too large for a row, which goes to the object store.
fn large_output(store: &dyn Store, place: &StorePlace, has_blobs: bool) -> DoctorCheck {
    let bytes = noise();
    let where_to = if has_blobs {
        "object store"
    } else {
        "database"
    };
    match write_and_read(store, &bytes) {
        Ok(true) => DoctorCheck::ok(
            "large outputs",
            format!("{where_to}: written and read back"),
        ),
        Ok(false) => DoctorCheck::problem(
            "large outputs",
            format!("{where_to}: returns other bytes than were written"),
            "check the object store, or choose another one with --blobs",
        ),
        Err(error) => DoctorCheck::of_failure("large outputs", &explain(place, &error)),
    }
}

/// Bytes that compression does not shorten.
fn noise() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..LARGE / 8).flat_map(|_| next()).collect()
}

fn write_and_read(store: &dyn Store, bytes: &[u8]) -> Result<bool, Error> {
    let session = SessionId::new(PROBE)?;
    let kept = store.put(&session, Put::new("probe", bytes))?;
    let back = store.get(&session, kept.id());
    // Removed even if it could not be read.
    store.delete_session(&session)?;
    Ok(back? == bytes)
}

/// The check for a store that does not exist yet and will be created on first use.
fn missing_folder(path: &Path) -> DoctorCheck {
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
fn writable(store: &dyn Store, place: &StorePlace) -> DoctorCheck {
    match write_and_read(store, b"is the store well?") {
        Ok(true) => DoctorCheck::ok("store", format!("{place}: written and read back")),
        Ok(false) => DoctorCheck::problem(
            "store",
            format!("{place}: returns other bytes than were written"),
            "the disk or its file system is damaged; use another store with --store",
        ),
        Err(Error::ReadOnly) => DoctorCheck::warning(
            "store",
            format!("{place} is read-only"),
            "stored outputs are readable; a proxy passes requests through unchanged until the \
             store is writable",
        ),
        Err(error) => DoctorCheck::of_failure("store", &explain(place, &error)),
    }
}

/// Without the secret of the store, a proxy manages no requests.
fn secret(store: &dyn Store, place: &StorePlace) -> Option<DoctorCheck> {
    let error = store.secret().err()?;
    let check = DoctorCheck::of_failure("store secret", &explain(place, &error));
    Some(check)
}

/// Reads stored outputs for a while, the newest sessions first.
fn stored_outputs(store: &dyn Store, place: &StorePlace) -> DoctorCheck {
    let name = "stored outputs";
    let mut sessions = match store.sessions() {
        Ok(sessions) => sessions,
        Err(error) => return DoctorCheck::of_failure(name, &explain(place, &error)),
    };
    // The time may not suffice for all of them, and new sessions matter most.
    sessions.sort_by_key(|info| std::cmp::Reverse(info.used));
    let until = Instant::now() + READING;
    let outputs: u64 = sessions.iter().map(|info| info.outputs).sum();
    let mut read = 0_u64;
    let mut damaged = Vec::new();
    'all: for info in &sessions {
        let outputs = match store.list(&info.session) {
            Ok(outputs) => outputs,
            Err(error) if error.is_damaged() => {
                read += info.outputs;
                damaged.push(format!("the list of session '{}'", info.session));
                continue;
            }
            Err(error) => return DoctorCheck::of_failure(name, &explain(place, &error)),
        };
        for output in outputs {
            if Instant::now() > until {
                break 'all;
            }
            read += 1;
            let id = output.reference.id();
            match read_whole(store, &info.session, id) {
                Ok(()) => {}
                Err(error) if error.is_damaged() => damaged.push(id.to_owned()),
                // The output may be intact: the store could not be read. The others would fail too.
                Err(error) => return DoctorCheck::of_failure(name, &explain(place, &error)),
            }
        }
    }
    let Some(first) = damaged.first() else {
        let all = if read < outputs {
            format!(" of {outputs}")
        } else {
            String::new()
        };
        let count = counted(sessions.len(), "session");
        return DoctorCheck::ok(name, format!("{read}{all} read, none damaged, {count}"));
    };
    DoctorCheck::problem(
        name,
        format!(
            "{} of {read} are damaged, for example {first}",
            damaged.len()
        ),
        match place {
            StorePlace::Folder(_) => {
                "the rest is not affected; `trimtab store check` lists them all; check the disk"
            }
            StorePlace::Shared { .. } => {
                "the rest is not affected; check the disks of the database and of the object store"
            }
        },
    )
}

fn read_whole(store: &dyn Store, session: &SessionId, id: &str) -> Result<(), Error> {
    let stored = store.open(session, id, OutputForm::Whole)?;
    let read = std::io::copy(&mut stored.reader(), &mut std::io::sink());
    read.map(|_| ()).map_err(Error::from_read)
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

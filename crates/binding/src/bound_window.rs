//! A window as the request of a host.

use std::collections::{HashMap, HashSet, VecDeque};
use std::mem::discriminant;

use trimtab::request::changes;
use trimtab::session::Session;
use trimtab::wire::scan::BodyScan;
use trimtab::wire::splice::splice;
use trimtab::wire::validate::{RequestFault, validate};
use xxhash_rust::xxh3::xxh3_128;

use crate::BindingError;

/// The request to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundWindow {
    /// The request in the host's shape.
    pub body: Vec<u8>,
    /// For each row of its list of messages, the row of the host's request that it is, byte for
    /// byte; none for a row that was changed or added.
    pub sources: Vec<Option<usize>>,
    /// The rows without a source, as a JSON list: all that a host has to parse that keeps its own
    /// rows.
    pub changed: Vec<u8>,
    /// Its tokens by estimate, tool definitions included.
    pub tokens: u64,
    /// How long an answer to ask for, in tokens, where that is known.
    pub max_output: Option<u64>,
    /// Why it does not fit the window, if it does not. It is as small as it can be made, and the
    /// provider decides.
    pub misfit: Option<String>,
}

/// A window as the host's request.
pub(crate) struct WrittenWindow {
    pub(crate) body: Vec<u8>,
    pub(crate) sources: Vec<Option<usize>>,
    pub(crate) changed: Vec<u8>,
}

/// The session's window as a request: the host's request, with the changes of the window.
pub(crate) fn write(
    session: &mut Session,
    scan: &BodyScan<'_>,
) -> Result<WrittenWindow, BindingError> {
    session.window()?;
    let projection = session.projection();
    let mut changes = changes(projection.log(), projection.last_window(), scan.dialect());
    // If only repairs change something, a request that is valid is sent as it is.
    let is_only_repaired = projection.is_unedited();
    if is_only_repaired && !changes.is_empty() && validate(scan).is_empty() {
        changes.clear();
    }
    let mismatch = |why: &dyn ToString| BindingError::Mismatch(why.to_string());
    let spliced = splice(scan, &changes).map_err(|why| mismatch(&why))?;
    if spliced.body.as_ref() == scan.body() {
        return Ok(WrittenWindow {
            body: scan.body().to_vec(),
            sources: (0..scan.rows().count()).map(Some).collect(),
            changed: b"[]".to_vec(),
        });
    }
    let written = BodyScan::new(&spliced.body, scan.dialect()).map_err(|why| mismatch(&why))?;
    if let Some(fault) = new_fault(scan, &written) {
        return Err(mismatch(&fault));
    }
    let sources = sources(scan, &written);
    let rows = written.rows().zip(&sources);
    let new_rows: Vec<&str> = rows
        .filter_map(|(row, source)| source.is_none().then_some(row))
        .collect();
    Ok(WrittenWindow {
        changed: format!("[{}]", new_rows.join(",")).into_bytes(),
        sources,
        body: spliced.body.into_owned(),
    })
}

/// A rule that the new request breaks and the old one does not.
fn new_fault(came: &BodyScan<'_>, written: &BodyScan<'_>) -> Option<RequestFault> {
    let faults = validate(written);
    if faults.is_empty() {
        return None;
    }
    let known = validate(came);
    let known: HashSet<_> = known
        .iter()
        .map(|fault| discriminant(&fault.rule))
        .collect();
    let mut new = faults.into_iter();
    new.find(|fault| !known.contains(&discriminant(&fault.rule)))
}

/// For each row of `written`, the row of `came` with the same bytes. Rows keep their order, so
/// each is looked for behind the one before it.
fn sources(came: &BodyScan<'_>, written: &BodyScan<'_>) -> Vec<Option<usize>> {
    let hash = |row: &str| xxh3_128(row.as_bytes());
    let hashes: Vec<u128> = written.rows().map(hash).collect();
    // Places of rows that are in both: most rows of a long conversation are not written.
    let written = hashes.iter().map(|hash| (*hash, VecDeque::new()));
    let mut places: HashMap<u128, VecDeque<usize>> = written.collect();
    for (at, row) in came.rows().enumerate() {
        if let Some(same) = places.get_mut(&hash(row)) {
            same.push_back(at);
        }
    }
    let mut next = 0;
    let found = hashes.iter().map(|hash| {
        let same = places.get_mut(hash)?;
        while same.front().is_some_and(|at| *at < next) {
            same.pop_front();
        }
        let at = same.pop_front()?;
        next = at + 1;
        Some(at)
    });
    found.collect()
}

//! `trimtab models update`: adds a newer registry to the catalogue.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use http::Method;
use trimtab_wire::catalogue::Catalogue;

use crate::common::CommonArgs;
use crate::exit::{Failure, with_hint};
use crate::proxy::block_on;
use crate::proxy::http::HttpClient;
use crate::ui::visible::visible;
use crate::ui::{Terminal, number};
use crate::{catalogue, settings, source};

/// The time limit of a download.
const PATIENCE: Duration = Duration::from_mins(1);

/// Runs the verb.
pub(super) fn run(from: &str, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let json = if from.starts_with("http://") || from.starts_with("https://") {
        download(from, common)?
    } else {
        read(Path::new(from), terminal)?
    };
    let import =
        Catalogue::from_registry(&json).map_err(|error| bad_registry(from, &error.to_string()))?;
    let path = catalogue::own_path()?;
    // An unusable catalogue is replaced.
    let before = catalogue::load().unwrap_or_default();
    let merged = before.merged(&import.catalogue);
    let (added, changed) = difference(&before, &import.catalogue);
    replace(&path, merged.snapshot()).map_err(|error| catalogue::unwritable(&path, &error))?;
    let (models, skipped) = (merged.ids().count(), import.skipped.len());
    if common.json {
        let report = serde_json::json!({
            "path": path, "models": models, "added": added, "changed": changed, "skipped": skipped,
        });
        terminal.json(&report)?;
        return Ok(());
    }
    let shown = path.display().to_string();
    writeln!(
        terminal.out(),
        "{} added, {changed} changed, {skipped} entries skipped; {} in {}",
        number::counted(added, "model"),
        number::counted(models, "model"),
        visible(&shown)
    )?;
    terminal.note("`trimtab models reset` restores the built-in catalogue");
    Ok(())
}

/// The number of models in `newer` that are new, and the number that differ.
fn difference(before: &Catalogue, newer: &Catalogue) -> (usize, usize) {
    let lines = |catalogue: &Catalogue| -> BTreeMap<String, String> {
        let ids = catalogue.ids().map(str::to_owned);
        ids.zip(
            catalogue
                .snapshot()
                .lines()
                .filter(|line| !line.starts_with('#'))
                .map(str::to_owned),
        )
        .collect()
    };
    let before = lines(before);
    let newer = lines(newer);
    let added = newer.keys().filter(|id| !before.contains_key(*id)).count();
    let is_changed =
        |(id, line): &(&String, &String)| before.get(*id).is_some_and(|before| before != *line);
    (added, newer.iter().filter(is_changed).count())
}

fn read(file: &Path, terminal: &Terminal) -> Result<String, Failure> {
    let opened = source::open(file, terminal).map_err(|failure| {
        Failure::input(
            failure.to_string(),
            "give the path or the URL of a registry, or - for standard input",
        )
    })?;
    let mut input = opened.input;
    let mut json = String::new();
    input
        .read_to_string(&mut json)
        .map_err(|error| bad_registry(&source::name(file), &error.to_string()))?;
    Ok(json)
}

/// Downloads a registry, with the egress proxy and certificate authorities of the settings.
fn download(url: &str, common: &CommonArgs) -> Result<String, Failure> {
    let outgoing = settings::outgoing(&settings::load(common, &[])?)?;
    let failed = |why: String| Failure::WithHint {
        message: format!("{url}: {why}"),
        hint: Some("download the file with another tool, and give its path".to_owned()),
    };
    let answer = block_on(async {
        let http = HttpClient::new(outgoing);
        let asked = http.send(Method::GET, url, &[], Vec::new(), PATIENCE);
        asked.await.map_err(failed)
    })?;
    if !answer.status.is_success() {
        let to = match answer.header("location") {
            "" => String::new(),
            to => format!(", which redirects to {to}"),
        };
        return Err(failed(format!("the server answers {}{to}", answer.status)));
    }
    String::from_utf8(answer.body.into()).map_err(|_| bad_registry(url, "it is not text in UTF-8"))
}

fn bad_registry(from: &str, why: &str) -> Failure {
    let (message, hint) = with_hint(why);
    let message = format!("{from}: {message}");
    Failure::Input { message, hint }
}

/// Writes to a temporary file and renames it, so that a reader sees the old or the new file.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut written = tempfile::NamedTempFile::new_in(folder)?;
    written.write_all(text.as_bytes())?;
    written.as_file().sync_all()?;
    written.persist(path).map_err(|error| error.error)?;
    Ok(())
}

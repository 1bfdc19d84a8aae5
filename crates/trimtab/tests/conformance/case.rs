//! Reading the cases.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// One case.
pub(crate) struct Case {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) op: String,
    pub(crate) input: Value,
    pub(crate) expected: Value,
    pub(crate) inverted: bool,
}

impl Case {
    /// How a report calls it.
    pub(crate) fn title(&self) -> String {
        format!("{} / {} ({})", self.file, self.name, self.op)
    }
}

/// Every case of every JSON file in `folder`, or why it cannot be read.
pub(crate) fn read_folder(folder: &Path) -> Vec<Result<Case, String>> {
    let files = match json_files(folder) {
        Ok(files) => files,
        Err(error) => return vec![Err(format!("cannot read {}: {error}", folder.display()))],
    };
    files.iter().flat_map(|path| read_file(path)).collect()
}

fn json_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.retain(|path| path.extension().is_some_and(|end| end == "json"));
    files.sort();
    Ok(files)
}

fn read_file(path: &Path) -> Vec<Result<Case, String>> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let json = text.and_then(|text| {
        let json: Result<Value, _> = serde_json::from_str(&text);
        json.map_err(|error| error.to_string())
    });
    let json = match json {
        Ok(json) => json,
        Err(why) => return vec![Err(format!("{}: {why}", path.display()))],
    };
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let cases = json.get("cases").unwrap_or(&json).as_array();
    let cases = cases.into_iter().flatten();
    cases.map(|case| read_case(&file, case)).collect()
}

/// Cases in which the original keeps less than it should, as `docs/presets.md` says: ours must
/// differ. Where the summariser fails, it drops the newest question of the user.
const DIFFERS_ON_PURPOSE: [&str; 1] = ["compact_llm_failure_keeps_first_and_last"];

fn read_case(file: &str, case: &Value) -> Result<Case, String> {
    let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
    let part = |key: &str| {
        let read = expanded(&case[key]);
        read.ok_or_else(|| format!("{file} / {}: cannot read `{key}`", text("name")))
    };
    Ok(Case {
        file: file.to_owned(),
        name: text("name"),
        op: text("op"),
        input: part("input")?,
        expected: part("expected")?,
        inverted: case["inverted"] == true || DIFFERS_ON_PURPOSE.contains(&text("name").as_str()),
    })
}

/// The value with `$repeat` and `$concat` written out.
fn expanded(value: &Value) -> Option<Value> {
    Some(match value {
        Value::Object(map) => match (map.get("$repeat"), map.get("$concat")) {
            (Some(text), _) => {
                let times = usize::try_from(map.get("times")?.as_u64()?).ok()?;
                Value::from(expanded(text)?.as_str()?.repeat(times))
            }
            (_, Some(pieces)) => {
                let mut text = String::new();
                for piece in pieces.as_array()? {
                    text.push_str(expanded(piece)?.as_str()?);
                }
                Value::from(text)
            }
            _ => {
                let fields = map.iter();
                let fields = fields.map(|(key, value)| Some((key.clone(), expanded(value)?)));
                Value::Object(fields.collect::<Option<_>>()?)
            }
        },
        Value::Array(list) => Value::Array(list.iter().map(expanded).collect::<Option<_>>()?),
        other => other.clone(),
    })
}

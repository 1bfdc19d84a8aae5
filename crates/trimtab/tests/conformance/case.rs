//! Reading the cases.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
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

/// The cases in which ours differs on purpose, each with the reason.
fn differences(file: &Path) -> Result<BTreeMap<String, String>, String> {
    #[derive(Deserialize)]
    struct Difference {
        name: String,
        why: String,
    }
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let mut read: BTreeMap<String, Vec<Difference>> =
        toml::from_str(&text).map_err(|error| error.to_string())?;
    let cases = read.remove("case").unwrap_or_default().into_iter();
    Ok(cases.map(|one| (one.name, one.why)).collect())
}

/// Every case of every JSON file in `folder`, or why it cannot be read. `differs` is the file with
/// the cases in which ours differs on purpose.
pub(crate) fn read_folder(folder: &Path, differs: &Path) -> Vec<Result<Case, String>> {
    let differs = match differences(differs) {
        Ok(differs) => differs,
        Err(why) => return vec![Err(format!("cannot read {}: {why}", differs.display()))],
    };
    let files = match json_files(folder) {
        Ok(files) => files,
        Err(error) => return vec![Err(format!("cannot read {}: {error}", folder.display()))],
    };
    files
        .iter()
        .flat_map(|path| read_file(path, &differs))
        .collect()
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

fn read_file(path: &Path, differs: &BTreeMap<String, String>) -> Vec<Result<Case, String>> {
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
    cases.map(|case| read_case(&file, case, differs)).collect()
}

fn read_case(file: &str, case: &Value, differs: &BTreeMap<String, String>) -> Result<Case, String> {
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
        inverted: case["inverted"] == true || differs.contains_key(&text("name")),
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

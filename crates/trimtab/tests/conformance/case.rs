//! Reading the cases.

use std::path::Path;

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

/// Every case of every JSON file in `folder`.
pub(crate) fn read_folder(folder: &Path) -> Vec<Case> {
    let entries = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let is_json = |path: &&std::path::PathBuf| path.extension().is_some_and(|end| end == "json");
    files
        .iter()
        .filter(is_json)
        .flat_map(|path| read_file(path))
        .collect()
}

fn read_file(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).unwrap();
    let cases: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let cases = cases
        .get("cases")
        .unwrap_or(&cases)
        .as_array()
        .cloned()
        .unwrap_or_default();
    let file = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    cases
        .into_iter()
        .map(|case| read_case(&file, &case))
        .collect()
}

fn read_case(file: &str, case: &Value) -> Case {
    let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
    Case {
        file: file.to_owned(),
        name: text("name"),
        op: text("op"),
        input: expanded(&case["input"]),
        expected: expanded(&case["expected"]),
        inverted: case["inverted"] == true,
    }
}

/// The value with `$repeat` and `$concat` written out.
fn expanded(value: &Value) -> Value {
    match value {
        Value::Object(map) => match (map.get("$repeat"), map.get("$concat")) {
            (Some(text), _) => {
                let times = usize::try_from(map["times"].as_u64().unwrap()).unwrap();
                Value::from(expanded(text).as_str().unwrap().repeat(times))
            }
            (_, Some(pieces)) => {
                let pieces = pieces.as_array().unwrap().iter().map(expanded);
                Value::from(
                    pieces
                        .map(|p| p.as_str().unwrap().to_owned())
                        .collect::<String>(),
                )
            }
            _ => map
                .iter()
                .map(|(key, value)| (key.clone(), expanded(value)))
                .collect(),
        },
        Value::Array(list) => list.iter().map(expanded).collect(),
        other => other.clone(),
    }
}

//! Finds the files that the arguments of a call name.

use serde_json::Value;
use trimtab_model::Call;

use super::outcome::runs_command;
use crate::compaction::text::clip_line;
use crate::facts::{self, FactKind};

/// What a call does with a file, as far as its arguments say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileAccess {
    Read,
    Written,
    /// Unknown: a command may do anything with it.
    Named,
}

/// The argument fields that name a file.
const FIELDS: [&str; 7] = [
    "file_path",
    "filePath",
    "file",
    "filename",
    "target_file",
    "notebook_path",
    "absolute_path",
];
/// An argument field that names a file, or a folder to search.
const FILE_OR_FOLDER: &str = "path";
/// Words in the names of tools that write.
const WRITERS: [&str; 9] = [
    "write", "edit", "patch", "create", "replace", "insert", "delete", "move", "update",
];
/// Words in the names of tools that read a file.
const READERS: [&str; 4] = ["read", "view", "open", "cat"];
/// The text before the path of a file in a patch.
const PATCH_HEADERS: [&str; 5] = [
    "*** Update File: ",
    "*** Add File: ",
    "*** Delete File: ",
    "*** Move to: ",
    "+++ b/",
];
/// The ends of names that begin with a dot and are files. Most others in a command are extensions or
/// fields: `find -name .yml`, `jq .version`.
const DOT_FILES: [&str; 6] = ["rc", "ignore", "env", "config", "attributes", "modules"];
/// The bytes of commands that are searched for paths.
const SEARCHED: usize = 2 << 10;
/// The bytes of arguments that are parsed.
const PARSED: usize = 256 << 10;
/// The maximum of characters of a path.
const LONGEST: usize = 160;

/// The files that `call` names, and what it does with them.
pub(super) fn named_by(call: &Call) -> Vec<(String, FileAccess)> {
    let arguments = &call.arguments;
    // Patches first: some clients send a patch as a command, or as plain text instead of JSON.
    let patched = in_patch(arguments);
    if !patched.is_empty() {
        return with_use(patched, FileAccess::Written);
    }
    if runs_command(call) {
        return with_use(in_commands(call), FileAccess::Named);
    }
    // Parsing builds a tree of the whole text, and large arguments are file contents.
    if arguments.len() > PARSED {
        return Vec::new();
    }
    let Ok(arguments) = serde_json::from_str::<Value>(arguments) else {
        return Vec::new();
    };
    let name = call.name.to_ascii_lowercase();
    let is_one_of = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let how = if is_one_of(&WRITERS) {
        FileAccess::Written
    } else {
        FileAccess::Read
    };
    // A search tool has a field `path` for its folder.
    let takes_file = how == FileAccess::Written || is_one_of(&READERS);
    let mut paths = Vec::new();
    in_fields(&arguments, takes_file, &mut paths);
    with_use(paths, how)
}

fn with_use(paths: Vec<&str>, how: FileAccess) -> Vec<(String, FileAccess)> {
    let paths = paths.into_iter().map(str::trim);
    let named = paths.filter(|path| !path.is_empty());
    named.map(|path| (clip_line(path, LONGEST), how)).collect()
}

/// The files that a patch changes. In JSON arguments, its line ends are escaped.
fn in_patch(arguments: &str) -> Vec<&str> {
    if !PATCH_HEADERS
        .iter()
        .any(|header| arguments.contains(header))
    {
        return Vec::new();
    }
    let lines = arguments.split('\n').flat_map(|line| line.split("\\n"));
    lines
        .filter_map(|line| {
            let mut headers = PATCH_HEADERS.iter();
            headers.find_map(|header| line.strip_prefix(header))
        })
        // In JSON, the path ends with an escape or with the end of the string.
        .map(|path| path.split(['"', '\t', '\\']).next().unwrap_or_default())
        .collect()
}

/// The paths in the command lines of a call.
fn in_commands(call: &Call) -> Vec<&str> {
    let mut paths = Vec::new();
    let mut searched = 0;
    facts::commands(&call.name, &call.arguments, &mut |command| {
        if searched < SEARCHED {
            facts::extract(command.text, &mut |fact| {
                if fact.kind == FactKind::Path && !is_dot_word(fact.text) {
                    paths.push(fact.text);
                }
            });
        }
        searched += command.text.len();
    });
    paths
}

/// True for a word with a dot in front that is probably not a file.
fn is_dot_word(path: &str) -> bool {
    let word = path.strip_prefix('.').unwrap_or_default();
    let is_word = !word.is_empty() && word.chars().all(char::is_alphanumeric);
    is_word && !DOT_FILES.iter().any(|end| word.ends_with(end))
}

/// The paths in the fields that name files, at any depth.
fn in_fields<'v>(value: &'v Value, takes_file: bool, paths: &mut Vec<&'v str>) {
    match value {
        Value::Array(values) => {
            for value in values {
                in_fields(value, takes_file, paths);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let names_file = |path: &&str| {
                    let is_path = name == FILE_OR_FOLDER && (takes_file || is_file(path));
                    is_path || FIELDS.contains(&name.as_str())
                };
                match value {
                    Value::String(text) => paths.extend(Some(text.as_str()).filter(names_file)),
                    inner => in_fields(inner, takes_file, paths),
                }
            }
        }
        _ => {}
    }
}

/// True for a path whose last part has an extension: folders rarely do.
fn is_file(path: &str) -> bool {
    let last = path.rsplit(['/', '\\']).next().unwrap_or_default();
    last.trim_start_matches('.').contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(tool: &str, arguments: &str) -> Vec<(String, FileAccess)> {
        named_by(&Call::new("c", tool, arguments))
    }

    #[test]
    fn code_in_a_patch_or_a_command_names_no_files() {
        let patch = r#"{"input":"*** Begin Patch\n*** Update File: src/a.ts\n@@\n-console.log(x)\n+fetch(u).then(r => r.trim())\n*** End Patch"}"#;
        assert_eq!(
            named("apply_patch", patch),
            [("src/a.ts".to_owned(), FileAccess::Written)]
        );
        let bare = "*** Begin Patch\n*** Add File: b.rs\n+foo.log\n*** End Patch";
        assert_eq!(
            named("apply_patch", bare),
            [("b.rs".to_owned(), FileAccess::Written)]
        );
        let script = r#"{"cmd":"node -e 'fetch(u).then(console.log); x.trim()' && cat src/b.ts"}"#;
        assert_eq!(
            named("exec_command", script),
            [("src/b.ts".to_owned(), FileAccess::Named)]
        );
        let words =
            r#"{"cmd":"grep -v .yaml list | jq .semver; cat .gitignore .env a.yml ./.yml"}"#;
        let files = named("exec_command", words);
        let files: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        assert!(files.contains(&"a.yml"), "{files:?}");
        assert!(
            !files.contains(&".yaml") && !files.contains(&".semver"),
            "{files:?}"
        );
    }

    #[test]
    fn fields_name_files_and_other_text_does_not() {
        let edits = r#"{"edits":[{"file_path":"a.py","new_string":"console.log(b.py)"}]}"#;
        assert_eq!(
            named("multi_edit", edits),
            [("a.py".to_owned(), FileAccess::Written)]
        );
        assert_eq!(named("grep", r#"{"pattern":"x","path":"src"}"#), []);
        assert_eq!(
            named("read_file", r#"{"path":"Makefile"}"#),
            [("Makefile".to_owned(), FileAccess::Read)]
        );
        assert_eq!(named("search", r#"{"query":"who wrote main.rs"}"#), []);
    }
}

//! The commands in README and docs are valid: all are parsed, and those that need neither a key nor
//! a port are run.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use clap::{Command, CommandFactory, Parser};
use serde_json::Value;
use trimtab_cli::args::Cli;

use crate::run::{Home, root};

/// A page: its name and its text.
type Page = (String, String);

/// README and docs.
fn pages() -> Vec<Page> {
    let folders = ["docs", "docs/guides"].map(|name| fs::read_dir(root().join(name)).unwrap());
    let docs = folders.into_iter().flatten();
    let docs = docs.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = docs.filter(|path| path.extension().is_some()).collect();
    paths.extend(["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name)));
    paths.sort();
    let page = |path: PathBuf| {
        (
            path.display().to_string(),
            fs::read_to_string(path).unwrap(),
        )
    };
    paths.into_iter().map(page).collect()
}

/// The fenced blocks of a page: what they are marked as, and what is in them.
pub(crate) fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(kind)) => open = Some((kind.to_owned(), String::new())),
            (Some((_, block)), None) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a fence is not closed");
    blocks
}

/// The words of a command, as a shell splits them; without what stands behind a `#` or a pipe.
pub(crate) fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#' | '|' | '>') if word.is_none() => break,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The arguments of our command in a line of shell; none if it runs something else.
fn ours(line: &str) -> Option<Vec<String>> {
    let words = words(line);
    let is_set = |word: &&String| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    let words: Vec<String> = words.iter().skip_while(is_set).cloned().collect();
    let names: Vec<&str> = words.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["trimtab", ..] => Some(words),
        // An example is another program.
        ["cargo", "run", ..] if !names.contains(&"--example") => {
            let behind = words.iter().skip_while(|word| *word != "--").skip(1);
            let ours = std::iter::once("trimtab".to_owned());
            Some(ours.chain(behind.cloned()).collect())
        }
        _ => None,
    }
}

/// Every command of ours in the blocks that are marked as shell.
pub(crate) fn commands(text: &str) -> Vec<Vec<String>> {
    let shell = blocks(text).into_iter().filter(|(kind, _)| kind == "sh");
    let lines: Vec<String> = shell
        .flat_map(|(_, block)| {
            let joined = block.replace("\\\n", " ");
            joined.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    lines.iter().filter_map(|line| ours(line)).collect()
}

#[track_caller]
fn parse(words: &[String], place: &str) {
    if let Err(error) = Cli::try_parse_from(words) {
        panic!("{place}: {words:?}: {error}");
    }
}

#[test]
fn documented_commands_parse() {
    let mut seen = 0;
    for (name, text) in pages() {
        for words in commands(&text) {
            parse(&words, &name);
            seen += 1;
        }
    }
    assert!(seen >= 9, "only {seen} commands were found");
}

/// The options that a verb takes, and those of the verbs below it.
fn options(command: &Command, all: &mut BTreeSet<String>) {
    for argument in command.get_arguments() {
        all.extend(argument.get_long().map(str::to_owned));
        let aliases = argument.get_visible_aliases().unwrap_or_default();
        all.extend(aliases.into_iter().map(str::to_owned));
    }
    for verb in command.get_subcommands() {
        options(verb, all);
    }
}

/// The options that a text names.
fn named_options(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_lowercase() || c == '-';
    let names = text.split(|c: char| !is_part(c));
    names
        .filter_map(|name| name.strip_prefix("--"))
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn documented_verbs_and_options_exist() {
    let cli = Cli::command();
    for (page, text) in pages() {
        let synopses = blocks(&text)
            .into_iter()
            .filter(|(kind, _)| kind.is_empty());
        let synopses = synopses.flat_map(|(_, block)| {
            let joined = block.replace("\n  ", " ");
            joined.lines().map(str::to_owned).collect::<Vec<_>>()
        });
        let inline = text.split('`').skip(1).step_by(2).map(str::to_owned);
        let named: Vec<String> = synopses.chain(inline).collect();
        // One of ours may read what another one prints.
        let named = named.iter().flat_map(|line| line.split(" | "));
        for line in named.filter_map(|line| line.strip_prefix("trimtab ")) {
            let verb = line.split([' ', '\n']).next().unwrap_or_default();
            let Some(command) = cli.find_subcommand(verb) else {
                // A placeholder, or a choice of verbs.
                assert!(
                    !verb.chars().all(|c| c.is_ascii_lowercase()),
                    "{page}: {line}"
                );
                continue;
            };
            let mut known = BTreeSet::from(["help".to_owned(), "version".to_owned()]);
            let common = cli.get_arguments().filter_map(clap::Arg::get_long);
            known.extend(common.map(str::to_owned));
            options(command, &mut known);
            // What a client takes stands behind its name.
            for option in named_options(line).into_iter().filter(|_| verb != "wrap") {
                assert!(known.contains(option), "{page}: --{option} in {line}");
            }
        }
    }
}

#[test]
fn help_examples_parse() {
    fn visit(command: &Command, seen: &mut usize) {
        let text = command.get_after_help().map(ToString::to_string);
        for line in text.unwrap_or_default().lines() {
            // A client may be told to run ours.
            let start = line.find("-- trimtab ").map(|at| at + 3);
            let start = start.or_else(|| line.find("trimtab "));
            let Some(start) = start.filter(|_| line.starts_with("  ")) else {
                continue;
            };
            // What it does stands behind two spaces.
            let line = line.get(start..).unwrap_or_default();
            let line = line.split("  ").next().unwrap_or_default();
            if line.contains(['{', '`']) {
                continue;
            }
            parse(&words(line), command.get_name());
            *seen += 1;
        }
        for verb in command.get_subcommands() {
            visit(verb, seen);
        }
    }
    let mut seen = 0;
    visit(&Cli::command(), &mut seen);
    assert!(seen > 40, "only {seen} examples were found");
}

/// What a JSON schema of ours says against a value; the path of the first fault.
fn fault(schema: &Value, value: &Value, path: &str) -> Option<String> {
    let types = match &schema["type"] {
        Value::String(one) => vec![one.clone()],
        Value::Array(several) => several
            .iter()
            .filter_map(Value::as_str)
            .map(String::from)
            .collect(),
        _ => return Some(format!("{path}: the schema names no type")),
    };
    let is = |kind: &String| match kind.as_str() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        _ => false,
    };
    if !types.iter().any(is) {
        return Some(format!("{path}: {value} is no {types:?}"));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return Some(format!("{path}: {value} is not one of {words:?}"));
    }
    let inner = value
        .as_object()
        .filter(|_| schema.get("properties").is_some());
    let mut fields = inner.into_iter().flatten();
    let found = fields.find_map(|(name, value)| {
        let path = format!("{path}.{name}");
        match schema["properties"].get(name) {
            Some(schema) => fault(schema, value, &path),
            None => Some(format!("{path} was unexpected")),
        }
    });
    let items = value.as_array().filter(|_| schema.get("items").is_some());
    let mut items = items.into_iter().flatten();
    found.or_else(|| items.find_map(|item| fault(&schema["items"], item, path)))
}

#[test]
fn documented_settings_match_the_schema() {
    let home = Home::new();
    let schema = home.run(&["config", "schema"]);
    let schema: Value = serde_json::from_str(&schema.stdout).unwrap();
    let mut seen = 0;
    for (page, text) in pages() {
        for (_, block) in blocks(&text).iter().filter(|(kind, _)| kind == "toml") {
            let table: toml::Table = toml::from_str(block).unwrap();
            let value = serde_json::to_value(&table).unwrap();
            assert_eq!(fault(&schema, &value, ""), None, "{page}");
            // The pages leave out digests, which the proxy checks.
            let digest = format!("sha256 = \"{}\"", "0".repeat(64));
            let block = block.replace("sha256 = \"...\"", &digest);
            let file = home.file("documented.toml", block.as_bytes());
            let shown = home.run(&["config", "show", "--config", &file]);
            assert_eq!(shown.code, 0, "{page}: {}", shown.stderr);
            seen += 1;
        }
    }
    assert!(seen >= 3, "only {seen} files of settings were found");
    let wrong = serde_json::json!({"proxy": {"lisen": "x"}});
    assert!(fault(&schema, &wrong, "").is_some());
}

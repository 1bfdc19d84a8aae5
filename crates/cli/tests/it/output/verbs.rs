//! Each verb in normal use.

use std::io::Read as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::run::{Home, finish};

const LINES: &[u8] = b"alpha\nbeta\ngamma\ndelta\nalpha.2";

fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn put_prints_the_ref_last() {
    let home = Home::new();
    let put = ["output", "put", "--session", "s", "-"];
    let done = home.run_with(&put, LINES);
    assert_eq!(
        (done.code, done.stderr.as_str()),
        (0, "stored 30 B, 5 lines\n")
    );
    let id = done.stdout.lines().last().unwrap().to_owned();
    assert_eq!(id.len(), 16);
    // The same bytes again are the same output; of another call they are not.
    let file = home.file("again.txt", LINES);
    let put = ["output", "put", "--quiet", "--session", "s", &file];
    home.check(&put, 0, &format!("{id}\n"), "");
    let other = home.run_with(&["output", "put", "-qs", "s", "-", "--call", "c2"], LINES);
    assert_ne!(other.stdout.trim_end(), id);
    let json = home.run_with(&["output", "put", "-s", "s", "-", "--json"], LINES);
    let expected = json!({"ref": id, "byte_size": 30, "line_count": 5});
    assert_eq!(json_lines(&json.stdout), [expected]);
}

#[test]
fn empty_text_after_the_last_newline_is_not_a_line() {
    for (text, lines) in [("", 0), ("one\n", 1), ("one\ntwo", 2), ("one\ntwo\n", 2)] {
        let home = Home::new();
        let put = ["output", "put", "--json", "-s", "s", "-"];
        let put = json_lines(&home.run_with(&put, text.as_bytes()).stdout);
        assert_eq!(put[0]["line_count"], lines, "{text:?}");
        let listed = json_lines(&home.run(&["output", "list", "--json"]).stdout);
        assert_eq!(listed[0]["line_count"], lines, "{text:?}");
        let shown = home.run(&["output", "list"]).stdout;
        let row = shown.lines().last().unwrap().split_whitespace();
        assert_eq!(
            row.clone().nth(3),
            Some(lines.to_string().as_str()),
            "{shown}"
        );
    }
}

#[test]
fn list_and_sessions_show_all_entries() {
    let home = Home::new();
    let id = home.put(LINES);
    let image = [
        "output",
        "put",
        "-qs",
        "t\n2",
        "-",
        "--tool",
        "shot",
        "--media-type",
        "image/png",
    ];
    let other = home.run_with(&image, b"\x89PNG").stdout;
    let list = home.run(&["output", "list", "--session", "s"]);
    let expected = format!(
        "session s\nREF{:15}SIZE  LINES  AGE  TOOL  CALL\n{id}  30 B      5",
        ""
    );
    assert!(list.stdout.starts_with(&expected), "{}", list.stdout);
    let all = home.run(&["output", "list"]).stdout;
    assert!(all.contains(&id) && all.contains(other.trim()), "{all}");
    assert!(all.contains("\nsession t\\n2\n"), "{all}");
    let json = home.run(&["output", "list", "--json"]).stdout;
    let json = json_lines(&json);
    assert_eq!(json[0]["ref"], id);
    assert_eq!(
        (&json[1]["tool"], &json[1]["media_type"]),
        (&json!("shot"), &json!("image/png"))
    );
    assert_eq!(json[1]["session"], "t\n2");
    let sessions = home.run(&["output", "sessions"]).stdout;
    assert_eq!(sessions.lines().count(), 3, "{sessions}");
    let json = json_lines(&home.run(&["output", "sessions", "--json"]).stdout);
    let outputs: u64 = json
        .iter()
        .map(|line| line["outputs"].as_u64().unwrap())
        .sum();
    assert_eq!((json.len(), outputs), (2, 2));
}

#[test]
fn lists_fit_the_width_of_the_terminal() {
    let home = Home::new();
    let session = "proxy/3cde843a0f4ed07b718aebfe/messages/5eceafe1f0d1310005020863";
    let put = [
        "output",
        "put",
        "--session",
        session,
        "--tool",
        "mcp__some_server__search_files",
        "--call",
        "toolu_01A09q90qw90lq917835lq9",
        "-",
    ];
    let id = home.run_with(&put, b"one\ntwo\n").stdout;
    for (verb, wanted) in [("sessions", session), ("list", id.trim())] {
        let shown = |width| {
            let mut command = home.command();
            finish(command.args(["output", verb]).env("COLUMNS", width), b"").stdout
        };
        let narrow = shown("80");
        assert!(narrow.contains(wanted), "{narrow}");
        for line in narrow.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(shown("200").lines().any(|line| line.chars().count() > 80));
    }
}

#[test]
fn lines_are_printed_with_their_numbers() {
    let home = Home::new();
    let id = home.put(LINES);
    let read = ["output", "read", "--session", "s", &id];
    let all = "    1  alpha\n    2  beta\n    3  gamma\n    4  delta\n    5  alpha.2\n";
    home.check(&read, 0, all, "");
    let range = [
        "output", "read", "-s", "s", &id, "--offset", "1", "--limit", "2",
    ];
    home.check(&range, 0, "    2  beta\n    3  gamma\n", "");
    let none = ["output", "read", "-s", "s", &id, "--limit", "0"];
    home.check(&none, 0, "", "");
    let json = home.run(&["output", "read", "-s", "s", &id, "--offset", "4", "--json"]);
    let line = json!({"offset": 4, "text": "alpha.2", "byte_size": 7, "clipped": false});
    assert_eq!(json_lines(&json.stdout), [line]);
}

#[test]
fn newline_at_the_end_adds_no_line() {
    let home = Home::new();
    let id = home.put(b"alpha\nbeta\ngamma\ndelta\nalpha.2\n");
    let read = ["output", "read", "-s", "s", &id, "--offset", "3"];
    home.check(&read, 0, "    4  delta\n    5  alpha.2\n", "");
    let past = home.run(&["output", "read", "-s", "s", &id, "--offset", "5"]);
    assert_eq!(past.code, 2);
    let told = "offset 5 is past the end: the output has 5 lines";
    assert!(past.stderr.contains(told), "{}", past.stderr);
    let id = home.put(b"");
    home.check(&["output", "read", "-s", "s", &id], 0, "", "");
}

#[test]
fn raw_flag_prints_the_stored_bytes() {
    let home = Home::new();
    let bytes: Vec<u8> = (0..200_000_u32)
        .flat_map(|n| (n.wrapping_mul(2_654_435_761)).to_le_bytes())
        .collect();
    let id = home.put(&bytes);
    let read = ["output", "read", "--session", "s", &id, "--raw"];
    let output = home.command().args(read).output().unwrap();
    assert!(output.stdout == bytes && output.status.success());
    let text = b"\x1b[31mone\x1b[0m\r\ntwo\xff\nthree\n";
    let id = home.put(text);
    let read = [
        "output", "read", "-s", "s", &id, "--raw", "--offset", "1", "--limit", "1",
    ];
    let output = home.command().args(read).output().unwrap();
    assert_eq!(output.stdout, b"two\xff\n");
    // Off a terminal the text form changes nothing in a line either.
    let read = ["output", "read", "-s", "s", &id, "--limit", "2"];
    let output = home.command().args(read).output().unwrap();
    assert_eq!(
        output.stdout,
        b"    1  \x1b[31mone\x1b[0m\r\n    2  two\xff\n"
    );
}

#[test]
fn long_line_is_printed_whole() {
    let home = Home::new();
    let line = "0123456789".repeat(30_000);
    let id = home.put(format!("a\n{line}\nz").as_bytes());
    let read = ["output", "read", "-s", "s", &id];
    let expected = format!("    1  a\n    2  {line}\n    3  z\n");
    assert!(home.run(&read).stdout == expected);
}

#[test]
fn grep_marks_matches_and_context() {
    let home = Home::new();
    let id = home.put(LINES);
    let grep = ["output", "grep", "--session", "s", &id, "alpha"];
    home.check(&grep, 0, "1:alpha\n5:alpha.2\n", "");
    let around = [
        "output", "grep", "-s", "s", &id, "alpha", "-A", "1", "-B", "1",
    ];
    home.check(&around, 0, "1:alpha\n2-beta\n--\n4-delta\n5:alpha.2\n", "");
    // Contexts that overlap are printed once, and a match in one stays a match.
    let overlap = [
        "output", "grep", "-s", "s", &id, "ta$", "--regex", "-A", "2",
    ];
    home.check(&overlap, 0, "2:beta\n3-gamma\n4:delta\n5-alpha.2\n", "");
    let regex = ["output", "grep", "-s", "s", &id, "^(BETA|delta)$", "-iE"];
    home.check(&regex, 0, "2:beta\n4:delta\n", "");
    let colour = ["output", "grep", "-s", "s", &id, "amm", "--color", "always"];
    let coloured = "\u{1b}[2m3:\u{1b}[0mg\u{1b}[1m\u{1b}[31mamm\u{1b}[0ma\n";
    home.check(&colour, 0, coloured, "");
}

#[test]
fn grep_searches_all_outputs_of_the_session_and_no_other() {
    let home = Home::new();
    let (first, second) = (home.put(LINES), home.put(b"no\nalphabet"));
    home.run_with(
        &["output", "put", "--session", "t", "-"],
        b"alpha of another",
    );
    let all = ["output", "grep", "--session", "s", "--all", "alpha"];
    let expected = format!("{first}\n1:alpha\n5:alpha.2\n\n{second}\n2:alphabet\n");
    home.check(&all, 0, &expected, "");
    let json = home.run(&["output", "grep", "-s", "s", "--all", "beta", "--json"]);
    let line = json!({"offset": 1, "text": "beta", "matched": true, "clipped": false});
    let expected = json!({"ref": first, "offset": 1, "lines": [line]});
    assert_eq!(json_lines(&json.stdout)[0], expected);
}

#[test]
fn grep_reports_omitted_matches() {
    let home = Home::new();
    let id = home.put(LINES);
    let binary = home.put(b"alpha\0\0\0\0\x01\x02\xff\xfe");
    let all = ["output", "grep", "-s", "s", "--all", "gamma"];
    let expected = format!("{id}\n3:gamma\n");
    home.check(
        &all,
        0,
        &expected,
        &format!("binary, not searched: {binary}\n"),
    );
    let none = ["output", "grep", "-s", "s", &id, "omega"];
    home.check(&none, 1, "", "no matches for \"omega\"\n");
    let more = ["output", "grep", "-s", "s", &id, "a", "--max", "2"];
    let told = "warning: there are more than 2 matches; --max N shows more\n";
    home.check(&more, 0, "1:alpha\n2:beta\n", told);
}

#[test]
fn sessions_and_refs_are_found_by_prefix() {
    let home = Home::new();
    let put = |session: &str| {
        let done = home.run_with(&["output", "put", "-qs", session, "-"], b"alpha");
        done.stdout.trim_end().to_owned()
    };
    let id = put("proxy/8e01/messages/4ee4");
    let _ = put("proxy/8e01/messages/55aa");
    let short = id.get(..6).unwrap();
    let read = ["output", "read", "-s", "4ee", short];
    home.check(&read, 0, "    1  alpha\n", "");
    let grep = ["output", "grep", "-s", "4ee", short, "alpha"];
    home.check(&grep, 0, "1:alpha\n", "");
    let listed = home.run(&["output", "list", "-s", "4ee"]);
    assert!(listed.stdout.contains(&id), "{}", listed.stdout);
    let several = "error: 2 sessions begin with 'proxy/8e'\n\
         hint: give a longer prefix; candidates: proxy/8e01/messages/4ee4, \
         proxy/8e01/messages/55aa\n";
    home.check(&["output", "list", "-s", "proxy/8e"], 2, "", several);
    home.check(&["output", "read", "-s", "proxy/8e", short], 2, "", several);
    let names = home.run(&["output", "list", "--sessions"]);
    assert!(
        names.stdout.contains("proxy/8e01/messages/55aa"),
        "{}",
        names.stdout
    );
    // What removes for good wants the whole name.
    let erase = ["output", "erase", "--session", "4ee", "--yes"];
    assert_eq!(home.run(&erase).code, 2);
}

#[test]
fn gc_reports_and_removes() {
    let home = Home::new();
    let id = home.put(LINES);
    let listed = json_lines(&home.run(&["output", "list", "--json"]).stdout);
    let size = format!("{} B", listed[0]["stored_size"]);
    let told = format!("removed 0 sessions with 0 outputs: 0 B freed, {size} kept\n");
    home.check(&["output", "gc", "--older-than", "1d"], 0, &told, "");
    let still = format!(
        "warning: the store is still larger than requested, {size}: sessions of the last hour \
         stay\n"
    );
    home.check(&["output", "gc", "--max-size", "1"], 0, &told, &still);
    let read = ["output", "read", "-s", "s", &id, "--limit", "1"];
    home.check(&read, 0, "    1  alpha\n", "");
    std::thread::sleep(std::time::Duration::from_millis(20));
    let told = format!("s\nwould remove 1 session with 1 output: {size} freed, 0 B kept\n");
    let dry = ["output", "gc", "--older-than", "0s", "--dry-run"];
    home.check(&dry, 0, &told, "");
    home.check(&read, 0, "    1  alpha\n", "");
    let json = home
        .run(&["output", "gc", "--older-than", "0s", "--json"])
        .stdout;
    assert_eq!(json_lines(&json)[0]["sessions"], json!(["s"]));
    home.check(&["output", "list"], 0, "", "no outputs\n");
    assert_eq!(home.run(&read).code, 2);
}

#[test]
fn store_and_session_come_from_flags_or_environment() {
    let home = Home::new();
    let id = home.put(LINES);
    let store = home.store();
    let mut command = home.command();
    command
        .env_remove("TRIMTAB_STORE")
        .env("TRIMTAB_SESSION", "s");
    command.args([
        "output",
        "--store",
        store.to_str().unwrap(),
        "read",
        &id,
        "--limit",
        "1",
    ]);
    assert_eq!(finish(&mut command, b"").stdout, "    1  alpha\n");
    let mut command = home.command();
    let data = store.parent().unwrap().join("data");
    command
        .env_remove("TRIMTAB_STORE")
        .env("XDG_DATA_HOME", &data);
    command.args(["output", "put", "-qs", "s", "-"]);
    assert_eq!(finish(&mut command, LINES).code, 0);
    assert!(data.join("trimtab/trimtab.db").exists());
}

#[test]
fn closed_pipe_is_not_a_failure() {
    let home = Home::new();
    let id = home.put("line\n".repeat(400_000).as_bytes());
    for form in [&["--raw"][..], &["--json"], &[]] {
        let mut command = home.command();
        command.args(["output", "read", "-s", "s", &id]).args(form);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first = [0; 100];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), output.stderr.len()),
            (Some(0), 0),
            "{form:?}"
        );
    }
}

#[test]
fn help_contains_examples_and_exit_codes() {
    let home = Home::new();
    for verb in ["put", "read", "grep", "gc", "erase", "list"] {
        let help = home.run(&["output", verb, "--help"]).stdout;
        assert!(
            help.contains("Examples:") && help.contains("--store <PATH>"),
            "{help}"
        );
    }
    let help = home.run(&["output", "--help"]).stdout;
    assert!(help.contains("Exit codes: 0 success"), "{help}");
}

//! Wrong input: exit code 2, the fault, and a hint.

use crate::run::{Home, finish};

#[test]
fn missing_store_is_an_error() {
    let home = Home::new();
    let told = "error: no store at STORE\n\
         hint: give its folder with --store PATH or TRIMTAB_STORE; `trimtab output put` creates \
         a new one\n";
    for args in [
        &["output", "list"][..],
        &["output", "sessions"],
        &["output", "gc"],
        &["output", "read", "-s", "s", "x"],
        &["output", "grep", "-s", "s", "--all", "x"],
    ] {
        home.check(args, 2, "", told);
    }
    assert!(!home.store().exists(), "reading made a store");
}

#[test]
fn foreign_folder_is_left_untouched() {
    let home = Home::new();
    std::fs::create_dir(home.store()).unwrap();
    std::fs::write(home.store().join("thesis.tex"), "precious").unwrap();
    let done = home.run_with(&["output", "put", "-s", "s", "-"], b"x");
    assert_eq!((done.code, done.stdout.as_str()), (2, ""));
    assert!(
        done.stderr.contains("is not empty and not a store"),
        "{}",
        done.stderr
    );
    assert!(
        done.stderr.contains("hint: give the folder of a store"),
        "{}",
        done.stderr
    );
    let names = std::fs::read_dir(home.store()).unwrap();
    assert_eq!(names.count(), 1);
}

#[test]
fn unknown_refs_and_sessions_are_rejected() {
    let home = Home::new();
    let id = home.put(b"mine");
    home.run_with(&["output", "put", "-s", "t", "-"], b"theirs");
    let unknown = "error: no output 'nope' in session 's'\n\
         hint: `trimtab output list --session s` lists the outputs\n";
    home.check(&["output", "read", "-s", "s", "nope"], 2, "", unknown);
    home.check(&["output", "grep", "-s", "s", "nope", "x"], 2, "", unknown);
    // A ref of another session is as unknown as any.
    let foreign = unknown
        .replace("nope", &id)
        .replace("session 's'", "session 't'");
    let foreign = foreign.replace("--session s", "--session t");
    home.check(&["output", "read", "-s", "t", &id], 2, "", &foreign);
    let session = "error: no session 'u' in the store at STORE\n\
         hint: `trimtab output sessions` lists the sessions\n";
    home.check(&["output", "read", "-s", "u", &id], 2, "", session);
    home.check(&["output", "list", "-s", "u"], 2, "", session);
    home.check(&["output", "grep", "-s", "u", "--all", "x"], 2, "", session);
    let done = home.run(&["output", "list", "-s", ""]);
    assert_eq!(done.code, 2);
    assert!(
        done.stderr.contains("bad session name: it is empty"),
        "{}",
        done.stderr
    );
}

#[test]
fn offset_past_the_end_is_an_error() {
    let home = Home::new();
    let id = home.put(b"one\ntwo");
    let told = "error: offset 2 is past the end: the output has 2 lines\n\
         hint: offsets count from 0: the last line is --offset 1\n";
    for form in [&[][..], &["--raw"], &["--json"]] {
        let read = ["output", "read", "-s", "s", &id, "--offset", "2"];
        let args: Vec<&str> = read.iter().chain(form).copied().collect();
        home.check(&args, 2, "", told);
    }
}

#[test]
fn bad_patterns_are_rejected() {
    let home = Home::new();
    let id = home.put(b"one\ntwo");
    let done = home.run(&["output", "grep", "-s", "s", &id, "a(", "--regex"]);
    assert_eq!((done.code, done.stdout.as_str()), (2, ""));
    assert!(
        done.stderr.starts_with("error: bad pattern \"a(\": "),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("unclosed group"), "{}", done.stderr);
    assert!(
        done.stderr
            .contains("hint: correct the expression, or omit --regex")
    );
    let empty = "error: bad pattern \"\": it is empty\n\
         hint: give a text of 1 to 4096 bytes\n";
    home.check(&["output", "grep", "-s", "s", &id, ""], 2, "", empty);
    let where_ = "error: missing argument: one argument is only a pattern\n\
         hint: give REF PATTERN to search one output, or --all PATTERN to search all outputs of \
         the session\n";
    home.check(&["output", "grep", "-s", "s", "one"], 2, "", where_);
    let both = home.run(&["output", "grep", "-s", "s", "--all", &id, "one"]);
    assert_eq!(both.code, 2);
    assert!(
        both.stderr.contains("cannot be used with"),
        "{}",
        both.stderr
    );
}

#[test]
fn binary_output_is_not_printed_as_lines() {
    let home = Home::new();
    let id = home.put(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0");
    let told = format!(
        "error: output '{id}' is binary (text/plain, 14 B) and has no lines to print\n\
         hint: trimtab output read --session s {id} --raw > FILE\n"
    );
    home.check(&["output", "read", "-s", "s", &id], 2, "", &told);
}

#[test]
fn unreadable_files_are_errors() {
    let home = Home::new();
    let told = "error: absent.txt: cannot read: No such file or directory (os error 2)\n\
         hint: give the path of a file, or - for standard input\n";
    home.check(&["output", "put", "-s", "s", "absent.txt"], 2, "", told);
    let told = "error: /: cannot read: is a folder\n\
         hint: give the path of a file, or - for standard input\n";
    home.check(&["output", "put", "-s", "s", "/"], 2, "", told);
    assert!(!home.store().exists(), "a store was made for nothing");
}

#[test]
fn wrong_arguments_are_rejected() {
    let home = Home::new();
    for (args, told) in [
        (
            &["output", "gc", "--older-than", "7"][..],
            "is not a time span, such as 45m",
        ),
        (
            &["output", "gc", "--max-size", "big"],
            "is not a size, such as 500MB or 2GiB",
        ),
        (&["output", "read", "x"], "--session <S>"),
        (
            &["output", "read", "-s", "s", "x", "--offset", "-1"],
            "unexpected argument",
        ),
        (
            &["output", "read", "-s", "s", "x", "--raw", "--json"],
            "cannot be used with",
        ),
        (&["output", "fetch"], "unrecognized subcommand 'fetch'"),
        (
            &["output", "--store", "mysql://h/db", "list"],
            "mysql://h/db: not a store",
        ),
    ] {
        let done = home.run(args);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{args:?}");
        assert!(done.stderr.contains(told), "{args:?}: {}", done.stderr);
    }
    let mut command = home.command();
    command
        .env_remove("TRIMTAB_STORE")
        .env_remove("HOME")
        .env_remove("XDG_DATA_HOME");
    let done = finish(command.args(["output", "list"]), b"");
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("HOME is not set"), "{}", done.stderr);
}

//! What a package contains beside the command: completions and the manual page name every verb, and
//! the systemd unit starts one that exists.

use std::process::Command;

use clap::{CommandFactory, Parser};
use trimtab_cli::args::Cli;

use crate::run::{Home, root, trimtab};

#[test]
fn completions_of_every_shell_name_every_verb() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = trimtab(&["completions", shell]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        for verb in Cli::command().get_subcommands() {
            assert!(
                done.stdout.contains(verb.get_name()),
                "{shell}: {}",
                verb.get_name()
            );
        }
    }
}

#[test]
fn manual_page_has_a_section_for_every_verb() {
    let done = trimtab(&["man"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains(".TH trimtab 1"), "{}", done.stdout);
    for verb in Cli::command().get_subcommands() {
        let section = format!(".SH TRIMTAB {}\n", verb.get_name().to_uppercase());
        assert!(done.stdout.contains(&section), "{section}");
    }
}

#[test]
fn systemd_unit_starts_and_reloads_the_proxy() {
    let unit = std::fs::read_to_string(root().join("packaging/trimtab.service")).unwrap();
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let words: Vec<&str> = start.unwrap().split(' ').collect();
    assert_eq!(words[0], "%h/.local/bin/trimtab");
    Cli::try_parse_from(&words).unwrap();
    assert!(unit.contains("ExecReload=/bin/kill -HUP $MAINPID"));

    // systemd itself checks that the program exists.
    let home = Home::new();
    let installed = unit.replace(words[0], env!("CARGO_BIN_EXE_trimtab"));
    let file = home.file("trimtab.service", installed.as_bytes());
    let mut check = Command::new("systemd-analyze");
    check.args(["verify", "--user", &file]);
    match check.env("XDG_RUNTIME_DIR", home.path()).output() {
        Ok(output) => assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        ),
        Err(_) => println!("SKIPPED: systemd-analyze, which checks units, is not installed"),
    }
}

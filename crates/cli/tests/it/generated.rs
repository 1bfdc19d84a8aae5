//! Completions and the manual page name every verb.

use clap::CommandFactory;
use trimtab_cli::args::Cli;

use crate::run::trimtab;

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

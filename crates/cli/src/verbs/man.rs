//! `trimtab man`: prints the manual page.

use std::io::{self, Write as _};

use clap::Command;
use clap_mangen::Man;

use crate::exit::Failure;
use crate::ui::Terminal;

/// The first part of `trimtab man --help`.
pub const ABOUT: &str = "\
Print the manual page, with a section for each verb, in the format of man(7).";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab man | man -l -
  trimtab man > ~/.local/share/man/man1/trimtab.1";

/// Runs the verb.
pub fn run(mut command: Command, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut page = Vec::new();
    // Verbs get the common flags.
    command.build();
    Man::new(command.clone()).render(&mut page)?;
    for verb in command.get_subcommands() {
        write_verb(verb, &mut page)?;
    }
    Ok(terminal.data().write_all(&page)?)
}

/// One verb as a section of its own.
fn write_verb(verb: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    writeln!(page, ".SH TRIMTAB {}", verb.get_name().to_uppercase())?;
    let man = Man::new(verb.clone());
    man.render_description_section(page)?;
    man.render_options_section(page)
}

//! `trimtab config token`: generates a token for the proxy.

use std::io::Write;

use serde_json::json;
use trimtab_proxy::NewToken;

use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::Terminal;

/// Runs the verb.
pub(super) fn run(name: &str, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let NewToken { token, sha256 } = NewToken::make()?;
    if common.json {
        let line = json!({"name": name, "token": token, "sha256": sha256});
        writeln!(terminal.out(), "{line}")?;
        return Ok(());
    }
    // Only the token goes to standard output, for scripts.
    writeln!(terminal.out(), "{token}")?;
    terminal.note(&format!(
        "The token is shown only once. Clients send it in the header x-trimtab-token.\n\
         Add its digest to the settings of the proxy:\n\n\
         [[proxy.tokens]]\n\
         name = \"{name}\"\n\
         role = \"use\"    # or \"admin\", which may also read /trimtab/status\n\
         sha256 = \"{sha256}\""
    ));
    Ok(())
}

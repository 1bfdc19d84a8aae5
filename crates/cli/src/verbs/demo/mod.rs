//! stub
use crate::args::Common;
use crate::exit::Failure;
use crate::ui::Terminal;
/// x
#[derive(Debug, clap::Args)]
pub struct Args {}
/// x
pub const ABOUT: &str = "";
/// x
pub const EXAMPLES: &str = "";
/// x
pub fn run(_: &Args, _: &Common, _: &mut Terminal) -> Result<(), Failure> { Ok(()) }

//! Makes the windows of one conversation, for the tests and benchmarks of the packages: they must
//! give the same bytes, in a similar time.
//!
//! `windows OPTIONS < REQUESTS`: the options of a session as JSON, and one request on each line.
//! Prints a line for each request: the microseconds that its window took, and the window.

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::time::Instant;

use trimtab_binding::BoundSession;

fn main() -> Result<(), Box<dyn Error>> {
    let options = std::env::args().nth(1);
    let options = options.ok_or("usage: windows OPTIONS < REQUESTS")?;
    let session = BoundSession::open(options.as_bytes())?;
    let mut out = stdout().lock();
    for request in stdin().lock().lines() {
        let request = request?;
        let start = Instant::now();
        let window = session.window(request.as_bytes())?;
        write!(out, "{} ", start.elapsed().as_micros())?;
        out.write_all(&window.body)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

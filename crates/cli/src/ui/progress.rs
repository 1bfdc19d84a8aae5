//! Progress bars for slow input.

use std::io::Read;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Terminal;
use super::visible::visible;

/// Smaller input is read before anybody would notice the bar.
const WORTH_A_BAR: u64 = 16 * 1024 * 1024;

/// The interval at which the spinner moves.
const TICK: Duration = Duration::from_millis(120);

/// A progress bar on standard error, shown only on a terminal, for large input or many steps.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar for `length` bytes of the file `name`.
    pub fn new(name: &str, length: u64, terminal: &Terminal) -> Self {
        if length < WORTH_A_BAR || !terminal.shows_progress() {
            return Self::hidden();
        }
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        let template = "{msg} {wide_bar} {bytes} of {total_bytes} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar.with_message(visible(name).into_owned()))
    }

    /// A bar for `count` steps of something.
    pub fn steps(name: &str, count: u64, terminal: &Terminal) -> Self {
        if !terminal.shows_progress() {
            return Self::hidden();
        }
        let bar = ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos} of {len} {eta}") {
            bar.set_style(style);
        }
        Self(bar.with_message(visible(name).into_owned()))
    }

    /// A spinner.
    pub fn waiting(what: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style.tick_chars("|/-\\ "));
        }
        bar.set_message(visible(what).into_owned());
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Advances the bar by one step.
    pub fn advance(&self) {
        self.0.inc(1);
    }

    /// An invisible bar.
    pub fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    /// Wraps `input` so that reading it advances the bar.
    pub fn wrap<R: Read>(&self, input: R) -> impl Read + use<R> {
        self.0.wrap_read(input)
    }

    /// Hides the bar while `print` writes.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

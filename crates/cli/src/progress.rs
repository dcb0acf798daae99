//! Progress bars, on standard error and only if that is a terminal.

use std::io::{self, Write};
use std::sync::LazyLock;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::size::Size;

/// How often a bar is drawn again, per second.
const DRAWS_PER_SECOND: u8 = 10;

/// All bars of the program: whatever else writes to standard error has to know of them.
static ALL: LazyLock<MultiProgress> =
    LazyLock::new(|| MultiProgress::with_draw_target(ProgressDrawTarget::hidden()));

/// Standard error, beside the bars that may be there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        ALL.suspend(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// The bars of a command.
#[derive(Debug, Clone)]
pub(crate) struct Bars(MultiProgress);

impl Bars {
    /// Hidden bars if `visible` is false or standard error is no terminal.
    pub(crate) fn new(visible: bool) -> Self {
        let target = if visible {
            ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND)
        } else {
            ProgressDrawTarget::hidden()
        };
        ALL.set_draw_target(target);
        Self(ALL.clone())
    }

    /// A bar for `size` bytes.
    pub(crate) fn with_size(&self, size: u64) -> ProgressBar {
        let bar = self.0.add(ProgressBar::new(size));
        bar.set_style(style("{bar:30} {decimal_bytes:>10}/{decimal_total_bytes} {msg}"));
        bar
    }

    /// A bar for a number of things to do, with the time they will take.
    pub(crate) fn with_count(&self, count: u64) -> ProgressBar {
        let bar = self.0.add(ProgressBar::new(count));
        bar.set_style(style("{bar:30} {pos:>6}/{len} {elapsed_precise}, {eta_precise} left"));
        bar
    }

    /// A line for an amount of bytes that is not known beforehand.
    pub(crate) fn open_ended(&self, name: &str) -> ProgressBar {
        let bar = self.0.add(ProgressBar::no_length());
        bar.set_style(style("{spinner} {prefix} {decimal_bytes:>10} {decimal_bytes_per_sec}"));
        bar.set_prefix(name.to_owned());
        bar
    }

    /// A bar for a file of which `done` of `size` bytes are there, with the share and the time that is left.
    pub(crate) fn download(&self, name: &str, done: u64, size: u64) -> ProgressBar {
        let bar = self.0.add(ProgressBar::new(size).with_position(done));
        bar.set_style(style(
            "{prefix} {bar:25} {percent:>3}% {decimal_bytes:>10}/{decimal_total_bytes} {decimal_bytes_per_sec:>12} {eta} left",
        ));
        bar.set_prefix(name.to_owned());
        bar
    }

    /// Prints a line above the bars, if there are any.
    pub(crate) fn finished(&self, name: &str, bytes: u64) {
        let _ = self.0.println(format!("{name} {}", Size(bytes)));
    }

    /// Takes the bars away while `print` writes to the terminal.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }

    /// Takes the bars away.
    pub(crate) fn clear(&self) {
        let _ = self.0.clear();
    }
}

/// A malformed template would fall back to the default look rather than end the program.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

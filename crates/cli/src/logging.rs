//! What `-v` shows.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::progress::Stderr;

/// Sends the log to standard error: nothing at 0, what happens at 1, how it happens at 2 and everything above.
/// The environment variable `RUST_LOG` overrides the choice.
pub(crate) fn start(verbosity: u8) {
    let default = match verbosity {
        0 => "off",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    // A closed standard error must not end the program, so the subscriber keeps its own troubles to itself.
    // Colours are for terminals, and not for people who want none (no-color.org).
    let wants_colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal() && wants_colours)
        .with_writer(|| Stderr)
        .log_internal_errors(false)
        .init();
}

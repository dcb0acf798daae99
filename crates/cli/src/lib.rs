//! The program `fulmar`: serves, fetches and measures over QUIC.
//!
//! It owns what the library leaves to its user: the command line, certificates, files, the clock and what is
//! printed. It knows no packet and no frame; everything about QUIC goes through the crate `fulmar`, and what
//! it takes to set that up is in `net.rs` and `tls.rs`.
//!
//! Standard output carries results only (with `--json` one object per line and nothing else); progress bars,
//! logs and the one sentence that tells of a failure go to standard error.
//!
//! It is a library as well, so that a program with congestion controllers of its own has the same command line: that is
//! [`program`], and `examples/own-controller` shows it.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "the program stands outside of the deterministic core: it reads the clock and starts threads"
)]

mod args;
mod authority;
mod clock;
mod content;
mod demo;
mod descriptors;
mod duration;
mod failure;
mod get;
mod hq;
mod interop;
mod lab;
mod logging;
mod metrics;
mod net;
mod notify;
mod part;
mod perf;
mod progress;
mod qlog;
mod report;
mod serve;
mod signal;
mod size;
#[cfg(test)]
mod test_dir;
mod tls;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

pub use fulmar::{Instant, congestion};
pub use fulmar_lab::scenario::{OwnController, Parameters};

use crate::args::{Cli, Command, PerfCommand};
use crate::failure::{EXIT_FAILURE, Failure};
use crate::report::Output;

/// The allocator of glibc keeps this much freed memory, twice this at the end of a heap, instead of giving it back to the
/// kernel, see [`keep_freed_memory`].
const KEPT_BLOCK: usize = 2 * 1024 * 1024;

/// The whole program `fulmar`: reads the command line, does what it says and tells how that ended. The lab has these
/// controllers beside those of the stack, in scenarios, in campaigns and for `--controller`.
pub fn program(controllers: impl IntoIterator<Item = OwnController>) -> ExitCode {
    keep_freed_memory();
    descriptors::allow_all();
    let registered = controllers.into_iter().try_for_each(OwnController::register);
    let cli = match Cli::read(env::args_os()) {
        Ok(cli) => cli,
        Err(answer) => return without_command(&answer),
    };
    logging::start(cli.verbose);
    let output = Output::new(cli.json, cli.verbose > 0);
    let (exit_code, lost): (fn(&Failure) -> u8, u8) = match cli.command {
        Command::Get(_) => (get::exit::code, get::exit::NOT_WRITTEN),
        _ => (Failure::exit_code, EXIT_FAILURE),
    };
    match registered.map_err(Failure::Usage).and_then(|()| run(cli.command, output)) {
        Ok(()) if report::has_lost_output() => ExitCode::from(lost),
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output.complain(&failure);
            ExitCode::from(exit_code(&failure))
        }
    }
}

/// The parser of the command line has found no command to run: it prints help, the version, or what is wrong.
fn without_command(answer: &clap::Error) -> ExitCode {
    let printed = answer.print().and_then(|()| io::stdout().flush());
    if answer.use_stderr() {
        // Without a command line nothing says how to print, but for the word itself.
        if env::args_os().any(|word| word == "--json") {
            let failure = Failure::Usage(what_is_wrong(&answer.to_string()));
            Output::new(true, false).print_failure(&failure, None);
        }
        return ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(EXIT_FAILURE));
    }
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let failure = Failure::StandardOutput(error);
            Output::new(false, false).complain(&failure);
            ExitCode::from(failure.exit_code())
        }
        _ => ExitCode::SUCCESS,
    }
}

/// What the parser of the command line says is wrong, in one line: the paragraph that it begins with. Hints follow.
fn what_is_wrong(told: &str) -> String {
    let lines = told.trim_start_matches("error: ").lines().map(str::trim);
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// From 128 KiB on glibc gives freed memory back, and a fast transfer asks for it again, page by page: a third of the rate was
/// lost to that, in one run and not in the next. It adapts to the largest block that was ever freed, so one is.
fn keep_freed_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(KEPT_BLOCK)));
}

fn run(command: Command, output: Output) -> Result<(), Failure> {
    match command {
        Command::Demo(args) => demo::run(&args, output),
        Command::Serve(args) => serve::run(&args, output),
        Command::Get(args) => get::run(*args, output),
        Command::Interop { command } => interop::run(command, output),
        Command::Lab { command } => lab::run(command, output),
        Command::Qlog { command } => qlog::run(&command, output),
        Command::Perf { command: PerfCommand::Server(args) } => perf::server::run(&args, output),
        Command::Perf { command: PerfCommand::Client(args) } => perf::client::run(args, output),
    }
}

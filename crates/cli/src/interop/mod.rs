//! `fulmar interop`: an endpoint of the QUIC interop runner.
//!
//! The runner starts a server and a client in containers, tells each in environment variables what to do, and judges by the
//! files, the captured packets and the exit codes. This module knows the runner's conventions and its test cases; how files are
//! served is `serve`'s, and how a connection works is the library's.

pub(crate) mod args;
mod case;
mod client;
mod server;

use self::args::InteropCommand;
use crate::failure::Failure;
use crate::report::Output;

/// Plays one role of one test case.
pub(crate) fn run(command: InteropCommand, output: Output) -> Result<(), Failure> {
    match command {
        InteropCommand::Server(args) => server::run(&args, output),
        InteropCommand::Client(args) => client::run(args, output),
    }
}

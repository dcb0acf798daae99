//! The command line: every option, its default and its help text.

mod get;
mod perf;
mod serve;
mod tls;
mod transport;

use std::ffi::OsString;

use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use fulmar::SchedulerKind;

use crate::interop::args::{INTEROP_EXAMPLES, InteropCommand};
use crate::lab::args::{LAB_EXAMPLES, LabCommand};
use crate::qlog::QlogCommand;
use crate::size::parse_size;

use self::get::GET_EXAMPLES;
use self::serve::SERVE_EXAMPLES;

pub(crate) use self::get::{GetArgs, PathArgs};
pub(crate) use self::perf::{PerfClientArgs, PerfCommand, PerfServerArgs};
pub(crate) use self::serve::{RetryWhen, ServeArgs};
pub(crate) use self::tls::{Cipher, IdentityArgs, TrustArgs};
pub(crate) use self::transport::{AeadName, CongestionName, DiscoveryRole, TransportArgs, VersionName};

const EXAMPLES: &str = "\
Examples:
  fulmar demo                                    move 1 GB over loopback and check every byte
  fulmar serve ./public --listen 127.0.0.1:4433  serve a directory, print the certificate's fingerprint
  fulmar get https://localhost:4433/a.iso --pin sha256:9f86d0..
  fulmar perf server --listen 127.0.0.1:4434
  fulmar perf client 127.0.0.1:4434 --insecure --download 1GB
  fulmar qlog view logs/0011.sqlog -o out.html   charts of what a connection did
  fulmar lab run satellite/basic                 100 MB over a simulated satellite, in a second

Exit codes: 0 success, 1 failure (one sentence on standard error), 2 wrong usage, 130 interrupted; `get -h` has more.
Environment: SSLKEYLOGFILE names a file to which the TLS secrets of both sides are appended; QLOGDIR a directory for
the qlog files of `serve` and `get`.";

/// The whole command line. Any value may begin like a negative number: the parser of the value has better words for it than that of the
/// command line, which takes it for an option.
pub(crate) fn command_line() -> clap::Command {
    fn with_negative_numbers(command: clap::Command) -> clap::Command {
        let of_values = |arg: clap::Arg| match arg.get_action().takes_values() {
            true => arg.allow_negative_numbers(true),
            false => arg,
        };
        command.mut_args(of_values).mut_subcommands(with_negative_numbers)
    }
    with_negative_numbers(Cli::command())
}

impl Cli {
    /// Reads these words, of which the first one is the program's name.
    pub(crate) fn read(
        words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let mut command = command_line();
        let matches = command.try_get_matches_from_mut(words)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

/// Serve, fetch and measure over QUIC.
#[derive(Debug, Parser)]
#[command(name = "fulmar", version, about, after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// Tell on standard error what happens (clients: addresses, versions, certificates, timings); twice for a log in
    /// more detail. RUST_LOG, where set, decides what is logged: fulmar=debug shows the life of each connection
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub(crate) verbose: u8,

    /// Print one JSON object per line to standard output, and nothing else there
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Move bytes between a server and a client in this process, over loopback UDP, and verify them
    Demo(DemoArgs),
    /// Serve the files of a directory
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Fetch files
    #[command(after_help = GET_EXAMPLES)]
    Get(Box<GetArgs>),
    /// Measure throughput, requests or handshakes
    Perf {
        #[command(subcommand)]
        command: PerfCommand,
    },
    /// Be an endpoint of the QUIC interop runner, which says in environment variables what to do
    #[command(after_help = INTEROP_EXAMPLES)]
    Interop {
        #[command(subcommand)]
        command: InteropCommand,
    },
    /// Look at what connections did
    Qlog {
        #[command(subcommand)]
        command: QlogCommand,
    },
    /// Run scenarios in a simulated network, in virtual time
    #[command(after_help = LAB_EXAMPLES)]
    Lab {
        #[command(subcommand)]
        command: LabCommand,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// How much to move: 1GB, 100MB, 10kB, 1GiB or plain bytes
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = parse_size)]
    pub(crate) size: u64,

    /// Move it over two paths (RFC 10069), from 127.0.0.1 and from 127.0.0.2, with a bar for each
    #[arg(long)]
    pub(crate) multipath: bool,

    /// Which of the paths carry what is moved: earliest-completion, min-rtt, redundant, backup, weighted
    #[arg(hide_short_help = true, long, value_name = "NAME", default_value_t = SchedulerKind::default(), requires = "multipath")]
    pub(crate) scheduler: SchedulerKind,

    #[command(flatten)]
    pub(crate) transport: TransportArgs,
}

#[cfg(test)]
mod tests;

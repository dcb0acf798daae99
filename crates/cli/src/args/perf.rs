//! The options of `fulmar perf`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::{Cipher, IdentityArgs, TransportArgs, TrustArgs};
use crate::authority::{ListenAddr, parse_listen};
use crate::duration::parse_duration;
use crate::size::parse_size;

pub(super) const PERF_EXAMPLES: &str = "\
Examples:
  fulmar perf client localhost:4434 --insecure --download 1GB
  fulmar perf client localhost:4434 --insecure --upload 1GB --json
  fulmar perf client localhost:4434 --insecure --requests 10000 --concurrent 100 --response-size 1kB
  fulmar perf client localhost:4434 --insecure --handshakes 500
  fulmar perf client localhost:4434 --insecure --duration 10s

Speaks the protocol `perf` (draft-banks-quic-performance): the first 8 bytes of a stream ask for that many bytes.
`--duration` ends any of these after that time; alone it downloads until then. An interrupt (Ctrl-C) ends them as well, and what
was measured until then is printed.";

#[derive(Debug, Subcommand)]
pub(crate) enum PerfCommand {
    /// Answer measurements until interrupted
    Server(PerfServerArgs),
    /// Measure against a server
    #[command(after_help = PERF_EXAMPLES)]
    Client(PerfClientArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PerfServerArgs {
    /// The UDP address to listen on, as for `fulmar serve`. Default: 4434
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = parse_listen)]
    pub(crate) listen: Option<ListenAddr>,

    /// Serve with this many workers, each with a thread, a socket and connections of its own, 1 to 64. Default: the processor cores that
    /// the program may use, and 1 on other systems than Linux
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) workers: Option<u8>,

    #[command(flatten)]
    pub(crate) identity: IdentityArgs,

    #[command(flatten)]
    pub(crate) transport: TransportArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PerfClientArgs {
    /// The server. Default: port 4434
    #[arg(value_name = "HOST[:PORT]")]
    pub(crate) server: String,

    #[command(flatten)]
    pub(crate) measurement: MeasurementArgs,

    /// Requests or handshakes that are under way at once
    #[arg(long, value_name = "C", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) concurrent: u32,

    /// The size of each response to --requests
    #[arg(long, value_name = "SIZE", default_value = "1kB", value_parser = parse_size)]
    pub(crate) response_size: u64,

    #[command(flatten)]
    pub(crate) trust: TrustArgs,

    /// Offer this cipher suite only
    #[arg(hide_short_help = true, long, value_name = "SUITE")]
    pub(crate) cipher: Option<Cipher>,

    #[command(flatten)]
    pub(crate) transport: TransportArgs,
}

/// What a perf client measures: one of these, or a download for `duration`.
#[derive(Debug, Args)]
#[command(next_help_heading = "What to measure")]
#[group(required = true, multiple = true)]
pub(crate) struct MeasurementArgs {
    /// Receive this much
    #[arg(long, value_name = "SIZE", value_parser = parse_size,
        conflicts_with_all = ["upload", "requests", "handshakes"])]
    pub(crate) download: Option<u64>,

    /// Send this much
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with_all = ["requests", "handshakes"])]
    pub(crate) upload: Option<u64>,

    /// Make this many requests on one connection, each on a stream of its own
    #[arg(long, value_name = "N", conflicts_with = "handshakes")]
    pub(crate) requests: Option<u64>,

    /// Open and close this many connections, each with a full handshake
    #[arg(long, value_name = "N")]
    pub(crate) handshakes: Option<u64>,

    /// End after this time: 10s, 500ms, 2m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
}

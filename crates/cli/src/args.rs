//! The command line: every option, its default and its help text.

mod tls;
mod transport;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use fulmar::{CouplingKind, SchedulerKind};

use crate::authority::{ListenAddr, parse_listen};
use crate::duration::parse_duration;
use crate::get::HttpArgs;
use crate::interop::args::{INTEROP_EXAMPLES, InteropCommand};
use crate::lab::args::{LAB_EXAMPLES, LabCommand};
use crate::net::Bind;
use crate::qlog::{QlogArgs, QlogCommand};
use crate::size::parse_size;

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

const GET_EXAMPLES: &str = "\
Examples:
  fulmar get https://example.org/a.iso                       a.iso, with progress, and a sentence if something is wrong
  fulmar get https://example.org/a https://example.org/b -o downloads
  fulmar get -o - https://example.org/ | less
  fulmar get -C - --retry 5 https://example.org/large.iso    go on where it was cut
  fulmar get -d name=value -o - https://example.org/form
  fulmar get -T photo.jpg https://example.org/photo.jpg
  fulmar get https://localhost:4433/a.bin --pin sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08

HTTP/3 is spoken where UDP comes through, else HTTP/2 or HTTP/1.1 over TCP. Files are written to a temporary name and get their own
name when they are complete; a file of that name is replaced, also a read-only one, for that is up to the directory. Where two URLs end in
the same name, the second file becomes NAME.2.

Exit codes, those of curl where it has one: 0 all is there, 1 another failure, 2 wrong usage, 6 the name has no address, 7 the server
cannot be reached, 18 the body was cut, 22 the server answered with an error (status 400 and above) or sent on where -L is missing, 23
what comes cannot be written, 26 what is to be sent cannot be read, 28 --max-time is over, 47 too many redirects, 56 the connection failed,
60 the certificate was refused, 65 what was piped in would have to be sent again, 130 interrupted. Of several failures the first one counts. Where standard output is a pipe (-o -) that nobody reads any more,
the rest is not fetched, and that is no failure.";

const SERVE_EXAMPLES: &str = "\
Examples:
  fulmar serve
  fulmar serve ./public --listen 127.0.0.1:0 --json
  fulmar serve ./public --cert chain.pem --key key.pem --listen 443
  fulmar serve ./downloads --list
  fulmar serve ./public --qlog logs --metrics 127.0.0.1:9090

Files are served over HTTP/3 (ALPN h3), and over HTTP/2 and HTTP/1.1 on the TCP port of the same number. Only regular files inside of DIR
are served; index.html stands for its directory, and a file beside another one with .br, .zst or .gz at the end of its name is sent to
clients that take it. A file that is replaced by another one while it is sent (renamed over) is sent to its end as it was, one that is
appended to as far as it went at first, and one that shrinks or is written to ends with an error. Where another directory takes the
place of DIR, or a symbolic link of that name leads to another one, that is served within a second, at once after SIGHUP.

Each request is told on standard output when it is over, in the common log format, or as an object with --json. The bytes are those of the
body that were given to the connection; status 499 stands for a client that had gone before there was a response.

HTTP/0.9 is spoken as well (ALPN hq-interop). There a request that cannot be answered is told by a reset of its stream: code 0x404 for no such
file, or one that this program must not read, 0x400 for a malformed request, 0x500 when the disk fails, 0x409 when it is changed while it is
sent; the log has the digits.";

const PERF_EXAMPLES: &str = "\
Examples:
  fulmar perf client localhost:4434 --insecure --download 1GB
  fulmar perf client localhost:4434 --insecure --upload 1GB --json
  fulmar perf client localhost:4434 --insecure --requests 10000 --concurrent 100 --response-size 1kB
  fulmar perf client localhost:4434 --insecure --handshakes 500
  fulmar perf client localhost:4434 --insecure --duration 10s

Speaks the protocol `perf` (draft-banks-quic-performance): the first 8 bytes of a stream ask for that many bytes.
`--duration` ends any of these after that time; alone it downloads until then. An interrupt (Ctrl-C) ends them as well, and what
was measured until then is printed.";

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
    Get(GetArgs),
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

#[derive(Debug, Subcommand)]
pub(crate) enum PerfCommand {
    /// Answer measurements until interrupted
    Server(PerfServerArgs),
    /// Measure against a server
    #[command(after_help = PERF_EXAMPLES)]
    Client(PerfClientArgs),
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

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The directory to serve
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,

    /// The address to listen on, UDP and TCP: `4433` or `:4433` for all addresses of the machine, `127.0.0.1:4433`, `[::1]:4433`, or a name as in
    /// `localhost:4433`; port 0 picks a free one. Default: 4433
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = parse_listen)]
    pub(crate) listen: Option<ListenAddr>,

    /// Serve with this many workers, each with a thread, a socket and connections of its own, 1 to 64. Default: the processor cores that
    /// the program may use, and 1 on other systems than Linux
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) workers: Option<u8>,

    /// Which paths carry what is sent to clients that open several (multipath, RFC 10069): earliest-completion, min-rtt, redundant,
    /// backup, weighted
    #[arg(hide_short_help = true, long, value_name = "NAME", default_value_t = SchedulerKind::default())]
    pub(crate) scheduler: SchedulerKind,

    /// How the windows of several paths to a client grow together, so that they take no more of a common bottleneck than one flow would:
    /// lia, olia, balia; for --cc newreno, cubic and prague
    #[arg(hide_short_help = true, long, value_name = "NAME")]
    pub(crate) coupling: Option<CouplingKind>,

    /// Serve over UDP alone. Otherwise HTTP/1.1 and HTTP/2 are served on the TCP port of the same number, and tell clients of HTTP/3
    /// (Alt-Svc)
    #[arg(long)]
    pub(crate) no_tcp: bool,

    /// Show what is in directories that have no index.html
    #[arg(help_heading = "Files", long, visible_alias = "browse")]
    pub(crate) list: bool,

    /// Answer requests for pages that are not there with the index.html of DIR, for applications that run in the browser: for paths
    /// whose last name has no extension
    #[arg(help_heading = "Files", long)]
    pub(crate) spa: bool,

    /// Serve names that begin with a dot, too. Without it only /.well-known is
    #[arg(help_heading = "Files", long)]
    pub(crate) hidden: bool,

    /// When told to stop (by SIGINT or SIGTERM), let transfers under way take this long; a second signal ends at once
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub(crate) grace: Duration,

    #[command(flatten)]
    pub(crate) identity: IdentityArgs,

    /// The key of the stateless reset tokens, 64 hexadecimal digits, where several machines take turns: a server with the same key
    /// can end the connections of another one. Without it the key is that of --identity and of the address
    #[arg(help_heading = "Address validation and resets", hide_short_help = true, long, value_name = "HEX64", value_parser = parse_key)]
    pub(crate) reset_key: Option<[u8; 32]>,

    /// Whether clients must prove their address before they are served (a Retry, one more round trip): `auto` asks
    /// while more than 256 handshakes are under way
    #[arg(
        help_heading = "Address validation and resets",
        hide_short_help = true,
        long,
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub(crate) retry: RetryWhen,

    /// The keys that seal address tokens, one on each line as 64 hexadecimal digits, the current one first. Servers
    /// with the same keys accept each other's tokens. The file is read again when it changes
    #[arg(help_heading = "Address validation and resets", hide_short_help = true, long, value_name = "FILE")]
    pub(crate) token_keys: Option<PathBuf>,

    /// Tell figures in the text format of Prometheus at http://ADDR/metrics, over TCP
    #[arg(help_heading = "Logs and figures", long, value_name = "ADDR")]
    pub(crate) metrics: Option<SocketAddr>,

    #[command(flatten)]
    pub(crate) qlog: QlogArgs,

    /// Keep no TLS sessions but give them to the clients, sealed with the keys of --token-keys: every server with these
    /// keys resumes them. Early data (0-RTT), which is taken otherwise, is not taken then
    #[arg(
        help_heading = "Address validation and resets",
        hide_short_help = true,
        long,
        requires = "token_keys"
    )]
    pub(crate) sealed_tickets: bool,

    #[command(flatten)]
    pub(crate) transport: TransportArgs,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// What to fetch: `https://HOST[:PORT]/PATH` (port 443 if none is given)
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,

    /// Where to write to: a directory that exists, a file (for one URL), or `-` for standard output. Default: the directory one is in;
    /// standard output for what answers --data and --upload-file
    #[arg(short, long = "out", visible_alias = "output", value_name = "PATH", allow_hyphen_values = true)]
    pub(crate) out: Option<PathBuf>,

    /// With --hq: keep the connection open this long after the last file, or until it ends
    #[arg(hide_short_help = true, long, value_name = "TIME", value_parser = parse_duration, requires = "hq")]
    pub(crate) hold: Option<Duration>,

    /// No progress bars and no summary
    #[arg(short, long)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) http: HttpArgs,

    #[command(flatten)]
    pub(crate) trust: TrustArgs,

    /// Offer this cipher suite only
    #[arg(hide_short_help = true, long, value_name = "SUITE")]
    pub(crate) cipher: Option<Cipher>,

    /// Keep what servers give away for later connections (address tokens) in this file, and use what is in it. TLS
    /// sessions are not written: they last as long as the program
    #[arg(help_heading = "Sessions", long, value_name = "FILE")]
    pub(crate) session: Option<PathBuf>,

    /// With --hq: fetch the first file of a server over a first connection and the others over a second one, which resumes its TLS session
    #[arg(help_heading = "Sessions", hide_short_help = true, long, requires = "hq")]
    pub(crate) reconnect: bool,

    /// As --reconnect, with --hq, and send the requests of the second connection before its handshake (0-RTT): whoever records them
    /// can repeat them, which does no harm to files
    #[arg(help_heading = "Sessions", hide_short_help = true, long = "0rtt", requires = "hq")]
    pub(crate) early: bool,

    #[command(flatten)]
    pub(crate) paths: PathArgs,

    #[command(flatten)]
    pub(crate) qlog: QlogArgs,

    #[command(flatten)]
    pub(crate) transport: TransportArgs,
}

impl GetArgs {
    /// The directory to write to where no other place is named.
    pub(crate) fn out_dir(&self) -> &Path {
        self.out.as_deref().unwrap_or(Path::new("."))
    }
}

/// Several paths to a server.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Paths")]
pub(crate) struct PathArgs {
    /// Use several links at once, if the server has multipath (RFC 10069): what one carries adds to the others, and the transfer goes on
    /// when one is gone. All that --bind names, or without it all interfaces of this machine that are up; with --hq also those that come
    /// up later
    #[arg(long)]
    pub(crate) multipath: bool,

    /// Send from this address of this machine, or over this interface (wlan0; on Linux). Given several times, the first from which the
    /// server answers is used, or all of them with --multipath
    #[arg(long, value_name = "ADDR_OR_IF")]
    pub(crate) bind: Vec<Bind>,

    /// Which of the paths carry what this end sends: earliest-completion (the slower one only where that is quicker), min-rtt, redundant
    /// (datagrams on all), backup (one, and the next if it fails), weighted. The server chooses for what it sends
    #[arg(hide_short_help = true, long, value_name = "NAME", default_value_t = SchedulerKind::default(), requires = "multipath")]
    pub(crate) scheduler: SchedulerKind,

    /// How the windows of the paths grow together, so that they take no more of a common bottleneck than one flow would: lia, olia,
    /// balia; for --cc newreno, cubic and prague. The server chooses for what it sends
    #[arg(hide_short_help = true, long, value_name = "NAME", requires = "multipath")]
    pub(crate) coupling: Option<CouplingKind>,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RetryWhen {
    Always,
    Auto,
    Never,
}

/// Parses the 64 hexadecimal digits of a stateless reset key.
fn parse_key(digits: &str) -> Result<[u8; 32], String> {
    crate::tls::parse_hex32(digits).ok_or_else(|| "a key has 64 hexadecimal digits".to_owned())
}

#[cfg(test)]
mod tests;

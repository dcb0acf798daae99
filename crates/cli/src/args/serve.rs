//! The options of `fulmar serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use fulmar::{CouplingKind, SchedulerKind};
use http::header::{self, HeaderName, HeaderValue};

use super::{IdentityArgs, TransportArgs};
use crate::authority::{ListenAddr, parse_listen};
use crate::duration::parse_duration;
use crate::qlog::QlogArgs;

pub(super) const SERVE_EXAMPLES: &str = "\
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

    /// Give all responses this field, `Name: value`, in the place of one that they have: `Cache-Control: no-cache`. May be given several
    /// times
    #[arg(help_heading = "Files", short = 'H', long = "header", value_name = "FIELD", value_parser = parse_field)]
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,

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

/// Parses a field of all responses. What says how a message is taken apart is not the user's to choose.
fn parse_field(field: &str) -> Result<(HeaderName, HeaderValue), String> {
    let malformed = || format!("`{field}` is no field of a response: write `Name: value`");
    let (name, value) = field.split_once(':').ok_or_else(malformed)?;
    let name: HeaderName = name.trim().parse().map_err(|_| malformed())?;
    let is_of_messages =
        [header::CONNECTION, header::CONTENT_LENGTH, header::CONTENT_RANGE, header::CONTENT_ENCODING]
            .into_iter()
            .chain([header::TE, header::TRAILER, header::TRANSFER_ENCODING, header::UPGRADE])
            .chain([HeaderName::from_static("keep-alive"), HeaderName::from_static("proxy-connection")])
            .any(|other| other == name);
    if is_of_messages {
        return Err(format!("`{name}` is up to the server"));
    }
    Ok((name, HeaderValue::from_str(value.trim()).map_err(|_| malformed())?))
}

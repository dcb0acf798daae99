//! The options of `fulmar get`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use fulmar::{CouplingKind, SchedulerKind};

use super::{Cipher, TransportArgs, TrustArgs};
use crate::duration::parse_duration;
use crate::get::HttpArgs;
use crate::net::Bind;
use crate::qlog::QlogArgs;

pub(super) const GET_EXAMPLES: &str = "\
Examples:
  fulmar get https://example.org/a.iso                       a.iso, with progress, and a sentence if something is wrong
  fulmar get https://example.org/a https://example.org/b -o downloads
  fulmar get -o - https://example.org/ | less
  fulmar get -C - --retry 5 https://example.org/large.iso    go on where it was cut
  fulmar get -d name=value -o - https://example.org/form
  fulmar get -T photo.jpg https://example.org/photo.jpg
  fulmar get -i --resolve example.org:443:192.0.2.1 https://example.org/
  fulmar get https://localhost:4433/a.bin --pin sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08

HTTP/3 is spoken where UDP comes through, else HTTP/2 or HTTP/1.1 over TCP. Files are written to a temporary name and get their own
name when they are complete; a file of that name is replaced, also a read-only one, for that is up to the directory. Where two URLs end in
the same name, the second file becomes NAME.2.

Proxies that the environment names (HTTPS_PROXY, ALL_PROXY) are not followed: servers are asked directly, and a note says so.

With --json each file has an object, and so have all of them together. `duration_s` begins with the first attempt to connect, and `timing` says
what of it the handshake took; with --hq, as for `perf client`, it begins behind the handshake, which is `handshake_ms`.

Exit codes, those of curl where it has one: 0 all is there, 1 another failure, 2 wrong usage, 6 the name has no address, 7 the server
cannot be reached, 18 the body was cut, 22 the server answered with an error (status 400 and above) or sent on where -L is missing, 23
what comes cannot be written, 26 what is to be sent cannot be read, 28 --max-time is over, 47 too many redirects, 56 the connection failed,
60 the certificate was refused, 61 what came cannot be unpacked, 65 what was piped in would have to be sent again, 130 interrupted. Of several failures the first one counts. Where standard output is a pipe (-o -) that nobody reads any more,
the rest is not fetched, and that is no failure.";

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// What to fetch: `https://HOST[:PORT]/PATH` (port 443 if none is given; https:// may be left out)
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,

    /// Where to write to: a directory that exists, a file (for one URL), or `-` for standard output. Default: the directory one is in;
    /// standard output for what answers --data and --upload-file, and with --include
    #[arg(short, long = "out", visible_alias = "output", value_name = "PATH", allow_hyphen_values = true)]
    pub(crate) out: Option<PathBuf>,

    /// With --hq: keep the connection open this long after the last file, or until it ends
    #[arg(hide_short_help = true, long, value_name = "TIME", value_parser = parse_duration, requires = "hq")]
    pub(crate) hold: Option<Duration>,

    /// No progress bars and no summary
    #[arg(short, long, visible_short_alias = 's', visible_alias = "silent")]
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

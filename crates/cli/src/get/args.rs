//! The options of `fulmar get` that are about HTTP.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::resolve::Resolved;
use crate::duration::parse_duration;
use crate::size::parse_size;

/// How many files are fetched at once, if the command line says nothing else.
const PARALLEL_DEFAULT: u16 = 16;

/// What is asked by HTTP. The names are those of curl.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct HttpArgs {
    /// The method. Default: GET, or what the other options ask for. HEAD prints the head of the response, as -I does
    #[arg(short = 'X', long, value_name = "METHOD", allow_hyphen_values = true)]
    pub(crate) request: Option<String>,

    /// A field of the request, `Name: value`; `Name:` takes away one that is sent otherwise. Host is told to the server of the URL in the
    /// place of its name
    #[arg(short = 'H', long = "header", value_name = "FIELD", allow_hyphen_values = true)]
    pub(crate) headers: Vec<String>,

    /// Name and password of the user, `NAME:PASSWORD` (Basic, RFC 7617), for the server of the URL and no other one. Other users of this
    /// machine may see what is written here
    #[arg(short, long, value_name = "NAME:PASSWORD")]
    pub(crate) user: Option<String>,

    /// Ask for these bytes: `0-99`, `100-`, or `-100` for the last hundred
    #[arg(short, long, value_name = "RANGE", conflicts_with = "continue_at", allow_hyphen_values = true)]
    pub(crate) range: Option<String>,

    /// What the program calls itself to servers
    #[arg(short = 'A', long, value_name = "NAME")]
    pub(crate) user_agent: Option<String>,

    /// Send this by POST, as a form does; `@FILE` sends what is in FILE without its line ends, `@-` what comes from standard input.
    /// Several are joined by `&`
    #[arg(short, long, value_name = "DATA", conflicts_with_all = ["upload_file", "head"], allow_hyphen_values = true)]
    pub(crate) data: Vec<String>,

    /// As --data, but files are sent as they are
    #[arg(long, value_name = "DATA", conflicts_with_all = ["upload_file", "head", "data"], allow_hyphen_values = true)]
    pub(crate) data_binary: Option<String>,

    /// Send this file by PUT; `-` sends what comes from standard input. A URL that ends with a slash gets the name of the file
    #[arg(short = 'T', long, value_name = "FILE", conflicts_with = "head", allow_hyphen_values = true)]
    pub(crate) upload_file: Option<PathBuf>,

    /// Print the head of each response as well, to standard output; the body follows there, if -o and -O name no other place
    #[arg(short = 'i', long, visible_alias = "show-headers")]
    pub(crate) include: bool,

    /// Ask for content that is compressed (gzip), and unpack what comes
    #[arg(long, conflicts_with_all = ["continue_at", "range"])]
    pub(crate) compressed: bool,

    /// Ask for the head of the response alone, and print it
    #[arg(short = 'I', long)]
    pub(crate) head: bool,

    /// Go where the server says that something has moved to
    #[arg(short = 'L', long)]
    pub(crate) location: bool,

    /// Fail where the server answers with an error. This is the default, as curl's -f
    #[arg(hide_short_help = true, short, long)]
    #[allow(dead_code, reason = "it is so anyway")]
    pub(crate) fail: bool,

    /// Tell of failures, also with --quiet. This is the default, as curl's -S
    #[arg(hide_short_help = true, short = 'S', long)]
    #[allow(dead_code, reason = "it is so anyway")]
    pub(crate) show_error: bool,

    /// Write to the name that the URL ends in. This is the default
    #[arg(short = 'O', long)]
    pub(crate) remote_name: bool,

    /// `-`: keep what came of a file as NAME.part when its download is cut, and go on there the next time
    #[arg(short = 'C', long, value_name = "-", value_parser = ["-"])]
    pub(crate) continue_at: Option<String>,

    /// Try again so often after what may pass: a connection that fails, a body that is cut, the statuses 408, 429, 500, 502, 503
    /// and 504. The pause is a second, twice as long each further time, or what the server says
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) retry: u32,

    /// Give up a URL after this time, with all that was tried; 0 never does
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) max_time: Option<Duration>,

    /// Receive each file no faster than so many bytes a second on the average: 500kB, 2MB
    #[arg(long, value_name = "SIZE", value_parser = parse_rate)]
    pub(crate) limit_rate: Option<u64>,

    /// Fetch so many files at once, 1 to 256
    #[arg(long, value_name = "N", default_value_t = PARALLEL_DEFAULT, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) parallel: u16,

    /// Find this server at this address, whatever DNS says of it: `example.org:443:192.0.2.1`, several separated by commas
    #[arg(long, value_name = "HOST:PORT:ADDR", value_parser = Resolved::parse)]
    pub(crate) resolve: Vec<Resolved>,

    /// Never go over to HTTP/2 or HTTP/1.1 over TCP
    #[arg(long)]
    pub(crate) http3_only: bool,

    /// Speak HTTP/0.9 over QUIC (ALPN hq-interop) as servers of interoperability tests do; only -o, --hold, --reconnect, --0rtt and the
    /// options of other groups count then
    #[arg(hide_short_help = true, long, conflicts_with_all = ["request", "headers", "user", "range", "user_agent", "data", "data_binary", "upload_file", "include", "compressed", "head",
        "location", "continue_at", "retry", "max_time", "limit_rate", "parallel", "resolve", "http3_only"])]
    pub(crate) hq: bool,
}

impl HttpArgs {
    /// Whether something is sent to the server.
    pub(super) fn sends(&self) -> bool {
        !self.data.is_empty() || self.data_binary.is_some() || self.upload_file.is_some()
    }
}

fn parse_rate(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0 => Err("nothing would come at a rate of 0".to_owned()),
        rate => Ok(rate),
    }
}

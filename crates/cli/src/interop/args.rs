//! The options of `fulmar interop`. Each has the environment variable, or else the place, of the interop runner's conventions as
//! its default, so that the program runs in the runner's container without any option and elsewhere with a few.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(crate) const INTEROP_EXAMPLES: &str = "\
Examples:
  TESTCASE=transfer fulmar interop server --listen 127.0.0.1:4443 --www www --cert cert.pem --key priv.key
  TESTCASE=transfer REQUESTS='https://localhost:4443/a https://localhost:4443/b' fulmar interop client --downloads .

Environment: TESTCASE names the case, REQUESTS the URLs (separated by spaces), SSLKEYLOGFILE a file for the TLS secrets, QLOGDIR a
directory for event logs. A client takes any certificate: those of the runner are made up for the run.
Exit codes: 0 success, 1 failure, 127 the test case is not supported.";

#[derive(Debug, Subcommand)]
pub(crate) enum InteropCommand {
    /// Serve files as the test case asks
    Server(InteropServerArgs),
    /// Fetch files as the test case asks
    Client(InteropClientArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InteropServerArgs {
    /// The test case
    #[arg(long, value_name = "NAME", env = "TESTCASE")]
    pub(crate) testcase: String,

    /// The UDP address to listen on. Default: all addresses, port 443
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,

    /// The directory to serve
    #[arg(long, value_name = "DIR", default_value = "/www")]
    pub(crate) www: PathBuf,

    /// The certificate chain, PEM
    #[arg(long, value_name = "FILE", default_value = "/certs/cert.pem")]
    pub(crate) cert: PathBuf,

    /// The private key of the certificate, PEM
    #[arg(long, value_name = "FILE", default_value = "/certs/priv.key")]
    pub(crate) key: PathBuf,

    /// An address of this server that clients shall move to in the case connectionmigration; one of each family at most.
    /// Default: the machine's IPv6 address, at the port of --listen
    #[arg(long, value_name = "ADDR")]
    pub(crate) preferred: Vec<SocketAddr>,
}

#[derive(Debug, Args)]
pub(crate) struct InteropClientArgs {
    /// The test case
    #[arg(long, value_name = "NAME", env = "TESTCASE")]
    pub(crate) testcase: String,

    /// What to fetch, separated by spaces
    #[arg(long, value_name = "URLS", env = "REQUESTS", hide_env_values = true)]
    pub(crate) requests: String,

    /// The directory to write to
    #[arg(long, value_name = "DIR", default_value = "/downloads")]
    pub(crate) downloads: PathBuf,
}

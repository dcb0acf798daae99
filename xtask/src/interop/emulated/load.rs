//! A TCP connection that competes with QUIC, for the case with cross traffic: this program as its source and as its sink.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::Result;

/// How long a source waits for its sink.
const PATIENCE: Duration = Duration::from_secs(5);

/// The congestion control of the public runner's cross traffic, whatever the system's default may be.
const CONGESTION: &str = "cubic";

/// Options of the hidden task.
#[derive(clap::Args)]
pub(crate) struct LoadOptions {
    /// Take in what comes at this address.
    #[arg(long, conflicts_with = "to")]
    listen: Option<SocketAddr>,
    /// Send as much as goes to this address.
    #[arg(long)]
    to: Option<SocketAddr>,
}

/// Runs until it is killed or the other end is gone.
pub(crate) fn run(options: &LoadOptions) -> Result<()> {
    let mut buffer = vec![0; 64 << 10];
    if let Some(address) = options.listen {
        let (mut stream, _) = TcpListener::bind(address)?.accept()?;
        while stream.read(&mut buffer)? > 0 {}
        return Ok(());
    }
    let mut stream = connect(options.to.ok_or("neither a source nor a sink")?)?;
    rustix::net::sockopt::set_tcp_congestion(&stream, CONGESTION)
        .map_err(|error| format!("the system's TCP has no {CONGESTION}: {error}"))?;
    loop {
        stream.write_all(&buffer)?;
    }
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match TcpStream::connect(address) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            result => return Ok(result?),
        }
    }
}

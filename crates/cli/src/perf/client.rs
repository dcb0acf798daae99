//! The side that asks and measures.

use std::time::{Duration, Instant};

use fulmar::Connection;

use super::load::Load;
use super::{PROTOCOL, handshakes, requests, transfer};
use crate::args::PerfClientArgs;
use crate::authority::Authority;
use crate::failure::Failure;
use crate::net::{self, CLOSE_DONE, Dialer, Transport};
use crate::report::Output;
use crate::signal::interrupted;

/// What a download without a size asks for: no stream can carry more (RFC 9000 §4.5), so only time ends it.
const ENDLESS: u64 = (1 << 62) - 1;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measurement {
    Download(u64),
    Upload(u64),
    Requests(u64),
    Handshakes(u64),
}

impl Measurement {
    fn from_args(args: &PerfClientArgs) -> Self {
        let asked = &args.measurement;
        match (asked.download, asked.upload, asked.requests, asked.handshakes) {
            (Some(size), _, _, _) => Self::Download(size),
            (_, Some(size), _, _) => Self::Upload(size),
            (_, _, Some(count), _) => Self::Requests(count),
            (_, _, _, Some(count)) => Self::Handshakes(count),
            // A time limit alone: the command line demands one of the five.
            (None, None, None, None) => Self::Download(ENDLESS),
        }
    }
}

/// An open connection and how long its handshake took.
#[derive(Debug)]
pub(super) struct Dialed<'a> {
    pub(super) peer: &'a str,
    pub(super) connection: Connection,
    pub(super) handshake: Duration,
}

/// Measures and prints the figures.
pub(crate) fn run(args: PerfClientArgs, output: Output) -> Result<(), Failure> {
    let server = Authority::parse(&args.server, None).map_err(Failure::Usage)?;
    let runtime = net::runtime()?;
    let result = runtime.block_on(async {
        tokio::select! {
            result = measure(&server, &args, output) => result,
            result = interrupted() => {
                result.map_err(Failure::io("cannot wait for signals"))?;
                Err(Failure::Interrupted)
            }
        }
    });
    // A name server that does not answer must not hold up the end.
    runtime.shutdown_background();
    result
}

async fn measure(server: &Authority, args: &PerfClientArgs, output: Output) -> Result<(), Failure> {
    let transport = Transport::from_args(&args.transport)?;
    let dialer = Dialer::new(server, &args.trust, args.cipher, PROTOCOL, &transport).await?;
    let limit = args.measurement.duration;
    let measurement = Measurement::from_args(args);
    let load = |count| Load { count, concurrent: args.concurrent, limit };
    if let Measurement::Handshakes(count) = measurement {
        return handshakes::run(dialer, load(count), output).await;
    }
    let start = Instant::now();
    let connection = dialer.dial().await?;
    let dialed = Dialed { peer: &dialer.peer, connection, handshake: start.elapsed() };
    let result = match measurement {
        Measurement::Download(size) => transfer::download(&dialed, size, limit, output).await,
        Measurement::Upload(size) => transfer::upload(&dialed, size, limit, output).await,
        Measurement::Requests(count) => requests::run(&dialed, load(count), args.response_size, output).await,
        Measurement::Handshakes(_) => Ok(()),
    };
    dialed.connection.close(CLOSE_DONE, b"");
    dialer.farewell().await;
    result
}

/// Waits until the time of a measurement is over; for ever if it is not limited.
pub(super) async fn time_over(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

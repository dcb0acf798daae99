//! The side that asks and measures.

use std::time::{Duration, Instant};

use fulmar::Connection;
use tokio::sync::watch;

use super::load::Load;
use super::{DEFAULT_PORT, PROTOCOL, handshakes, requests, transfer};
use crate::args::PerfClientArgs;
use crate::authority::Authority;
use crate::failure::Failure;
use crate::net::{self, Dialer, Transport};
use crate::report::Output;
use crate::signal::Signals;

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

/// When a measurement ends that has no end of its own.
#[derive(Debug, Clone)]
pub(super) struct End {
    pub(super) limit: Option<Duration>,
    /// Whether the user has had enough.
    pub(super) interrupted: watch::Receiver<bool>,
}

impl End {
    /// Waits until the time is over, or the user interrupts.
    pub(super) async fn come(self) {
        tokio::select! {
            () = time_over(self.limit) => {}
            () = until_true(self.interrupted) => {}
        }
    }
}

/// Measures and prints the figures. An interrupt ends the measurement, and what was measured until then is printed; a second one
/// ends the program.
pub(crate) fn run(args: PerfClientArgs, output: Output) -> Result<(), Failure> {
    let server = Authority::parse(&args.server, Some(DEFAULT_PORT)).map_err(Failure::Usage)?;
    let runtime = net::runtime()?;
    let result = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(Failure::io("cannot wait for signals"))?;
        let (interrupt, interrupted) = watch::channel(false);
        let end = End { limit: args.measurement.duration, interrupted };
        tokio::select! {
            result = measure(&server, &args, end, output) => result?,
            () = async {
                signals.next().await;
                interrupt.send_replace(true);
                signals.next().await;
            } => {}
        }
        if *interrupt.borrow() { Err(Failure::Interrupted) } else { Ok(()) }
    });
    // A name server that does not answer must not hold up the end.
    runtime.shutdown_background();
    result
}

async fn measure(server: &Authority, args: &PerfClientArgs, end: End, output: Output) -> Result<(), Failure> {
    let transport = Transport::from_args(&args.transport)?;
    let dialer = Dialer::new(server, &args.trust, args.cipher, PROTOCOL, (&transport, &[]), output);
    let dialer = unless_interrupted(&end, dialer).await?;
    let measurement = Measurement::from_args(args);
    let load = |count| Load { count, concurrent: args.concurrent, end: end.clone() };
    if let Measurement::Handshakes(count) = measurement {
        return handshakes::run(dialer, load(count), output).await;
    }
    let start = Instant::now();
    let connection = unless_interrupted(&end, dialer.dial()).await?;
    let dialed = Dialed { peer: &dialer.peer, connection, handshake: start.elapsed() };
    let result = match measurement {
        Measurement::Download(size) => transfer::download(&dialed, size, end, output).await,
        Measurement::Upload(size) => transfer::upload(&dialed, size, end, output).await,
        Measurement::Requests(count) => requests::run(&dialed, load(count), args.response_size, output).await,
        Measurement::Handshakes(_) => Ok(()),
    };
    dialer.hang_up(&dialed.connection).await;
    result
}

/// What comes before a measurement has no figures that could be printed.
async fn unless_interrupted<T>(
    end: &End,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        result = work => result,
        () = until_true(end.interrupted.clone()) => Err(Failure::Interrupted),
    }
}

pub(super) async fn until_true(mut value: watch::Receiver<bool>) {
    if value.wait_for(|value| *value).await.is_err() {
        std::future::pending().await
    }
}

/// Waits until the time of a measurement is over; for ever if it is not limited.
async fn time_over(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

//! `cargo xtask relay`: a link in user space between real sockets.
//!
//! It needs no privileges: a client sends to the relay, which passes datagrams on to the server and back, as late, as
//! slowly and as incompletely as it is told. One relay serves one client at a time.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::Duration;

use crate::Result;
use crate::interop::relay::{Conditions, Link, Loss, Rate, Relay};

/// The datagrams that a queue is counted in.
const DATAGRAM_BYTES: f64 = 1_450.0;

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The server.
    #[arg(long, value_name = "ADDR")]
    server: SocketAddr,
    #[command(flatten)]
    path: Path,
}

/// The link, alike in both directions.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Path {
    /// The rate of the bottleneck, in Mbit/s of UDP payload.
    #[arg(long, value_name = "MBPS", default_value_t = 50.0)]
    pub(crate) rate: f64,
    /// The round-trip time without queues, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 100.0)]
    pub(crate) rtt: f64,
    /// What may wait in front of the bottleneck, in milliseconds. Default: a round trip.
    #[arg(long, value_name = "MS")]
    pub(crate) queue: Option<f64>,
    /// The share of datagrams that are lost, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    pub(crate) loss: f64,
    /// What the losses are drawn with: the same seed loses the same datagrams of each direction.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
}

impl Path {
    /// What the relay is told.
    pub(crate) fn conditions(self) -> Result<Conditions> {
        let makes_sense =
            self.rate > 0.0 && (0.0..=3.6e6).contains(&self.rtt) && (0.0..=100.0).contains(&self.loss);
        if !makes_sense || self.queue.is_some_and(|queue| !(0.0..=3.6e6).contains(&queue)) {
            return Err("a rate is positive, times are up to an hour, a loss is up to 100 percent".into());
        }
        let bit_per_s = (self.rate * 1e6) as u64;
        let queue_s = self.queue.unwrap_or(self.rtt) / 1e3;
        let queue_datagrams = (bit_per_s as f64 / 8.0 * queue_s / DATAGRAM_BYTES).ceil().max(10.0) as usize;
        let link = |seed| Link {
            delay: Duration::from_secs_f64(self.rtt / 2e3),
            rate: Some(Rate { bit_per_s, queue_datagrams }),
            loss: (self.loss > 0.0).then_some(Loss {
                probability: self.loss / 100.0,
                burst_max: u32::MAX,
                seed,
            }),
            drop: None,
        };
        // The directions lose different ones.
        let there = self.seed.wrapping_mul(2);
        Ok(Conditions { to_server: link(there), to_client: link(there + 1) })
    }
}

/// Relays until the process is ended.
pub(crate) fn run(options: &Options) -> Result<()> {
    let relay = Relay::start(options.server, options.path.conditions()?)?;
    println!("listening on {}", relay.address()?);
    loop {
        sleep(Duration::from_secs(3_600));
    }
}

//! What a case asks of the network.

use std::collections::BTreeSet;
use std::time::Duration;

use fulmar_sim::{LinkConfig, Loss, QueueLimit};

/// The size of a full packet, for limits that count packets.
const PACKET_BYTES: u64 = 1500;

/// The default link of the public runner: 15 ms each way, 10 Mbit/s, 25 packets.
const DELAY: Duration = Duration::from_millis(15);
const RATE_BPS: u64 = 10_000_000;
const QUEUE_PACKETS: u64 = 25;

/// The network of a case. The directions differ in what is lost and damaged only.
#[derive(Debug, Clone)]
pub(crate) struct Conditions {
    pub(crate) delay: Duration,
    pub(crate) rate_bps: u64,
    pub(crate) to_server: Direction,
    pub(crate) to_client: Direction,
    pub(crate) blackhole: Option<Blackhole>,
    pub(crate) rebinding: Option<Rebinding>,
}

/// What goes wrong in one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Direction {
    pub(crate) loss: Loss,
    /// The probability that a packet is damaged.
    pub(crate) corruption: f64,
}

/// Nothing passes for a while. Times count from the client's first packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blackhole {
    pub(crate) from: Duration,
    pub(crate) until: Duration,
}

/// A NAT before the server forgets its binding again and again. Times count from the client's first packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rebinding {
    pub(crate) first: Duration,
    pub(crate) every: Duration,
    /// Whether the client gets another address each time, and not only another port.
    pub(crate) address: bool,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            delay: DELAY,
            rate_bps: RATE_BPS,
            to_server: Direction::default(),
            to_client: Direction::default(),
            blackhole: None,
            rebinding: None,
        }
    }
}

impl Conditions {
    /// The same losses and damages in both directions.
    pub(crate) fn both_ways(direction: Direction) -> Self {
        Self { to_server: direction.clone(), to_client: direction, ..Self::default() }
    }

    /// The client's packets with these numbers are lost; the first has the number 1.
    pub(crate) fn losing_from_client(numbers: impl IntoIterator<Item = u64>) -> Self {
        let listed: BTreeSet<u64> = numbers.into_iter().map(|number| number - 1).collect();
        let to_server = Direction { loss: Loss::Listed(listed), ..Direction::default() };
        Self { to_server, ..Self::default() }
    }

    /// The simulator's link for one direction. Payloads there are whole IP packets here.
    pub(super) fn link(&self, direction: &Direction) -> LinkConfig {
        LinkConfig {
            rate_bps: Some(self.rate_bps),
            delay: self.delay,
            queue: QueueLimit { bytes: Some(QUEUE_PACKETS * PACKET_BYTES), time: None },
            loss: direction.loss.clone(),
            ..LinkConfig::default()
        }
    }
}

//! What the applications of a connection do.

use std::ops::RangeInclusive;
use std::time::Duration;

use fulmar_base::Rng;

/// What one side of a connection does with it. Shares and probabilities are in `0.0..=1.0`; sizes are in bytes
/// and drawn for each stream, small ones being more likely than large ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// How many streams this side opens, one after another as the peer's limit allows.
    pub streams: u32,
    /// Whether a stream is opened only when the one before it has come to its end.
    pub in_sequence: bool,
    /// The share of them that are bidirectional.
    pub bidirectional: f64,
    /// What is sent on a stream that this side opens.
    pub size: RangeInclusive<u64>,
    /// What is sent back on a bidirectional stream that the peer opens.
    pub reply: RangeInclusive<u64>,
    /// How much is written at once.
    pub write_piece: RangeInclusive<u64>,
    /// How much is read at once.
    pub read_piece: RangeInclusive<u64>,
    /// The share of streams that this side resets while it sends on them, or after it finished.
    pub reset: f64,
    /// The share of streams that this side stops while it reads them.
    pub stop: f64,
    /// The share of streams that are read in whatever order the data arrives.
    pub unordered: f64,
    /// The share of streams whose priority is changed, before the first byte and on the way.
    pub priority: f64,
    /// How many unreliable datagrams this side sends.
    pub datagrams: u32,
    /// The longest of them, if the path and the peer take it.
    pub datagram_size: RangeInclusive<u64>,
    /// The time from one unreliable datagram to the next; `None` sends them as fast as the connection takes them.
    pub datagram_interval: Option<Duration>,
    /// The probability that the application rests after it opened a stream, or wrote or read a piece.
    pub pause: f64,
    /// The longest rest.
    pub pause_max: Duration,
}

impl Default for Workload {
    /// Does nothing but answer each bidirectional stream with its end, and read everything in large pieces.
    fn default() -> Self {
        Self {
            streams: 0,
            in_sequence: false,
            bidirectional: 0.0,
            size: 0..=0,
            reply: 0..=0,
            write_piece: 65_536..=65_536,
            read_piece: 65_536..=65_536,
            reset: 0.0,
            stop: 0.0,
            unordered: 0.0,
            priority: 0.0,
            datagrams: 0,
            datagram_size: 0..=0,
            datagram_interval: None,
            pause: 0.0,
            pause_max: Duration::ZERO,
        }
    }
}

impl Workload {
    /// Sends `bytes` on one unidirectional stream.
    pub fn upload(bytes: u64) -> Self {
        Self { streams: 1, size: bytes..=bytes, ..Self::default() }
    }

    /// Opens `count` bidirectional streams and sends `bytes` on each of them.
    pub fn requests(count: u32, bytes: u64) -> Self {
        Self { streams: count, bidirectional: 1.0, size: bytes..=bytes, ..Self::default() }
    }

    /// Sends `bytes` back on each bidirectional stream of the peer.
    pub fn replies(bytes: u64) -> Self {
        Self { reply: bytes..=bytes, ..Self::default() }
    }
}

/// A number out of `range`, a small one being more likely than a large one; of an empty range, its start.
pub(crate) fn draw(range: &RangeInclusive<u64>, rng: &mut Rng) -> u64 {
    let span = range.end().saturating_sub(*range.start());
    let bound = rng.below(span.saturating_add(1));
    range.start() + rng.below(bound + 1)
}

//! What the applications of a connection do.

use std::ops::RangeInclusive;
use std::time::Duration;

use fulmar_base::Rng;
use fulmar_proto::Protection;

use crate::lab::Churn;

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
    /// The share of resets that leave a part of what was written, if the peer can.
    pub reset_at: f64,
    /// The share of streams that this side stops while it reads them.
    pub stop: f64,
    /// The share of streams that are read in whatever order the data arrives.
    pub unordered: f64,
    /// The share of streams whose priority is changed, before the first byte and on the way.
    pub priority: f64,
    /// What forward erasure correction does for what this side sends on the streams of each kind, in the order of their numbers. Beyond
    /// the end, as for the connection.
    pub protection: Vec<Protection>,
    /// How many unreliable datagrams this side sends.
    pub datagrams: u32,
    /// The longest of them, if the path and the peer take it.
    pub datagram_size: RangeInclusive<u64>,
    /// The time from one unreliable datagram to the next; `None` sends them as fast as the connection takes them.
    pub datagram_interval: Option<Duration>,
    /// After this time an unreliable datagram that has not left is of no use, and is dropped.
    pub datagram_lifetime: Option<Duration>,
    /// The share of unreliable datagrams that may overtake the others.
    pub datagram_urgent: f64,
    /// Streams of frames that this side sends, as of audio and video; each is a unidirectional stream of its own.
    pub media: Vec<MediaStream>,
    /// Whether the time of each read is kept, which tells the delays of the peer's frames.
    pub times_reads: bool,
    /// The probability that the application rests after it opened a stream, or wrote or read a piece.
    pub pause: f64,
    /// The longest rest.
    pub pause_max: Duration,
    /// Whether unreliable datagrams of the peer may arrive twice, as its scheduler sends them over several paths. The first one counts.
    pub datagrams_repeat: bool,
    /// Paths that the client opens and abandons meanwhile.
    pub churn: Option<Churn>,
}

/// Frames at a steady pace. Each is given to the stream as soon as its time has come, however much of those before
/// it still waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaStream {
    /// The time from one frame to the next.
    pub interval: Duration,
    /// How many there are.
    pub frames: u32,
    /// The bytes of a frame.
    pub bytes: u64,
    /// Every so many frames, from the first one on, there is a larger one; `None` for none.
    pub key_every: Option<u32>,
    /// The bytes of such a frame.
    pub key_bytes: u64,
    /// The priority of the stream. Streams of other kinds begin with 0.
    pub priority: i32,
}

impl MediaStream {
    /// The bytes of the frame with this number, counted from 0.
    pub fn frame_bytes(&self, number: u32) -> u64 {
        match self.key_every {
            Some(every) if number.is_multiple_of(every.max(1)) => self.key_bytes,
            _ => self.bytes,
        }
    }

    /// The bytes of all frames together.
    pub fn total_bytes(&self) -> u64 {
        (0..self.frames).map(|number| self.frame_bytes(number)).sum()
    }
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
            reset_at: 0.0,
            stop: 0.0,
            unordered: 0.0,
            priority: 0.0,
            protection: Vec::new(),
            datagrams: 0,
            datagram_size: 0..=0,
            datagram_interval: None,
            datagram_lifetime: None,
            datagram_urgent: 0.0,
            media: Vec::new(),
            times_reads: false,
            pause: 0.0,
            pause_max: Duration::ZERO,
            datagrams_repeat: false,
            churn: None,
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

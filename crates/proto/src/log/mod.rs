//! The log of a connection: what it did and saw lately, in a ring of small entries.
//!
//! Owns the entries and the ring. Does not know what an entry is for: qlog files, plots and dumps are made of it elsewhere
//! and later. The ring is allocated once, and an entry costs a copy of 32 bytes. Without a log
//! (`TransportConfig::log_entries` is 0) each place that would log something costs one comparison.

mod event;
mod frame_event;
mod parameters;
mod words;

use fulmar_base::Instant;
use fulmar_wire::{AckEncoder, Frame, PacketKind};

pub use self::event::{ACK_RANGES_MAX, FecEvent, LogEntry, LogEvent, RepairOutcome};
pub(crate) use self::frame_event::octets;
pub use self::words::{
    BarePacket, BlockedReason, CloseCause, ConnectionState, EcnState, LogText, MigrationState,
    PacketDropReason, TEXT_MAX, TextKind,
};

/// The exponent of the delay in ACK frames, where nothing else was agreed on (RFC 9000 §18.2). It is ours, too.
pub(crate) const ACK_DELAY_EXPONENT: u8 = 3;

/// The most versions of an end that are logged: a Version Negotiation packet has room for hundreds.
const VERSIONS_MAX: usize = 16;

/// The latest entries of a connection, oldest first. When the ring is full, the oldest is overwritten.
#[derive(Debug)]
pub struct ConnectionLog {
    entries: Vec<LogEntry>,
    capacity: usize,
    /// Where the next entry goes, once the ring is full: there is the oldest.
    next: usize,
    overwritten: u64,
    seen: Figures,
    /// The newest kind of packets for which there are keys.
    keys: PacketKind,
}

/// Figures that are logged when they have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) window: (u64, u64),
    pub(crate) ssthresh: Option<u64>,
    pub(crate) rates: (u64, u64),
    /// Latest and smoothed.
    pub(crate) rtt: (u64, u64),
    /// Smallest and variance.
    pub(crate) rtt_bounds: (u64, u64),
    /// To the peer and from it; `None` without timestamps.
    pub(crate) queues: Option<(u64, u64)>,
    pub(crate) phase: &'static str,
    pub(crate) mtu: u16,
    pub(crate) ecn: Option<EcnState>,
    pub(crate) key_generation: u64,
    pub(crate) peer: Option<([u8; 16], u16)>,
    pub(crate) blocked: Option<BlockedReason>,
    /// Unreliable datagrams that were dropped before they were sent: late ones, others.
    pub(crate) datagrams_dropped: (u64, u64),
}

impl ConnectionLog {
    /// A log with room for `capacity` entries, at least one.
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self {
            entries: Vec::with_capacity(capacity),
            capacity,
            next: 0,
            overwritten: 0,
            seen: Figures::default(),
            keys: PacketKind::Initial,
        }
    }

    /// The entries, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &LogEntry> {
        let (newer, older) = self.entries.split_at(self.next);
        older.iter().chain(newer)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing was logged.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many entries fit.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many entries were overwritten since the last [`ConnectionLog::drain_into`].
    pub fn overwritten(&self) -> u64 {
        self.overwritten
    }

    /// Moves all entries to `out`, oldest first, and returns how many were overwritten before they could be.
    pub fn drain_into(&mut self, out: &mut Vec<LogEntry>) -> u64 {
        out.extend(self.iter());
        self.entries.clear();
        self.next = 0;
        std::mem::take(&mut self.overwritten)
    }

    #[inline]
    pub(crate) fn push(&mut self, at: Instant, event: LogEvent) {
        let entry = LogEntry { at, event };
        if self.entries.len() < self.capacity {
            self.entries.push(entry);
            return;
        }
        self.entries[self.next] = entry;
        self.next += 1;
        if self.next == self.capacity {
            self.next = 0;
        }
        self.overwritten += 1;
    }

    /// Adds a frame; if it is an ACK, with its ranges. Its delay was scaled by 2 to the power of `exponent`.
    pub(crate) fn push_frame(&mut self, at: Instant, frame: &Frame<'_>, exponent: u8) {
        match frame {
            Frame::ResetStream(reset) => {
                self.push(at, LogEvent::Reset { code: reset.error_code.get(), reliable_size: 0 });
            }
            Frame::ResetStreamAt(reset) => {
                let (code, reliable_size) = (reset.error_code.get(), reset.reliable_size.get());
                self.push(at, LogEvent::Reset { code, reliable_size });
            }
            _ => {}
        }
        if let Some(event) = LogEvent::of_frame(frame, exponent) {
            self.push(at, event);
        }
        if let Frame::Ack(ack) = frame {
            for range in ack.ranges().take(ACK_RANGES_MAX) {
                self.push(at, LogEvent::AckRange { first: *range.start(), last: *range.end() });
            }
        }
    }

    /// Adds an ACK of which the newest `ranges` were written.
    pub(crate) fn push_ack(&mut self, at: Instant, ack: &AckEncoder<'_>, ranges: usize) {
        self.push(at, LogEvent::ack(ack.delay, ACK_DELAY_EXPONENT, ack.ecn));
        for range in ack.ranges.iter().rev().take(ranges.min(ACK_RANGES_MAX)) {
            self.push(at, LogEvent::AckRange { first: range.start, last: range.end - 1 });
        }
    }

    /// Adds a text, up to [`TEXT_MAX`].
    pub(crate) fn push_text(&mut self, at: Instant, kind: TextKind, text: &[u8]) {
        for part in LogText::parts(kind, text) {
            self.push(at, LogEvent::Text(part));
        }
    }

    /// Adds an update of the keys, once.
    pub(crate) fn push_key_generation(&mut self, at: Instant, generation: u64) {
        if self.seen.key_generation != generation {
            self.seen.key_generation = generation;
            self.push(at, LogEvent::KeyGeneration(generation));
        }
    }

    /// Adds that there are keys for packets of a kind, once.
    pub(crate) fn push_keys(&mut self, at: Instant, kind: PacketKind) {
        if kind > self.keys {
            self.keys = kind;
            self.push(at, LogEvent::KeysInstalled(kind));
        }
    }

    /// Adds the figures that have changed since the last time.
    pub(crate) fn push_figures(&mut self, at: Instant, now: &Figures) {
        let was = std::mem::replace(&mut self.seen, *now);
        if was == *now {
            return;
        }
        if was.rtt != now.rtt {
            self.push(at, LogEvent::Rtt { latest: now.rtt.0, smoothed: now.rtt.1 });
        }
        if was.rtt_bounds != now.rtt_bounds {
            self.push(at, LogEvent::RttBounds { min: now.rtt_bounds.0, variance: now.rtt_bounds.1 });
        }
        if let Some((forward, back)) = now.queues.filter(|_| was.queues != now.queues) {
            self.push(at, LogEvent::Queues { forward, back });
        }
        if was.window != now.window {
            self.push(at, LogEvent::Window { window: now.window.0, in_flight: now.window.1 });
        }
        if was.rates != now.rates {
            self.push(at, LogEvent::Rates { pacing: now.rates.0, delivery: now.rates.1 });
        }
        self.push_rare_figures(at, &was, now);
    }

    fn push_rare_figures(&mut self, at: Instant, was: &Figures, now: &Figures) {
        if was.ssthresh != now.ssthresh {
            self.push(at, LogEvent::SlowStartThreshold(now.ssthresh));
        }
        if was.phase != now.phase {
            self.push(at, LogEvent::Phase(now.phase));
        }
        if was.mtu != now.mtu {
            self.push(at, LogEvent::Mtu(now.mtu));
        }
        if was.key_generation != now.key_generation {
            self.push(at, LogEvent::KeyGeneration(now.key_generation));
        }
        if let Some(state) = now.ecn.filter(|_| was.ecn != now.ecn) {
            self.push(at, LogEvent::EcnState(state));
        }
        if let Some((ip, port)) = now.peer.filter(|_| was.peer != now.peer) {
            self.push(at, LogEvent::PeerAddress { ip, port });
        }
        if was.datagrams_dropped != now.datagrams_dropped {
            let (late, other) = now.datagrams_dropped;
            self.push(at, LogEvent::DatagramsDropped { late, other });
        }
        if let Some(reason) = now.blocked.filter(|_| was.blocked != now.blocked) {
            self.push(at, LogEvent::Blocked(reason));
        }
    }
}

#[cfg(test)]
mod tests;

//! The log of a connection: what it did and saw lately, in a ring of small entries.
//!
//! Owns the entries and the ring. Does not know what an entry is for: qlog files, plots and dumps are made of it elsewhere
//! and later. The ring is allocated once, and an entry costs a copy of 32 bytes. Without a log
//! (`TransportConfig::log_entries` is 0) each place that would log something costs one comparison.

mod event;
mod fec_event;
mod frame_event;
mod parameters;
mod words;

use fulmar_base::Instant;
use fulmar_wire::{AckEncoder, Frame, PacketKind, PathId};

pub use self::event::{ACK_RANGES_MAX, LogEntry, LogEvent};
pub use self::fec_event::{FecEvent, RepairOutcome};
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
    seen: Seen,
    /// The newest kind of packets for which there are keys.
    keys: PacketKind,
}

/// What was logged last.
#[derive(Debug, Default)]
struct Seen {
    /// Of the paths that are open.
    paths: Vec<(PathId, Figures)>,
    totals: Totals,
}

impl Seen {
    /// The figures of a path; those of a new one are all different from what it has.
    fn of(&mut self, path: PathId) -> &mut Figures {
        let place = self.paths.iter().position(|(known, _)| *known == path).unwrap_or_else(|| {
            self.paths.push((path, Figures::default()));
            self.paths.len() - 1
        });
        &mut self.paths[place].1
    }
}

/// Figures of a path, which are logged when they have changed.
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
    pub(crate) peer: Option<([u8; 16], u16)>,
    pub(crate) blocked: Option<BlockedReason>,
}

/// The same of the connection.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) key_generation: u64,
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
            seen: Seen::default(),
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
                let (first, last) = (*range.start(), *range.end());
                self.push(at, LogEvent::AckRange { path: ack.path, first, last });
            }
        }
    }

    /// Adds an ACK of which the newest `ranges` were written.
    pub(crate) fn push_ack(&mut self, at: Instant, ack: &AckEncoder<'_>, ranges: usize) {
        self.push(at, LogEvent::ack(ack.delay, ACK_DELAY_EXPONENT, ack.ecn));
        for range in ack.ranges.iter().rev().take(ranges.min(ACK_RANGES_MAX)) {
            let (first, last) = (range.start, range.end - 1);
            self.push(at, LogEvent::AckRange { path: ack.path, first, last });
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
        if self.seen.totals.key_generation != generation {
            self.seen.totals.key_generation = generation;
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

    /// Adds the figures of a path, and of the connection, that have changed since the last time.
    pub(crate) fn push_figures(&mut self, at: Instant, path: PathId, now: &Figures, totals: &Totals) {
        let was = std::mem::replace(self.seen.of(path), *now);
        let were = std::mem::replace(&mut self.seen.totals, *totals);
        if was == *now && were == *totals {
            return;
        }
        if was.rtt != now.rtt {
            self.push(at, LogEvent::Rtt { path, latest: now.rtt.0, smoothed: now.rtt.1 });
        }
        if was.rtt_bounds != now.rtt_bounds {
            self.push(at, LogEvent::RttBounds { path, min: now.rtt_bounds.0, variance: now.rtt_bounds.1 });
        }
        if let Some((forward, back)) = now.queues.filter(|_| was.queues != now.queues) {
            self.push(at, LogEvent::Queues { path, forward, back });
        }
        if was.window != now.window {
            self.push(at, LogEvent::Window { path, window: now.window.0, in_flight: now.window.1 });
        }
        if was.rates != now.rates {
            self.push(at, LogEvent::Rates { path, pacing: now.rates.0, delivery: now.rates.1 });
        }
        self.push_rare_figures(at, path, (&was, now), (&were, totals));
    }

    /// The same for those that seldom change; of both the former ones come first.
    fn push_rare_figures(
        &mut self,
        at: Instant,
        path: PathId,
        (was, now): (&Figures, &Figures),
        (were, totals): (&Totals, &Totals),
    ) {
        if was.ssthresh != now.ssthresh {
            self.push(at, LogEvent::SlowStartThreshold { path, bytes: now.ssthresh });
        }
        if was.phase != now.phase {
            self.push(at, LogEvent::Phase { path, name: now.phase });
        }
        if was.mtu != now.mtu {
            self.push(at, LogEvent::Mtu { path, bytes: now.mtu });
        }
        if were.key_generation != totals.key_generation {
            self.push(at, LogEvent::KeyGeneration(totals.key_generation));
        }
        if let Some(state) = now.ecn.filter(|_| was.ecn != now.ecn) {
            self.push(at, LogEvent::EcnState { path, state });
        }
        if let Some((ip, port)) = now.peer.filter(|_| was.peer != now.peer) {
            self.push(at, LogEvent::PeerAddress { path, ip, port });
        }
        if were.datagrams_dropped != totals.datagrams_dropped {
            let (late, other) = totals.datagrams_dropped;
            self.push(at, LogEvent::DatagramsDropped { late, other });
        }
        if let Some(reason) = now.blocked.filter(|_| was.blocked != now.blocked) {
            self.push(at, LogEvent::Blocked { path, reason });
        }
    }

    /// A path is gone, and its number is never used again.
    pub(crate) fn forget_path(&mut self, path: PathId) {
        self.seen.paths.retain(|(known, _)| *known != path);
    }
}

#[cfg(test)]
mod tests;

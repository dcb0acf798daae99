//! Streams (RFC 9000 §2 to §4): who may open how many, what may be sent on them, and the data itself.
//!
//! Owns the frames RESET_STREAM, STOP_SENDING, STREAM and all MAX_*, *_BLOCKED frames: their state, when they
//! are due, what their loss means. Knows no packet number, no path and no key, and reads no clock.
//!
//! | file | what it owns |
//! |---|---|
//! | `mod` | [`Streams`]: what the connection composes, opening and accepting |
//! | `calls` | the application's calls |
//! | `receive` | frames from the peer: validation, and which half they go to |
//! | `transmit` | frames to the peer; their acknowledgement and loss |
//! | `table`, `limits` | which streams exist, and how many may |
//! | `config`, `peer_limits` | what this end allows, and what the peer does |
//! | `flow`, `budget`, `receive_budget`, `priority` | what may be sent, what is buffered, who goes first |
//! | `demand` | how much credit the peer makes use of |
//! | `send`, `send_buffer` | the sending half of a stream |
//! | `recv`, `assembler`, `segment` | the receiving half of a stream |
//! | `handles`, `events`, `waking` | the application's view, and when it is told of something |
//!
//! Invariant: a stream is in a queue exactly while it has something for that queue, so that asking whether
//! there is anything to send costs nothing. [`Streams::sync`] restores this after every change of a half.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use fulmar_base::{Instant, Rng};
use fulmar_wire::{Dir, Side, StreamId};

use self::budget::SendBudget;
use self::config::Windows;
use self::events::Events;
use self::flow::{ReceiveWindow, SendCredit};
use self::limits::{IncomingStreams, OutgoingStreams, PerDir};
use self::peer_limits::send_limit;
use self::priority::PriorityQueue;
use self::receive_budget::ReceiveBudget;
use self::recv::RecvHalf;
use self::send::SendHalf;
use self::table::{Stream, Table};
use crate::memory::{EndpointMemory, SharedMemory};

mod assembler;
mod budget;
mod calls;
mod config;
mod demand;
mod events;
mod flow;
mod handles;
mod limits;
mod peer_limits;
mod priority;
mod receive;
mod receive_budget;
mod recv;
mod segment;
mod send;
mod send_buffer;
mod table;
mod transmit;
mod waking;

pub(crate) use config::{CONCURRENT_MAX, InitialLimits, StreamsConfig};
pub(crate) use demand::ReceiveCredit;
pub use events::StreamEvent;
pub use handles::{
    Chunk, ClosedStream, FinishError, ReadError, RecvHandle, ResetAtError, SendHandle, WriteError,
};
pub use priority::Priority;
pub(crate) use priority::QUANTUM_BYTES;

/// All streams of a connection, and the flow control of the connection.
#[derive(Debug)]
pub struct Streams {
    side: Side,
    windows: Windows,
    /// The peer's limits for new streams.
    peer: InitialLimits,
    table: Table,
    outgoing: PerDir<OutgoingStreams>,
    incoming: PerDir<IncomingStreams>,
    /// What the peer allows on all streams together.
    credit: SendCredit,
    /// What the peer is allowed on all streams together.
    window: ReceiveWindow,
    /// The most that was read from a stream in a round trip.
    stream_demand: u64,
    budget: SendBudget,
    /// Bytes of all streams that were never sent.
    unsent: u64,
    /// Bytes of all streams that are to be sent again.
    lost_bytes: u64,
    receive_budget: ReceiveBudget,
    /// How many streams have sent their last byte.
    ends_sent: u32,
    /// Streams with frames other than STREAM to write.
    control: VecDeque<StreamId>,
    /// Streams with data to send again, or only their end to send: neither needs credit.
    lost: PriorityQueue,
    /// Whether what they send again is in flight, too, until all of it was sent.
    repeating: bool,
    /// Which copy of data that was lost before that is; zero if it was not lost.
    repeated_copy: u8,
    /// Streams with new data.
    fresh: PriorityQueue,
    events: Events,
    stats: StreamStats,
}

/// What is known of the moment when a frame arrives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecvContext {
    /// The time of arrival.
    pub(crate) now: Instant,
    /// The smoothed round-trip time, or its initial estimate.
    pub(crate) rtt: Duration,
    /// Whether the frame is early data, which an attacker may have repeated.
    pub(crate) early: bool,
}

/// Counts of what happened on the streams of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamStats {
    /// STREAM frames sent.
    pub frames_sent: u64,
    /// STREAM frames received.
    pub frames_received: u64,
    /// Bytes of stream data sent, each counted once.
    pub bytes_sent: u64,
    /// Bytes of stream data sent again.
    pub bytes_retransmitted: u64,
    /// Bytes of stream data received, with those that were received before.
    pub bytes_received: u64,
    /// DATA_BLOCKED, STREAM_DATA_BLOCKED and STREAMS_BLOCKED frames received: the peer would have sent more.
    pub blocked_frames_received: u64,
}

impl Streams {
    /// The streams of a new connection, on this side of it, of an endpoint with these memories.
    pub(crate) fn new(side: Side, config: &StreamsConfig, memory: &EndpointMemory, rng: &mut Rng) -> Self {
        Self {
            side,
            windows: config.windows(),
            peer: InitialLimits::default(),
            table: Table::new(rng),
            outgoing: PerDir { bi: OutgoingStreams::new(), uni: OutgoingStreams::new() },
            incoming: PerDir {
                bi: IncomingStreams::new(config.max_concurrent_bidi),
                uni: IncomingStreams::new(config.max_concurrent_uni),
            },
            credit: SendCredit::new(0),
            window: ReceiveWindow::new(config.receive_window, config.receive_window_max),
            stream_demand: 0,
            budget: SendBudget::new(config.send_window, memory.send.clone()),
            unsent: 0,
            lost_bytes: 0,
            receive_budget: ReceiveBudget::new(memory.receive.clone()),
            ends_sent: 0,
            control: VecDeque::new(),
            lost: PriorityQueue::default(),
            repeating: false,
            repeated_copy: 0,
            fresh: PriorityQueue::default(),
            events: Events::default(),
            stats: StreamStats::default(),
        }
    }

    /// Gives back the memory that nothing needs while nothing is sent or received.
    pub(crate) fn rest(&mut self) {
        self.table.rest();
        self.incoming.bi.rest();
        self.incoming.uni.rest();
        self.control.shrink_to_fit();
        self.lost.rest();
        self.fresh.rest();
        self.events.rest();
    }

    /// The credit with which a connection like this one is not held up at its beginning: twice what was read in the busiest
    /// round trip, as credit needs another one to come back. Within what this end allows at most.
    pub(crate) fn credit_in_use(&self) -> ReceiveCredit {
        let (stream, connection) = (self.stream_demand, self.window.demand());
        ReceiveCredit {
            stream: stream.saturating_mul(2).min(self.windows.stream_receive_max),
            connection: connection.saturating_mul(2).min(self.windows.receive_max),
        }
    }

    /// So many bytes may be in flight over all paths: the application may write as much as they can make use of.
    #[inline]
    pub(crate) fn set_flight(&mut self, bytes: u64) {
        self.budget.set_flight(bytes, self.windows.send);
        self.wake_waiting(&mut None);
    }

    /// What all connections of the endpoint have together for sending.
    pub(crate) fn send_memory(&self) -> &Arc<SharedMemory> {
        self.budget.memory()
    }

    /// Bytes that are buffered for sending, sent and not acknowledged ones included.
    pub(crate) fn send_buffered(&self) -> u64 {
        self.budget.held()
    }

    /// Bytes that wait to be sent, for the first time or again; what flow control holds back is among them.
    pub(crate) fn waiting(&self) -> u64 {
        self.unsent + self.lost_bytes
    }

    /// What happened so far.
    pub(crate) fn stats(&self) -> StreamStats {
        self.stats
    }

    /// How many streams have sent their last byte so far, to see whether one did: it begins anew after the largest number.
    #[inline]
    pub(crate) fn ends_sent(&self) -> u32 {
        self.ends_sent
    }

    /// The number of streams that have state.
    pub(crate) fn count(&self) -> usize {
        self.table.len()
    }

    /// Opens a stream. If the peer allows no more of them, returns `None`, and an
    /// [`Available`](StreamEvent::Available) event follows when it does.
    ///
    /// The peer hears of the stream with its first frame.
    pub fn open(&mut self, dir: Dir) -> Option<StreamId> {
        let index = self.outgoing[dir].open()?;
        let id = StreamId::new(self.side, dir, index);
        self.create(id);
        Some(id)
    }

    /// The next stream that the peer has opened, in the order of their IDs.
    pub fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        let (index, create) = self.incoming[dir].accept()?;
        let id = StreamId::new(!self.side, dir, index);
        if create {
            self.create(id);
        }
        Some(id)
    }

    /// Changes how many streams of a direction the peer may have open at once. More are allowed at once; if there are fewer, what
    /// the peer was allowed stays allowed (RFC 9000 §4.6), and it gets no new ones until enough of its streams are over. More than
    /// 2^20 count as 2^20, which is the most that `TransportConfig` takes.
    pub fn set_max_concurrent(&mut self, dir: Dir, count: u64) {
        self.incoming[dir].set_concurrent_max(count.min(CONCURRENT_MAX));
    }

    /// Whether the peer has acknowledged all streams that were finished. Those that were reset do not count, but for what a partial reset
    /// has left of them. It looks at each stream: a question for the end of a connection.
    pub fn is_delivered(&self) -> bool {
        !self.table.sending().any(SendHalf::is_ending)
    }

    /// Access to the sending half of a stream.
    pub fn send(&mut self, id: StreamId) -> SendHandle<'_> {
        SendHandle { streams: self, id }
    }

    /// Access to the receiving half of a stream.
    pub fn recv(&mut self, id: StreamId) -> RecvHandle<'_> {
        RecvHandle { streams: self, id }
    }

    /// Makes the state of a stream.
    fn create(&mut self, id: StreamId) {
        let sends = id.dir() == Dir::Bi || id.initiator() == self.side;
        let receives = id.dir() == Dir::Bi || id.initiator() != self.side;
        let send = sends.then(|| SendHalf::new(send_limit(self.side, &self.peer, id)));
        let (window, window_max) = (self.windows.stream_receive, self.windows.stream_receive_max);
        let recv = receives.then(|| RecvHalf::new(window, window_max));
        self.table.insert(Stream::new(id, send, recv));
    }

    /// Puts a stream into the queues for which it has something, and takes it out of the others; forgets it
    /// if it is over.
    fn sync(&mut self, id: StreamId) {
        let is_allowed = id.initiator() != self.side || self.outgoing[id.dir()].allows(id.index());
        let Some(stream) = self.table.get_mut(id) else { return };
        let has_control = stream.has_control() && is_allowed;
        match (has_control, stream.queued_control) {
            (true, false) => self.control.push_back(id),
            (false, true) => self.control.retain(|&queued| queued != id),
            (true, true) | (false, false) => {}
        }
        stream.queued_control = has_control;
        if let Some(send) = &mut stream.send {
            self.lost.set(id, send.priority(), send.has_lost() && is_allowed, &mut send.queued_lost);
            self.fresh.set(id, send.priority(), send.has_new() && is_allowed, &mut send.queued_fresh);
        } else if stream.is_over() {
            self.table.remove(id);
            if id.initiator() != self.side {
                self.incoming[id.dir()].on_closed();
            }
        }
        self.report_blocked();
    }

    /// Tells the peer if its limit for the connection holds data back.
    fn report_blocked(&mut self) {
        if !self.fresh.is_empty() && self.credit.available() == 0 {
            self.credit.on_blocked();
        }
    }

    /// The sending half has ended.
    fn drop_send(&mut self, id: StreamId) {
        if let Some(stream) = self.table.get_mut(id)
            && let Some(send) = &stream.send
        {
            stream.stopped = send.stopped();
            stream.send = None;
        }
        self.sync(id);
    }

    /// The receiving half has ended.
    fn drop_recv(&mut self, id: StreamId) {
        if let Some(stream) = self.table.get_mut(id)
            && let Some(recv) = &stream.recv
        {
            self.receive_budget.release(recv.counted());
            stream.recv = None;
        }
        self.sync(id);
    }
}

#[cfg(test)]
mod tests;

//! The sending half: source symbols until it is known what became of them, and repair symbols.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use fulmar_base::{Instant, Timer};
use fulmar_fec::schedule::{Feedback, LossEstimate, Order, Scheduler, Situation};
use fulmar_fec::{CauchyKeys, Code, RepairId, SourceWindow, length_to_end};
use fulmar_wire::{
    BlockRepair, Dialect, FecParameters, FecRecovered, FecRepair, FecSid, FecWindow, Frame, PathId,
    SymbolAck, VarInt,
};

use super::{BlockCode, FecCode, FecConfig, FecDialect, FecMode, FecStats};
use crate::error::TransportError;
use crate::log::{FecEvent, LogEvent};
use crate::packet::{FrameWriter, Protection, Protections, SentFrame, SentFrames, SymbolHeader, SymbolId};

/// Source symbols of which something is remembered. When there are more, the oldest are forgotten; what was held back of them
/// is sent again.
const SYMBOLS_MAX: usize = 4_096;

/// A lost symbol is remembered until it is older than the window by this: a report that it was recovered may still come.
const LOST_MEMORY: u64 = 256;

/// Repair symbols that wait to be sent. Beyond, none are made.
const REPAIRS_MAX: usize = 64;

/// Repair symbols that [`FecConfig::overhead_max`] does not count.
const REPAIRS_FREE: u64 = 16;

/// By so much may the number of the packet with a repair symbol be longer than those of the packets that it covers (RFC 9000 §17.1).
const NUMBER_GROWTH: usize = 3;

/// A packet that is longer than the longest symbol by more than this is not protected: it would have to be cut.
const CUT_MAX: usize = 64;

/// What repair symbols may repair waits for their verdict as long as a packet without one is waited for before it is taken
/// for lost: 9/8 of a round-trip time after the last of them (RFC 9002 §6.1.2).
const PATIENCE: (u32, u32) = (9, 8);

/// The tokens of protected frames, and the path of their packet.
pub(crate) type Protected = (PathId, SentFrames);

/// Makes repair symbols of what is sent.
#[derive(Debug)]
pub(crate) struct FecSender {
    /// With a window that the peer has, too.
    config: FecConfig,
    protections: Protections,
    /// That of the source symbol that is being written.
    open: Protection,
    /// What the peer decodes in dialect M; `None` in dialect X. It takes the place of `code` then.
    blocks: Option<BlockCode>,
    /// The last window that the peer has told in dialect M.
    peer_window: Option<FecWindow>,
    /// The longest source symbol that the peer takes.
    symbol_max: usize,
    /// Those that were needed so far: one at most for each kind of protection.
    schedulers: Vec<(Protection, Box<dyn Scheduler>)>,
    losses: LossEstimate,
    keys: CauchyKeys,
    next_key: u16,
    window: SourceWindow,
    /// Symbols with consecutive ids, up to the last one.
    symbols: VecDeque<Symbol>,
    /// The id of the first of them.
    first: u64,
    /// How many of them have no verdict.
    unresolved: usize,
    /// Repair symbols to be sent.
    repairs: VecDeque<Repair>,
    /// The path that they take.
    path: PathId,
    /// What was held back, and is to be sent again.
    released: Vec<Protected>,
    /// When the scheduler is to be asked.
    timer: Timer,
    /// When the first of the symbols that are held back is to be given up.
    patience: Timer,
    /// The smoothed round-trip time, as it was told last.
    rtt: Duration,
    stats: FecStats,
}

/// A source symbol that was sent.
#[derive(Debug)]
struct Symbol {
    path: PathId,
    /// The tokens of its frames.
    frames: SentFrames,
    /// How many tokens of its packet are not its own; they come first.
    unprotected: u16,
    state: State,
    /// Repair symbols in flight that cover it.
    covered: u16,
    /// When the last repair symbol left that covers it; when it left itself, if there is none.
    covered_at: Instant,
    /// The first symbol and the number of symbols that this one covers.
    cover: (u64, u16),
}

/// What is known of a source symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing.
    InFlight,
    /// Its packet is lost, and its frames are held back for repair symbols that are in flight.
    Held {
        /// Until then at most.
        until: Instant,
    },
    /// Its packet is lost, and its frames were handed back to their owners.
    Lost,
    /// The peer has it.
    Delivered,
}

/// A repair symbol that waits.
#[derive(Debug)]
struct Repair {
    id: RepairId,
    symbol: Vec<u8>,
}

/// What comes next in a packet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Upcoming {
    /// The protection that was chosen for it.
    pub(crate) chosen: Option<Protection>,
    /// The length of the DATAGRAM frame that comes next, which cannot be cut.
    pub(crate) datagram: Option<usize>,
    /// The bytes of streams that can follow without waiting for anybody but congestion control.
    pub(crate) backlog: u64,
    /// The bytes that may be in flight.
    pub(crate) flight: u64,
}

/// What a lost packet means for its frames.
pub(crate) struct Loss {
    /// The tokens of the packet that are not part of the symbol.
    pub(crate) unprotected: usize,
    /// Whether the others are to be sent again now.
    pub(crate) resend: bool,
}

impl FecSender {
    /// `None` if the peer takes nothing that this end would send. Where the mode is none, there may still be streams with another
    /// protection.
    pub(super) fn new(config: &FecConfig, peer: &FecParameters) -> Option<Self> {
        let knows_code = peer.schemes.get() >> config.code as u8 & 1 == 1;
        let window = u16::try_from(peer.window.get()).unwrap_or(u16::MAX).min(config.window);
        let too_small = match config.mode {
            FecMode::Constant { source, .. } => source > window,
            FecMode::None | FecMode::Tail | FecMode::Deadline { .. } => window == 0,
        };
        if !knows_code || too_small {
            return None;
        }
        let symbol_max = usize::try_from(peer.symbol.get()).unwrap_or(usize::MAX);
        let protections = Protections { default: config.protection(), only: None };
        let config = FecConfig { window, ..*config };
        Some(Self::with(config, protections, symbol_max.min(fulmar_fec::SYMBOL_MAX.into()), None))
    }

    /// In dialect M, for a peer that decodes this: there, all that is protected has blocks of a fixed size.
    pub(super) fn in_blocks(config: &FecConfig, blocks: BlockCode) -> Self {
        let mode = FecMode::Constant { source: blocks.source(), repair: blocks.repairs() };
        let protections = Protections { default: config.protection(), only: Some(Protection::Constant) };
        let config = FecConfig { mode, ..*config };
        Self::with(config, protections, BlockCode::SYMBOL_MAX, Some(blocks))
    }

    fn with(
        config: FecConfig,
        protections: Protections,
        symbol_max: usize,
        blocks: Option<BlockCode>,
    ) -> Self {
        Self {
            config,
            protections,
            open: Protection::None,
            blocks,
            peer_window: None,
            symbol_max,
            schedulers: Vec::new(),
            losses: LossEstimate::default(),
            keys: CauchyKeys::default(),
            next_key: 0,
            window: SourceWindow::new(config.window),
            symbols: VecDeque::new(),
            first: 0,
            unresolved: 0,
            repairs: VecDeque::new(),
            path: PathId::ZERO,
            released: Vec::new(),
            timer: Timer::new(),
            patience: Timer::new(),
            rtt: Duration::ZERO,
            stats: FecStats::default(),
        }
    }

    pub(super) fn dialect(&self) -> FecDialect {
        FecDialect::of(self.blocks)
    }

    /// Whether repair symbols follow the end of a transfer, so that copies of what was lost need not.
    pub(crate) fn protects_tails(&self) -> bool {
        self.protections.of(None) == Protection::Tail
    }

    /// Lets a packet take data of the protection that was chosen for what comes next, and begins a source symbol if that is
    /// any, unless it would cut the packet. A repair symbol over it has to fit a packet, too.
    pub(crate) fn begin(&mut self, next: Upcoming, out: &mut FrameWriter<'_>) {
        self.open = self.protections.of(next.chosen);
        out.restrict(self.protections, self.open);
        if self.open == Protection::None || self.open == Protection::Tail && self.is_far_from_end(next, out) {
            return;
        }
        // What goes before a source symbol is shorter than what goes before a repair symbol, and behind its lengths.
        let kept = self.repair_overhead() + fulmar_fec::LENGTH_BYTES + NUMBER_GROWTH;
        let Some(room) = out.space().checked_sub(kept) else { return };
        let id = self.end();
        let header = match self.blocks {
            None => SymbolHeader::Sid(FecSid { id: id as u16 }),
            Some(_) => SymbolHeader::Framed(VarInt::saturating(id)),
        };
        let limit = room.min(self.symbol_max);
        if room <= self.symbol_max + CUT_MAX && next.datagram.is_none_or(|datagram| datagram <= limit) {
            out.begin_symbol(header, SymbolId(id as u32), limit);
        }
    }

    /// Whether so much follows that no repair symbol at the end would cover this packet, whatever becomes of it: they cover the
    /// newest ones, as many as the window has. Nor do they cover what has its verdict by then, and this packet has it before more
    /// than a flight was sent after it; half of one more is for a window that grows meanwhile.
    fn is_far_from_end(&self, next: Upcoming, out: &FrameWriter<'_>) -> bool {
        let covered = u64::from(self.config.window) * out.space() as u64;
        let undecided = next.flight.saturating_add(next.flight / 2);
        next.datagram.is_none() && next.backlog >= covered.min(undecided)
    }

    /// As [`FecSender::begin`], in a packet that was begun for something else. What has no protection may go before what has, but
    /// nothing of another protection joins a source symbol, nor follows it.
    pub(crate) fn switch(&mut self, next: Upcoming, out: &mut FrameWriter<'_>) {
        let protection = self.protections.of(next.chosen);
        match out.protection() {
            Some(open) if open != protection && (open == Protection::None || out.is_symbol_empty()) => {
                out.end_symbol();
                self.begin(next, out);
            }
            _ => {}
        }
    }

    /// Ends the source symbol of a packet, and keeps what was written.
    pub(crate) fn end_symbol(&mut self, now: Instant, path: PathId, out: &mut FrameWriter<'_>) {
        let Some((bytes, tokens, unprotected)) = out.end_symbol() else { return };
        let pushed = self.window.push(bytes);
        debug_assert_eq!(pushed, Ok(self.end()), "a symbol fits, and ids follow one another");
        if self.symbols.len() == SYMBOLS_MAX {
            self.forget_oldest();
        }
        let (id, open) = (self.end(), self.open);
        let deadline = (open == Protection::Deadline).then(|| now + self.config.within());
        self.scheduler_of(open).on_source(id, now, deadline);
        self.symbols.push_back(Symbol {
            path,
            frames: tokens.iter().cloned().collect(),
            unprotected: unprotected as u16,
            state: State::InFlight,
            covered: 0,
            covered_at: now,
            cover: (0, 0),
        });
        self.unresolved += 1;
        self.stats.symbols_sent += 1;
    }

    /// Asks the scheduler for repair symbols. `idle` says that the application has nothing to send and the window has room.
    pub(crate) fn schedule(&mut self, now: Instant, idle: bool, smoothed_rtt: Duration) {
        self.rtt = smoothed_rtt;
        for index in 0..self.schedulers.len() {
            while self.repairs.len() < REPAIRS_MAX {
                let situation = self.situation(now, idle, smoothed_rtt);
                let (protection, scheduler) = &mut self.schedulers[index];
                let (protection, Some(order)) = (*protection, scheduler.next_order(&situation)) else {
                    break;
                };
                self.obey(&order, protection);
            }
        }
        let wake_ups = self.schedulers.iter().filter_map(|(_, scheduler)| scheduler.wake_up());
        match wake_ups.filter(|at| *at > now).min() {
            Some(at) => self.timer.set(at),
            None => self.timer.cancel(),
        }
    }

    /// Makes repair symbols for a probe timeout: what is in flight may be lost. Returns false if there is nothing to repair.
    pub(crate) fn probe(&mut self, path: PathId, repairs: u8) -> bool {
        if self.blocks.is_some() {
            // Blocks that are not full have no repair symbols.
            return false;
        }
        let in_flight = |symbol: &Symbol| symbol.state == State::InFlight;
        let Some(place) = self.symbols.iter().position(in_flight) else { return false };
        let first = self.first + place as u64;
        // What is older than the window cannot be repaired, and what left on another path has a probe timeout of its own.
        if first < self.window.ids().start || self.symbols[place].path != path || !self.repairs.is_empty() {
            return false;
        }
        let count = (self.end() - first) as u16;
        self.obey(&Order { first, count, repairs: repairs.into() }, Protection::Tail);
        !self.repairs.is_empty()
    }

    /// Whether repair symbols wait to be sent.
    pub(crate) fn has_repairs(&self) -> bool {
        !self.repairs.is_empty()
    }

    /// Whether repair symbols wait to be sent on this path.
    pub(crate) fn has_repairs_for(&self, path: PathId) -> bool {
        self.has_repairs() && self.path == path
    }

    /// How long the frame of a repair symbol that waits is at most, in bytes.
    pub(crate) fn repair_len_max(&self) -> usize {
        let longest = self.repairs.iter().map(|repair| repair.symbol.len()).max().unwrap_or_default();
        longest + self.repair_overhead()
    }

    /// The repair symbols that wait take this path.
    pub(crate) fn take_path(&mut self, path: PathId) {
        self.path = path;
    }

    /// Writes a repair symbol, if there is one and it fits. One that is too long for this packet waits for one that begins a batch,
    /// as the others are no longer than that, and packets with source symbols are shorter than the path allows. One that needs
    /// more than `room`, that of a full packet, fits no packet any more and is dropped.
    pub(crate) fn write(&mut self, now: Instant, room: usize, out: &mut FrameWriter<'_>) {
        while let Some(Repair { id, symbol }) = self.repairs.front() {
            let frame = match self.blocks {
                None => Frame::FecRepair(FecRepair {
                    scheme: self.config.code as u8,
                    first: id.first as u16,
                    more: (id.count - 1) as u8,
                    key: id.key,
                    symbol,
                }),
                Some(blocks) => Frame::BlockRepair(BlockRepair {
                    block: blocks.block_of(id.first),
                    parity: VarInt::from_u32(id.key.into()),
                    symbol,
                }),
            };
            let token = SentFrame::FecRepair { first: id.first, count: id.count };
            let may_fit = frame.encoded_len(Dialect::SinglePath) <= room;
            let is_written = out.write(&frame, token);
            if !is_written && may_fit {
                return;
            }
            if is_written {
                let id = *id;
                out.note(LogEvent::Fec(FecEvent::RepairSent { first: id.first, count: id.count }));
                self.stats.repairs_sent += 1;
                self.stats.repair_bytes_sent += symbol.len() as u64;
                self.cover(now, id.first, id.count);
                self.repairs.pop_front();
                return;
            }
            self.repairs.pop_front();
        }
    }

    /// The packet of a source symbol has arrived.
    pub(crate) fn on_acked(&mut self, symbol: SymbolId) {
        let Some(place) = self.place_of(symbol) else { return };
        let was = std::mem::replace(&mut self.symbols[place].state, State::Delivered);
        if was == State::InFlight {
            self.unresolved -= 1;
            self.note(false);
        }
        self.forget_resolved();
    }

    /// The packet of a source symbol is lost. It is held back while repair symbols that cover it may still be reported to
    /// have helped: those that follow it closely are, where a retransmission would be in flight already.
    pub(crate) fn on_lost(&mut self, now: Instant, symbol: SymbolId) -> Loss {
        // What is not known any more was handed back when it was forgotten, or its packet is older than the memory.
        let Some(place) = self.place_of(symbol) else { return Loss { unprotected: 0, resend: true } };
        let (numerator, denominator) = PATIENCE;
        let patience = self.rtt * numerator / denominator;
        let suffices = self.may_suffice(place);
        let symbol = &mut self.symbols[place];
        let cover = symbol.cover;
        let mut loss = Loss { unprotected: symbol.unprotected.into(), resend: false };
        self.stats.symbols_lost += 1;
        if symbol.state == State::InFlight {
            self.unresolved -= 1;
            let until = symbol.covered_at + patience;
            let held = suffices && until > now;
            symbol.state = if held { State::Held { until } } else { State::Lost };
            loss.resend = !held;
            if held && self.patience.deadline().is_none_or(|first| until < first) {
                self.patience.set(until);
            }
            self.note(true);
            if !suffices {
                // All or none of what the same repair symbols cover can be recovered.
                self.release(self.places(cover.0, cover.1), |_| true);
            }
        }
        self.forget_resolved();
        loss
    }

    /// A packet with a repair symbol was acknowledged or lost.
    pub(crate) fn on_repair_delivery(&mut self, first: u64, count: u16, acked: bool) {
        match acked {
            true => self.stats.repairs_acked += 1,
            false => self.stats.repairs_lost += 1,
        }
        if acked && !self.lacks_any(first, count) {
            self.tell(Feedback::RepairsUnused(1));
        }
        self.uncover(first, count);
    }

    /// The peer has recovered symbols. Returns the tokens of the frames that it has now.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION for symbols that were never sent.
    pub(crate) fn on_recovered(&mut self, report: &FecRecovered) -> Result<Vec<Protected>, TransportError> {
        let (first, end) = (report.first.get(), report.first.get() + u64::from(report.more) + 1);
        if end > self.end() {
            return Err(TransportError::protocol_violation("the recovery of a symbol that was not sent"));
        }
        let mut delivered = Vec::new();
        for id in first.max(self.first)..end {
            let symbol = &mut self.symbols[(id - self.first) as usize];
            if symbol.state == State::Delivered {
                continue;
            }
            self.stats.symbols_recovered += 1;
            // Its packet may have no verdict yet: it will be taken for lost, which is then nobody's concern.
            self.stats.retransmissions_spared += u64::from(symbol.state != State::Lost);
            let was = std::mem::replace(&mut symbol.state, State::Delivered);
            delivered.push((symbol.path, std::mem::take(&mut symbol.frames)));
            if was == State::InFlight {
                self.unresolved -= 1;
                self.note(true);
            }
        }
        if !delivered.is_empty() {
            self.tell(Feedback::RepairsUsed(delivered.len() as u16));
        }
        Ok(delivered)
    }

    /// The peer says which symbols it has, in dialect M. Returns the tokens of their frames.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION for symbols that were never sent.
    pub(crate) fn on_symbol_ack(&mut self, ack: &SymbolAck<'_>) -> Result<Vec<Protected>, TransportError> {
        if ack.largest().get() >= self.end() {
            return Err(TransportError::protocol_violation("the recovery of a symbol that was not sent"));
        }
        let mut delivered = Vec::new();
        for range in ack.ranges() {
            for id in (*range.start()).max(self.first)..=*range.end() {
                let symbol = &mut self.symbols[(id - self.first) as usize];
                match std::mem::replace(&mut symbol.state, State::Delivered) {
                    State::Delivered => continue,
                    // Its packet may have arrived: the frame tells that as well.
                    State::InFlight => self.unresolved -= 1,
                    State::Held { .. } | State::Lost => self.stats.symbols_recovered += 1,
                }
                delivered.push((symbol.path, std::mem::take(&mut symbol.frames)));
            }
        }
        self.forget_resolved();
        Ok(delivered)
    }

    /// The peer says how many symbols it keeps, in dialect M: where these are fewer than a block, repair symbols are of no use.
    pub(crate) fn on_window(&mut self, window: &FecWindow) {
        if self.peer_window.is_none_or(|last| last.epoch < window.epoch) {
            self.peer_window = Some(*window);
        }
    }

    /// What was held back, and is to be sent again now.
    pub(crate) fn take_released(&mut self) -> Vec<Protected> {
        std::mem::take(&mut self.released)
    }

    /// When the scheduler is to be asked, or what is held back to be given up, although nothing else happens.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.timer.deadline().into_iter().chain(self.patience.deadline()).min()
    }

    /// The time has come; the scheduler is asked when nothing waits to be sent.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        self.timer.take_expired(now);
        if !self.patience.take_expired(now) {
            return;
        }
        let all = 0..self.symbols.len();
        self.release(all, |symbol| matches!(symbol.state, State::Held { until } if until <= now));
        let deadlines = self.symbols.iter().filter_map(|symbol| match symbol.state {
            State::Held { until } => Some(until),
            _ => None,
        });
        if let Some(next) = deadlines.min() {
            self.patience.set(next);
        }
    }

    pub(super) fn stats(&self) -> FecStats {
        self.stats
    }

    /// The id of the next symbol.
    fn end(&self) -> u64 {
        self.first + self.symbols.len() as u64
    }

    fn place_of(&self, symbol: SymbolId) -> Option<usize> {
        // Ids of which something is remembered differ in their low bits.
        let place = symbol.0.wrapping_sub(self.first as u32) as usize;
        (place < self.symbols.len()).then_some(place)
    }

    fn situation(&self, now: Instant, idle: bool, smoothed_rtt: Duration) -> Situation {
        let place = self.symbols.iter().position(|symbol| symbol.state == State::InFlight);
        let end = self.end();
        Situation {
            now,
            first_unresolved: place.map_or(end, |place| self.first + place as u64),
            end,
            unresolved: u16::try_from(self.unresolved).unwrap_or(u16::MAX),
            idle,
            smoothed_rtt,
        }
    }

    /// Makes the repair symbols of an order, as far as they are affordable and waiting ones leave room.
    fn obey(&mut self, order: &Order, protection: Protection) {
        let first = order.first.max(self.window.ids().start);
        let Some(count) = (order.first + u64::from(order.count)).checked_sub(first) else { return };
        // At most the window.
        let count = count as u16;
        if !self.is_decodable(count) {
            return;
        }
        for index in 0..order.repairs {
            if count == 0 || self.repairs.len() >= REPAIRS_MAX || !self.is_affordable(protection) {
                return;
            }
            if let Some(id) = self.repair_id(first, count, index, order.repairs) {
                let mut symbol = Vec::new();
                let made = self.window.repair(self.code(), &id, &mut symbol);
                debug_assert_eq!(made, Ok(()), "the symbols are in the window");
                if self.blocks.is_some() {
                    length_to_end(&mut symbol);
                }
                self.repairs.push_back(Repair { id, symbol });
            }
        }
    }

    /// The bytes of a frame beside the repair symbol at most.
    fn repair_overhead(&self) -> usize {
        match self.blocks {
            None => FecRepair::OVERHEAD_MAX,
            Some(_) => BlockRepair::OVERHEAD_MAX,
        }
    }

    fn code(&self) -> &'static dyn Code {
        self.blocks.map_or_else(|| self.config.code.code(), BlockCode::code)
    }

    /// Whether the peer can make use of a repair symbol over so many source symbols.
    fn is_decodable(&self, count: u16) -> bool {
        self.blocks.is_none_or(|blocks| {
            count == blocks.source()
                && self.peer_window.is_none_or(|window| window.size.get() >= count.into())
        })
    }

    /// The repair symbol with this place among those of an order.
    fn repair_id(&mut self, first: u64, count: u16, index: u16, repairs: u16) -> Option<RepairId> {
        if self.blocks.is_some() {
            return Some(RepairId { first, count, key: index });
        }
        match self.config.code {
            // Each of them is over a part of the window.
            FecCode::Xor => {
                let parts = u64::from(repairs.min(count));
                let bound = |part: u64| first + u64::from(count) * part / parts;
                let part = u64::from(index) % parts;
                let (first, end) = (bound(part), bound(part + 1));
                Some(RepairId { first, count: (end - first) as u16, key: 0 })
            }
            FecCode::ReedSolomon => {
                // A longer window has no repair symbols: the oldest symbols are left out.
                let fits = |count: u16| self.code().repairs_max(count) > u32::from(repairs);
                let kept = (1..=count).rev().find(|count| fits(*count))?;
                self.keys.next(first + u64::from(count - kept), kept)
            }
            FecCode::Rlc => {
                self.next_key = self.next_key.wrapping_add(1);
                Some(RepairId { first, count, key: self.next_key })
            }
        }
    }

    fn is_affordable(&self, protection: Protection) -> bool {
        let made = self.stats.repairs_sent + self.repairs.len() as u64;
        let counted = made.saturating_sub(REPAIRS_FREE);
        protection == Protection::Constant
            || counted as f64 <= self.config.overhead_max * self.stats.symbols_sent as f64
    }

    /// Whether one of these symbols is lost.
    fn lacks_any(&self, first: u64, count: u16) -> bool {
        let lacks =
            |id| self.state_of(id).is_some_and(|state| matches!(state, State::Held { .. } | State::Lost));
        (first..first + u64::from(count)).any(lacks)
    }

    fn state_of(&self, id: u64) -> Option<State> {
        let place = usize::try_from(id.checked_sub(self.first)?).ok()?;
        self.symbols.get(place).map(|symbol| symbol.state)
    }

    /// A repair symbol over these symbols leaves.
    fn cover(&mut self, now: Instant, first: u64, count: u16) {
        for place in self.places(first, count) {
            let symbol = &mut self.symbols[place];
            symbol.covered = symbol.covered.saturating_add(1);
            symbol.covered_at = now;
            symbol.cover = (first, count);
        }
    }

    /// A repair symbol over these symbols is in flight no more. What was held back for the last one is given up.
    fn uncover(&mut self, first: u64, count: u16) {
        let places = self.places(first, count);
        for symbol in self.symbols.range_mut(places.clone()) {
            symbol.covered = symbol.covered.saturating_sub(1);
        }
        self.release(places, |symbol| symbol.covered == 0);
    }

    /// Notes what became of a symbol.
    fn note(&mut self, lost: bool) {
        self.losses.note(lost);
        self.tell(if lost { Feedback::Lost } else { Feedback::Delivered });
    }

    fn tell(&mut self, feedback: Feedback) {
        for (_, scheduler) in &mut self.schedulers {
            scheduler.on_feedback(feedback);
        }
    }

    fn scheduler_of(&mut self, protection: Protection) -> &mut dyn Scheduler {
        let known = self.schedulers.iter().position(|(known, _)| *known == protection);
        let index = known.unwrap_or_else(|| {
            self.schedulers.push((protection, self.config.scheduler(protection)));
            self.schedulers.len() - 1
        });
        &mut *self.schedulers[index].1
    }

    /// Whether the repair symbols in flight over the symbol at this place, which is lost, are as many as the losses that are to be
    /// expected among all that they cover.
    fn may_suffice(&self, place: usize) -> bool {
        let Symbol { covered, cover: (first, count), .. } = self.symbols[place];
        // The symbol itself is in flight still.
        let (mut lost, mut unknown) = (1.0, f64::from(covered) - 1.0);
        for symbol in self.symbols.range(self.places(first, count)) {
            match symbol.state {
                State::InFlight => unknown += 1.0,
                State::Held { .. } | State::Lost => lost += 1.0,
                State::Delivered => {}
            }
        }
        // More likely than not, and in dialect M nobody would tell.
        covered > 0
            && self.blocks.is_none()
            && lost + (unknown * self.losses.loss_rate()).round() <= f64::from(covered)
    }

    /// Gives up what is held back of these places and meets a condition.
    fn release(&mut self, places: Range<usize>, is_over: impl Fn(&Symbol) -> bool) {
        for symbol in self.symbols.range_mut(places) {
            if matches!(symbol.state, State::Held { .. }) && is_over(symbol) {
                symbol.state = State::Lost;
                self.released.push((symbol.path, symbol.frames.clone()));
            }
        }
    }

    /// Where those of these symbols are that something is remembered of.
    fn places(&self, first: u64, count: u16) -> Range<usize> {
        let known = |id: u64| (id.clamp(self.first, self.end()) - self.first) as usize;
        known(first)..known(first + u64::from(count))
    }

    /// Forgets what has arrived before all others.
    fn forget_resolved(&mut self) {
        let old = self.window.ids().start.saturating_sub(LOST_MEMORY);
        let is_over = |symbol: &Symbol, first: u64| match symbol.state {
            State::Delivered => true,
            State::Lost => first < old,
            State::InFlight | State::Held { .. } => false,
        };
        while self.symbols.front().is_some_and(|symbol| is_over(symbol, self.first)) {
            self.symbols.pop_front();
            self.first += 1;
        }
    }

    fn forget_oldest(&mut self) {
        let Some(symbol) = self.symbols.pop_front() else { return };
        self.first += 1;
        match symbol.state {
            State::InFlight => self.unresolved -= 1,
            State::Held { .. } => self.released.push((symbol.path, symbol.frames)),
            State::Lost | State::Delivered => {}
        }
    }
}

//! The sending half: source symbols until it is known what became of them, and repair symbols.
//!
//! | module | what it owns |
//! |---|---|
//! | `source` | which packets become source symbols |
//! | `symbols` | source symbols that were sent, what is held back of those that were lost |
//! | `repairs` | how repair symbols are made, those that wait to be sent |
//! | `verdicts` | what became of both |

mod repairs;
mod source;
mod symbols;
mod verdicts;

use std::time::Duration;

use fulmar_base::{Instant, Timer};
use fulmar_fec::schedule::{Feedback, LossEstimate, Order, Scheduler, Situation};
use fulmar_wire::{FecParameters, PathId};

use super::{BlockCode, FecCode, FecConfig, FecDialect, FecMode, FecStats};
use crate::log::{FecEvent, LogEvent};
use crate::packet::{FrameWriter, Protection, Protections, SentFrames, SymbolId};

use self::repairs::Repairs;
pub(crate) use self::source::Upcoming;
use self::symbols::SentSymbols;

/// Repair symbols that [`FecConfig::overhead_max`] does not count: as many as the scheduler for ends may order in advance.
const REPAIRS_FREE: u64 = 16;

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
    /// The longest source symbol that the peer takes.
    symbol_max: usize,
    /// Those that were needed so far: one at most for each kind of protection.
    schedulers: Vec<(Protection, Box<dyn Scheduler>)>,
    losses: LossEstimate,
    /// What was sent, until there is a verdict.
    sent: SentSymbols,
    /// What repairs it.
    repairs: Repairs,
    /// When the scheduler is to be asked.
    timer: Timer,
    /// The smoothed round-trip time, as it was told last.
    rtt: Duration,
    /// Whether there was nothing else to send when it was last asked for repair symbols, and no data has left since.
    idle: bool,
    stats: FecStats,
}

/// What is known of the path that symbols take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathFigures {
    /// The smoothed round-trip time.
    pub(crate) smoothed_rtt: Duration,
    /// The smallest round-trip time.
    pub(crate) min_rtt: Duration,
    /// How long a byte takes on the wire, as far as that was seen, in seconds.
    pub(crate) byte_time: f64,
    /// How many packets the congestion window has room for.
    pub(crate) room: u64,
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
            symbol_max,
            schedulers: Vec::new(),
            losses: LossEstimate::default(),
            sent: SentSymbols::default(),
            repairs: Repairs::new(&config, blocks),
            timer: Timer::new(),
            rtt: Duration::ZERO,
            idle: false,
            stats: FecStats::default(),
        }
    }

    pub(super) fn dialect(&self) -> FecDialect {
        FecDialect::of(self.repairs.blocks())
    }

    /// Whether a repair symbol in flight takes the place of a copy of this symbol.
    pub(crate) fn covers(&self, symbol: SymbolId) -> bool {
        self.sent.is_covered(symbol)
    }

    /// Asks the scheduler for repair symbols. `idle` says that the application has nothing to send and the window has room.
    pub(crate) fn schedule(&mut self, now: Instant, idle: bool, path: &PathFigures) {
        self.rtt = path.smoothed_rtt;
        self.idle |= idle;
        if self.sent.holds_any() {
            self.complete(now);
        }
        for index in 0..self.schedulers.len() {
            while !self.repairs.is_full() {
                let situation = self.situation(now, idle, path);
                let (protection, scheduler) = &mut self.schedulers[index];
                let (protection, Some(order)) = (*protection, scheduler.next_order(&situation)) else {
                    break;
                };
                self.obey(&order, Some(protection));
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
        if self.repairs.blocks().is_some() {
            // Blocks that are not full have no repair symbols.
            return false;
        }
        let Some((first, left_on)) = self.sent.first_in_flight() else { return false };
        // What is older than the window cannot be repaired, and what left on another path has a probe timeout of its own.
        if first < self.repairs.oldest() || left_on != path || self.has_repairs() {
            return false;
        }
        let count = (self.sent.end() - first) as u16;
        self.obey(&Order { first, count, repairs: repairs.into() }, None);
        self.has_repairs()
    }

    /// Whether repair symbols wait to be sent.
    pub(crate) fn has_repairs(&self) -> bool {
        self.repairs.waiting() > 0
    }

    /// Whether repair symbols wait to be sent on this path.
    pub(crate) fn has_repairs_for(&self, path: PathId) -> bool {
        self.has_repairs() && self.repairs.path() == path
    }

    /// How long the frame of a repair symbol that waits is at most, in bytes.
    pub(crate) fn repair_len_max(&self) -> usize {
        self.repairs.len_max()
    }

    /// The repair symbols that wait take this path.
    pub(crate) fn take_path(&mut self, path: PathId) {
        self.repairs.take_path(path);
    }

    /// Data is to be sent on the path of the repair symbols that wait. Those for the end of what is sent are dropped: it goes on, and
    /// they are made again at its end. Nor do the copies of what they were to repair wait for them.
    pub(crate) fn yield_to_data(&mut self, now: Instant) {
        let dropped = self.repairs.drop_spare();
        if dropped > 0 {
            self.tell(Feedback::RepairsDropped(dropped));
        }
        if self.sent.holds_any() {
            self.sent.give_up_lacking(now, self.losses.loss_rate());
        }
    }

    /// Makes the repair symbols that lack for the losses known by now. They arrive when copies of what was lost would, are no more
    /// than these, and help for the losses that are not known yet as well. Where other data goes first, the copies do.
    #[cold]
    fn complete(&mut self, now: Instant) {
        if self.has_repairs() {
            return;
        }
        let loss_rate = self.losses.loss_rate();
        let Some(lacking) = self.sent.lacking(loss_rate) else { return };
        if self.may_complete() && lacking.first >= self.repairs.oldest() {
            self.obey(&lacking, None);
        }
        if !self.has_repairs() {
            self.sent.give_up_lacking(now, loss_rate);
        }
    }

    /// Whether repair symbols may take the place of copies. One of XOR repairs nothing where two of those are lost that it is over.
    fn may_complete(&self) -> bool {
        self.idle && self.config.code != FecCode::Xor
    }

    /// How long what is lost waits for a repair symbol that leaves now.
    fn patience(&self) -> Duration {
        let (numerator, denominator) = PATIENCE;
        self.rtt * numerator / denominator
    }

    /// Writes a repair symbol, if there is one and it fits, into a packet of which a full one has `room`.
    pub(crate) fn write(&mut self, now: Instant, room: usize, out: &mut FrameWriter<'_>) {
        let Some((id, bytes)) = self.repairs.write(room, out) else { return };
        out.note(LogEvent::Fec(FecEvent::RepairSent { first: id.first, count: id.count }));
        self.stats.repairs_sent += 1;
        self.stats.repair_bytes_sent += bytes as u64;
        let patience = self.patience();
        self.sent.cover(now, id.first, id.count, patience);
    }

    /// See [`SentSymbols::resend_later`].
    pub(crate) fn resend_later(&mut self, symbol: SymbolId) -> bool {
        self.sent.resend_later(symbol)
    }

    /// What was held back, and is to be sent again now.
    pub(crate) fn take_released(&mut self) -> Vec<Protected> {
        self.sent.take_released()
    }

    /// Gives back the memory of what no repair symbol will be made of any more, once something is known of all that was sent.
    pub(crate) fn rest(&mut self) {
        if self.sent.unresolved() > 0 || self.sent.holds_any() || self.has_repairs() {
            return;
        }
        let needed = self.schedulers.iter().filter_map(|(_, scheduler)| scheduler.first_needed()).min();
        self.repairs.rest(needed.unwrap_or_else(|| self.sent.end()));
        self.sent.forget_resolved(self.repairs.oldest());
        self.sent.rest();
    }

    /// The id of the next source symbol.
    #[cfg(test)]
    pub(super) fn sent_end(&self) -> u64 {
        self.sent.end()
    }

    /// The bytes of what is kept of source symbols and of repair symbols.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.repairs.memory() + self.sent.memory()
    }

    /// When the scheduler is to be asked, or what is held back to be given up, although nothing else happens.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.timer.deadline().into_iter().chain(self.sent.next_timeout()).min()
    }

    /// The time has come; the scheduler is asked when nothing waits to be sent.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        self.timer.take_expired(now);
        self.sent.on_timeout(now);
    }

    pub(super) fn stats(&self) -> FecStats {
        self.stats
    }

    fn situation(&self, now: Instant, idle: bool, path: &PathFigures) -> Situation {
        let end = self.sent.end();
        let first_unresolved = self.sent.first_in_flight().map_or(end, |(id, _)| id);
        let repair_time = match path.byte_time {
            0.0 => Duration::ZERO,
            // A second at most for each byte.
            time => {
                Duration::from_secs_f64(time.min(1.0) * self.repairs.longest_from(first_unresolved) as f64)
            }
        };
        Situation {
            now,
            first_unresolved,
            end,
            unresolved: u16::try_from(self.sent.unresolved()).unwrap_or(u16::MAX),
            idle,
            smoothed_rtt: path.smoothed_rtt,
            min_rtt: path.min_rtt,
            repair_time,
            room: u16::try_from(path.room).unwrap_or(u16::MAX),
        }
    }

    /// Makes the repair symbols of an order, as far as they are affordable and waiting ones leave room. Those that no scheduler has
    /// ordered take the place of data that would be sent.
    fn obey(&mut self, order: &Order, ordered_by: Option<Protection>) {
        let (stats, overhead_max) = (self.stats, self.config.overhead_max);
        self.repairs.obey(order, ordered_by, |waiting| {
            let counted = (stats.repairs_sent + waiting as u64).saturating_sub(REPAIRS_FREE);
            matches!(ordered_by, None | Some(Protection::Constant))
                || counted as f64 <= overhead_max * stats.symbols_sent as f64
        });
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
}

#[cfg(test)]
mod tests;

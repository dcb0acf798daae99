//! Repair symbols: how they are made of the newest source symbols, and those that wait to be sent.

use std::collections::VecDeque;

use fulmar_fec::schedule::Order;
use fulmar_fec::{CauchyKeys, Code, RepairId, SourceWindow, length_to_end};
use fulmar_wire::{BlockRepair, Dialect, FecRepair, FecWindow, Frame, PathId, VarInt};

use super::super::{BlockCode, FecCode, FecConfig};
use crate::packet::{FrameWriter, Protection, SentFrame};

/// Repair symbols that wait to be sent. Beyond, none are made.
const REPAIRS_MAX: usize = 64;

/// The newest source symbols, and the repair symbols made of them.
#[derive(Debug)]
pub(super) struct Repairs {
    code: FecCode,
    /// What the peer decodes in dialect M; `None` in dialect X. It takes the place of `code` then.
    blocks: Option<BlockCode>,
    /// The last window that the peer has told in dialect M.
    peer_window: Option<FecWindow>,
    keys: CauchyKeys,
    next_key: u16,
    window: SourceWindow,
    waiting: VecDeque<Repair>,
    /// The path that they take.
    path: PathId,
}

/// A repair symbol that waits.
#[derive(Debug)]
struct Repair {
    id: RepairId,
    /// Whose scheduler has ordered it; `None` for a probe.
    ordered_by: Option<Protection>,
    symbol: Vec<u8>,
}

impl Repairs {
    /// By the code and the window of the configuration, or in blocks.
    pub(super) fn new(config: &FecConfig, blocks: Option<BlockCode>) -> Self {
        Self {
            code: config.code,
            blocks,
            peer_window: None,
            keys: CauchyKeys::default(),
            next_key: 0,
            window: SourceWindow::new(config.window),
            waiting: VecDeque::new(),
            path: PathId::ZERO,
        }
    }

    /// What the peer decodes in dialect M; `None` in dialect X.
    pub(super) fn blocks(&self) -> Option<BlockCode> {
        self.blocks
    }

    /// Keeps the source symbol with this id, which follows the last one.
    pub(super) fn push(&mut self, id: u64, source: &[u8]) {
        let pushed = self.window.push(source);
        debug_assert_eq!(pushed, Ok(id), "a symbol fits, and ids follow one another");
    }

    /// The id of the oldest source symbol that can be repaired.
    pub(super) fn oldest(&self) -> u64 {
        self.window.ids().start
    }

    /// Gives back the memory of source symbols before this one, and of those that have waited. None wait now.
    pub(super) fn rest(&mut self, needed: u64) {
        self.window.forget_before(needed);
        self.waiting.shrink_to_fit();
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no more can wait.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= REPAIRS_MAX
    }

    /// The path that those that wait take.
    pub(super) fn path(&self) -> PathId {
        self.path
    }

    pub(super) fn take_path(&mut self, path: PathId) {
        self.path = path;
    }

    /// The peer says how many symbols it keeps, in dialect M.
    pub(super) fn on_window(&mut self, window: &FecWindow) {
        if self.peer_window.is_none_or(|last| last.epoch < window.epoch) {
            self.peer_window = Some(*window);
        }
    }

    /// Makes the repair symbols of an order, as long as waiting ones leave room, and so many that wait are affordable.
    pub(super) fn obey(
        &mut self,
        order: &Order,
        ordered_by: Option<Protection>,
        is_affordable: impl Fn(usize) -> bool,
    ) {
        let first = order.first.max(self.oldest());
        let Some(count) = (order.first + u64::from(order.count)).checked_sub(first) else { return };
        // At most the window.
        let count = count as u16;
        if !self.is_decodable(count) {
            return;
        }
        for index in 0..order.repairs {
            if count == 0 || self.is_full() || !is_affordable(self.waiting.len()) {
                return;
            }
            if let Some(id) = self.repair_id(first, count, index, order.repairs) {
                let mut symbol = Vec::new();
                let made = self.window.repair(self.code(), &id, &mut symbol);
                debug_assert_eq!(made, Ok(()), "the symbols are in the window");
                if self.blocks.is_some() {
                    length_to_end(&mut symbol);
                }
                self.waiting.push_back(Repair { id, ordered_by, symbol });
            }
        }
    }

    /// Drops those that are for the time when there is nothing else to send: data goes before them. Returns how many of them
    /// a scheduler has ordered.
    pub(super) fn drop_spare(&mut self) -> u16 {
        let mut dropped = 0;
        self.waiting.retain(|repair| {
            dropped += u16::from(repair.ordered_by == Some(Protection::Tail));
            !matches!(repair.ordered_by, None | Some(Protection::Tail))
        });
        dropped
    }

    /// The bytes of the longest source symbol from this one on.
    pub(super) fn longest_from(&self, first: u64) -> usize {
        self.window.longest_from(first)
    }

    /// The bytes of a frame beside the repair symbol at most.
    pub(super) fn overhead(&self) -> usize {
        match self.blocks {
            None => FecRepair::OVERHEAD_MAX,
            Some(_) => BlockRepair::OVERHEAD_MAX,
        }
    }

    /// How long the frame of one that waits is at most, in bytes.
    pub(super) fn len_max(&self) -> usize {
        let longest = self.waiting.iter().map(|repair| repair.symbol.len()).max().unwrap_or_default();
        longest + self.overhead()
    }

    /// Writes the first that waits, and returns which it was and the length of its symbol, in bytes. One that is too long for this packet waits for one that
    /// begins a batch, as the others are no longer than that, and packets with source symbols are shorter than the path allows. One that
    /// needs more than `room`, that of a full packet, fits no packet any more and is dropped.
    pub(super) fn write(&mut self, room: usize, out: &mut FrameWriter<'_>) -> Option<(RepairId, usize)> {
        while let Some(Repair { id, symbol, .. }) = self.waiting.front() {
            let frame = match self.blocks {
                None => Frame::FecRepair(FecRepair {
                    scheme: self.code as u8,
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
            if out.write(&frame, token) {
                let written = (*id, symbol.len());
                self.waiting.pop_front();
                return Some(written);
            }
            if may_fit {
                return None;
            }
            self.waiting.pop_front();
        }
        None
    }

    fn code(&self) -> &'static dyn Code {
        self.blocks.map_or_else(|| self.code.code(), BlockCode::code)
    }

    /// The bytes of what is kept.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        let waiting = self.waiting.iter().map(|repair| repair.symbol.capacity()).sum::<usize>();
        self.window.memory() + waiting + self.waiting.capacity() * size_of::<Repair>()
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
        match self.code {
            // Each of them is over a part of the window.
            FecCode::Xor => {
                let parts = u64::from(repairs.min(count));
                let bound = |part: u64| first + u64::from(count) * part / parts;
                let part = u64::from(index) % parts;
                let (first, end) = (bound(part), bound(part + 1));
                Some(RepairId { first, count: (end - first) as u16, key: 0 })
            }
            FecCode::ReedSolomon => {
                // A longer window has no other repair symbols than those before: the oldest symbols are left out.
                let end = first + u64::from(count);
                let kept = self.keys.longest(end, count, repairs - index)?;
                self.keys.next(end - u64::from(kept), kept)
            }
            FecCode::Rlc => {
                self.next_key = self.next_key.wrapping_add(1);
                Some(RepairId { first, count, key: self.next_key })
            }
        }
    }
}

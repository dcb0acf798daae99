//! Forward erasure correction: repair symbols replace packets that were lost.
//!
//! The frames of a packet that are protected are a source symbol: a FEC_SID frame in front of them gives it an id. Repair symbols,
//! made of the latest source symbols by an erasure code, travel in FEC_REPAIR frames. The receiver hands the frames of a
//! symbol that it has recovered on as if they had arrived, and reports it in FEC_RECOVERED; the packet stays lost, and
//! congestion control sees that (RFC 9265).
//!
//! | module | what it owns |
//! |---|---|
//! | `michel` | the blocks of dialect M |
//! | `config` | what can be configured, and what is announced |
//! | `sender` | source symbols until they are known to have arrived, repair symbols to be sent |
//! | `receiver` | the decoder, what it has recovered, the reports of that |
//!
//! Each direction is negotiated by itself: an end sends repair symbols if its peer has announced a decoder. Our own dialect (X) is used
//! where both ends have it. In dialect M, that of draft-michel-quic-fec-01, the protected frames are within a SOURCE_SYMBOL frame, and
//! repair symbols (REPAIR) are over blocks of a fixed size. There is no report of what was recovered that all who speak it understand:
//! so none is sent, and what is lost is sent again at once.

mod config;
mod michel;
mod receiver;
mod sender;

use std::sync::Arc;

use fulmar_base::Instant;
use fulmar_wire::{FecParameters, FecRecovered, FecWindow, Frame, PathId, TransportParameters};

pub use config::{FecCode, FecConfig, FecDialects, FecMode, FecSettingError};
pub(crate) use michel::BlockCode;
#[cfg(test)]
pub(crate) use michel::vectors as michel_vectors;
pub(crate) use receiver::FecReceiver;
pub(crate) use sender::{FecSender, PathFigures, Protected, Upcoming};

use crate::memory::{Reservation, SharedMemory};
use crate::packet::FrameWriter;

/// What erasure correction has done on a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FecStats {
    /// Source symbols sent: packets with protected frames.
    pub symbols_sent: u64,
    /// Repair symbols sent.
    pub repairs_sent: u64,
    /// Bytes of the repair symbols sent.
    pub repair_bytes_sent: u64,
    /// Repair symbols that arrived.
    pub repairs_acked: u64,
    /// Repair symbols whose packets were lost, and have not arrived since.
    pub repairs_lost: u64,
    /// Source symbols whose packets were lost.
    pub symbols_lost: u64,
    /// Source symbols that the peer says it has recovered.
    pub symbols_recovered: u64,
    /// Those of them that were not sent again before: retransmissions that were spared.
    pub retransmissions_spared: u64,
    /// Source symbols that this end has recovered.
    pub recovered: u64,
    /// Repair symbols received.
    pub repairs_received: u64,
    /// Repair symbols received that said nothing new.
    pub repairs_redundant: u64,
    /// Repair symbols received too late, or dropped because decoding them would have been too much work.
    pub repairs_dropped: u64,
    /// The bytes that the decoder has multiplied.
    pub decoding_work: u64,
    /// Whether symbols that contradict one another have switched the decoder off.
    pub decoder_off: bool,
}

/// How erasure correction is spoken in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FecDialect {
    /// Our own.
    X,
    /// That of draft-michel-quic-fec-01.
    M,
}

impl FecDialect {
    fn of(blocks: Option<BlockCode>) -> Self {
        if blocks.is_some() { Self::M } else { Self::X }
    }
}

/// The extension in a connection in which at least one of the directions has it.
#[derive(Debug)]
pub(crate) struct Fec {
    /// If the peer has a decoder, and this end is to make use of it.
    pub(crate) sender: Option<FecSender>,
    /// If this end has announced a decoder.
    pub(crate) receiver: Option<FecReceiver>,
}

impl Fec {
    /// The extension, for an end with this configuration whose peer has announced this. The decoder has its memory from `memory`.
    pub(crate) fn new(local: &FecConfig, peer: &TransportParameters, memory: Arc<SharedMemory>) -> Self {
        let memory = Reservation::new(memory);
        let x = peer.fec.as_ref().filter(|peer| peer.version == FecParameters::VERSION);
        if let Some(x) = x.filter(|_| local.dialects.has_x()) {
            let (sender, receiver) = (FecSender::new(local, x), FecReceiver::new(local, None, memory));
            return Self { sender, receiver: Some(receiver) };
        }
        // A peer that speaks dialect M alone, or none; then our own is what it would have to learn.
        let blocks = local.block_code().filter(|_| peer.enable_fec == 1 || !local.dialects.has_x());
        let decoder = BlockCode::of(peer.decoder_fec_scheme);
        let decoder = decoder.filter(|_| blocks.is_some() && peer.enable_fec == 1);
        Self {
            sender: decoder.map(|decoder| FecSender::in_blocks(local, decoder)),
            receiver: Some(FecReceiver::new(local, blocks, memory)),
        }
    }

    /// Whether this end understands this dialect.
    pub(crate) fn speaks(&self, dialect: FecDialect) -> bool {
        self.receiver.as_ref().is_some_and(|receiver| receiver.dialect() == dialect)
    }

    /// The peer says how many symbols it keeps. An end that sends no repair symbols has no use for that.
    pub(crate) fn on_window(&mut self, window: &FecWindow) {
        if let Some(sender) = self.sender_of(FecDialect::M) {
            sender.on_window(window);
        }
    }

    /// What makes repair symbols, if this end does so in this dialect.
    pub(crate) fn sender_of(&mut self, dialect: FecDialect) -> Option<&mut FecSender> {
        self.sender.as_mut().filter(|sender| sender.dialect() == dialect)
    }

    /// What recovers lost packets, if this end does so in this dialect.
    pub(crate) fn receiver_of(&mut self, dialect: FecDialect) -> Option<&mut FecReceiver> {
        self.receiver.as_mut().filter(|receiver| receiver.dialect() == dialect)
    }

    /// Whether there is a repair symbol or a report to be sent on a path.
    pub(crate) fn wants_to_send(&self, path: PathId) -> bool {
        self.sender.as_ref().is_some_and(|sender| sender.has_repairs_for(path))
            || self.receiver.as_ref().is_some_and(FecReceiver::has_reports)
    }

    /// Writes the reports that wait.
    pub(crate) fn write_reports(&mut self, out: &mut FrameWriter<'_>) {
        if let Some(receiver) = &mut self.receiver {
            receiver.write(out);
        }
    }

    /// When a repair symbol is to be sent although nothing else happens.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.sender.as_ref()?.next_timeout()
    }

    /// A report was lost.
    pub(crate) fn on_report_lost(&mut self, report: FecRecovered) {
        if let Some(receiver) = &mut self.receiver {
            receiver.on_report_lost(report);
        }
    }

    /// What was done so far.
    pub(crate) fn stats(&self) -> FecStats {
        let mut stats = self.sender.as_ref().map_or_else(FecStats::default, FecSender::stats);
        if let Some(receiver) = &self.receiver {
            receiver.add_stats(&mut stats);
        }
        stats
    }
}

/// Whether a source symbol may have this frame. What is about packets and addresses means nothing in another packet, and the
/// other frames are rare and have owners who say them again.
pub(crate) fn may_be_protected(frame: &Frame<'_>) -> bool {
    matches!(
        frame,
        Frame::Stream(_)
            | Frame::Datagram(_)
            | Frame::ResetStream(_)
            | Frame::ResetStreamAt(_)
            | Frame::StopSending(_)
            | Frame::MaxData(_)
            | Frame::MaxStreamData(_)
            | Frame::MaxStreams(_)
            | Frame::DataBlocked(_)
            | Frame::StreamDataBlocked(_)
            | Frame::StreamsBlocked(_)
    )
}

/// The id with these low 16 bits that is nearest to `expected`.
fn restore_id(low: u16, expected: u64) -> u64 {
    let ahead = low.wrapping_sub(expected as u16);
    let candidate = expected + u64::from(ahead);
    // In the upper half it is behind.
    if ahead >= 1 << 15 { candidate.checked_sub(1 << 16).unwrap_or(candidate) } else { candidate }
}

#[cfg(test)]
mod tests;

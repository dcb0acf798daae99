//! The ordered bytes of the TLS handshake at one encryption level (RFC 9000 §19.6).

use fulmar_base::RangeSet;
use fulmar_wire::{Crypto, FrameType, TransportErrorCode};

use crate::error::TransportError;
use crate::packet::FrameWriter;

/// How far ahead of what TLS has read a peer may send, in bytes: the longest message that TLS takes. RFC 9000 §7.5 asks for at
/// least 4096; a chain of large certificates with post-quantum keys needs more.
pub(in crate::connection) const CRYPTO_BUFFER_MAX: u64 = MESSAGE_HEADER_LEN as u64 + 0xffff;

/// The type and the length of a message (RFC 8446 §4).
const MESSAGE_HEADER_LEN: usize = 4;

/// How many gaps there may be in what was received: a handshake that is lost and reordered has a few dozen, and
/// each costs time.
const CRYPTO_GAPS_MAX: usize = 256;

/// Both directions of the handshake's bytes at one level.
///
/// What is received is kept in one buffer of at most [`CRYPTO_BUFFER_MAX`] bytes, whatever the peer sends; what
/// is sent is kept until all of it is acknowledged, because a handshake is short.
#[derive(Debug, Default)]
pub(in crate::connection) struct CryptoStream {
    /// Received bytes from `read` on; gaps hold zeros.
    incoming: Vec<u8>,
    received: RangeSet,
    /// How many bytes TLS has taken.
    read: u64,
    /// What was written from `forgotten` on.
    outgoing: Vec<u8>,
    /// How many bytes the peer has, so that they were forgotten.
    forgotten: usize,
    /// How many bytes were sent at least once, the forgotten ones included.
    sent: usize,
    lost: RangeSet,
    acked: RangeSet,
}

/// How far a stream has come of which nothing else is kept: TLS has taken all that came, and the peer has all that was said.
#[derive(Debug, Default, Clone, Copy)]
pub(in crate::connection) struct Settled {
    read: u64,
    sent: usize,
}

impl Settled {
    /// How many bytes TLS has taken.
    #[cfg(test)]
    pub(in crate::connection) fn read(self) -> u64 {
        self.read
    }
}

impl CryptoStream {
    /// Goes on where a stream was that has [`settled`](Self::settled).
    pub(in crate::connection) fn from_settled(Settled { read, sent }: Settled) -> Self {
        let mut acked = RangeSet::new();
        acked.insert(0..sent as u64);
        Self { read, sent, forgotten: sent, acked, ..Self::default() }
    }

    /// How far it has come, if nothing else is to be kept.
    pub(in crate::connection) fn settled(&self) -> Option<Settled> {
        let Self { read, sent, .. } = *self;
        let is_settled = !self.has_unread() && sent == self.end() && !self.has_sent_unacked();
        is_settled.then_some(Settled { read, sent })
    }

    /// Refuses a frame whose bytes do not follow what TLS has taken, where none are kept that would have to wait.
    pub(in crate::connection) fn refuse_gap(&self, frame: &Crypto<'_>) -> Result<(), TransportError> {
        if frame.offset.get() > self.read {
            return Err(exceeded("handshake data behind a gap after the handshake"));
        }
        Ok(())
    }

    /// Takes a frame.
    pub(in crate::connection) fn on_frame(&mut self, frame: &Crypto<'_>) -> Result<(), TransportError> {
        let start = frame.offset.get();
        let end = start + frame.data.len() as u64;
        if end <= self.read {
            return Ok(());
        }
        if end - self.read > CRYPTO_BUFFER_MAX {
            return Err(exceeded("handshake data too far ahead"));
        }
        if frame.data.is_empty() {
            return Ok(());
        }
        // What TLS has taken is cut off the front.
        let skip = self.read.saturating_sub(start) as usize;
        let at = (start.max(self.read) - self.read) as usize;
        let data = &frame.data[skip..];
        if self.incoming.len() < at + data.len() {
            self.incoming.resize(at + data.len(), 0);
        }
        self.incoming[at..at + data.len()].copy_from_slice(data);
        self.received.insert(start.max(self.read)..end);
        if self.received.len() > CRYPTO_GAPS_MAX {
            return Err(exceeded("handshake data in too many pieces"));
        }
        Ok(())
    }

    /// Takes the bytes that are next in order out, if there are any.
    fn take_in_order(&mut self) -> Option<Vec<u8>> {
        let first = self.received.first().filter(|range| range.start == self.read)?;
        self.received.pop_first();
        let len = (first.end - first.start) as usize;
        let rest = self.incoming.split_off(len);
        self.read = first.end;
        Some(std::mem::replace(&mut self.incoming, rest))
    }

    /// Takes the next message of TLS out, once all of it is there (RFC 8446 §4). Of one that is longer than may be kept, TLS gets
    /// what has come, and refuses it.
    pub(in crate::connection) fn take_message(&mut self) -> Option<Vec<u8>> {
        let bytes = self.in_order();
        let [_, a, b, c, ..] = *bytes else { return None };
        let len = MESSAGE_HEADER_LEN + u32::from_be_bytes([0, a, b, c]) as usize;
        if len as u64 > CRYPTO_BUFFER_MAX {
            return self.take_in_order();
        }
        if bytes.len() < len {
            return None;
        }
        let rest = self.incoming.split_off(len);
        self.received.remove(self.read..self.read + len as u64);
        self.read += len as u64;
        Some(std::mem::replace(&mut self.incoming, rest))
    }

    /// Takes back what is still to be sent.
    #[cfg(test)]
    pub(in crate::connection) fn take_outgoing(&mut self) -> Vec<u8> {
        assert_eq!(self.sent, 0, "some of it has left");
        std::mem::take(&mut self.outgoing)
    }

    /// The bytes that are next in order, which stay.
    pub(in crate::connection) fn in_order(&self) -> &[u8] {
        match self.received.first() {
            Some(first) if first.start == self.read => &self.incoming[..(first.end - first.start) as usize],
            _ => &[],
        }
    }

    /// How many bytes TLS has taken.
    #[cfg(test)]
    pub(in crate::connection) fn read(&self) -> u64 {
        self.read
    }

    /// Whether bytes wait that TLS has not taken.
    pub(in crate::connection) fn has_unread(&self) -> bool {
        !self.received.is_empty()
    }

    /// The bytes that wait and have the lowest offset; there may be a gap before them.
    pub(in crate::connection) fn first_unread(&self) -> &[u8] {
        let at = |offset: u64| (offset - self.read) as usize;
        self.received.first().map_or(&[], |first| &self.incoming[at(first.start)..at(first.end)])
    }

    /// Adds bytes to send.
    pub(in crate::connection) fn send(&mut self, bytes: &[u8]) {
        self.outgoing.extend_from_slice(bytes);
    }

    /// Whether there are bytes to send for the first time or again.
    pub(in crate::connection) fn wants_to_send(&self) -> bool {
        self.sent < self.end() || !self.lost.is_empty()
    }

    /// How many bytes were written.
    fn end(&self) -> usize {
        self.forgotten + self.outgoing.len()
    }

    /// Writes what was lost, then what is new.
    pub(in crate::connection) fn write(&mut self, out: &mut FrameWriter<'_>) {
        while let Some(range) = self.lost.first() {
            let [start, end] = [range.start, range.end].map(|at| at as usize - self.forgotten);
            let data = &self.outgoing[start..end];
            let Some(len) = write_at(out, range.start, data) else { return };
            self.lost.remove(range.start..range.start + len as u64);
        }
        while self.sent < self.end() {
            let data = &self.outgoing[self.sent - self.forgotten..];
            let Some(len) = write_at(out, self.sent as u64, data) else { return };
            self.sent += len;
        }
    }

    /// The peer has these bytes.
    pub(in crate::connection) fn on_acked(&mut self, offset: u64, len: u32) {
        let range = offset..offset + u64::from(len);
        self.acked.insert(range.clone());
        self.lost.remove(range);
        if self.sent == self.end() && !self.has_sent_unacked() {
            self.outgoing = Vec::new();
            self.forgotten = self.sent;
        }
    }

    /// These bytes were lost, or a probe needs something to say: they are sent again, unless they have arrived.
    pub(in crate::connection) fn on_lost(&mut self, offset: u64, len: u32) {
        self.lost.insert(offset..offset + u64::from(len));
        for acked in self.acked.iter() {
            self.lost.remove(acked);
        }
    }

    /// Whether something was sent and not acknowledged.
    pub(in crate::connection) fn has_sent_unacked(&self) -> bool {
        self.sent > 0 && !self.acked.contains_range(0..self.sent as u64)
    }

    /// Gives back the memory that nothing needs while the connection rests.
    pub(in crate::connection) fn rest(&mut self) {
        self.incoming.shrink_to_fit();
        self.received.shrink();
        self.outgoing.shrink_to_fit();
        self.lost.shrink();
        self.acked.shrink();
    }

    /// Sends everything again that has not arrived: a Retry or a probe asks for it.
    pub(in crate::connection) fn resend_unacked(&mut self) {
        self.on_lost(0, self.sent as u32);
    }
}

fn exceeded(reason: &'static str) -> TransportError {
    TransportError::new(TransportErrorCode::CRYPTO_BUFFER_EXCEEDED, reason).with_frame(FrameType::CRYPTO)
}

fn write_at(out: &mut FrameWriter<'_>, offset: u64, data: &[u8]) -> Option<usize> {
    out.write_crypto(offset, data.len(), |room| room.copy_from_slice(&data[..room.len()]))
}

#[cfg(test)]
mod tests {
    use fulmar_wire::VarInt;

    use super::*;

    fn frame(offset: u32, data: &[u8]) -> Crypto<'_> {
        Crypto { offset: VarInt::from_u32(offset), data }
    }

    #[test]
    fn bytes_come_out_in_order_whatever_order_they_came_in() {
        let mut stream = CryptoStream::default();
        stream.on_frame(&frame(4, b"4567")).unwrap();
        assert_eq!(stream.take_in_order(), None);
        stream.on_frame(&frame(2, b"2345")).unwrap();
        stream.on_frame(&frame(0, b"012")).unwrap();
        assert_eq!(stream.take_in_order().unwrap(), b"01234567");
        stream.on_frame(&frame(6, b"6789")).unwrap();
        assert_eq!(stream.take_in_order().unwrap(), b"89");
        assert!(!stream.has_unread());
    }

    #[test]
    fn messages_come_out_one_by_one_and_whole() {
        let mut stream = CryptoStream::default();
        stream.on_frame(&frame(0, &[2, 0, 0])).unwrap();
        assert_eq!(stream.take_message(), None);
        stream.on_frame(&frame(3, &[1, 7, 8, 0, 0, 0, 9, 0])).unwrap();
        assert_eq!(stream.take_message().unwrap(), [2, 0, 0, 1, 7]);
        assert_eq!(stream.take_message().unwrap(), [8, 0, 0, 0]);
        assert!(stream.take_message().is_none() && stream.has_unread());
        stream.on_frame(&frame(11, &[0, 1])).unwrap();
        assert_eq!(stream.take_message(), None);
        stream.on_frame(&frame(13, &[5])).unwrap();
        assert_eq!(stream.take_message().unwrap(), [9, 0, 0, 1, 5]);
        assert!(!stream.has_unread());
        // Longer than may be kept.
        stream.on_frame(&frame(14, &[2, 1, 0, 0, 3])).unwrap();
        assert_eq!(stream.take_message().unwrap(), [2, 1, 0, 0, 3]);
    }

    #[test]
    fn a_flood_far_ahead_is_refused_and_memory_is_bounded() {
        let mut stream = CryptoStream::default();
        let last = CRYPTO_BUFFER_MAX as u32 - 1;
        stream.on_frame(&frame(last, b"x")).unwrap();
        assert_eq!(stream.incoming.len() as u64, CRYPTO_BUFFER_MAX);
        let error = stream.on_frame(&frame(last + 1, b"x")).unwrap_err();
        assert_eq!(error.code, TransportErrorCode::CRYPTO_BUFFER_EXCEEDED);
    }

    #[test]
    fn a_frame_without_bytes_takes_no_memory() {
        let mut stream = CryptoStream::default();
        stream.on_frame(&frame(60_000, b"")).unwrap();
        assert_eq!((stream.incoming.capacity(), stream.has_unread()), (0, false));
    }

    #[test]
    fn a_handshake_in_very_many_pieces_is_refused() {
        let mut stream = CryptoStream::default();
        let pieces = (1..CRYPTO_BUFFER_MAX as u32).rev().step_by(2);
        let taken = pieces.take_while(|offset| stream.on_frame(&frame(*offset, b"x")).is_ok()).count();
        assert_eq!(taken, CRYPTO_GAPS_MAX);
    }

    #[test]
    fn what_was_acknowledged_is_not_sent_again() {
        let mut stream = CryptoStream::default();
        stream.send(&[7; 100]);
        stream.sent = 100;
        stream.on_acked(20, 30);
        stream.on_lost(0, 100);
        assert_eq!(stream.lost.iter().collect::<Vec<_>>(), [0..20, 50..100]);
    }

    #[test]
    fn a_stream_that_was_let_go_goes_on_where_it_was() {
        let mut stream = CryptoStream::default();
        stream.on_frame(&frame(0, &[8, 0, 0, 0, 9])).unwrap();
        assert!(stream.settled().is_none(), "something waits for TLS");
        stream.take_in_order().unwrap();
        stream.send(&[7; 100]);
        assert!(stream.settled().is_none(), "something is to be sent");
        stream.sent = 100;
        stream.on_acked(0, 99);
        assert!(stream.settled().is_none(), "something is not acknowledged");
        stream.on_acked(99, 1);

        let mut stream = CryptoStream::from_settled(stream.settled().unwrap());
        stream.on_lost(0, 100);
        assert!(!stream.wants_to_send() && !stream.has_sent_unacked());
        stream.on_frame(&frame(0, &[8, 0, 0, 0, 9])).unwrap();
        assert!(!stream.has_unread(), "TLS has taken that");
        stream.on_frame(&frame(5, &[1, 2])).unwrap();
        assert_eq!(stream.take_in_order().unwrap(), [1, 2]);
        stream.send(&[6; 10]);
        stream.sent = 110;
        stream.on_lost(100, 10);
        assert!(stream.lost.first() == Some(100..110) && stream.lost.len() == 1);
    }

    #[test]
    fn what_the_peer_has_takes_no_memory() {
        let mut stream = CryptoStream::default();
        stream.send(&[7; 100]);
        stream.sent = 100;
        stream.on_acked(50, 50);
        assert_eq!(stream.outgoing.len(), 100, "the beginning may have to be sent again");
        stream.on_acked(0, 50);
        assert_eq!(stream.outgoing.capacity(), 0);
        stream.on_lost(0, 100);
        assert!(!stream.wants_to_send());
        // What follows has the offsets that follow.
        stream.send(&[8; 10]);
        assert!(stream.wants_to_send() && !stream.has_sent_unacked());
        stream.sent = 110;
        stream.on_lost(100, 10);
        assert!(stream.lost.first() == Some(100..110) && stream.lost.len() == 1);
        assert_eq!(stream.outgoing[stream.lost.first().unwrap().start as usize - stream.forgotten], 8);
    }
}

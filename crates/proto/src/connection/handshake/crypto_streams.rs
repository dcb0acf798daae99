//! The bytes of the TLS handshake at each encryption level, while there is something to keep of them.

use super::crypto_stream::{CryptoStream, Settled};
use crate::crypto::Level;
use crate::packet::FrameWriter;

/// One stream for each [`Level`], while there is something to keep in it.
#[derive(Debug, Default)]
pub(in crate::connection) struct CryptoStreams {
    streams: [Option<Box<CryptoStream>>; 3],
    /// Where the stream of 1-RTT packets goes on if there is none: the others are never used again once they are gone.
    settled: Settled,
}

impl CryptoStreams {
    pub(super) fn get(&self, level: Level) -> Option<&CryptoStream> {
        self.streams[level as usize].as_deref()
    }

    pub(super) fn get_mut(&mut self, level: Level) -> &mut CryptoStream {
        let settled = if level == Level::OneRtt { self.settled } else { Settled::default() };
        self.streams[level as usize].get_or_insert_with(|| Box::new(CryptoStream::from_settled(settled)))
    }

    /// Gives back the memory that nothing needs while the connection rests.
    pub(super) fn rest(&mut self) {
        self.streams.iter_mut().flatten().for_each(|stream| stream.rest());
        if let Some(settled) = self.get(Level::OneRtt).and_then(CryptoStream::settled) {
            self.settled = settled;
            self.discard(Level::OneRtt);
        }
    }

    /// Whether there are handshake bytes to send at a level.
    pub(in crate::connection) fn wants_to_send(&self, level: Level) -> bool {
        self.get(level).is_some_and(CryptoStream::wants_to_send)
    }

    /// Writes handshake bytes of a level.
    pub(in crate::connection) fn write(&mut self, level: Level, out: &mut FrameWriter<'_>) {
        self.get_mut(level).write(out);
    }

    pub(in crate::connection) fn on_acked(&mut self, level: Level, offset: u64, len: u32) {
        self.get_mut(level).on_acked(offset, len);
    }

    pub(in crate::connection) fn on_lost(&mut self, level: Level, offset: u64, len: u32) {
        self.get_mut(level).on_lost(offset, len);
    }

    /// Whether something of a level has left that the peer has not acknowledged.
    pub(in crate::connection) fn has_sent_unacked(&self, level: Level) -> bool {
        self.get(level).is_some_and(CryptoStream::has_sent_unacked)
    }

    /// What has left and the peer has not acknowledged is sent again; returns whether there is anything.
    pub(in crate::connection) fn repeat(&mut self, level: Level) -> bool {
        let stream = self.get_mut(level);
        stream.resend_unacked();
        stream.has_sent_unacked()
    }

    /// The keys of a level were discarded: nothing of it is sent or received any more (RFC 9001 §4.9).
    pub(in crate::connection) fn discard(&mut self, level: Level) {
        self.streams[level as usize] = None;
    }

    /// Makes a server say in Initial packets what belongs into Handshake packets.
    #[cfg(test)]
    pub(in crate::connection) fn misplace_flight(&mut self) {
        let bytes = self.get_mut(Level::Handshake).take_outgoing();
        self.get_mut(Level::Initial).send(&bytes);
    }

    /// Says `bytes` behind what TLS has said at a level.
    #[cfg(test)]
    pub(in crate::connection) fn say(&mut self, level: Level, bytes: &[u8]) {
        self.get_mut(level).send(bytes);
    }

    /// How many 1-RTT handshake bytes of the peer TLS has taken.
    #[cfg(test)]
    pub(in crate::connection) fn read_of_one_rtt(&self) -> u64 {
        self.get(Level::OneRtt).map_or(self.settled.read(), CryptoStream::read)
    }
}

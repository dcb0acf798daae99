//! Packets that came before their keys (RFC 9001 §5.7).

use bytes::BytesMut;
use fulmar_wire::ProtectedPacket;

use crate::crypto::Level;
use crate::datagram::Ecn;

/// How many packets wait for keys; later ones are dropped, and their sender repeats them.
const PACKETS_MAX: usize = 32;

/// How many bytes they have together: as many packets as that of an ordinary size. Whoever sends datagrams of 64 KB makes a
/// server that knows nothing of it keep no more than others do.
const BYTES_MAX: usize = 64 * 1024;

/// A packet that waits.
#[derive(Debug)]
pub(in crate::connection) struct Waiting {
    pub(in crate::connection) level: Level,
    pub(in crate::connection) packet: ProtectedPacket,
    pub(in crate::connection) bytes: BytesMut,
    pub(in crate::connection) ecn: Ecn,
}

/// The packets that wait for keys.
#[derive(Debug, Default)]
pub(in crate::connection) struct Undecryptable {
    packets: Vec<Waiting>,
    bytes: usize,
}

impl Undecryptable {
    /// Keeps a packet, if there is room: a copy, because the buffer that it arrived in may be much larger.
    pub(in crate::connection) fn keep(
        &mut self,
        level: Level,
        packet: ProtectedPacket,
        bytes: &[u8],
        ecn: Ecn,
    ) -> bool {
        let room = self.packets.len() < PACKETS_MAX && self.bytes + bytes.len() <= BYTES_MAX;
        if room {
            self.bytes += bytes.len();
            self.packets.push(Waiting { level, packet, bytes: BytesMut::from(bytes), ecn });
        }
        room
    }

    /// Takes the packets out whose level is at most `level`, in the order in which they came.
    pub(in crate::connection) fn take(&mut self, level: Level) -> Vec<Waiting> {
        if self.packets.is_empty() {
            return Vec::new();
        }
        let (ready, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.packets).into_iter().partition(|packet| packet.level <= level);
        self.packets = waiting;
        self.bytes = self.packets.iter().map(|packet| packet.bytes.len()).sum();
        ready
    }

    pub(in crate::connection) fn clear(&mut self) {
        self.packets.clear();
        self.bytes = 0;
    }
}

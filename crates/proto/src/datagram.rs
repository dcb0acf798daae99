//! What crosses the border of the core: UDP datagrams in, trains of datagrams out.

use std::net::{IpAddr, SocketAddr};

use bytes::BytesMut;

use crate::packed::packed;

/// Names a socket of this end, for those who have several: one for each network interface, say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SocketId(pub u16);

packed!(SocketId);

/// The addresses of a network path, as far as this end knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FourTuple {
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// The local address that the datagram was sent to or is to be sent from, where the socket tells.
    pub local_ip: Option<IpAddr>,
    /// The socket that it arrived at, or is to leave from.
    pub socket: SocketId,
}

packed!(FourTuple { remote, local_ip, socket });

impl FourTuple {
    /// Addresses at the only socket of this end, or the first of several.
    pub fn new(remote: SocketAddr, local_ip: Option<IpAddr>) -> Self {
        Self { remote, local_ip, socket: SocketId::default() }
    }

    /// Whether a datagram that arrived with the addresses `arrived` has taken this path. Where this end left the
    /// choice of its address to the kernel, every address fits.
    pub(crate) fn is_taken_by(&self, arrived: &Self) -> bool {
        self.remote == arrived.remote
            && self.socket == arrived.socket
            && (self.local_ip == arrived.local_ip || self.local_ip.is_none() || arrived.local_ip.is_none())
    }
}

/// The ECN codepoint of an IP packet (RFC 3168 §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Ecn {
    /// The sender takes no part in ECN.
    #[default]
    NotEct = 0,
    /// ECN-capable, codepoint ECT(1).
    Ect1 = 1,
    /// ECN-capable, codepoint ECT(0).
    Ect0 = 2,
    /// Congestion was experienced.
    Ce = 3,
}

impl Ecn {
    /// The codepoint in the two low bits of `bits`.
    pub fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The codepoint as two bits.
    pub fn bits(self) -> u8 {
        self as u8
    }
}

/// A UDP datagram that arrived.
#[derive(Debug)]
pub struct Datagram {
    /// Where it came from and where it arrived.
    pub addrs: FourTuple,
    /// The ECN codepoint it arrived with.
    pub ecn: Ecn,
    /// The UDP payload; packets in it are opened in place.
    pub payload: BytesMut,
}

/// A train of datagrams to send: the first `len` bytes of the [`TransmitBatch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Where to send it, from where and by which socket.
    pub addrs: FourTuple,
    /// The ECN codepoint to send it with.
    pub ecn: Ecn,
    /// Bytes in the batch.
    pub len: usize,
    /// The size of each datagram but the last, if there are several.
    pub segment_size: Option<usize>,
}

/// The buffer that packets are written to, sealed in, and sent from, as one train of equal datagrams.
///
/// It is allocated once and reused for every transmission.
#[derive(Debug)]
pub struct TransmitBatch {
    buffer: Box<[u8]>,
    len: usize,
    max_segments: usize,
}

/// The largest train: what one UDP send with segmentation offload takes (an IP packet of 64 KiB).
const TRAIN_BYTES_MAX: usize = 65_000;

impl TransmitBatch {
    /// A batch for at most `max_segments` datagrams at a time; 1 where the kernel cannot segment.
    pub fn new(max_segments: usize) -> Self {
        let buffer = vec![0; TRAIN_BYTES_MAX].into_boxed_slice();
        Self { buffer, len: 0, max_segments: max_segments.max(1) }
    }

    /// Changes how many datagrams a train may have.
    pub fn set_max_segments(&mut self, max_segments: usize) {
        self.max_segments = max_segments.max(1);
    }

    /// How many datagrams a train may have.
    pub fn max_segments(&self) -> usize {
        self.max_segments
    }

    /// The bytes of the last transmission.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// All of the room, to write a new transmission, whose length then goes to [`TransmitBatch::set_len`].
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.len = 0;
        &mut self.buffer
    }

    /// The transmission has `len` bytes.
    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codepoint_is_the_two_low_bits_of_the_traffic_class() {
        for codepoint in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
            assert_eq!(Ecn::from_bits(codepoint.bits()), codepoint);
            assert_eq!(Ecn::from_bits(0b1011_1000 | codepoint.bits()), codepoint);
        }
    }

    #[test]
    fn a_datagram_at_another_socket_has_taken_another_path() {
        let tuple = FourTuple::new(([10, 0, 0, 1], 443).into(), None);
        let arrived = FourTuple { local_ip: Some([10, 0, 0, 2].into()), ..tuple };
        assert!(tuple.is_taken_by(&arrived));
        assert!(!tuple.is_taken_by(&FourTuple { socket: SocketId(1), ..arrived }));
    }
}

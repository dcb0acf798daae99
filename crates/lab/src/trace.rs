//! A fingerprint of everything that went over the simulated network.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use fulmar_base::Instant;
use fulmar_sim::{Delivery, Packet};
use sha2::{Digest, Sha256};

/// A running SHA-256 over each packet that was sent and each that was delivered.
///
/// Two runs with the same [`TraceHash`] have sent the same bytes at the same nanoseconds. A packet is hashed
/// with its payload when it is sent; of a delivery only time, addresses and length are hashed, since what a
/// link does to a payload follows from the seed.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    hasher: Sha256,
    packets: u64,
}

/// The fingerprint of a run. It prints as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TraceHash(pub [u8; 32]);

/// What happened to a packet, as the first byte of its record.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum Record {
    Sent = 1,
    Delivered = 2,
}

impl Trace {
    /// Records a packet that a node sends at `at`.
    pub fn on_sent(&mut self, at: Instant, packet: &Packet) {
        self.record(Record::Sent, at, packet);
        self.hasher.update(&packet.payload);
    }

    /// Records a packet that reached its node.
    pub fn on_delivered(&mut self, delivery: &Delivery) {
        self.record(Record::Delivered, delivery.at, &delivery.packet);
    }

    /// Packets recorded so far, sent and delivered.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// The fingerprint of what was recorded.
    pub fn finish(self) -> TraceHash {
        TraceHash(self.hasher.finalize().into())
    }

    /// Hashes everything but the payload. All fields have a fixed width, so that no two traces look alike.
    fn record(&mut self, record: Record, at: Instant, packet: &Packet) {
        let mut header = [0; 56];
        header[0] = record as u8;
        header[1] = packet.ecn.bits();
        header[2..10].copy_from_slice(&at.as_nanos().to_be_bytes());
        header[10..29].copy_from_slice(&address_bytes(packet.source));
        header[29..48].copy_from_slice(&address_bytes(packet.destination));
        header[48..56].copy_from_slice(&packet.size().to_be_bytes());
        self.hasher.update(header);
        self.packets += 1;
    }
}

/// Family, address (an IPv4 one padded with zeroes) and port.
fn address_bytes(address: SocketAddr) -> [u8; 19] {
    let mut bytes = [0; 19];
    match address.ip() {
        IpAddr::V4(ip) => {
            bytes[0] = 4;
            bytes[1..5].copy_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            bytes[0] = 6;
            bytes[1..17].copy_from_slice(&ip.octets());
        }
    }
    bytes[17..].copy_from_slice(&address.port().to_be_bytes());
    bytes
}

impl fmt::Display for TraceHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TraceHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;

//! The little of IP and UDP that a router and a NAT look at.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

const UDP: u8 = 17;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const UDP_HEADER: usize = 8;

/// Where the parts of an IP packet are. Fragments and extension headers are not looked into: such a packet counts as one without
/// UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IpPacket {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// The two ECN bits.
    pub(crate) ecn: u8,
    /// Where the UDP header begins, and where the datagram ends.
    udp: Option<(usize, usize)>,
    ports: (u16, u16),
}

impl IpPacket {
    /// Reads the headers; `None` if it is no IP packet.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes.first()? >> 4 {
            4 => Self::parse_v4(bytes),
            6 => Self::parse_v6(bytes),
            _ => None,
        }
    }

    fn parse_v4(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..IPV4_HEADER)?;
        let header_len = usize::from(header[0] & 0x0f) * 4;
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
        let address = |at: usize| -> Option<IpAddr> {
            Some(IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(&header[at..at + 4]).ok()?)))
        };
        let packet = Self {
            source: address(12)?,
            destination: address(16)?,
            ecn: header[1] & 3,
            udp: None,
            ports: (0, 0),
        };
        Some(if header[9] == UDP && fragment == 0 { packet.with_udp(bytes, header_len) } else { packet })
    }

    fn parse_v6(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..IPV6_HEADER)?;
        let address = |at: usize| -> Option<IpAddr> {
            Some(IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&header[at..at + 16]).ok()?)))
        };
        let packet = Self {
            source: address(8)?,
            destination: address(24)?,
            ecn: header[1] >> 4 & 3,
            udp: None,
            ports: (0, 0),
        };
        Some(if header[6] == UDP { packet.with_udp(bytes, IPV6_HEADER) } else { packet })
    }

    fn with_udp(mut self, bytes: &[u8], at: usize) -> Self {
        let Some(header) = bytes.get(at..at + UDP_HEADER) else { return self };
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let end = at + usize::from(word(4));
        if end >= at + UDP_HEADER && end <= bytes.len() {
            self.udp = Some((at, end));
            self.ports = (word(0), word(2));
        }
        self
    }

    /// Whether it is a UDP datagram.
    pub(crate) fn is_udp(&self) -> bool {
        self.udp.is_some()
    }

    /// Where the UDP payload is.
    pub(crate) fn payload(&self) -> Option<Range<usize>> {
        self.udp.map(|(start, end)| start + UDP_HEADER..end)
    }

    /// The source, with port 0 where there is none.
    pub(crate) fn from(&self) -> SocketAddr {
        SocketAddr::new(self.source, self.ports.0)
    }

    /// The destination, with port 0 where there is none.
    pub(crate) fn to(&self) -> SocketAddr {
        SocketAddr::new(self.destination, self.ports.1)
    }

    /// Writes another source into the UDP datagram `bytes`. Both addresses must be of the packet's family.
    pub(crate) fn set_source(&mut self, bytes: &mut [u8], source: SocketAddr) {
        (self.source, self.ports.0) = (source.ip(), source.port());
        self.rewrite(bytes, source, (12, 8), 0);
    }

    /// Writes another destination into the UDP datagram `bytes`.
    pub(crate) fn set_destination(&mut self, bytes: &mut [u8], destination: SocketAddr) {
        (self.destination, self.ports.1) = (destination.ip(), destination.port());
        self.rewrite(bytes, destination, (16, 24), 2);
    }

    fn rewrite(&self, bytes: &mut [u8], address: SocketAddr, at: (usize, usize), port_at: usize) {
        let Some((udp, _)) = self.udp else { return };
        match address.ip() {
            IpAddr::V4(address) => bytes[at.0..at.0 + 4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => bytes[at.1..at.1 + 16].copy_from_slice(&address.octets()),
        }
        bytes[udp + port_at..udp + port_at + 2].copy_from_slice(&address.port().to_be_bytes());
        self.restore_checksum(bytes);
    }

    /// Computes the checksums of the packet again.
    pub(crate) fn restore_checksum(&self, bytes: &mut [u8]) {
        let Some((start, end)) = self.udp else { return };
        if self.source.is_ipv4() {
            bytes[10..12].fill(0);
            let sum = !fold(sum(&bytes[..start]));
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        bytes[start + 6..start + 8].fill(0);
        let addresses = if self.source.is_ipv4() { 12..20 } else { 8..40 };
        let pseudo = sum(&bytes[addresses]) + u64::from(UDP) + (end - start) as u64;
        // RFC 768: a sum of zero is sent as all ones, since zero means that there is none.
        let sum = match !fold(pseudo + sum(&bytes[start..end])) {
            0 => u16::MAX,
            sum => sum,
        };
        bytes[start + 6..start + 8].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The sum of RFC 1071, not folded yet.
fn sum(bytes: &[u8]) -> u64 {
    bytes
        .chunks(2)
        .map(|pair| u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])))
        .sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests;

//! Capture files that Wireshark reads.
//!
//! The format is pcapng (draft-ietf-opsawg-pcapng): a Section Header Block, an Interface Description Block per
//! place of capture, Decryption Secrets Blocks with TLS keys, and an Enhanced Packet Block per packet. Integers
//! are little-endian. Packets have link type 101 (raw IP): the simulator has no headers, so those of IPv4 or IPv6 and
//! UDP are made up, with right lengths and checksums.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use fulmar_base::Instant;

use crate::Packet;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 10;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const LINKTYPE_RAW: u16 = 101;
/// "TLSK": lines in the format of NSS key logs.
const SECRETS_TLS_KEY_LOG: u32 = 0x544c_534b;
const OPTION_END: u16 = 0;
const OPTION_INTERFACE_NAME: u16 = 2;
const OPTION_TIMESTAMP_RESOLUTION: u16 = 9;
/// Timestamps count units of 10 to the power of minus nine seconds.
const NANOSECONDS: u8 = 9;

const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const HOP_LIMIT: u8 = 64;

/// A place where packets are captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceId(u32);

/// Writes a capture file. Times are virtual: the capture begins at midnight, 1 January 1970.
///
/// Wireshark uses secrets for the packets that follow them in the file. Write them first, or as they come up:
/// a secret then stands behind the packet with which it was agreed and ahead of those that it protects.
#[derive(Debug)]
pub struct PcapNg<W> {
    out: W,
    interfaces: u32,
    /// The body of the block that is being written.
    body: Vec<u8>,
}

impl<W: Write> PcapNg<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// Those of `out`, here and in the other functions.
    pub fn new(out: W) -> io::Result<Self> {
        let mut file = Self { out, interfaces: 0, body: Vec::new() };
        file.body.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        file.body.extend(1_u16.to_le_bytes());
        file.body.extend(0_u16.to_le_bytes());
        // The length of the section is not given.
        file.body.extend(u64::MAX.to_le_bytes());
        file.finish_block(SECTION_HEADER)?;
        Ok(file)
    }

    /// Adds a place of capture, such as a host or a link.
    ///
    /// # Errors
    /// Those of the output.
    pub fn interface(&mut self, name: &str) -> io::Result<InterfaceId> {
        self.body.extend(LINKTYPE_RAW.to_le_bytes());
        self.body.extend([0; 2]);
        // No limit to the length of a packet.
        self.body.extend([0; 4]);
        self.option(OPTION_INTERFACE_NAME, name.as_bytes());
        self.option(OPTION_TIMESTAMP_RESOLUTION, &[NANOSECONDS]);
        self.option(OPTION_END, &[]);
        self.finish_block(INTERFACE_DESCRIPTION)?;
        self.interfaces += 1;
        Ok(InterfaceId(self.interfaces - 1))
    }

    /// Adds TLS secrets: lines of a key log (`CLIENT_TRAFFIC_SECRET_0 ...`), with which Wireshark decrypts.
    ///
    /// # Errors
    /// Those of the output.
    pub fn secrets(&mut self, key_log: &str) -> io::Result<()> {
        self.body.extend(SECRETS_TLS_KEY_LOG.to_le_bytes());
        self.body.extend(length(key_log.len()).to_le_bytes());
        self.body.extend(key_log.as_bytes());
        self.pad();
        self.finish_block(DECRYPTION_SECRETS)
    }

    /// Adds a packet that was seen at `at`. A payload that is too long for IP is cut.
    ///
    /// # Errors
    /// Those of the output.
    pub fn packet(&mut self, interface: InterfaceId, at: Instant, packet: &Packet) -> io::Result<()> {
        let longest = usize::from(u16::MAX) - UDP_HEADER - IPV4_HEADER;
        let payload = &packet.payload[..packet.payload.len().min(longest)];
        self.enhanced_packet(interface, at, |body| {
            put_headers(body, packet, payload);
            body.extend(payload);
        })
    }

    /// Adds a whole IP packet that was seen at `at`.
    ///
    /// # Errors
    /// Those of the output.
    pub fn ip_packet(&mut self, interface: InterfaceId, at: Instant, packet: &[u8]) -> io::Result<()> {
        self.enhanced_packet(interface, at, |body| body.extend(packet))
    }

    fn enhanced_packet(
        &mut self,
        interface: InterfaceId,
        at: Instant,
        put: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        let nanos = at.as_nanos();
        self.body.extend(interface.0.to_le_bytes());
        self.body.extend(((nanos >> 32) as u32).to_le_bytes());
        self.body.extend((nanos as u32).to_le_bytes());
        let lengths_at = self.body.len();
        self.body.extend([0; 8]);
        put(&mut self.body);
        let captured = length(self.body.len() - lengths_at - 8).to_le_bytes();
        self.body[lengths_at..lengths_at + 4].copy_from_slice(&captured);
        self.body[lengths_at + 4..lengths_at + 8].copy_from_slice(&captured);
        self.pad();
        self.finish_block(ENHANCED_PACKET)
    }

    /// Flushes the output and gives it back.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.body.extend(code.to_le_bytes());
        self.body.extend((value.len() as u16).to_le_bytes());
        self.body.extend(value);
        self.pad();
    }

    /// Fields begin at multiples of four bytes.
    fn pad(&mut self) {
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    /// Writes the block with the body gathered so far.
    fn finish_block(&mut self, kind: u32) -> io::Result<()> {
        // The total length covers the type, itself at both ends, and the body.
        let total = length(self.body.len() + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&total)?;
        self.out.write_all(&self.body)?;
        self.out.write_all(&total)?;
        self.body.clear();
        Ok(())
    }
}

fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Appends an IP and a UDP header. If the two addresses are not of one family, IPv4 is mapped into IPv6.
fn put_headers(out: &mut Vec<u8>, packet: &Packet, payload: &[u8]) {
    let udp_length = (UDP_HEADER + payload.len()) as u16;
    let ecn = packet.ecn.bits();
    let mut pseudo = Checksum::default();
    match (packet.source.ip(), packet.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut header = [0; IPV4_HEADER];
            header[0] = 0x45;
            header[1] = ecn;
            header[2..4].copy_from_slice(&(udp_length + IPV4_HEADER as u16).to_be_bytes());
            // Don't fragment (RFC 9000 §14).
            header[6] = 0x40;
            header[8] = HOP_LIMIT;
            header[9] = UDP;
            header[12..16].copy_from_slice(&source.octets());
            header[16..20].copy_from_slice(&destination.octets());
            let mut checksum = Checksum::default();
            checksum.add(&header);
            header[10..12].copy_from_slice(&checksum.finish().to_be_bytes());
            pseudo.add(&header[12..20]);
            out.extend(header);
        }
        (source, destination) => {
            let mut header = [0; IPV6_HEADER];
            header[0] = 0x60;
            header[1] = ecn << 4;
            header[4..6].copy_from_slice(&udp_length.to_be_bytes());
            header[6] = UDP;
            header[7] = HOP_LIMIT;
            header[8..24].copy_from_slice(&as_ipv6(source));
            header[24..40].copy_from_slice(&as_ipv6(destination));
            pseudo.add(&header[8..40]);
            out.extend(header);
        }
    }
    put_udp(out, packet.source, packet.destination, payload, pseudo);
}

fn as_ipv6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// `checksum` has the addresses already.
fn put_udp(
    out: &mut Vec<u8>,
    source: SocketAddr,
    destination: SocketAddr,
    payload: &[u8],
    mut checksum: Checksum,
) {
    let udp_length = ((UDP_HEADER + payload.len()) as u16).to_be_bytes();
    let mut header = [0; UDP_HEADER];
    header[0..2].copy_from_slice(&source.port().to_be_bytes());
    header[2..4].copy_from_slice(&destination.port().to_be_bytes());
    header[4..6].copy_from_slice(&udp_length);
    checksum.add(&[0, UDP]);
    checksum.add(&udp_length);
    checksum.add(&header);
    checksum.add(payload);
    // RFC 768: a sum of zero is sent as all ones, since zero means that there is none.
    let sum = match checksum.finish() {
        0 => u16::MAX,
        sum => sum,
    };
    header[6..8].copy_from_slice(&sum.to_be_bytes());
    out.extend(header);
}

/// The Internet checksum (RFC 1071). All parts but the last have an even length.
#[derive(Debug, Default)]
struct Checksum(u64);

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        for pair in bytes.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            self.0 += u64::from(u16::from_be_bytes([pair[0], low]));
        }
    }

    fn finish(&self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

#[cfg(test)]
mod tests;

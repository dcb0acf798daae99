//! OBSERVED_ADDRESS (draft-ietf-quic-address-discovery-00 §4.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Malformed, put_type, type_len};
use crate::{FrameType, Reader, VarInt, Writer};

/// Tells the peer from which address its packets come on this path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedAddress {
    /// The number of the observation: a larger one is newer.
    pub sequence: VarInt,
    /// The IP address.
    pub ip: IpAddr,
    /// The port.
    pub port: u16,
}

impl ObservedAddress {
    /// An observation; IPv4 addresses that a socket shows as IPv6 ones are told as what they are.
    pub fn new(sequence: VarInt, address: SocketAddr) -> Self {
        Self { sequence, ip: address.ip().to_canonical(), port: address.port() }
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.ip, self.port)
    }

    /// The type, which tells the family.
    pub fn frame_type(&self) -> FrameType {
        match self.ip {
            IpAddr::V4(_) => FrameType::OBSERVED_ADDRESS_V4,
            IpAddr::V6(_) => FrameType::OBSERVED_ADDRESS_V6,
        }
    }

    /// The bytes that [`ObservedAddress::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        let ip_len = if self.ip.is_ipv4() { 4 } else { 16 };
        type_len(self.frame_type()) + self.sequence.size() + ip_len + 2
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(self.frame_type(), writer);
        writer.put_varint(self.sequence);
        match self.ip {
            IpAddr::V4(ip) => writer.put_bytes(&ip.octets()),
            IpAddr::V6(ip) => writer.put_bytes(&ip.octets()),
        }
        writer.put_u16(self.port);
    }

    pub(super) fn decode(reader: &mut Reader<'_>, frame_type: FrameType) -> Result<Self, Malformed> {
        let sequence = reader.varint()?;
        let ip = match frame_type {
            FrameType::OBSERVED_ADDRESS_V4 => Ipv4Addr::from(reader.array::<4>()?).into(),
            _ => Ipv6Addr::from(reader.array::<16>()?).into(),
        };
        Ok(Self { sequence, ip, port: reader.u16()? })
    }
}

//! A NAT before the server that gives the client's flows another address or port when told to.

use std::net::{IpAddr, SocketAddr};

use super::ip::IpPacket;

/// Ports are given out from here on.
const FIRST_PORT: u16 = 20_000;
/// The most flows; packets of others are dropped.
const FLOWS_MAX: usize = 4096;

/// Until it is told to rebind, it changes nothing.
#[derive(Debug, Default)]
pub(super) struct Nat {
    rebinds_addresses: bool,
    /// How often it was told.
    rebindings: u16,
    next_port: u16,
    flows: Vec<Flow>,
}

#[derive(Debug)]
struct Flow {
    inside: SocketAddr,
    outside: SocketAddr,
}

impl Nat {
    pub(super) fn new(rebinds_addresses: bool) -> Self {
        Self { rebinds_addresses, next_port: FIRST_PORT, ..Self::default() }
    }

    /// Forgets all flows: those that go on are new ones to the server, and what it sends to the old ones is lost.
    pub(super) fn rebind(&mut self) {
        self.rebindings += 1;
        self.flows.clear();
    }

    /// Translates a packet of the client; false if it is to be dropped.
    pub(super) fn outward(&mut self, packet: &mut IpPacket, bytes: &mut [u8]) -> bool {
        if self.rebindings == 0 || !packet.is_udp() {
            return true;
        }
        let inside = packet.from();
        let known = self.flows.iter().find(|flow| flow.inside == inside).map(|flow| flow.outside);
        if known.is_none() && self.flows.len() == FLOWS_MAX {
            return false;
        }
        let outside = known.unwrap_or_else(|| self.open_flow(inside));
        packet.set_source(bytes, outside);
        true
    }

    fn open_flow(&mut self, inside: SocketAddr) -> SocketAddr {
        self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
        let ip = if self.rebinds_addresses { self.next_address(inside.ip()) } else { inside.ip() };
        let outside = SocketAddr::new(ip, self.next_port);
        self.flows.push(Flow { inside, outside });
        outside
    }

    /// Another address of the client's network for each rebinding.
    fn next_address(&self, ip: IpAddr) -> IpAddr {
        let step = self.rebindings % 100;
        match ip {
            IpAddr::V4(ip) => {
                let [a, b, c, d] = ip.octets();
                IpAddr::from([a, b, c, d.wrapping_add(step as u8)])
            }
            IpAddr::V6(ip) => {
                let mut segments = ip.segments();
                segments[7] = segments[7].wrapping_add(step);
                IpAddr::from(segments)
            }
        }
    }

    /// Translates a packet of the server; false if it belongs to no flow and is to be dropped.
    pub(super) fn inward(&self, packet: &mut IpPacket, bytes: &mut [u8]) -> bool {
        if self.rebindings == 0 || !packet.is_udp() {
            return true;
        }
        match self.flows.iter().find(|flow| flow.outside == packet.to()) {
            Some(flow) => {
                packet.set_destination(bytes, flow.inside);
                true
            }
            None => false,
        }
    }
}

//! Network address translation.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fulmar_base::Instant;

use crate::Packet;

/// The most mappings at a time. When there are as many, packets that need a new one are dropped.
const MAPPINGS_MAX: usize = 4_096;
/// The most remote addresses that a mapping remembers for its filter; the oldest is forgotten.
const REMOTES_MAX: usize = 256;
/// The first outside port that is given out; they are given out in turn, and again from here after the last.
const PORT_MIN: u16 = 20_000;

/// On what a mapping or a filter depends (RFC 4787 §4.1 and §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependence {
    /// Only on the inside address and port.
    EndpointIndependent,
    /// Also on the remote address.
    AddressDependent,
    /// Also on the remote address and port.
    AddressAndPortDependent,
}

/// A NAT for UDP.
///
/// A packet to one of its `addresses` comes from outside: it is sent on to the inside address that the
/// mapping of its destination belongs to, or dropped if there is none or the filter does not let it through.
/// Any other packet goes outside: its source is replaced by the outside address and port of its mapping, which
/// is made if there is none. Inside hosts cannot reach each other through the outside address (no hairpinning).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatConfig {
    /// Outside addresses. One is in use at a time (of each family, the first from there on); each rebinding
    /// goes on to the next one.
    pub addresses: Vec<IpAddr>,
    /// Which packets from the same inside address and port share a mapping.
    pub mapping: Dependence,
    /// Which packets from outside a mapping lets through: those from where it was used to send to.
    pub filtering: Dependence,
    /// How long a mapping is kept without a packet that refreshes it.
    pub timeout: Duration,
    /// Whether packets from outside refresh a mapping too.
    pub inbound_refreshes: bool,
    /// When all mappings are forgotten, in any order. New ones have other ports, and other addresses if there
    /// are several.
    pub rebind_at: Vec<Instant>,
}

impl NatConfig {
    /// Anybody may send to a mapping once it is there.
    pub fn full_cone(address: IpAddr) -> Self {
        Self {
            addresses: vec![address],
            mapping: Dependence::EndpointIndependent,
            filtering: Dependence::EndpointIndependent,
            // RFC 4787 §4.3: not less than two minutes.
            timeout: Duration::from_secs(120),
            inbound_refreshes: false,
            rebind_at: Vec::new(),
        }
    }

    /// An address may send to a mapping after something was sent to that address.
    pub fn restricted_cone(address: IpAddr) -> Self {
        Self { filtering: Dependence::AddressDependent, ..Self::full_cone(address) }
    }

    /// An address and port may send to a mapping after something was sent there.
    pub fn port_restricted_cone(address: IpAddr) -> Self {
        Self { filtering: Dependence::AddressAndPortDependent, ..Self::full_cone(address) }
    }

    /// Each destination has a mapping of its own, which nobody else may use.
    pub fn symmetric(address: IpAddr) -> Self {
        Self { mapping: Dependence::AddressAndPortDependent, ..Self::port_restricted_cone(address) }
    }
}

/// What a NAT did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NatStats {
    /// Packets translated on their way out.
    pub packets_out: u64,
    /// Packets translated on their way in.
    pub packets_in: u64,
    /// Packets from outside that were dropped: no mapping, or not let through by its filter.
    pub packets_refused: u64,
    /// Packets on their way out that were dropped since there was no room for another mapping.
    pub packets_without_mapping: u64,
    /// Mappings made.
    pub mappings_created: u64,
    /// How often all mappings were forgotten.
    pub rebindings: u64,
}

/// The translation of one NAT.
#[derive(Debug)]
pub(crate) struct Nat {
    config: NatConfig,
    /// Rebindings that are still to come, by time.
    rebindings: VecDeque<Instant>,
    mappings: BTreeMap<MappingKey, Mapping>,
    /// From the outside address and port to the key of its mapping. It has the same entries.
    by_outside: BTreeMap<SocketAddr, MappingKey>,
    address_index: usize,
    next_port: u16,
    stats: NatStats,
}

type MappingKey = (SocketAddr, Remote);

/// As much of a remote address as a mapping or a filter depends on.
type Remote = (Option<IpAddr>, Option<u16>);

#[derive(Debug)]
struct Mapping {
    outside: SocketAddr,
    /// Whom packets were sent to, as the filter sees them.
    remotes: VecDeque<Remote>,
    expires: Instant,
}

impl Dependence {
    fn of(self, remote: SocketAddr) -> Remote {
        match self {
            Self::EndpointIndependent => (None, None),
            Self::AddressDependent => (Some(remote.ip()), None),
            Self::AddressAndPortDependent => (Some(remote.ip()), Some(remote.port())),
        }
    }
}

impl Nat {
    pub(crate) fn new(config: NatConfig) -> Self {
        let mut rebindings = config.rebind_at.clone();
        rebindings.sort_unstable();
        Self {
            config,
            rebindings: rebindings.into(),
            mappings: BTreeMap::new(),
            by_outside: BTreeMap::new(),
            address_index: 0,
            next_port: PORT_MIN,
            stats: NatStats::default(),
        }
    }

    pub(crate) const fn stats(&self) -> &NatStats {
        &self.stats
    }

    pub(crate) fn rebind(&mut self) {
        self.mappings.clear();
        self.by_outside.clear();
        self.address_index = (self.address_index + 1) % self.config.addresses.len();
        self.stats.rebindings += 1;
    }

    /// Replaces an address of the packet; false if it is to be dropped.
    pub(crate) fn translate(&mut self, now: Instant, packet: &mut Packet) -> bool {
        while self.rebindings.front().is_some_and(|at| *at <= now) {
            self.rebindings.pop_front();
            self.rebind();
        }
        if self.config.addresses.contains(&packet.destination.ip()) {
            let inside = self.inside_of(now, packet);
            match inside {
                Some(_) => self.stats.packets_in += 1,
                None => self.stats.packets_refused += 1,
            }
            inside.map(|inside| packet.destination = inside).is_some()
        } else {
            let outside = self.outside_of(now, packet);
            match outside {
                Some(_) => self.stats.packets_out += 1,
                None => self.stats.packets_without_mapping += 1,
            }
            outside.map(|outside| packet.source = outside).is_some()
        }
    }

    /// Where a packet from outside goes.
    fn inside_of(&mut self, now: Instant, packet: &Packet) -> Option<SocketAddr> {
        let key = *self.by_outside.get(&packet.destination)?;
        let mapping = self.mappings.get_mut(&key)?;
        if mapping.expires <= now {
            self.forget(key);
            return None;
        }
        if !mapping.remotes.contains(&self.config.filtering.of(packet.source)) {
            return None;
        }
        if self.config.inbound_refreshes {
            mapping.expires = now + self.config.timeout;
        }
        Some(key.0)
    }

    /// Where a packet that goes outside seems to come from.
    fn outside_of(&mut self, now: Instant, packet: &Packet) -> Option<SocketAddr> {
        let key = (packet.source, self.config.mapping.of(packet.destination));
        if self.mappings.get(&key).is_some_and(|mapping| mapping.expires <= now) {
            self.forget(key);
        }
        if !self.mappings.contains_key(&key) {
            self.create(now, key)?;
        }
        let remote = self.config.filtering.of(packet.destination);
        let mapping = self.mappings.get_mut(&key)?;
        if !mapping.remotes.contains(&remote) {
            if mapping.remotes.len() == REMOTES_MAX {
                mapping.remotes.pop_front();
            }
            mapping.remotes.push_back(remote);
        }
        mapping.expires = now + self.config.timeout;
        Some(mapping.outside)
    }

    fn create(&mut self, now: Instant, key: MappingKey) -> Option<()> {
        if self.mappings.len() >= MAPPINGS_MAX {
            self.mappings.retain(|_, mapping| mapping.expires > now);
            self.by_outside.retain(|_, key| self.mappings.contains_key(key));
        }
        if self.mappings.len() >= MAPPINGS_MAX {
            return None;
        }
        let address = self.address_for(key.0)?;
        let outside = loop {
            let candidate = SocketAddr::new(address, self.next_port);
            self.next_port = self.next_port.checked_add(1).unwrap_or(PORT_MIN);
            // There are ten times as many ports as mappings.
            if !self.by_outside.contains_key(&candidate) {
                break candidate;
            }
        };
        self.by_outside.insert(outside, key);
        let mapping = Mapping { outside, remotes: VecDeque::new(), expires: now };
        self.mappings.insert(key, mapping);
        self.stats.mappings_created += 1;
        Some(())
    }

    /// The outside address in use for the family of an inside address.
    fn address_for(&self, inside: SocketAddr) -> Option<IpAddr> {
        let (before, from) = self.config.addresses.split_at(self.address_index);
        from.iter().chain(before).copied().find(|address| address.is_ipv4() == inside.is_ipv4())
    }

    fn forget(&mut self, key: MappingKey) {
        if let Some(mapping) = self.mappings.remove(&key) {
            self.by_outside.remove(&mapping.outside);
        }
    }
}

#[cfg(test)]
mod tests;

//! What an observer remembers of one connection.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use fulmar_wire::{ConnectionId, Dialect, Frame, ProtectedKind, ProtectedPacket, Side, Version, frames};

use super::keys::{Opened, PacketKeys};
use super::{Content, KeyLog};

/// Where the random bytes of a ClientHello are: behind the message's header and the legacy version.
const RANDOM: std::ops::Range<usize> = 6..38;

/// One connection.
pub(super) struct Tracked {
    /// The address from which the client was last heard.
    pub(super) client: SocketAddr,
    /// The connection IDs by which each side is addressed: the client's, then the server's.
    ids: [Vec<ConnectionId>; 2],
    /// The destinations from which Initial keys are made: the client's first, and that of a Retry.
    initial_destinations: Vec<ConnectionId>,
    version: Version,
    hello: BTreeMap<u64, Vec<u8>>,
    random: Option<Vec<u8>>,
    /// The largest packet number of each side in each space.
    largest: [[Option<u64>; 3]; 2],
    /// The 1-RTT keys of each side, oldest phase first.
    one_rtt: [Vec<PacketKeys>; 2],
}

impl Tracked {
    /// A connection that begins with this Initial packet of the client.
    pub(super) fn new(client: SocketAddr, header: &ProtectedPacket) -> Self {
        Self {
            client,
            ids: [Vec::new(), Vec::new()],
            initial_destinations: vec![header.dst],
            version: header.version.unwrap_or(Version::V1),
            hello: BTreeMap::new(),
            random: None,
            largest: [[None; 3]; 2],
            one_rtt: [Vec::new(), Vec::new()],
        }
    }

    /// Whether a packet names this connection.
    pub(super) fn owns(&self, from: Side, header: &ProtectedPacket) -> bool {
        let known = |side: Side, cid: &ConnectionId| !cid.is_empty() && self.ids[index(side)].contains(cid);
        known(!from, &header.dst)
            || known(from, &header.src)
            || from.is_client() && self.initial_destinations.contains(&header.dst)
    }

    /// How long the connection ID of a packet with a short header is, if it is one of this connection's.
    pub(super) fn short_cid_len(&self, from: Side, packet: &[u8]) -> Option<usize> {
        let ids = self.ids[index(!from)].iter().filter(|cid| !cid.is_empty());
        ids.map(ConnectionId::as_bytes)
            .find(|cid| packet.get(1..).is_some_and(|rest| rest.starts_with(cid)))
            .map(<[u8]>::len)
    }

    /// How long the connection IDs of the receiver of `from`'s packets are.
    pub(super) fn usual_cid_len(&self, from: Side) -> Option<usize> {
        self.ids[index(!from)].last().map(ConnectionId::len)
    }

    /// Takes note of a packet and opens it if its keys are known.
    pub(super) fn see(
        &mut self,
        from: Side,
        client: SocketAddr,
        header: &ProtectedPacket,
        bytes: &[u8],
        key_log: &KeyLog,
    ) -> Option<Content> {
        if from.is_client() {
            self.client = client;
        }
        if header.version.is_some() && header.version != Some(Version::NEGOTIATION) {
            self.learn_id(from, header.src);
        }
        if let ProtectedKind::Retry { .. } = header.kind {
            self.initial_destinations.push(header.src);
        }
        let (space, opened) = self.open(from, header, bytes, key_log)?;
        let largest = &mut self.largest[index(from)][space];
        *largest = (*largest).max(Some(opened.number));
        self.learn_from(from, header, &opened.payload);
        Some(Content { number: opened.number, key_phase: opened.key_phase, payload: opened.payload })
    }

    fn learn_id(&mut self, of: Side, cid: ConnectionId) {
        let ids = &mut self.ids[index(of)];
        if !ids.contains(&cid) {
            ids.push(cid);
        }
    }

    /// Opens a packet; gives its packet number space as well.
    fn open(
        &mut self,
        from: Side,
        header: &ProtectedPacket,
        bytes: &[u8],
        key_log: &KeyLog,
    ) -> Option<(usize, Opened)> {
        let version = header.version.unwrap_or(self.version);
        let (space, pn_offset, keys) = match header.kind {
            ProtectedKind::Initial { pn_offset, .. } => (0, pn_offset, self.initial_keys(from, version)),
            ProtectedKind::Handshake { pn_offset } => {
                // The version may have changed on the way (RFC 9368), and here it is the final one.
                self.version = version;
                let label = ["CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET"];
                (1, pn_offset, self.keys_from(key_log, label[index(from)], version))
            }
            ProtectedKind::ZeroRtt { pn_offset } => {
                (2, pn_offset, self.keys_from(key_log, "CLIENT_EARLY_TRAFFIC_SECRET", version))
            }
            ProtectedKind::OneRtt { pn_offset } => {
                return Some((2, self.open_one_rtt(from, pn_offset, bytes, key_log)?));
            }
            ProtectedKind::Retry { .. } | ProtectedKind::VersionNegotiation { .. } => return None,
        };
        let largest = self.largest[index(from)][space];
        let opened = keys.iter().find_map(|keys| keys.open(&keys.unmask(bytes, pn_offset, largest)?))?;
        Some((space, opened))
    }

    fn initial_keys(&self, from: Side, version: Version) -> Vec<PacketKeys> {
        let destinations = self.initial_destinations.iter();
        destinations
            .filter_map(|cid| PacketKeys::initial(version, cid.as_bytes()).into_iter().nth(index(from)))
            .collect()
    }

    fn keys_from(&self, key_log: &KeyLog, label: &str, version: Version) -> Vec<PacketKeys> {
        let secret = self.random.as_ref().and_then(|random| key_log.secret(label, random));
        secret.map_or_else(Vec::new, |secret| PacketKeys::from_secret(version, secret))
    }

    /// Opens a 1-RTT packet with the keys of the newest phase, of the one before, or of the one to come.
    fn open_one_rtt(
        &mut self,
        from: Side,
        pn_offset: usize,
        bytes: &[u8],
        key_log: &KeyLog,
    ) -> Option<Opened> {
        let side = index(from);
        let largest = self.largest[side][2];
        if self.one_rtt[side].is_empty() {
            let label = ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"][side];
            // Of the suites that are possible, the one that opens a packet is kept.
            let keys = self.keys_from(key_log, label, self.version);
            let (keys, opened) = keys.into_iter().find_map(|keys| {
                let opened = keys.open(&keys.unmask(bytes, pn_offset, largest)?)?;
                Some((keys, opened))
            })?;
            self.one_rtt[side].push(keys);
            return Some(opened);
        }
        let phases = &mut self.one_rtt[side];
        let unmasked = phases[0].unmask(bytes, pn_offset, largest)?;
        if let Some(opened) = phases.iter().rev().take(2).find_map(|keys| keys.open(&unmasked)) {
            return Some(opened);
        }
        let next = phases.last()?.next();
        let opened = next.open(&unmasked)?;
        phases.push(next);
        Some(opened)
    }

    fn learn_from(&mut self, from: Side, header: &ProtectedPacket, payload: &[u8]) {
        for frame in frames(payload, Dialect::SinglePath).map_while(Result::ok) {
            match frame {
                Frame::NewConnectionId(frame) => self.learn_id(from, frame.cid),
                Frame::Crypto(crypto)
                    if from.is_client() && matches!(header.kind, ProtectedKind::Initial { .. }) =>
                {
                    self.hello.insert(crypto.offset.get(), crypto.data.to_vec());
                    self.random = self.random.take().or_else(|| self.random_of_hello());
                }
                _ => {}
            }
        }
    }

    /// The random bytes of the ClientHello, once its beginning is there.
    fn random_of_hello(&self) -> Option<Vec<u8>> {
        let start = contiguous(&self.hello, RANDOM.end);
        start.get(RANDOM).map(<[u8]>::to_vec)
    }
}

/// The first `len` bytes of a stream of which pieces are known, or as many as there are without a gap.
pub(in super::super) fn contiguous(pieces: &BTreeMap<u64, Vec<u8>>, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    for (offset, piece) in pieces {
        let Some(known) = (bytes.len() as u64).checked_sub(*offset) else { break };
        bytes.extend(piece.iter().skip(usize::try_from(known).unwrap_or(usize::MAX)));
        if bytes.len() >= len {
            break;
        }
    }
    bytes
}

/// The client's things come first.
fn index(side: Side) -> usize {
    usize::from(side.is_server())
}

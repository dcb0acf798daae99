//! Two connections without endpoints, so that each part of the handshake can be made by hand.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use fulmar_base::{Instant, Rng};
use fulmar_wire::{ConnectionId, PacketKind, Side, TransportParameters, Version};

use super::super::dispatch::{FrameContext, Origin};
use super::super::parameters::{OfServer, local_parameters};
use super::super::{Connection, ConnectionSetup};
use super::pair::{CLIENT, SERVER, client_tls, large_chain, server_tls_with};
use crate::config::{EndpointConfig, TransportConfig};
use crate::crypto::{AeadBackend, Circumstances, ResetKey, Session};
use crate::datagram::{Datagram, Ecn, FourTuple, TransmitBatch};
use crate::ids::SpaceId;
use crate::memory::EndpointMemory;
use crate::space::NumberSpace;
use crate::{ConnectionError, Event, TransportError};

pub(super) const ORIGINAL_DCID: [u8; 8] = [0xd0; 8];
pub(super) const CLIENT_CID: [u8; 8] = [0xc1; 8];
pub(super) const SERVER_CID: [u8; 8] = [0x5e; 8];

pub(super) fn cid(bytes: [u8; 8]) -> ConnectionId {
    ConnectionId::new(&bytes).unwrap()
}

fn setup(side: Side, now: Instant) -> ConnectionSetup {
    let (local, remote, addr) = match side {
        Side::Client => (CLIENT_CID, ORIGINAL_DCID, SERVER),
        Side::Server => (SERVER_CID, CLIENT_CID, CLIENT),
    };
    ConnectionSetup {
        side,
        version: Version::V1,
        local_cid: cid(local),
        remote_cid: cid(remote),
        preferred_address: None,
        addrs: FourTuple::new(addr.parse().unwrap(), None),
        endpoint: Arc::new(EndpointConfig::new(ResetKey::new(&[1; 32]))),
        // With a log, which must take whatever comes as well.
        transport: Arc::new(TransportConfig { log_entries: 1_000, ..TransportConfig::default() }),
        memory: EndpointMemory::new(32 << 20, 256 << 20, 64 << 20),
        aead: AeadBackend::default(),
        client_initial: None,
        rng: Rng::from_u64(side.is_server().into()),
        now,
    }
}

/// A client that tells of itself what `change` and `raw`, encoded parameters that are added, make of it.
pub(super) fn client(now: Instant, change: impl FnOnce(&mut TransportParameters), raw: &[u8]) -> Connection {
    client_that_tells(now, |mut parameters| {
        change(&mut parameters);
        [&parameters.write(Side::Client, None), raw].concat()
    })
}

/// A client that tells of itself what `encode` makes of its parameters.
pub(super) fn client_that_tells(
    now: Instant,
    encode: impl FnOnce(TransportParameters) -> Vec<u8>,
) -> Connection {
    client_with(now, &client_tls(), encode)
}

/// The same with another configuration of TLS.
pub(super) fn client_with(
    now: Instant,
    tls: &rustls::ClientConfig,
    encode: impl FnOnce(TransportParameters) -> Vec<u8>,
) -> Connection {
    let setup = setup(Side::Client, now);
    let bytes = encode(local_parameters(&setup, None));
    let name = "localhost".try_into().unwrap();
    let session = Session::client(tls, Version::V1, name, bytes, setup.aead).unwrap();
    let mut connection = Connection::new(setup, session, cid(ORIGINAL_DCID));
    connection.handshake.drive();
    connection
}

/// A server for a client whose Initial packets go to `dcid`; otherwise like [`client`].
pub(super) fn server(
    now: Instant,
    dcid: ConnectionId,
    change: impl FnOnce(&mut TransportParameters),
    raw: &[u8],
) -> Connection {
    server_that_tells(now, dcid, |mut parameters| {
        change(&mut parameters);
        [&parameters.write(Side::Server, None), raw].concat()
    })
}

/// A server for a client whose Initial packets go to `dcid`; otherwise like [`client_that_tells`].
pub(super) fn server_that_tells(
    now: Instant,
    dcid: ConnectionId,
    encode: impl FnOnce(TransportParameters) -> Vec<u8>,
) -> Connection {
    // The server's flight is so large that the client has keys before it has everything.
    server_with(now, dcid, &server_tls_with(large_chain(4_000)), encode)
}

/// The same with another configuration of TLS.
pub(super) fn server_with(
    now: Instant,
    dcid: ConnectionId,
    tls: &rustls::ServerConfig,
    encode: impl FnOnce(TransportParameters) -> Vec<u8>,
) -> Connection {
    let setup = setup(Side::Server, now);
    let bytes = encode(local_parameters(&setup, Some(OfServer { original_dcid: dcid, retry_scid: None })));
    let session = Session::server(tls, Version::V1, bytes, Circumstances::default(), setup.aead).unwrap();
    Connection::new(setup, session, dcid)
}

/// Hands a datagram to a connection, as if it came from its peer.
pub(super) fn deliver(to: &mut Connection, now: Instant, payload: &[u8]) {
    let datagram = Datagram {
        addrs: to.paths.primary_mut().tuple.addrs,
        ecn: Ecn::NotEct,
        payload: BytesMut::from(payload),
    };
    to.handle_datagram(now, datagram);
}

/// Hands the payload of an authentic packet to a connection.
pub(super) fn take(
    connection: &mut Connection,
    now: Instant,
    (space, kind): (SpaceId, PacketKind),
    payload: &Bytes,
) -> Result<(), TransportError> {
    let dst = connection.handshake.tls.cids.local;
    let cx = FrameContext {
        now,
        origin: Origin::Packet,
        space,
        kind,
        dst,
        payload,
        generation: 0,
        off_path: None,
        late: false,
    };
    let numbers = match space {
        SpaceId::Data(path) => connection.paths.get(path).map(|path| &path.space),
        _ => connection.handshake.spaces.get(space),
    };
    let number = numbers.and_then(NumberSpace::largest_received).map_or(0, |n| n + 1);
    connection.handle_payload(&cx, number, Ecn::NotEct)
}

/// Takes the datagrams out that a connection has to send.
pub(super) fn sent(from: &mut Connection, now: Instant) -> Vec<Vec<u8>> {
    let mut batch = TransmitBatch::new(1);
    let mut out = Vec::new();
    while let Some(transmit) = from.poll_transmit(now, &mut batch) {
        out.push(batch.bytes()[..transmit.len].to_vec());
    }
    out
}

/// Exchanges datagrams for ten round trips of a millisecond.
pub(super) fn exchange(client: &mut Connection, server: &mut Connection, mut now: Instant) -> Instant {
    for _ in 0..10 {
        pass(client, server, now);
        pass(server, client, now);
        now += Duration::from_millis(1);
    }
    now
}

fn pass(from: &mut Connection, to: &mut Connection, now: Instant) {
    from.handle_timeout(now);
    for datagram in sent(from, now) {
        deliver(to, now, &datagram);
    }
}

/// Why a connection was lost, if it was.
pub(super) fn lost(connection: &mut Connection) -> Option<ConnectionError> {
    std::iter::from_fn(|| connection.poll_event()).find_map(|event| match event {
        Event::ConnectionLost { reason } => Some(reason),
        _ => None,
    })
}

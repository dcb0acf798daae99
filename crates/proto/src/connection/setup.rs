//! How a connection begins: what it is made from, on a client and on a server.

use std::sync::Arc;

use fulmar_base::{Instant, Rng};
use fulmar_wire::{ConnectionId, PreferredAddress, Side, TransportParameters, Version};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;

use super::Connection;
use super::address_tokens::AddressTokens;
use super::extensions::Extensions;
use super::handshake::versions::{ClientVersions, FirstFlight, ServerVersions};
use super::handshake::{HandshakeSpaces, HandshakeState};
use super::lifecycle::Lifecycle;
use super::liveness::Liveness;
use super::outbox::Outbox;
use super::parameters::{OfServer, local_parameters};
use super::telemetry::Telemetry;
use crate::config::{EndpointConfig, TransportConfig};
use crate::crypto::{AeadBackend, DirectionKeys, Session, TlsError};
use crate::datagram::FourTuple;
use crate::datagrams::Datagrams;
use crate::ids::TupleId;
use crate::memory::EndpointMemory;
use crate::path::{AntiAmplification, Path, PathSetup, Paths, ProbeTimer, Tuple};
use crate::sessions::SessionView;
use crate::space::{AckPolicy, NumberSpace};
use crate::streams::Streams;
use crate::tokens::TokenIssuer;

/// What a connection is made from.
pub(crate) struct ConnectionSetup {
    pub(crate) side: Side,
    pub(crate) version: Version,
    /// The connection ID of this end in the handshake.
    pub(crate) local_cid: ConnectionId,
    /// Where the first packet goes: made up by a client, the client's own ID for a server.
    pub(crate) remote_cid: ConnectionId,
    /// Where a server asks its client to move to.
    pub(crate) preferred_address: Option<PreferredAddress>,
    pub(crate) addrs: FourTuple,
    pub(crate) endpoint: Arc<EndpointConfig>,
    pub(crate) transport: Arc<TransportConfig>,
    /// What all connections of the endpoint may buffer for sending.
    pub(crate) memory: EndpointMemory,
    pub(crate) aead: AeadBackend,
    /// On a server, the keys with which the client's first packet was found to be authentic.
    pub(crate) client_initial: Option<Box<DirectionKeys>>,
    pub(crate) rng: Rng,
    pub(crate) now: Instant,
}

/// How a server came to accept a connection.
pub(crate) struct Admission {
    /// Where the client sent the packet that was accepted: its Initial keys are made of it.
    pub(crate) first_dcid: ConnectionId,
    /// Where the client sent its very first packet; another ID if it has followed a Retry.
    pub(crate) original_dcid: ConnectionId,
    /// The ID that the Retry gave it, if it has.
    pub(crate) retry_scid: Option<ConnectionId>,
    /// Whether the address is proven.
    pub(crate) validated: bool,
    /// Makes the tokens for the client's later connections.
    pub(crate) issuer: Arc<TokenIssuer>,
}

impl Connection {
    /// A client's connection; its first packets are ready to be sent. `sessions` is what is remembered of the
    /// server.
    pub(crate) fn client(
        mut setup: ConnectionSetup,
        tls: &rustls::ClientConfig,
        name: ServerName<'static>,
        sessions: Option<Arc<SessionView>>,
        early_data: bool,
    ) -> Result<Self, TlsError> {
        let mut tls = tls.clone();
        tls.enable_early_data = early_data;
        // RFC 9369 §5: what rustls would remember by itself is not kept apart by the version of QUIC.
        tls.resumption = match &sessions {
            Some(sessions) => Resumption::store(sessions.clone()),
            None => Resumption::disabled(),
        };
        let parameters = local_parameters(&setup, None);
        let mut first_flight = FirstFlight { tls, name, parameters, aead: setup.aead };
        let known = setup.endpoint.versions.clone();
        let session = first_flight.session(setup.version, &known, &mut setup.rng)?;
        let (original_dcid, version, now) = (setup.remote_cid, setup.version, setup.now);
        let mut connection = Self::new(setup, session, original_dcid);
        connection.record_start(now, &first_flight.parameters);
        connection.handshake.versions.set_client(ClientVersions::new(known, version), first_flight);
        if let Some(token) = sessions.as_ref().and_then(|sessions| sessions.take_token()) {
            connection.handshake.tls.set_token(token);
        }
        connection.sessions = sessions;
        connection.handshake.drive();
        connection.offer_early_data();
        connection.telemetry.record_keys(now, &connection.handshake);
        Ok(connection)
    }

    /// A server's connection.
    pub(crate) fn server(
        mut setup: ConnectionSetup,
        tls: &Arc<rustls::ServerConfig>,
        admission: Admission,
    ) -> Result<Self, TlsError> {
        let Admission { first_dcid, original_dcid, retry_scid, validated, issuer } = admission;
        let cids = OfServer { original_dcid, retry_scid };
        let mut versions = ServerVersions {
            tls: tls.clone(),
            parameters: local_parameters(&setup, Some(cids)),
            known: setup.endpoint.versions.clone(),
            original: setup.version,
            aead: setup.aead,
            rng: setup.rng.fork(),
        };
        let session = versions.session(setup.version)?;
        let (now, credit) = (setup.now, setup.transport.first_credit());
        let mut connection = Self::new(setup, session, first_dcid);
        connection.record_start(now, &versions.parameters);
        connection.handshake.tls.set_negotiation(versions);
        connection.address_tokens.set_issuer(issuer, credit);
        if validated {
            connection.paths.primary_mut().tuple.amplification.validate();
        }
        Ok(connection)
    }

    fn record_start(&mut self, now: Instant, parameters: &TransportParameters) {
        let told = (self.side, parameters);
        let (versions, tuple) = (&self.handshake.versions, &self.paths.primary().tuple);
        self.telemetry.record_start(now, versions, tuple, &self.config, told);
    }

    pub(super) fn new(mut setup: ConnectionSetup, session: Session, original_dcid: ConnectionId) -> Self {
        let transport = setup.transport.clone();
        let mut space = |policy| NumberSpace::new(policy, &mut setup.rng);
        let spaces = HandshakeSpaces {
            initial: Some(Box::new(space(AckPolicy::IMMEDIATE))),
            handshake: Some(Box::new(space(AckPolicy::IMMEDIATE))),
        };
        let data = space(AckPolicy { max_ack_delay: transport.max_ack_delay, ..AckPolicy::default() });
        let path = first_path(&mut setup, data);
        let ConnectionSetup { side, now, .. } = setup;
        Self {
            side,
            handshake: HandshakeState::new(&mut setup, session, original_dcid, spaces),
            paths: Paths::new(path),
            streams: Streams::new(side, &transport.streams(), &setup.memory, &mut setup.rng),
            datagrams: Datagrams::new(
                transport.datagram_receive_buffer,
                transport.datagram_send_buffer,
                setup.memory.receive.clone(),
            ),
            extensions: Extensions::unknown(&transport, &setup.memory),
            address_tokens: AddressTokens::default(),
            sessions: None,
            lifecycle: Lifecycle::new(),
            liveness: Liveness::new(now, &transport),
            unsent: None,
            outbox: Outbox::default(),
            telemetry: Telemetry::new(transport.log_entries),
            config: transport,
            rng: setup.rng,
        }
    }
}

/// The path of the handshake.
fn first_path(setup: &mut ConnectionSetup, data: NumberSpace) -> Path {
    let mut rng = setup.rng.fork();
    let amplification = AntiAmplification::new(setup.side.is_client());
    let mut tuple = Tuple::new(TupleId(0), setup.addrs, amplification, &setup.transport, setup.now, &mut rng);
    // The handshake proves the address (RFC 9000 §8.1), and before its end there is no other.
    tuple.validated = true;
    let mut path = Path::new(PathSetup {
        space: data,
        local_cid: setup.local_cid,
        remote_cid: setup.remote_cid,
        remote_cids_max: setup.transport.connection_ids,
        tuple,
        pto: ProbeTimer::new(setup.now, setup.transport.timers),
        config: setup.endpoint.clone(),
        rng,
    });
    if let Some(preferred) = setup.preferred_address {
        path.local_cids.add_preferred(preferred.cid);
    }
    path
}

//! The transport parameters of both ends (RFC 9000 §7.4, §18).

use fulmar_base::Instant;
use fulmar_wire::{ConnectionId, NewConnectionId, PathId, TransportParameters, VarInt, Version};

use super::handshake::early_data::stream_limits;
use super::{Connection, ConnectionSetup};
use crate::crypto::Circumstances;
use crate::datagrams::local_frame_max;
use crate::error::TransportError;
use crate::ext::{BlockCode, FecConfig};
use crate::path::initial_max;

/// The connection IDs that a server repeats, to prove that it saw them (RFC 9000 §7.3).
pub(super) struct OfServer {
    /// The one that the client made up.
    pub(super) original_dcid: ConnectionId,
    /// The one of the Retry that the client followed.
    pub(super) retry_scid: Option<ConnectionId>,
}

/// What this end tells; `cids` are a server's.
pub(super) fn local_parameters(setup: &ConnectionSetup, cids: Option<OfServer>) -> TransportParameters {
    let transport = &setup.transport;
    let limits = transport.streams().initial_limits();
    let frame_max = local_frame_max(transport.datagram_receive_buffer);
    // Without connection IDs, a token would be the same for all peers.
    let has_token = setup.side.is_server() && !setup.local_cid.is_empty();
    let fec = transport.fec.as_ref();
    let block_code = fec.and_then(FecConfig::block_code);
    TransportParameters {
        original_dcid: cids.as_ref().map(|cids| cids.original_dcid),
        retry_scid: cids.and_then(|cids| cids.retry_scid),
        max_idle_timeout: transport.max_idle_timeout,
        stateless_reset_token: has_token.then(|| setup.endpoint.reset_token(&setup.local_cid)),
        initial_max_data: VarInt::saturating(limits.max_data),
        initial_max_stream_data_bidi_local: VarInt::saturating(limits.max_stream_data_bidi_local),
        initial_max_stream_data_bidi_remote: VarInt::saturating(limits.max_stream_data_bidi_remote),
        initial_max_stream_data_uni: VarInt::saturating(limits.max_stream_data_uni),
        initial_max_streams_bidi: VarInt::saturating(limits.max_streams_bidi),
        initial_max_streams_uni: VarInt::saturating(limits.max_streams_uni),
        max_ack_delay: transport.max_ack_delay,
        min_ack_delay: transport.min_ack_delay(),
        preferred_address: setup.preferred_address,
        disable_active_migration: !transport.migration,
        active_connection_id_limit: VarInt::saturating(transport.connection_ids),
        initial_scid: Some(setup.local_cid),
        reset_stream_at: limits.reset_stream_at,
        time_stamps: transport.time_stamps,
        address_discovery: transport.address_discovery,
        fec: fec.filter(|fec| fec.dialects.has_x()).map(FecConfig::parameters),
        enable_fec: block_code.is_some().into(),
        decoder_fec_scheme: block_code.map_or(VarInt::ZERO, BlockCode::scheme),
        grease_quic_bit: transport.grease_quic_bit,
        // RFC 10069 §2.1: not without connection IDs.
        initial_max_path_id: transport
            .multipath
            .as_ref()
            .filter(|_| !setup.local_cid.is_empty())
            .map(|multipath| initial_max(multipath.paths_max)),
        max_datagram_frame_size: (frame_max > 0).then(|| VarInt::saturating(frame_max)),
        ..TransportParameters::default()
    }
}

/// What the sessions of a server depend on that speaks of itself with these parameters: the versions, that of the
/// client's first packets and the one in use, and the limits that a client remembers (RFC 9000 §7.4.1).
pub(super) fn circumstances(
    original: Version,
    version: Version,
    parameters: &TransportParameters,
) -> Circumstances {
    let limits = [
        parameters.initial_max_data,
        parameters.initial_max_stream_data_bidi_local,
        parameters.initial_max_stream_data_bidi_remote,
        parameters.initial_max_stream_data_uni,
        parameters.initial_max_streams_bidi,
        parameters.initial_max_streams_uni,
        parameters.active_connection_id_limit,
        parameters.max_datagram_frame_size.unwrap_or(VarInt::ZERO),
        VarInt::from_u32(parameters.reset_stream_at.into()),
    ];
    let discovery = [parameters.address_discovery.map_or(0, |roles| 1 + roles as u8)];
    let in_version = |version: Version| [&version.0.to_be_bytes()[..], &discovery].concat();
    Circumstances {
        now: in_version(original),
        later: in_version(version),
        limits: limits.iter().map(|limit| limit.get()).collect(),
        early_data: false,
    }
}

impl Connection {
    /// The peer's parameters have come: every component learns what concerns it.
    pub(super) fn on_peer_parameters(&mut self, now: Instant) -> Result<(), TransportError> {
        let parameters = self.handshake.tls.read_parameters()?;
        self.telemetry.record_peer_parameters(now, &parameters);
        let information = parameters.version_information.as_ref();
        self.handshake.versions.check(information)?;
        self.conclude_early_data(now, &parameters)?;
        self.liveness.idle.negotiate(parameters.max_idle_timeout);
        self.streams.apply_peer_limits(&stream_limits(&parameters));
        self.datagrams.set_peer_frame_max(parameters.max_datagram_frame_size.map_or(0, |size| size.get()));
        let mtu_limit = u16::try_from(parameters.max_udp_payload_size.get()).unwrap_or(u16::MAX);
        let path = self.paths.primary_mut();
        path.mtu_limit = mtu_limit;
        path.tuple.mtud.on_peer_limit(mtu_limit);
        path.tuple.on_mtu_changed(now);
        if let Some(token) = parameters.stateless_reset_token {
            path.remote_cids.set_handshake_token(token, &mut self.outbox.endpoint_events);
        }
        if let Some(preferred) = parameters.preferred_address {
            // RFC 9000 §5.1.1: its connection ID has sequence number 1.
            let issued = NewConnectionId {
                path: PathId::ZERO,
                sequence: VarInt::from_u32(1),
                retire_prior_to: VarInt::ZERO,
                cid: preferred.cid,
                reset_token: preferred.reset_token,
            };
            path.remote_cids.on_new_connection_id(&issued, &mut self.outbox.endpoint_events)?;
        }
        self.extensions = self.extensions.negotiate(now, &self.config, &parameters, &mut self.rng);
        let cid_limit = parameters.active_connection_id_limit.get();
        path.local_cids.set_peer_limit(cid_limit, &mut self.outbox.endpoint_events);
        self.begin_multipath()
    }
}

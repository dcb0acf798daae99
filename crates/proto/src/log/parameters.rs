//! What a connection begins with: addresses, versions, transport parameters.

use std::net::SocketAddr;

use fulmar_base::Instant;
use fulmar_wire::{PathId, TransportParameters, Version};

use super::{ConnectionLog, ConnectionState, LogEvent, VERSIONS_MAX, octets};
use crate::datagram::FourTuple;

impl ConnectionLog {
    /// Adds the beginning.
    pub(crate) fn push_start(&mut self, at: Instant, addrs: &FourTuple) {
        let remote = self.push_local(at, addrs);
        self.seen.of(PathId::ZERO).peer = Some(remote);
        self.push(at, LogEvent::Started { ip: remote.0, port: remote.1 });
        self.push(at, LogEvent::State(ConnectionState::Attempted));
    }

    /// Adds the address of this end, for the event that follows, if it is known. Returns that of the peer.
    pub(crate) fn push_local(&mut self, at: Instant, addrs: &FourTuple) -> ([u8; 16], u16) {
        if let Some(local) = addrs.local_ip {
            self.push(at, LogEvent::LocalAddress { ip: octets(local) });
        }
        let remote: SocketAddr = addrs.remote;
        (octets(remote.ip()), remote.port())
    }

    /// Adds the versions that the server or the client knows, the first ones of many.
    pub(crate) fn push_versions(&mut self, at: Instant, server: bool, known: &[Version]) {
        for version in known.iter().take(VERSIONS_MAX) {
            self.push(at, LogEvent::VersionKnown { server, version: *version });
        }
    }

    /// Adds the transport parameters of an end that are numbers or flags. Connection IDs, tokens and addresses are left out.
    pub(crate) fn push_parameters(&mut self, at: Instant, remote: bool, parameters: &TransportParameters) {
        for (id, value) in numbers(parameters) {
            if let Some(value) = value {
                self.push(at, LogEvent::Parameter { id, value });
            }
        }
        self.push(at, LogEvent::ParametersEnd { remote });
    }
}

/// The parameters that are numbers, by their registered numbers (RFC 9000 §18.2 and the extensions); `None`: absent.
fn numbers(p: &TransportParameters) -> [(u64, Option<u64>); 22] {
    let flag = |set: bool| set.then_some(1);
    [
        // Without a limit, the parameter is 0 or absent.
        (0x01, Some(p.max_idle_timeout.map_or(0, |timeout| timeout.as_millis() as u64))),
        (0x03, Some(p.max_udp_payload_size.get())),
        (0x04, Some(p.initial_max_data.get())),
        (0x05, Some(p.initial_max_stream_data_bidi_local.get())),
        (0x06, Some(p.initial_max_stream_data_bidi_remote.get())),
        (0x07, Some(p.initial_max_stream_data_uni.get())),
        (0x08, Some(p.initial_max_streams_bidi.get())),
        (0x09, Some(p.initial_max_streams_uni.get())),
        (0x0a, Some(p.ack_delay_exponent.into())),
        (0x0b, Some(p.max_ack_delay.as_millis() as u64)),
        (0x0c, flag(p.disable_active_migration)),
        (0x0e, Some(p.active_connection_id_limit.get())),
        (0x1d, flag(p.reset_stream_at)),
        (0x20, p.max_datagram_frame_size.map(|size| size.get())),
        (0x3e, p.initial_max_path_id.map(|path| path.0.into())),
        (0x2ab2, flag(p.grease_quic_bit)),
        (0x3fed, p.fec.map(|fec| fec.schemes.get())),
        (0x7158, p.time_stamps.map(|roles| roles as u64)),
        (0x238f_fecd, Some(p.decoder_fec_scheme.get()).filter(|scheme| *scheme != 0)),
        (0x9f81_a176, p.address_discovery.map(|roles| roles as u64)),
        (0xff04_de1b, p.min_ack_delay.map(|delay| delay.as_micros() as u64)),
        (0x23_8ffe_ce01, Some(p.enable_fec.into()).filter(|enabled| *enabled != 0)),
    ]
}

//! Random parameters are understood, and random bytes are refused or legal.

use std::net::{SocketAddrV4, SocketAddrV6};
use std::time::Duration;

use fulmar_base::Rng;
use proptest::prelude::*;

use super::{AVAILABLE_VERSIONS_MAX, ROWS, STREAMS_MAX, cid, parameter, read_is_legal};
use crate::{
    AddressDiscovery, ConnectionId, FecParameters, PathId, PreferredAddress, ResetToken, Side, TimeStamps,
    TransportParameters, VarInt, Version, VersionInformation,
};

fn varint(max: u64) -> impl Strategy<Value = VarInt> {
    // Half of the numbers are small, so that each length of the encoding occurs.
    prop_oneof![0..=max, 0..=70_000.min(max)].prop_map(VarInt::saturating)
}

fn any_cid(shortest: usize) -> impl Strategy<Value = ConnectionId> {
    prop::collection::vec(any::<u8>(), shortest..=20).prop_map(|bytes| cid(&bytes))
}

fn any_preferred() -> impl Strategy<Value = PreferredAddress> {
    let v4 = (any::<[u8; 4]>(), 1..=u16::MAX).prop_map(|(ip, port)| SocketAddrV4::new(ip.into(), port));
    let v6 =
        (any::<[u8; 16]>(), 1..=u16::MAX).prop_map(|(ip, port)| SocketAddrV6::new(ip.into(), port, 0, 0));
    (prop::option::of(v4), prop::option::of(v6), any_cid(1), any::<[u8; 16]>())
        .prop_map(|(v4, v6, cid, token)| PreferredAddress { v4, v6, cid, reset_token: ResetToken(token) })
}

fn any_versions() -> impl Strategy<Value = VersionInformation> {
    let version = (1..=u32::MAX).prop_map(Version);
    (version.clone(), prop::collection::vec(version, 0..AVAILABLE_VERSIONS_MAX), any::<prop::sample::Index>())
        .prop_map(|(chosen, mut available, place)| {
            available.insert(place.index(available.len() + 1), chosen);
            VersionInformation { chosen, available }
        })
}

prop_compose! {
    /// Parameters that both sides may send.
    fn any_common()(
        idle in prop::option::of(varint(VarInt::MAX.get())),
        sizes in (varint(VarInt::MAX.get()), varint(VarInt::MAX.get())),
        data in [varint(VarInt::MAX.get()), varint(VarInt::MAX.get()), varint(VarInt::MAX.get()), varint(VarInt::MAX.get())],
        streams in [varint(STREAMS_MAX), varint(STREAMS_MAX)],
        ack_delay_exponent in 0..=20u8,
        max_ack_delay in 0..1u64 << 14,
        min_ack_delay in prop::option::of(0.0..=1.0),
        flags in any::<[bool; 3]>(),
        initial_scid in prop::option::of(any_cid(1)),
        datagram in prop::option::of(varint(VarInt::MAX.get())),
        version_information in prop::option::of(any_versions()),
        path in prop::option::of(any::<u32>()),
        time_stamps in prop::option::of(prop::sample::select(vec![
            TimeStamps::Receive,
            TimeStamps::Send,
            TimeStamps::Both,
        ])),
        fec in prop::option::of([varint(63), varint(VarInt::MAX.get()), varint(VarInt::MAX.get()), varint(VarInt::MAX.get())]),
        michel in (0u8..2, varint(VarInt::MAX.get())),
        discovery in prop::option::of(prop::sample::select(vec![
            AddressDiscovery::Provide,
            AddressDiscovery::Receive,
            AddressDiscovery::Both,
        ])),
    ) -> TransportParameters {
        TransportParameters {
            max_idle_timeout: idle.map(|ms| Duration::from_millis(ms.get().max(1))),
            max_udp_payload_size: sizes.0.max(VarInt::from_u32(1200)),
            initial_max_data: data[0],
            initial_max_stream_data_bidi_local: data[1],
            initial_max_stream_data_bidi_remote: data[2],
            initial_max_stream_data_uni: data[3],
            initial_max_streams_bidi: streams[0],
            initial_max_streams_uni: streams[1],
            ack_delay_exponent,
            max_ack_delay: Duration::from_millis(max_ack_delay),
            disable_active_migration: flags[0],
            active_connection_id_limit: sizes.1.max(VarInt::from_u32(2)),
            initial_scid,
            max_datagram_frame_size: datagram.filter(|&size| size != VarInt::ZERO),
            grease_quic_bit: flags[1],
            reset_stream_at: flags[2],
            version_information,
            min_ack_delay: min_ack_delay.map(|part: f64| Duration::from_micros((part * max_ack_delay as f64 * 1e3) as u64)),
            time_stamps,
            address_discovery: discovery,
            fec: fec.map(|[version, schemes, window, symbol]| FecParameters { version, schemes, window, symbol }),
            enable_fec: michel.0,
            decoder_fec_scheme: michel.1,
            initial_max_path_id: path.map(PathId),
            ..Default::default()
        }
    }
}

proptest! {
    #[test]
    fn a_client_is_understood(parameters in any_common(), grease: Option<u64>) {
        let mut rng = grease.map(Rng::from_u64);
        let bytes = parameters.write(Side::Client, rng.as_mut());
        prop_assert_eq!(TransportParameters::read(Side::Client, &bytes), Ok(parameters));
    }

    #[test]
    fn a_server_is_understood(
        common in any_common(),
        dcid in prop::option::of(any_cid(0)),
        retry in prop::option::of(any_cid(0)),
        token in prop::option::of(any::<[u8; 16]>()),
        preferred_address in prop::option::of(any_preferred()),
        grease: Option<u64>,
    ) {
        let parameters = TransportParameters {
            original_dcid: dcid,
            retry_scid: retry,
            stateless_reset_token: token.map(ResetToken),
            preferred_address,
            ..common
        };
        let mut rng = grease.map(Rng::from_u64);
        let bytes = parameters.write(Side::Server, rng.as_mut());
        prop_assert_eq!(TransportParameters::read(Side::Server, &bytes), Ok(parameters));
    }

    #[test]
    fn noise_is_refused_or_legal(server: bool, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_is_legal(if server { Side::Server } else { Side::Client }, &bytes);
    }

    /// Noise that is cut into parameters of known numbers reaches the codecs.
    #[test]
    fn noise_in_known_parameters_is_refused_or_legal(
        server: bool,
        noise in prop::collection::vec((0..ROWS.len(), prop::collection::vec(any::<u8>(), 0..60)), 0..4),
    ) {
        let bytes: Vec<u8> = noise.iter().flat_map(|(row, value)| parameter(ROWS[*row].id, value)).collect();
        read_is_legal(if server { Side::Server } else { Side::Client }, &bytes);
    }
}

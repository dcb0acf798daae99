use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

mod random;
mod refusals;

const SIDES: [Side; 2] = [Side::Client, Side::Server];

fn cid(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

/// One parameter on the wire.
fn parameter(id: u64, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, VarInt::try_from(id).unwrap());
    put_varint(&mut out, VarInt::try_from(value.len() as u64).unwrap());
    out.extend_from_slice(value);
    out
}

/// A parameter that holds an integer.
fn number(id: u64, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, VarInt::try_from(value).unwrap());
    parameter(id, &out)
}

fn preferred_bytes(cid: &[u8]) -> Vec<u8> {
    let mut bytes = vec![192, 0, 2, 1, 0x01, 0xbb];
    bytes.extend(Ipv6Addr::LOCALHOST.octets());
    bytes.extend([0x10, 0x92, cid.len() as u8]);
    bytes.extend_from_slice(cid);
    bytes.extend([7; 16]);
    bytes
}

/// A server's parameters of which none has its default value.
fn all() -> TransportParameters {
    TransportParameters {
        original_dcid: Some(cid(&[1; 20])),
        max_idle_timeout: Some(Duration::from_secs(30)),
        stateless_reset_token: Some(ResetToken([3; 16])),
        max_udp_payload_size: VarInt::from_u32(1472),
        initial_max_data: VarInt::MAX,
        initial_max_stream_data_bidi_local: VarInt::from_u32(63),
        initial_max_stream_data_bidi_remote: VarInt::from_u32(64),
        initial_max_stream_data_uni: VarInt::from_u32(16_384),
        initial_max_streams_bidi: VarInt::saturating(STREAMS_MAX),
        initial_max_streams_uni: VarInt::from_u32(100),
        ack_delay_exponent: 20,
        max_ack_delay: Duration::from_millis((1 << 14) - 1),
        disable_active_migration: true,
        preferred_address: Some(PreferredAddress {
            v4: Some(SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 443)),
            v6: Some(SocketAddrV6::new(Ipv6Addr::LOCALHOST, 4242, 0, 0)),
            cid: cid(&[6; 20]),
            reset_token: ResetToken([7; 16]),
        }),
        active_connection_id_limit: VarInt::from_u32(8),
        initial_scid: Some(cid(&[8; 20])),
        retry_scid: Some(cid(&[9; 20])),
        max_datagram_frame_size: Some(VarInt::from_u32(65_535)),
        grease_quic_bit: true,
        reset_stream_at: true,
        version_information: Some(VersionInformation {
            chosen: Version::V1,
            available: vec![Version::V2, Version::V1],
        }),
        time_stamps: Some(TimeStamps::Both),
        address_discovery: Some(AddressDiscovery::Both),
        fec: Some(FecParameters {
            version: FecParameters::VERSION,
            schemes: VarInt::from_u32(3),
            window: VarInt::from_u32(256),
            symbol: VarInt::from_u32(1_500),
        }),
        enable_fec: 1,
        decoder_fec_scheme: VarInt::from_u32(2),
        min_ack_delay: Some(Duration::from_millis(1)),
        initial_max_path_id: Some(PathId(u32::MAX)),
    }
}

/// Numbers and values of well-formed parameters.
fn split(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut reader = Reader::new(bytes);
    let mut out = Vec::new();
    while !reader.is_empty() {
        let id = reader.varint().unwrap().get();
        out.push((id, reader.length_prefixed().unwrap().to_vec()));
    }
    out
}

fn refused(sender: Side, bytes: &[u8], id: u64) -> ParameterProblem {
    match TransportParameters::read(sender, bytes) {
        Err(TransportParameterError::Illegal { parameter, problem }) => {
            assert_eq!(parameter.0.get(), id, "the error names another parameter");
            problem
        }
        other => panic!("parameter {id:#x} of {sender:?} gave {other:?}"),
    }
}

/// What is read is legal: it is written and read again as the same.
fn read_is_legal(sender: Side, bytes: &[u8]) {
    if let Ok(read) = TransportParameters::read(sender, bytes) {
        assert_eq!(TransportParameters::read(sender, &read.write(sender, None)), Ok(read));
    }
}

#[test]
fn the_table_knows_each_number_once_and_no_reserved_one() {
    for (index, row) in ROWS.iter().enumerate() {
        assert!(
            ROWS[..index].iter().all(|other| other.id != row.id && other.name != row.name),
            "{}",
            row.name
        );
        assert_ne!(row.id % 31, 27, "{} is reserved", row.name);
    }
    assert_eq!(split(&all().write(Side::Server, None)).len(), ROWS.len(), "all() leaves a parameter out");
}

#[test]
fn what_other_versions_add_to_the_parameter_of_erasure_correction_is_ignored() {
    let read = |version: u8| {
        let bytes = [0x7f, 0xed, 7, version, 2, 0x41, 0, 0x40, 200, 9];
        TransportParameters::read(Side::Client, &bytes)
    };
    let fec = read(2).unwrap().fec.unwrap();
    let fields = [fec.version, fec.schemes, fec.window, fec.symbol].map(VarInt::get);
    assert_eq!(fields, [2, 2, 256, 200]);
    assert!(read(1).is_err(), "this version says no more");
}

#[test]
fn the_parameters_of_the_draft_on_erasure_correction() {
    // What the fork of quic-go writes, which the tests of the frames name: both, with Reed-Solomon.
    let bytes = *b"\xc0\x00\x00\x23\x8f\xfe\xce\x01\x01\x01\xa3\x8f\xfe\xcd\x01\x02";
    let read = TransportParameters::read(Side::Client, &bytes).unwrap();
    assert_eq!((read.enable_fec, read.decoder_fec_scheme), (1, VarInt::from_u32(2)));
    assert_eq!(split(&read.write(Side::Client, None)), [(0x238ffecd, vec![2]), (0x238ffece01, vec![1])]);
    let problem = refused(Side::Client, b"\xc0\x00\x00\x23\x8f\xfe\xce\x01\x01\x02", 0x238ffece01);
    assert_eq!(problem, ParameterProblem::Value("is above 1"));
}

#[test]
fn absent_parameters_have_the_values_of_the_standard() {
    for side in SIDES {
        let read = TransportParameters::read(side, &[]).unwrap();
        assert_eq!(read, TransportParameters::default());
        assert!(read.write(side, None).is_empty());
    }
    let defaults = TransportParameters::default();
    assert_eq!(defaults.max_udp_payload_size.get(), 65_527);
    assert_eq!(defaults.ack_delay_exponent, 3);
    assert_eq!(defaults.max_ack_delay, Duration::from_millis(25));
    assert_eq!(defaults.active_connection_id_limit.get(), 2);
}

#[test]
fn each_parameter_has_its_number_and_layout() {
    let expected: Vec<(u64, Vec<u8>)> = vec![
        (0x00, vec![1; 20]),
        (0x01, vec![0x80, 0, 0x75, 0x30]),
        (0x02, vec![3; 16]),
        (0x03, vec![0x45, 0xc0]),
        (0x04, vec![0xff; 8]),
        (0x05, vec![63]),
        (0x06, vec![0x40, 64]),
        (0x07, vec![0x80, 0, 0x40, 0]),
        (0x08, vec![0xd0, 0, 0, 0, 0, 0, 0, 0]),
        (0x09, vec![0x40, 100]),
        (0x0a, vec![20]),
        (0x0b, vec![0x7f, 0xff]),
        (0x0c, vec![]),
        (0x0d, preferred_bytes(&[6; 20])),
        (0x0e, vec![8]),
        (0x0f, vec![8; 20]),
        (0x10, vec![9; 20]),
        (0x11, vec![0, 0, 0, 1, 0x6b, 0x33, 0x43, 0xcf, 0, 0, 0, 1]),
        (0x1d, vec![]),
        (0x0017_f758_6d2c_b571, vec![]),
        (0x20, vec![0x80, 0, 0xff, 0xff]),
        (0x3e, vec![0xc0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]),
        (0x2ab2, vec![]),
        (0x3fed, vec![1, 3, 0x41, 0, 0x45, 0xdc]),
        (0x7158, vec![3]),
        (0x238f_fecd, vec![2]),
        (0x23_8ffe_ce01, vec![1]),
        (0x9f81_a176, vec![2]),
        (0xff04_de1b, vec![0x43, 0xe8]),
    ];
    let bytes = all().write(Side::Server, None);
    assert_eq!(split(&bytes), expected);
    assert_eq!(TransportParameters::read(Side::Server, &bytes), Ok(all()));
    // The order is free.
    let reversed: Vec<u8> = expected.iter().rev().flat_map(|(id, value)| parameter(*id, value)).collect();
    assert_eq!(TransportParameters::read(Side::Server, &reversed), Ok(all()));
}

#[test]
fn either_number_of_reset_stream_at_is_read_and_both_are_written() {
    for id in [0x1d, 0x0017_f758_6d2c_b571] {
        let read = TransportParameters::read(Side::Client, &parameter(id, &[])).unwrap();
        assert!(read.reset_stream_at);
        let ids: Vec<u64> = split(&read.write(Side::Client, None)).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [0x1d, 0x0017_f758_6d2c_b571]);
        assert_eq!(refused(Side::Client, &parameter(id, &[0]), id), ParameterProblem::TrailingBytes);
    }
}

#[test]
fn preferred_addresses_may_lack_a_family() {
    let mut parameters = all();
    for (v4, v6) in [(true, false), (false, true), (false, false)] {
        let mut address = all().preferred_address.unwrap();
        address.v4 = address.v4.filter(|_| v4);
        address.v6 = address.v6.filter(|_| v6);
        parameters.preferred_address = Some(address);
        let bytes = parameters.write(Side::Server, None);
        assert_eq!(TransportParameters::read(Side::Server, &bytes).unwrap(), parameters);
    }
}

#[test]
fn zero_means_absent_where_the_standards_say_so() {
    let read = TransportParameters::read(Side::Client, &[number(0x01, 0), number(0x20, 0)].concat()).unwrap();
    assert_eq!(read, TransportParameters::default());
    let zeros = TransportParameters {
        max_idle_timeout: Some(Duration::ZERO),
        max_datagram_frame_size: Some(VarInt::ZERO),
        ..Default::default()
    };
    let bytes = zeros.write(Side::Client, None);
    assert_eq!(TransportParameters::read(Side::Client, &bytes), Ok(TransportParameters::default()));
}

#[test]
fn durations_are_rounded_up_and_saturate() {
    let read_back = |parameters: TransportParameters| {
        TransportParameters::read(Side::Client, &parameters.write(Side::Client, None)).unwrap()
    };
    let fine = read_back(TransportParameters {
        max_idle_timeout: Some(Duration::from_nanos(1)),
        max_ack_delay: Duration::from_micros(1_001),
        min_ack_delay: Some(Duration::from_nanos(1_000_001)),
        ..Default::default()
    });
    assert_eq!(fine.max_idle_timeout, Some(Duration::from_millis(1)));
    assert_eq!(fine.max_ack_delay, Duration::from_millis(2));
    assert_eq!(fine.min_ack_delay, Some(Duration::from_micros(1_001)));
    let endless =
        read_back(TransportParameters { max_idle_timeout: Some(Duration::MAX), ..Default::default() });
    assert_eq!(endless.max_idle_timeout, Some(Duration::from_millis(VarInt::MAX.get())));
}

#[test]
fn unknown_parameters_are_ignored() {
    for id in [27, 0x12, 0x2ab3, 0xff04_de1a, VarInt::MAX.get()] {
        for side in SIDES {
            let bytes = [number(0x04, 9), parameter(id, &[0xff; 300]), number(0x05, 8)].concat();
            let read = TransportParameters::read(side, &bytes).unwrap();
            assert_eq!((read.initial_max_data.get(), read.initial_max_stream_data_bidi_local.get()), (9, 8));
        }
    }
}

#[test]
fn a_reserved_parameter_is_mixed_in() {
    let mut rng = Rng::from_u64(5);
    for side in SIDES {
        let plain = split(&all().write(side, None));
        let (mut places, mut lengths) = (vec![0; plain.len() + 1], vec![0; 17]);
        let mut ids = BTreeSet::new();
        for _ in 0..2_000 {
            let bytes = all().write(side, Some(&mut rng));
            let mut greased = split(&bytes);
            let place = greased.iter().position(|(id, _)| id % 31 == 27).unwrap();
            let (id, value) = greased.remove(place);
            ids.insert(id);
            assert_eq!(greased, plain);
            assert_eq!(
                TransportParameters::read(side, &bytes),
                TransportParameters::read(side, &all().write(side, None))
            );
            places[place] += 1;
            lengths[value.len()] += 1;
        }
        assert!(!places.contains(&0) && !lengths.contains(&0), "{places:?} {lengths:?}");
        assert!(ids.len() > 1_900, "any of them is taken: {}", ids.len());
    }
}

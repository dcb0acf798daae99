use proptest::prelude::*;

use super::*;
use crate::{CID_LEN_MAX, ConnectionId, PacketKind, Writer};

fn cid(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

/// A long packet with a payload of `payload` zero bytes.
fn long_packet(
    kind: PacketKind,
    version: Version,
    token: &[u8],
    payload: usize,
) -> (Vec<u8>, LongHeaderOffsets) {
    let header = LongHeader { kind, version, dst: cid(&[1; 8]), src: cid(&[2; 5]), token };
    let mut packet = vec![0; header.encoded_len(3) + payload];
    let offsets = header.write(&mut Writer::new(&mut packet), 0x0001_0203, 3);
    let length = packet.len() - offsets.pn_offset;
    patch_length(&mut packet, offsets.length_at, length);
    (packet, offsets)
}

#[test]
fn long_headers_are_read_as_they_were_written() {
    for version in [Version::V1, Version::V2] {
        for kind in [PacketKind::Initial, PacketKind::ZeroRtt, PacketKind::Handshake] {
            let (packet, offsets) = long_packet(kind, version, b"token", 30);
            let mut datagram = packet.clone();
            datagram.extend([9; 40]);
            let read = read_packet(&datagram, 8).unwrap();
            assert_eq!((read.len, read.dst, read.src), (packet.len(), cid(&[1; 8]), cid(&[2; 5])));
            assert_eq!(read.version, Some(version));
            let pn_offset = offsets.pn_offset;
            match (kind, read.kind) {
                (PacketKind::Initial, ProtectedKind::Initial { token, pn_offset: at }) => {
                    assert_eq!((&packet[token], at), (&b"token"[..], pn_offset));
                }
                (PacketKind::ZeroRtt, ProtectedKind::ZeroRtt { pn_offset: at })
                | (PacketKind::Handshake, ProtectedKind::Handshake { pn_offset: at }) => {
                    assert_eq!(at, pn_offset)
                }
                (kind, read) => panic!("{kind:?} was read as {read:?}"),
            }
        }
    }
}

#[test]
fn protection_is_its_own_inverse() {
    let (clear, offsets) = long_packet(PacketKind::Handshake, Version::V1, &[], 30);
    let mask = [0xff, 0x11, 0x22, 0x33, 0x44];
    let mut packet = clear.clone();
    protect_header(&mut packet, offsets.pn_offset, mask);
    assert_ne!(packet, clear);
    let bits = unprotect_header(&mut packet, offsets.pn_offset, mask).unwrap();
    assert_eq!(packet, clear);
    assert_eq!((bits.pn_len, bits.truncated_pn), (3, 0x01_0203));
    assert!(bits.reserved_bits_are_zero());
}

#[test]
fn short_headers_show_spin_and_key_phase() {
    let mut packet = [0; 40];
    let header = ShortHeader { dst: cid(&[7; 8]), spin: true, key_phase: true };
    let at = header.write(&mut Writer::new(&mut packet), 0xabcd, 2);
    let read = read_packet(&packet, 8).unwrap();
    assert_eq!(read.kind, ProtectedKind::OneRtt { pn_offset: at });
    assert_eq!(read.dst, cid(&[7; 8]));
    let bits = unprotect_header(&mut packet, at, [0; 5]).unwrap();
    assert!(bits.spin() && bits.key_phase() && bits.reserved_bits_are_zero());
    assert_eq!((bits.truncated_pn, bits.pn_len), (0xabcd, 2));
}

#[test]
fn the_quic_bit_may_have_any_value() {
    let (long, _) = long_packet(PacketKind::Handshake, Version::V1, &[], 30);
    let mut short = vec![0; 40];
    ShortHeader { dst: cid(&[7; 8]), spin: false, key_phase: false }.write(
        &mut Writer::new(&mut short),
        1,
        1,
    );
    let mut retry = Vec::new();
    write_retry(&mut retry, Version::V1, 5, &cid(&[1; 8]), &cid(&[2; 9]), b"retry token");
    retry.extend([8; RETRY_TAG_LEN]);
    for mut packet in [long, short, retry] {
        let set = read_packet(&packet, 8).unwrap();
        assert!(set.quic_bit);
        clear_quic_bit(&mut packet);
        let cleared = read_packet(&packet, 8).unwrap();
        assert!(!cleared.quic_bit);
        assert_eq!(ProtectedPacket { quic_bit: true, ..cleared }, set);
    }
    // In Version Negotiation packets it means nothing (RFC 8999 §6).
    let mut negotiation = Vec::new();
    write_version_negotiation(&mut negotiation, 0, &[1; 8], &[2; 9], &[Version::V1]);
    clear_quic_bit(&mut negotiation);
    assert!(read_packet(&negotiation, 8).unwrap().quic_bit);
}

#[test]
fn an_unknown_version_shows_its_connection_ids() {
    let mut packet = vec![0xc0, 0xfa, 0xce, 0xb0, 0x0c, 30];
    packet.extend([3; 30]);
    packet.push(1);
    packet.push(4);
    match read_packet(&packet, 8) {
        Err(HeaderError::UnsupportedVersion(cids)) => {
            assert_eq!(cids.version, Version(0xface_b00c));
            assert_eq!((cids.dst(&packet), cids.src(&packet)), (&[3; 30][..], &[4][..]));
        }
        other => panic!("{other:?}"),
    }
    packet[1..5].copy_from_slice(&1u32.to_be_bytes());
    assert_eq!(read_packet(&packet, 8), Err(HeaderError::CidTooLong));
}

#[test]
fn version_negotiation_and_retry_are_read_as_written() {
    let mut packet = Vec::new();
    write_version_negotiation(&mut packet, 0, &[1; 8], &[2; 9], &[Version::V1, Version::V2]);
    let read = read_packet(&packet, 8).unwrap();
    let ProtectedKind::VersionNegotiation { versions } = read.kind else { panic!("{read:?}") };
    assert!(negotiated_versions(&packet[versions]).eq([Version::V1, Version::V2]));
    for missing in [1, 2, 3, 8] {
        let truncated = &packet[..packet.len() - missing];
        assert_eq!(read_packet(truncated, 8), Err(HeaderError::Truncated), "{missing} bytes are missing");
    }

    let mut packet = Vec::new();
    write_retry(&mut packet, Version::V2, 5, &cid(&[1; 8]), &cid(&[2; 9]), b"retry token");
    packet.extend([8; RETRY_TAG_LEN]);
    let read = read_packet(&packet, 8).unwrap();
    let ProtectedKind::Retry { token, tag } = read.kind else { panic!("{read:?}") };
    assert_eq!((&packet[token], tag), (&b"retry token"[..], [8; RETRY_TAG_LEN]));
}

#[test]
fn every_truncation_is_an_error() {
    let (packet, _) = long_packet(PacketKind::Initial, Version::V1, b"token", 30);
    for len in 0..packet.len() {
        assert!(read_packet(&packet[..len], 8).is_err(), "{len} bytes");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), mask: [u8; 5]) {
        if let Ok(packet) = read_packet(&bytes, 8) {
            prop_assert!(packet.len <= bytes.len());
            if let ProtectedKind::Initial { pn_offset, .. } | ProtectedKind::OneRtt { pn_offset } = packet.kind {
                sample(&bytes, pn_offset);
                let _ = unprotect_header(&mut bytes, pn_offset, mask);
            }
        }
    }
}

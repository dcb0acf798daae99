//! Small values at their limits, and how they are shown.

use std::hash::{DefaultHasher, Hash, Hasher};

use fulmar_wire::{
    AddressDiscovery, ConnectionId, Dialect, Dir, LongHeader, PacketKind, ResetToken, ShortHeader, Side,
    StreamId, TimeStamps, UnprotectedBits, VarInt, Version, Writer, frames, packet_number, protect_header,
    sample, unprotect_header, write_retry, write_version_negotiation,
};

#[test]
fn a_writer_can_be_given_less_room_but_never_more() {
    let mut buffer = [0; 10];
    let mut writer = Writer::new(&mut buffer);
    writer.put_u16(1);
    for (limit, left) in [(100, 8), (5, 5), (6, 5), (0, 0)] {
        writer.limit(limit);
        assert_eq!((writer.remaining(), writer.len()), (left, 2), "{limit}");
    }
}

#[test]
fn what_was_not_read_of_a_packet_is_counted() {
    // Two PING frames and one of padding.
    let mut frames = frames(&[1, 1, 0], Dialect::SinglePath);
    let mut left = vec![frames.remaining()];
    while frames.next().is_some() {
        left.push(frames.remaining());
    }
    assert_eq!(left, [3, 2, 1, 0]);
}

#[test]
fn a_stream_is_named_by_who_opened_it_its_direction_and_a_count() {
    // RFC 9000 §2.1, table 1.
    let table = [
        (Side::Client, Dir::Bi),
        (Side::Server, Dir::Bi),
        (Side::Client, Dir::Uni),
        (Side::Server, Dir::Uni),
    ];
    for (bits, (initiator, dir)) in (0..).zip(table) {
        for index in [0, 1, 5, StreamId::INDEX_MAX] {
            let id = StreamId::new(initiator, dir, index);
            assert_eq!(id.as_u64(), index << 2 | bits);
            assert_eq!((id.initiator(), id.dir(), id.index()), (initiator, dir, index));
            assert_eq!(StreamId::try_from(id.as_u64()), Ok(id));
        }
    }
    let id = StreamId::new(Side::Server, Dir::Uni, 5);
    assert_eq!((id.to_string(), format!("{id:?}")), ("23".into(), "stream 23 (Server Uni 5)".into()));
}

#[test]
fn a_connection_id_is_shown_in_hexadecimal_digits() {
    let cid = ConnectionId::new(&[0x0a, 0xff, 0x00]).unwrap();
    assert_eq!((cid.to_string(), format!("{cid:?}")), ("0aff00".into(), "cid:0aff00".into()));
}

#[test]
fn tokens_differ_by_any_bit_and_are_not_shown() {
    let hash = |token: &ResetToken| {
        let mut hasher = DefaultHasher::new();
        token.hash(&mut hasher);
        hasher.finish()
    };
    let token = ResetToken([0x5a; 16]);
    assert_eq!(token, ResetToken([0x5a; 16]));
    for bit in 0..128 {
        let mut other = token;
        other.0[bit / 8] ^= 1 << (bit % 8);
        assert!(token != other && hash(&token) != hash(&other), "bit {bit}");
    }
    // Differences that cancel one another.
    let mut other = token;
    other.0[3] ^= 1;
    other.0[9] ^= 1;
    assert_ne!(token, other);
    assert_eq!(format!("{token:?}"), "ResetToken(..)");
}

#[test]
fn versions_are_shown_by_name_or_number() {
    assert_eq!((Version::V1.to_string(), format!("{:?}", Version::V2)), ("v1".into(), "v2".into()));
    assert_eq!(Version(0xff00_001d).to_string(), "0xff00001d");
    // RFC 9000 §15.
    let reserved = [0x0a0a_0a0a, 0x1a2a_3a4a, 0xfafa_fafa].map(|number| Version(number).is_reserved());
    assert_eq!(reserved, [true; 3]);
    let others = [1, 0, 0x0a0a_0a0b, 0x0a0a_0b0a, 0x0f0f_0f0f].map(|number| Version(number).is_reserved());
    assert_eq!(others, [false; 5]);
}

#[test]
fn integers_of_variable_length_come_from_and_become_plain_ones() {
    assert_eq!(VarInt::from(0xffff_u16).get(), 0xffff);
    assert_eq!(u64::from(VarInt::MAX), (1 << 62) - 1);
    assert_eq!(VarInt::from_u32(77).to_string(), "77");
    let mut room = [0; 2];
    let mut writer = Writer::new(&mut room);
    assert!(writer.is_empty());
    writer.put_u8(1);
    assert!(!writer.is_empty());
}

#[test]
fn roles_of_the_ends_in_extensions() {
    let stamps = [TimeStamps::Receive, TimeStamps::Send, TimeStamps::Both];
    assert_eq!(stamps.map(TimeStamps::receives), [true, false, true]);
    assert_eq!(stamps.map(TimeStamps::sends), [false, true, true]);
    let addresses = [AddressDiscovery::Provide, AddressDiscovery::Receive, AddressDiscovery::Both];
    assert_eq!(addresses.map(AddressDiscovery::provides), [true, false, true]);
    assert_eq!(addresses.map(AddressDiscovery::receives), [false, true, true]);
}

#[test]
fn a_packet_number_takes_a_byte_more_where_half_of_the_range_is_reached() {
    // RFC 9000 §17.1: more than twice as large a range as the distance.
    let lens = [126, 127, 128].map(|number| packet_number::encoded_len(number, Some(0)));
    assert_eq!(lens, [1, 1, 2]);
    let lens = [126, 127].map(|number| packet_number::encoded_len(number, None));
    assert_eq!(lens, [1, 2], "without an acknowledgement the distance is to -1");
}

#[test]
fn a_truncated_packet_number_is_the_one_nearest_to_what_is_expected() {
    // RFC 9000 appendix A.3, with a range of 256: the expected number, half of the range, and one beside it.
    let end = 1 << 62;
    for (largest, truncated, number) in [
        (None, 0x00, 0),
        (None, 0xff, 255),
        (Some(126), 0x00, 0),
        (Some(127), 0x00, 256),
        (Some(127), 100, 100),
        (Some(255), 0x80, 384),
        (Some(255), 0x81, 129),
        (Some(end - 2), 0x00, end - 256),
        (Some(end - 2), 0xff, end - 1),
    ] {
        assert_eq!(packet_number::decode(largest, truncated, 1), number, "{truncated:#x} after {largest:?}");
    }
}

#[test]
fn header_protection_covers_the_bits_and_bytes_of_the_examples() {
    // RFC 9001 appendices A.2 (a long header) and A.5 (a short one): header in the clear, mask, header protected.
    let long_clear = b"\xc3\0\0\0\x01\x08\x83\x94\xc8\xf0\x3e\x51\x57\x08\0\0\x44\x9e\0\0\0\x02";
    let long_protected = b"\xc0\0\0\0\x01\x08\x83\x94\xc8\xf0\x3e\x51\x57\x08\0\0\x44\x9e\x7b\x9a\xec\x34";
    let long = (&long_clear[..], [0x43, 0x7b, 0x9a, 0xec, 0x36], &long_protected[..], 18, 2, 4);
    let short =
        (&b"\x42\x00\xbf\xf4"[..], [0xae, 0xfe, 0xfe, 0x7d, 0x03], &b"\x4c\xfe\x41\x89"[..], 1, 0xbff4, 3);
    for (clear, mask, protected, pn_offset, truncated_pn, pn_len) in [long, short] {
        let mut packet = clear.to_vec();
        protect_header(&mut packet, pn_offset, mask);
        assert_eq!(packet, protected);
        let bits = unprotect_header(&mut packet, pn_offset, mask).unwrap();
        assert_eq!(packet, clear);
        assert_eq!(bits, UnprotectedBits { first_byte: clear[0], truncated_pn, pn_len });
    }
}

#[test]
fn four_bits_of_a_long_header_are_protected_and_five_of_a_short_one() {
    // RFC 9001 §5.4.1.
    for (first, changed) in [(0xc3, 0x0f), (0x43, 0x1f)] {
        let mut packet = [first, 0, 0, 0, 0];
        protect_header(&mut packet, 1, [0xff; 5]);
        assert_eq!(packet, [first ^ changed, 0xff, 0xff, 0xff, 0xff]);
    }
}

#[test]
fn the_bits_of_the_first_byte_mean_one_thing_each() {
    let bits = |first_byte| UnprotectedBits { first_byte, truncated_pn: 0, pn_len: 1 };
    for bit in (0..8).map(|bit| 1 << bit).filter(|bit| *bit != 0x80) {
        assert_eq!(bits(bit).spin(), bit == 0x20, "{bit:#x}");
        assert_eq!(bits(bit).key_phase(), bit == 0x04, "{bit:#x}");
        assert_eq!(bits(bit).reserved_bits_are_zero(), bit & 0x18 == 0, "{bit:#x}");
        assert_eq!(bits(0x80 | bit).reserved_bits_are_zero(), bit & 0x0c == 0, "{bit:#x}");
    }
    assert!(!bits(0).spin() && !bits(0).key_phase());
}

#[test]
fn the_sample_begins_four_bytes_behind_the_packet_number() {
    // RFC 9001 §5.4.2.
    let packet: Vec<u8> = (0..30).collect();
    assert_eq!(sample(&packet, 3).unwrap()[..], packet[7..23]);
    assert!(sample(&packet[..23], 3).is_some() && sample(&packet[..22], 3).is_none());
}

#[test]
fn a_long_header_is_as_long_as_it_says() {
    for kind in [PacketKind::Initial, PacketKind::ZeroRtt, PacketKind::Handshake] {
        for (dst, src, token) in [(0, 0, 0), (8, 5, 3), (20, 20, 100)] {
            let cid = |len: usize| ConnectionId::new(&[7; 20][..len]).unwrap();
            let token = &[9; 100][..token];
            let header = LongHeader { kind, version: Version::V1, dst: cid(dst), src: cid(src), token };
            for pn_len in 1..=4 {
                let mut room = [0; 200];
                let mut writer = Writer::new(&mut room);
                header.write(&mut writer, 0, pn_len);
                assert_eq!(writer.len(), header.encoded_len(pn_len), "{header:?}");
            }
        }
    }
}

#[test]
fn a_header_behind_others_has_its_fields_where_it_would_have_them_alone() {
    let cid = ConnectionId::new(&[7; 8]).unwrap();
    let long =
        LongHeader { kind: PacketKind::Handshake, version: Version::V1, dst: cid, src: cid, token: &[] };
    let short = ShortHeader { dst: cid, spin: false, key_phase: false };
    let offsets = |before: usize| {
        let mut room = [0; 200];
        let mut writer = Writer::new(&mut room);
        writer.put_bytes(&[1; 100][..before]);
        let long = long.write(&mut writer, 0, 2);
        (long.length_at, long.pn_offset, short.write(&mut writer, 0, 2))
    };
    assert_eq!(offsets(0), (23, 25, 9));
    assert_eq!(offsets(100), offsets(0));
}

#[test]
fn random_bits_fill_what_the_first_byte_leaves() {
    // RFC 9000 §17.2.1 and §17.2.5.
    for (random, negotiation, retry) in [(0, 0xc0, 0xf0), (0xff, 0xff, 0xff), (0x35, 0xf5, 0xf5)] {
        let mut packet = Vec::new();
        write_version_negotiation(&mut packet, random, &[1], &[2], &[Version::V1]);
        assert_eq!(packet[0], negotiation);
        packet.clear();
        let cid = ConnectionId::new(&[7; 8]).unwrap();
        write_retry(&mut packet, Version::V1, random, &cid, &cid, b"token");
        assert_eq!(packet[0], retry);
    }
}

use super::*;

/// A packet of version 1 with connection IDs of 8 and 4 bytes and a payload of `len` bytes.
fn long_packet(kind: u8, len: u8) -> Vec<u8> {
    let mut packet = vec![0xc0 | kind << 4 | 0x03, 0, 0, 0, 1, 8];
    packet.extend([0xaa; 8]);
    packet.push(4);
    packet.extend([0xbb; 4]);
    if kind == TYPE_INITIAL {
        packet.extend([2, 0xcc, 0xcc]);
    }
    packet.extend([0x40, len]);
    packet.extend(vec![0xdd; usize::from(len)]);
    packet
}

#[test]
fn coalesced_packets_are_told_apart() {
    let mut datagram = long_packet(TYPE_INITIAL, 200);
    datagram.extend(long_packet(TYPE_HANDSHAKE, 30));
    datagram.extend([0x40; 50]);
    assert_eq!(long_header_types(&datagram).collect::<Vec<_>>(), [TYPE_INITIAL, TYPE_HANDSHAKE]);
}

#[test]
fn every_truncation_is_read_without_harm() {
    let mut datagram = long_packet(TYPE_INITIAL, 40);
    datagram.extend(long_packet(TYPE_HANDSHAKE, 30));
    for len in 0..datagram.len() {
        let kinds: Vec<u8> = long_header_types(&datagram[..len]).collect();
        assert!(kinds.is_empty() || kinds == [TYPE_INITIAL], "{len}: {kinds:?}");
    }
}

#[test]
fn other_versions_and_short_headers_have_no_type() {
    let mut datagram = long_packet(TYPE_HANDSHAKE, 30);
    datagram[4] = 2;
    assert_eq!(long_header_types(&datagram).count(), 0);
    assert_eq!(long_header_types(&[0x43; 60]).count(), 0);
    assert!(is_protected(&[0x43; 60]));
    assert!(!is_protected(&datagram));
}

#[test]
fn the_limit_counts_until_the_address_is_validated() {
    let mut traffic = Traffic::default();
    traffic.on_to_server(&long_packet(TYPE_INITIAL, 100));
    let received = traffic.to_server.bytes;
    let allowed = 3 * received;
    traffic.on_from_server(&vec![0x40; usize::try_from(allowed).unwrap()]);
    assert_eq!(traffic.amplification, None);
    let mut breached = traffic.clone();
    breached.on_from_server(&[0x40]);
    assert_eq!(breached.amplification, Some(Amplification { received, sent: allowed + 1 }));

    // The worst breach is kept when more credit makes later ones smaller.
    breached.on_to_server(&long_packet(TYPE_INITIAL, 10));
    breached.on_from_server(&[0x40; 60]);
    assert_eq!(breached.amplification, Some(Amplification { received, sent: allowed + 1 }));

    traffic.on_to_server(&long_packet(TYPE_HANDSHAKE, 30));
    assert!(traffic.client_validated);
    traffic.on_from_server(&[0x40; 10_000]);
    assert_eq!(traffic.amplification, None);
}

#[test]
fn the_largest_protected_datagram_of_the_client_is_kept() {
    let mut traffic = Traffic::default();
    traffic.on_to_server(&long_packet(TYPE_INITIAL, 100));
    traffic.on_to_server(&[0x41; 40]);
    traffic.on_to_server(&[0x42; 60]);
    traffic.on_to_server(&[0x43; 50]);
    assert_eq!(traffic.largest_protected, [0x42; 60]);
}

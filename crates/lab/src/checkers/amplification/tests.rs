use super::{Amplification, Kept};

/// The start of an Initial packet of QUIC version 1 with connection IDs of 8 bytes and `rest` bytes to come.
fn long_packet(first: u8, rest: usize) -> Vec<u8> {
    let mut packet = vec![first, 0, 0, 0, 1, 8];
    packet.extend([1; 8]);
    packet.push(8);
    packet.extend([2; 8]);
    if first & 0x30 == 0 {
        packet.push(0);
    }
    packet.extend([0x40 | (rest >> 8) as u8, rest as u8]);
    packet.resize(packet.len() + rest, 0);
    packet
}

#[test]
fn three_times_what_was_received_may_be_sent_and_no_more() {
    let mut counts = Amplification::default();
    let initial = long_packet(0xc0, 1_000);
    counts.on_received(&initial, 8);
    let allowed = 3 * initial.len() as u64;
    assert_eq!(counts.on_sent(allowed), Ok(()));
    assert!(counts.on_sent(1).is_err());
}

#[test]
fn a_handshake_packet_behind_an_initial_one_lifts_the_limit() {
    let mut counts = Amplification::default();
    let mut datagram = long_packet(0xc0, 100);
    datagram.extend(long_packet(0xe0, 100));
    counts.on_received(&datagram, 8);
    assert_eq!(counts.on_sent(1_000_000), Ok(()));
}

#[test]
fn what_overtook_the_first_packet_counts_for_its_address_alone() {
    let [here, elsewhere] = ["192.0.2.1:1", "192.0.2.2:1"].map(|text| text.parse().expect("an address"));
    let (initial, early) = (long_packet(0xc0, 1_000), long_packet(0xd0, 100));
    let mut kept = Kept::default();
    kept.keep(here, &early, 8);
    kept.keep(elsewhere, &early, 8);
    assert_eq!(kept.take(here, &initial, 8), [early]);
    assert!(kept.take(here, &initial, 8).is_empty());
}

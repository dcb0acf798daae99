//! Duplication, corruption, and the settings together.

use super::*;
use crate::{Corrupt, Loss, QueueLimit, Reorder};

#[test]
fn copies_follow_their_originals() {
    let mut line = Line::new(1, LinkConfig { duplicate: 0.1, delay: millis(5), ..LinkConfig::default() });
    let deliveries = line.send_every(millis(1), 10_000, 100);
    let copies = line.stats().packets_duplicated;
    assert!((900..1_100).contains(&copies), "{copies}");
    assert_eq!(deliveries.len() as u64, 10_000 + copies);
    let pairs = deliveries.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert_eq!(pairs as u64, copies);
    assert_eq!(line.stats().packets_reordered, 0);
    let stats = line.stats();
    assert_eq!(
        (stats.bytes_delivered - stats.bytes_of_copies, stats.bytes_of_copies),
        (1_000_000, 100 * copies)
    );
}

#[test]
fn copies_use_no_rate() {
    let config = LinkConfig { duplicate: 1.0, rate_bps: Some(10_000_000), ..LinkConfig::default() };
    let mut line = Line::new(1, config);
    line.send(0, 1_250);
    line.send(1, 1_250);
    assert_eq!(times(&line.drain()), [1_000_000, 1_000_000, 2_000_000, 2_000_000]);
}

#[test]
fn a_lost_packet_has_no_copy() {
    let config = LinkConfig { duplicate: 1.0, loss: Loss::Listed([1].into()), ..LinkConfig::default() };
    let mut line = Line::new(1, config);
    assert_eq!(numbers(&line.send_every(millis(1), 3, 10)), [0, 0, 2, 2]);
}

/// Sends packets of zeroes and returns how many bytes of each were changed.
fn damage(corrupt: Corrupt) -> (Vec<usize>, Vec<u8>) {
    let mut line = Line::new(2, LinkConfig { corrupt, ..LinkConfig::default() });
    for _ in 0..5_000 {
        line.send(0, 50);
    }
    let deliveries = line.drain();
    let changed = |delivery: &Delivery| delivery.packet.payload.iter().filter(|&&byte| byte != 0).count();
    let counts: Vec<_> = deliveries.iter().map(changed).filter(|&count| count > 0).collect();
    assert!(deliveries.iter().all(|delivery| delivery.packet.payload.len() == 50));
    assert_eq!(counts.len() as u64, line.stats().packets_corrupted);
    let bytes = deliveries.into_iter().flat_map(|delivery| delivery.packet.payload).filter(|&byte| byte != 0);
    (counts, bytes.collect())
}

#[test]
fn corruption_flips_bits() {
    let (counts, bytes) = damage(Corrupt { probability: 0.2, bytes_max: 1, replace: false });
    assert!((850..1_150).contains(&counts.len()), "{}", counts.len());
    assert!(counts.iter().all(|&count| count == 1));
    assert!(bytes.iter().all(|byte| byte.count_ones() == 1));
}

#[test]
fn corruption_replaces_up_to_the_number_of_bytes() {
    let (counts, bytes) = damage(Corrupt { probability: 0.2, bytes_max: 4, replace: true });
    assert!((1..=4).all(|count| counts.contains(&count)) && counts.iter().all(|&count| count <= 4));
    assert!(bytes.iter().any(|byte| byte.count_ones() > 4));
}

#[test]
fn corruption_always_changes_something_and_spares_empty_packets() {
    let corrupt = Corrupt { probability: 1.0, bytes_max: 3, replace: false };
    let mut line = Line::new(3, LinkConfig { corrupt, ..LinkConfig::default() });
    for _ in 0..2_000 {
        // One byte: each further change could undo the first.
        line.send(0, 1);
    }
    assert!(line.drain().iter().all(|delivery| delivery.packet.payload != [0]));
    line.send(0, 0);
    assert_eq!(line.drain().len(), 1);
    assert_eq!(line.stats().packets_corrupted, 2_000);
}

#[test]
fn the_ecn_codepoint_and_the_addresses_are_carried() {
    let mut line = Line::new(1, LinkConfig::default());
    line.send(0, 10);
    let packet = line.drain().remove(0).packet;
    assert_eq!((packet.ecn, packet.source, packet.destination), (Ecn::Ect0, address(1), address(2)));
    for bits in 0..=255 {
        assert_eq!(Ecn::from_bits(bits).bits(), bits & 3);
    }
}

#[test]
fn every_packet_is_accounted_for() {
    let config = LinkConfig {
        rate_bps: Some(5_000_000),
        queue: QueueLimit { bytes: Some(20_000), time: None },
        delay: millis(20),
        loss: Loss::Uniform { probability: 0.05 },
        duplicate: 0.05,
        reorder: Reorder::ByTime { probability: 0.1, delay_max: millis(5) },
        mtu: Some(1_200),
        ..LinkConfig::default()
    };
    let mut line = Line::new(9, config);
    let mut arrived = Vec::new();
    for n in 0..5_000 {
        line.send(n, 1_000 + (n as usize * 7) % 250);
        let next = line.world.now() + Duration::from_micros(1_500);
        while line.world.now() < next {
            line.world.advance(next);
            arrived.extend(std::iter::from_fn(|| line.world.poll_delivery()));
        }
    }
    arrived.extend(line.drain());
    let stats = line.stats();
    assert_eq!(stats.packets_delivered, arrived.len() as u64);
    assert_eq!(stats.bytes_delivered, arrived.iter().map(|delivery| delivery.packet.size()).sum::<u64>());
    assert_eq!(stats.packets_sent, 5_000);
    assert_eq!(
        stats.packets_sent + stats.packets_duplicated,
        stats.packets_delivered + stats.packets_dropped_in_all()
    );
}

//! Against another implementation of Reed-Solomon codes.

mod common;

use common::{payload, recovered, repair, sender, source};
use fulmar_fec::{Cauchy, Decoder, Limits, RepairId, Vandermonde};
use proptest::prelude::*;
use reed_solomon_erasure::galois_8::ReedSolomon;

/// The symbols from `first` on as the other implementation wants them: with their length, and all as long as the longest.
fn shards(first: u64, count: usize, repairs: usize) -> Vec<Vec<u8>> {
    let packed = |id| {
        let payload = payload(id);
        [&(payload.len() as u16).to_be_bytes()[..], &payload].concat()
    };
    let mut shards: Vec<Vec<u8>> = (first..).take(count).map(packed).collect();
    let longest = shards.iter().map(Vec::len).max().unwrap();
    shards.iter_mut().for_each(|shard| shard.resize(longest, 0));
    shards.resize(count + repairs, vec![0; longest]);
    shards
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn repair_symbols_with_the_matrix_of_vandermonde_are_the_same(
        first in 0..100u64,
        count in 1..100usize,
        repairs in 1..40usize,
    ) {
        let mut shards = shards(first, count, repairs);
        ReedSolomon::new(count, repairs).unwrap().encode(&mut shards).unwrap();
        let sender = sender(first + count as u64);
        for (shard, key) in shards[count..].iter().zip(0..) {
            let id = RepairId { first, count: count as u16, key };
            prop_assert_eq!(shard, &repair(&sender, &Vandermonde, &id));
        }
    }

    #[test]
    fn the_same_losses_are_recovered(
        first in 0..100u64,
        count in 1..40usize,
        repairs in 1..20usize,
        lost in prop::collection::vec(any::<bool>(), 60),
    ) {
        let mut all = shards(first, count, repairs);
        let other = ReedSolomon::new(count, repairs).unwrap();
        other.encode(&mut all).unwrap();
        let mut arrived: Vec<Option<Vec<u8>>> =
            all.iter().zip(&lost).map(|(shard, lost)| (!lost).then(|| shard.clone())).collect();
        let missing: Vec<u64> =
            (0..count).filter(|i| lost[*i]).map(|i| first + i as u64).collect();
        let recoverable = other.reconstruct(&mut arrived).is_ok();

        let sender = sender(first + count as u64);
        let mut ours = [Decoder::new(Limits::default()), Decoder::new(Limits::default())];
        for decoder in &mut ours {
            (0..count).filter(|i| !lost[*i]).for_each(|i| { source(decoder, first + i as u64); });
        }
        for index in (0..repairs).filter(|index| !lost[count + index]) {
            let id = RepairId { first, count: count as u16, key: index as u16 };
            // The repair symbols of the other implementation in one decoder, our own in the other one.
            ours[0].on_repair(&Vandermonde, &id, &all[count + index]).unwrap();
            ours[1].on_repair(&Cauchy, &id, &repair(&sender, &Cauchy, &id)).unwrap();
        }
        for decoder in &mut ours {
            let expected = if recoverable { missing.clone() } else { Vec::new() };
            prop_assert_eq!(recovered(decoder), expected);
        }
        if recoverable {
            prop_assert_eq!(arrived.into_iter().flatten().collect::<Vec<_>>(), all);
        }
    }
}

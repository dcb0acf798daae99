//! Which losses are recovered.

mod common;

use common::{payload, recovered, repair, sender, source};
use fulmar_fec::{
    Blocks, Cauchy, CauchyKeys, Code, Decoder, Kernel, Limits, Outcome, RepairId, Rlc, SourceWindow,
    Vandermonde, Xor, gf256, length_to_end, length_to_front,
};
use proptest::prelude::*;

fn decoder() -> Decoder {
    Decoder::new(Limits::default())
}

fn quick(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, cases, ..ProptestConfig::default() }
}

/// Sends a window with `repairs` repair symbols and loses what `lost` says, source symbols first. Returns what was recovered.
fn after_losses(
    code: &dyn Code,
    first: u64,
    count: u16,
    repairs: u16,
    lost: impl Fn(u16) -> bool,
) -> Vec<u64> {
    let sender = sender(first + u64::from(count));
    let mut decoder = decoder();
    let mut all = Vec::new();
    for i in (0..count).filter(|i| !lost(*i)) {
        source(&mut decoder, first + u64::from(i));
    }
    for key in (0..repairs).filter(|key| !lost(count + key)) {
        let id = RepairId { first, count, key };
        decoder.on_repair(code, &id, &repair(&sender, code, &id)).unwrap();
        all.extend(recovered(&mut decoder));
    }
    all
}

#[test]
fn xor_recovers_any_one_loss_and_no_two() {
    for lost in 0..6 {
        assert_eq!(after_losses(&Xor, 3, 6, 1, |i| i == lost), [3 + u64::from(lost)]);
        assert_eq!(after_losses(&Xor, 3, 6, 1, |i| i == lost || i == (lost + 1) % 6), []);
    }
}

#[test]
fn reed_solomon_recovers_from_any_k_of_all_symbols() {
    let (count, repairs) = (5, 4);
    for code in [&Cauchy as &dyn Code, &Vandermonde] {
        for lost in 0u32..1 << (count + repairs) {
            let missing = (lost & 0x1f).count_ones();
            let all = after_losses(code, 40, count, repairs, |i| lost >> i & 1 == 1);
            let expected = if lost.count_ones() <= u32::from(repairs) { missing } else { 0 };
            // With too many losses nothing is known, unless no source symbol is missing.
            assert_eq!(all.len(), expected as usize, "{}, losses {lost:b}", code.name());
        }
    }
}

#[test]
fn blocks_are_recovered_as_a_peer_with_fixed_blocks_sends_them() {
    let blocks = Blocks::new(20).unwrap();
    let sender = sender(60);
    let mut decoder = decoder();
    for id in (0..60).filter(|id| id % 2 == 0) {
        source(&mut decoder, id);
    }
    for block in 0..3 {
        for index in 0..10 {
            let id = blocks.repair(block, index).unwrap();
            let mut bytes = repair(&sender, &Vandermonde, &id);
            // Such peers have the length at the end of a symbol.
            length_to_end(&mut bytes);
            length_to_front(&mut bytes);
            decoder.on_repair(&Vandermonde, &id, &bytes).unwrap();
        }
        let odd: Vec<u64> = (block * 20..block * 20 + 20).filter(|id| id % 2 == 1).collect();
        assert_eq!(recovered(&mut decoder), odd);
    }
}

#[test]
fn the_length_goes_to_the_end_and_back() {
    let mut bytes = [0, 3, 7, 8, 9, 0];
    length_to_end(&mut bytes);
    assert_eq!(bytes, [7, 8, 9, 0, 0, 3]);
    length_to_front(&mut bytes);
    assert_eq!(bytes, [0, 3, 7, 8, 9, 0]);
    length_to_front(&mut bytes[..1]);
}

#[test]
fn repairs_that_come_first_recover_what_comes_never() {
    let sender = sender(8);
    let mut decoder = decoder();
    for key in 0..2 {
        let id = RepairId { first: 0, count: 8, key };
        assert_eq!(decoder.on_repair(&Cauchy, &id, &repair(&sender, &Cauchy, &id)), Ok(Outcome::Kept));
    }
    assert_eq!(decoder.equations(), 2);
    for id in [7, 0, 3, 4, 1] {
        assert_eq!(source(&mut decoder, id), Outcome::Kept);
    }
    assert_eq!(source(&mut decoder, 6), Outcome::Recovered(2));
    assert_eq!(recovered(&mut decoder), [2, 5]);
    assert_eq!(source(&mut decoder, 5), Outcome::Redundant);
    assert_eq!(decoder.equations(), 0);
}

#[test]
fn a_window_that_grows_or_moves_on_keeps_reed_solomon_repairs_independent() {
    // A repair symbol after each four symbols, with the key counted on, over all that is not older than 16 symbols.
    let sender = sender(32);
    let mut decoder = decoder();
    let mut all = Vec::new();
    for id in 0..32u64 {
        if ![9, 10, 11, 12].contains(&id) {
            source(&mut decoder, id);
        }
        if id % 4 == 3 {
            let first = (id + 1).saturating_sub(16);
            // The window moves by four and the key goes up by eight, so that their difference is new each time.
            let id = RepairId { first, count: (id + 1 - first) as u16, key: (id / 4 * 8) as u16 };
            decoder.on_repair(&Cauchy, &id, &repair(&sender, &Cauchy, &id)).unwrap();
            all.extend(recovered(&mut decoder));
        }
    }
    // Four repair symbols cover all four: those after 15, 19, 23, 27 have one of them at least.
    all.sort_unstable();
    assert_eq!(all, [9, 10, 11, 12]);
}

#[test]
fn a_long_lossy_flow_is_recovered_in_bounded_memory() {
    let limits = Limits { window: 64, ..Limits::default() };
    let bound = 64 * (1500 + 64 + 2) + 32_768;
    for code in [&Cauchy as &dyn Code, &Rlc::DENSE] {
        let (mut sender, mut keys) = (SourceWindow::new(64), CauchyKeys::default());
        let mut decoder = Decoder::new(limits);
        let (mut lost, mut all) = (Vec::new(), Vec::new());
        for id in 0..3000 {
            sender.push(&payload(id)).unwrap();
            // Bursts of three, one in 40.
            if id % 40 < 3 {
                lost.push(id);
            } else {
                source(&mut decoder, id);
            }
            if id % 10 == 9 {
                let first = id.saturating_sub(39);
                let repair_id = keys.next(first, (id + 1 - first) as u16).unwrap();
                decoder.on_repair(code, &repair_id, &repair(&sender, code, &repair_id)).unwrap();
            }
            all.extend(recovered(&mut decoder));
            assert!(decoder.memory() <= bound, "{} bytes at {id}", decoder.memory());
        }
        assert_eq!(all, lost, "{}", code.name());
        assert_eq!(decoder.stats().recovered, lost.len() as u64);
    }
}

#[test]
fn equations_outlive_symbols_that_left_the_window() {
    // Three equations over the symbols 0 to 7, of which 0, 1 and 2 are lost; the window then loses 0.
    let sender = sender(20);
    let mut decoder = Decoder::new(Limits { window: 8, ..Limits::default() });
    for key in 0..3 {
        let id = RepairId { first: 0, count: 8, key };
        decoder.on_repair(&Cauchy, &id, &repair(&sender, &Cauchy, &id)).unwrap();
    }
    // Symbol 8 pushes symbol 0 out, and one equation with it.
    assert_eq!(source(&mut decoder, 8), Outcome::Kept);
    assert_eq!(decoder.equations(), 2);
    assert_eq!(decoder.stats().dropped_equations, 1);
    for id in 3..7 {
        source(&mut decoder, id);
    }
    assert_eq!(recovered(&mut decoder), []);
    // Of 1, 2 and 7 two are known by the two equations when the third one is.
    assert_eq!(source(&mut decoder, 7), Outcome::Recovered(2));
    assert_eq!(recovered(&mut decoder), [1, 2]);
}

/// What can be known of the symbols below `count`, by elimination from scratch.
fn solvable(count: usize, known: &[bool], rows: &[Vec<u8>]) -> Vec<u64> {
    let mut rows: Vec<Vec<u8>> = rows.to_vec();
    for row in &mut rows {
        row.iter_mut().zip(known).filter(|(_, known)| **known).for_each(|(c, _)| *c = 0);
    }
    let mut done = 0;
    for column in 0..count {
        let Some(pivot) = (done..rows.len()).find(|r| rows[*r][column] != 0) else { continue };
        rows.swap(done, pivot);
        let factor = gf256::inv(rows[done][column]).unwrap();
        rows[done].iter_mut().for_each(|c| *c = gf256::mul(*c, factor));
        let pivot_row = rows[done].clone();
        for (r, row) in rows.iter_mut().enumerate() {
            let factor = row[column];
            if r != done && factor != 0 {
                row.iter_mut().zip(&pivot_row).for_each(|(c, p)| *c ^= gf256::mul(*p, factor));
            }
        }
        done += 1;
    }
    let single = |row: &&Vec<u8>| row.iter().filter(|c| **c != 0).count() == 1;
    let mut ids: Vec<u64> =
        rows.iter().filter(single).map(|row| row.iter().position(|c| *c != 0).unwrap() as u64).collect();
    ids.sort_unstable();
    ids
}

#[derive(Debug, Clone)]
enum Arrival {
    Source(u64),
    Repair { code: u8, first: u64, count: u16, key: u16 },
}

const SYMBOLS: u64 = 24;

fn arrival() -> impl Strategy<Value = Arrival> {
    prop_oneof![
        (0..SYMBOLS).prop_map(Arrival::Source),
        (0..3u8, 0..SYMBOLS, 1..=SYMBOLS as u16, 0..40u16).prop_map(|(code, first, count, key)| {
            Arrival::Repair {
                code,
                first,
                count: count.min((SYMBOLS - first) as u16),
                key: if code == 0 { 0 } else { key },
            }
        }),
    ]
}

proptest! {
    #![proptest_config(quick(64))]

    #[test]
    fn any_k_symbols_give_the_whole_window(
        first in 0..700u64,
        count in 1..80u16,
        repairs in 0..40u16,
        order in prop::collection::vec(any::<u32>(), 120),
    ) {
        // The symbols in a random order; all but the first `count` are lost.
        let mut arrived: Vec<u16> = (0..count + repairs).collect();
        arrived.sort_by_key(|i| order[usize::from(*i)]);
        arrived.truncate(count.into());
        let all = after_losses(&Cauchy, first, count, repairs, |i| !arrived.contains(&i));
        let expected: Vec<u64> =
            (0..count).filter(|i| !arrived.contains(i)).map(|i| first + u64::from(i)).collect();
        prop_assert_eq!(all, expected);
    }

    #[test]
    fn what_can_be_known_is_recovered_at_once(arrivals in prop::collection::vec(arrival(), 1..60)) {
        let sender = sender(SYMBOLS);
        let mut decoders: Vec<Decoder> =
            Kernel::available().map(|kernel| Decoder::with_kernel(Limits::default(), kernel)).collect();
        let (mut known, mut rows) = (vec![false; SYMBOLS as usize], Vec::new());
        let mut found = Vec::new();
        for arrival in arrivals {
            match arrival {
                Arrival::Source(id) => {
                    known[id as usize] = true;
                    decoders.iter_mut().for_each(|decoder| { source(decoder, id); });
                }
                Arrival::Repair { code, first, count, key } => {
                    let code = [&Xor as &dyn Code, &Cauchy, &Rlc::DENSE][usize::from(code)];
                    let id = RepairId { first, count, key };
                    let bytes = repair(&sender, code, &id);
                    let mut row = vec![0; SYMBOLS as usize];
                    code.fill(&id, &mut row[first as usize..][..usize::from(count)]);
                    rows.push(row);
                    for decoder in &mut decoders {
                        decoder.on_repair(code, &id, &bytes).unwrap();
                    }
                }
            }
            for decoder in &mut decoders {
                found = recovered(decoder);
            }
            found.iter().for_each(|id| known[*id as usize] = true);
            prop_assert_eq!(solvable(SYMBOLS as usize, &known, &rows), Vec::<u64>::new());
        }
        prop_assert!(!decoders.iter().any(Decoder::is_off));
    }

    #[test]
    fn a_window_that_moves_on_forgets_old_symbols_and_nothing_else(
        steps in prop::collection::vec((0..3u64, 0..8u64, any::<bool>(), 1..=8u16, 0..40u16), 1..60),
    ) {
        const WINDOW: u64 = 8;
        const ALL: usize = 200;
        let sender = sender(ALL as u64);
        let mut decoder = Decoder::new(Limits { window: WINDOW as u16, ..Limits::default() });
        let (mut known, mut rows) = (vec![false; ALL], Vec::new());
        let (mut place, mut end) = (0, 0);
        for (step, back, is_source, count, key) in steps {
            place += step;
            let first = place + WINDOW - back;
            let last = first + if is_source { 0 } else { u64::from(count) - 1 };
            let stale = first + WINDOW < end;
            if !stale {
                end = end.max(last + 1);
            }
            if is_source {
                let outcome = source(&mut decoder, first);
                prop_assert_eq!(outcome == Outcome::Stale, stale);
                known[first as usize] |= !stale;
            } else {
                let id = RepairId { first, count, key };
                let outcome = decoder.on_repair(&Rlc::DENSE, &id, &repair(&sender, &Rlc::DENSE, &id)).unwrap();
                prop_assert_eq!(outcome == Outcome::Stale, stale);
                if !stale {
                    let mut row = vec![0; ALL];
                    Rlc::DENSE.fill(&id, &mut row[first as usize..][..usize::from(count)]);
                    rows.push(row);
                }
            }
            recovered(&mut decoder).iter().for_each(|id| known[*id as usize] = true);
            let mut left = solvable(ALL, &known, &rows);
            left.retain(|id| id + WINDOW >= end);
            prop_assert_eq!(left, Vec::<u64>::new());
        }
    }
}

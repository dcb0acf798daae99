//! Sliding-window random linear codes: `fulmar-fec` and `cu-fec` make and use the same repair symbols (RFC 8681).

use cu_fec::{
    DensityThreshold, EncodingSymbolId, Field, RepairParameters, RepairPayloadId, RlcConfig, RlcDecoder,
    RlcEncoder,
};
use fulmar_fec::{Decoder, Limits, RepairId, Rlc, SourceWindow};

/// The bytes of a padded symbol, with its length.
const SYMBOL: usize = 64;
const WINDOW: usize = 32;
const SYMBOLS: u64 = 400;

/// A generator of numbers without a pattern.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn payload(id: u64) -> Vec<u8> {
    let mut numbers = Numbers(id);
    (0..id % 63).map(|_| numbers.below(256) as u8).collect()
}

fn padded(payload: &[u8]) -> [u8; SYMBOL] {
    let mut symbol = [0; SYMBOL];
    symbol[..2].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    symbol[2..][..payload.len()].copy_from_slice(payload);
    symbol
}

/// Both ends of both implementations in one flow: the lost symbols that their decoder has recovered, and those that ours has.
fn flow(threshold: u8, seed: u64, loss_percent: u64) -> (Vec<u64>, Vec<u64>) {
    let config = RlcConfig::new(SYMBOL, WINDOW, Field::Gf256).unwrap();
    let density = DensityThreshold::new(threshold).unwrap();
    let mut their_encoder = RlcEncoder::<SYMBOL, WINDOW>::new(config, EncodingSymbolId::new(0)).unwrap();
    let mut their_decoder = RlcDecoder::<SYMBOL, 32, 32>::new(config, 32).unwrap();
    let code = Rlc::with_density_threshold(threshold).unwrap();
    let mut our_encoder = SourceWindow::new(WINDOW as u16);
    let mut our_decoder = Decoder::new(Limits { window: WINDOW as u16, ..Limits::default() });
    let mut numbers = Numbers(seed);
    let (mut theirs, mut ours, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    for id in 0..SYMBOLS {
        let bytes = payload(id);
        our_encoder.push(&bytes).unwrap();
        their_encoder.push_source(&padded(&bytes)).unwrap();
        if numbers.below(100) < loss_percent {
            lost.push(id);
        } else {
            our_decoder.on_source(id, &bytes).unwrap();
            let _ = their_decoder.receive_source(EncodingSymbolId::new(id as u32), &padded(&bytes)).unwrap();
        }
        if numbers.below(3) == 0 {
            let key = numbers.below(65_536) as u16;
            let mut their_repair = [0; SYMBOL];
            let their_id =
                their_encoder.encode_repair(RepairParameters::new(key, density), &mut their_repair).unwrap();
            let our_id = our_encoder.repair_from(0, key).unwrap();
            let mut our_repair = Vec::new();
            our_encoder.repair(&code, &our_id, &mut our_repair).unwrap();
            our_repair.resize(SYMBOL, 0);
            assert_eq!(our_repair, their_repair, "key {key}, threshold {threshold}");
            assert_eq!(
                (our_id.first, our_id.count),
                (their_id.first_source_esi().get().into(), their_id.source_symbols())
            );
            // Each gets the repair symbol of the other one.
            let RepairId { first, count, key } = our_id;
            let id = RepairPayloadId::new(key, density, count, EncodingSymbolId::new(first as u32)).unwrap();
            let _ = their_decoder.receive_repair(id, &our_repair).unwrap();
            our_decoder.on_repair(&code, &our_id, &their_repair).unwrap();
        }
        // It shows what it knows while that is in its window.
        for lost in lost.iter().filter(|lost| **lost + WINDOW as u64 > id) {
            if let Some(symbol) = their_decoder.symbol(EncodingSymbolId::new(*lost as u32)) {
                assert_eq!(symbol, padded(&payload(*lost)));
                if !theirs.contains(lost) {
                    theirs.push(*lost);
                }
            }
        }
        while let Some((id, bytes)) = our_decoder.next_recovered() {
            assert_eq!(bytes, payload(id));
            ours.push(id);
        }
    }
    ours.sort_unstable();
    theirs.sort_unstable();
    (theirs, ours)
}

#[test]
fn both_make_the_same_repair_symbols_and_recover_the_same_losses() {
    let (mut theirs, mut ours) = (0, 0);
    for threshold in [15, 7, 0] {
        for seed in 0..10 {
            for loss_percent in [2, 10, 25] {
                let (by_them, by_us) = flow(threshold, seed, loss_percent);
                // When a symbol leaves the window, they drop all equations that need it and we drop one.
                assert!(
                    by_them.iter().all(|id| by_us.contains(id)),
                    "threshold {threshold}, seed {seed}, {loss_percent} % lost: {by_them:?}, {by_us:?}"
                );
                theirs += by_them.len();
                ours += by_us.len();
            }
        }
    }
    assert!(theirs > 1000, "only {theirs} symbols had to be recovered");
    assert!(ours - theirs < theirs / 20, "{theirs} and {ours}");
}

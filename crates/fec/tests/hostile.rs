//! What a peer can do to a decoder.

mod common;

use common::{payload, recovered, repair, sender, source};
use fulmar_fec::{
    Cauchy, Code, CodeError, DecodeError, Decoder, DecoderStats, ID_LIMIT, Limits, Outcome, RepairId, Rlc,
    Vandermonde, WINDOW_MAX, Xor,
};
use proptest::prelude::*;

/// What a decoder with such limits may keep: the window, the spare buffers and the tables.
fn memory_bound(limits: &Limits) -> usize {
    let window = usize::from(limits.window);
    let longest = usize::from(limits.symbol) + 2;
    window * (longest + window) + 9 * longest + window * 64 + 4096
}

fn window(first: u64, count: u16, key: u16) -> RepairId {
    RepairId { first, count, key }
}

#[test]
fn impossible_symbols_are_refused_and_change_nothing() {
    let limits = Limits { window: 100, symbol: 500, ..Limits::default() };
    let mut decoder = Decoder::new(limits);
    assert_eq!(decoder.on_source(0, &[0; 501]), Err(DecodeError::Length(501)));
    assert_eq!(decoder.on_source(ID_LIMIT, &[]), Err(DecodeError::Id(ID_LIMIT)));
    let mut refused = |id, length| decoder.on_repair(&Cauchy, &id, &vec![0; length]).unwrap_err();
    assert_eq!(refused(window(0, 4, 0), 503), DecodeError::Length(503));
    assert_eq!(refused(window(0, 4, 0), 1), DecodeError::Length(1));
    assert_eq!(refused(window(0, 101, 0), 9), DecodeError::WindowTooLarge(101));
    assert_eq!(refused(window(0, 0, 0), 9), CodeError::Window { first: 0, count: 0 }.into());
    assert_eq!(refused(window(u64::MAX, 4, 0), 9), CodeError::Window { first: u64::MAX, count: 4 }.into());
    assert_eq!(refused(window(0, 4, 251), 9), CodeError::Key { key: 251, count: 4 }.into());
    assert!(!decoder.is_off());
    assert_eq!(source(&mut decoder, 0), Outcome::Kept);
}

#[test]
fn the_highest_ids_are_ordinary_ones() {
    let mut decoder = Decoder::new(Limits::default());
    assert_eq!(decoder.on_source(ID_LIMIT - 1, b"last"), Ok(Outcome::Kept));
    let id = window(ID_LIMIT - 2, 2, 0);
    // The repair symbol is the sum of the last symbol and one of the bytes "abc".
    let mut bytes = *b"\x00\x04last";
    bytes.iter_mut().zip(b"\x00\x03abc").for_each(|(sum, byte)| *sum ^= byte);
    assert_eq!(decoder.on_repair(&Xor, &id, &bytes), Ok(Outcome::Recovered(1)));
    assert_eq!(decoder.next_recovered(), Some((ID_LIMIT - 2, &b"abc"[..])));
}

#[test]
fn old_symbols_are_ignored() {
    let sender = sender(256);
    let mut decoder = Decoder::new(Limits { window: 10, ..Limits::default() });
    source(&mut decoder, 200);
    assert_eq!(source(&mut decoder, 190), Outcome::Stale);
    assert_eq!(source(&mut decoder, 191), Outcome::Kept);
    let id = window(190, 5, 0);
    assert_eq!(decoder.on_repair(&Cauchy, &id, &repair(&sender, &Cauchy, &id)), Ok(Outcome::Stale));
    assert_eq!(decoder.stats().dropped_repairs, 1);
}

#[test]
fn symbols_before_the_start_are_ignored() {
    let sender = sender(256);
    let mut decoder = Decoder::new(Limits::default());
    decoder.start_at(100);
    let mut outcome = |first| {
        let id = window(first, 2, 0);
        decoder.on_repair(&Cauchy, &id, &repair(&sender, &Cauchy, &id)).unwrap()
    };
    assert_eq!([99, 100].map(&mut outcome), [Outcome::Stale, Outcome::Kept]);
    decoder.start_at(200);
    assert_eq!(source(&mut decoder, 99), Outcome::Stale);
    assert_eq!(source(&mut decoder, 101), Outcome::Recovered(1), "it has started before");
    assert_eq!(recovered(&mut decoder), [100]);
}

#[test]
fn a_source_symbol_that_differs_from_the_first_one_switches_the_decoder_off() {
    let mut decoder = Decoder::new(Limits::default());
    for id in 0..200 {
        source(&mut decoder, id);
    }
    assert_eq!(source(&mut decoder, 7), Outcome::Redundant);
    assert_eq!(decoder.on_source(7, b"another one"), Err(DecodeError::Inconsistent));
    assert!(decoder.is_off());
    assert!(decoder.memory() < 100, "{} bytes are kept", decoder.memory());
    assert_eq!(decoder.on_source(300, b"x"), Ok(Outcome::Off));
    assert_eq!(decoder.on_repair(&Xor, &window(0, 4, 0), &[0; 9]), Ok(Outcome::Off));
    assert_eq!(decoder.next_recovered(), None);
}

#[test]
fn repairs_that_contradict_one_another_switch_the_decoder_off() {
    let sender = sender(4);
    let id = window(0, 4, 0);
    let mut decoder = Decoder::new(Limits::default());
    let mut bytes = repair(&sender, &Xor, &id);
    assert_eq!(decoder.on_repair(&Xor, &id, &bytes), Ok(Outcome::Kept));
    assert_eq!(decoder.on_repair(&Xor, &id, &bytes), Ok(Outcome::Redundant));
    bytes[5] ^= 1;
    assert_eq!(decoder.on_repair(&Xor, &id, &bytes), Err(DecodeError::Inconsistent));
    assert!(decoder.is_off());
}

#[test]
fn a_repair_that_is_shorter_than_one_of_its_symbols_is_inconsistent() {
    let mut decoder = Decoder::new(Limits::default());
    decoder.on_source(0, &[1; 20]).unwrap();
    assert_eq!(decoder.on_repair(&Xor, &window(0, 2, 0), &[0; 21]), Err(DecodeError::Inconsistent));
    let mut decoder = Decoder::new(Limits::default());
    assert_eq!(decoder.on_repair(&Xor, &window(0, 2, 0), &[0; 21]), Ok(Outcome::Kept));
    assert_eq!(decoder.on_source(0, &[1; 20]), Err(DecodeError::Inconsistent));
}

#[test]
fn a_decoded_length_or_padding_that_cannot_be_is_inconsistent() {
    for bytes in [&[0, 4, 1, 2, 3][..], &[0xff, 0xff, 0], &[0, 1, 9, 9]] {
        let mut decoder = Decoder::new(Limits::default());
        assert_eq!(
            decoder.on_repair(&Xor, &window(0, 1, 0), bytes),
            Err(DecodeError::Inconsistent),
            "{bytes:?}"
        );
    }
    let mut decoder = Decoder::new(Limits::default());
    assert_eq!(decoder.on_repair(&Xor, &window(0, 1, 0), &[0, 1, 9, 0]), Ok(Outcome::Recovered(1)));
    assert_eq!(decoder.next_recovered(), Some((0, &[9][..])));
}

#[test]
fn what_is_not_taken_before_it_leaves_the_window_is_lost() {
    let sender = sender(4);
    let mut decoder = Decoder::new(Limits { window: 4, ..Limits::default() });
    let id = window(0, 1, 0);
    assert_eq!(decoder.on_repair(&Xor, &id, &repair(&sender, &Xor, &id)), Ok(Outcome::Recovered(1)));
    source(&mut decoder, 4);
    assert_eq!(decoder.next_recovered(), None);
}

#[test]
fn repairs_are_ignored_when_the_budget_is_used_up_and_source_symbols_earn_more() {
    let sender = sender(256);
    let id = window(0, 256, 0);
    let bytes = repair(&sender, &Rlc::DENSE, &id);
    let symbol: u64 = payload(0).len() as u64;
    assert!(symbol > 0);
    let limits = Limits { work_total: 20_000, work_per_source_byte: 0, ..Limits::default() };
    let mut decoder = Decoder::new(limits);
    let mut outcomes = Vec::new();
    for key in 0..20 {
        let id = RepairId { key, ..id };
        outcomes.push(decoder.on_repair(&Rlc::DENSE, &id, &repair(&sender, &Rlc::DENSE, &id)).unwrap());
    }
    assert_eq!(outcomes[0], Outcome::Kept);
    assert_eq!(*outcomes.last().unwrap(), Outcome::OverBudget);
    assert!(decoder.stats().work <= 20_000);

    // With nothing to spend no equation is kept, and source symbols are taken all the same.
    let limits = Limits { work_per_call: 1000, ..limits };
    let mut decoder = Decoder::new(limits);
    assert_eq!(decoder.on_repair(&Rlc::DENSE, &id, &bytes), Ok(Outcome::OverBudget));
    assert_eq!(source(&mut decoder, 0), Outcome::Kept);

    let limits = Limits { work_total: 20_000, work_per_source_byte: 1 << 20, ..Limits::default() };
    let mut decoder = Decoder::new(limits);
    while decoder.on_repair(&Rlc::DENSE, &RepairId { key: decoder.equations() as u16, ..id }, &bytes)
        != Ok(Outcome::OverBudget)
    {}
    source(&mut decoder, 0);
    let earned = decoder.on_repair(&Rlc::DENSE, &RepairId { key: 77, ..id }, &bytes);
    assert!(earned != Ok(Outcome::OverBudget), "{earned:?}");
}

#[test]
fn equations_are_dropped_when_a_source_symbol_cannot_be_paid_for() {
    let sender = sender(8);
    // Enough for two repair symbols, not for taking a source symbol out of them.
    let limits = Limits { work_total: 3500, work_per_source_byte: 0, window: 8, ..Limits::default() };
    let mut decoder = Decoder::new(Limits { symbol: 60, ..limits });
    let mut key = 0;
    loop {
        let id = window(0, 8, key);
        match decoder.on_repair(&Cauchy, &id, &repair(&sender, &Cauchy, &id)).unwrap() {
            Outcome::Kept => key += 1,
            outcome => {
                assert_eq!(outcome, Outcome::OverBudget);
                break;
            }
        }
    }
    assert!(key > 2);
    for id in 0..8 {
        source(&mut decoder, id);
    }
    assert_eq!(decoder.equations(), 0);
    assert_eq!(recovered(&mut decoder), []);
    assert!(decoder.stats().work <= 3500);
    assert_eq!(decoder.stats().dropped_equations, u64::from(key));
}

#[test]
fn repairs_that_move_the_window_by_its_length_have_few_places_looked_at() {
    // The equations that stay have the two newest symbols alone; those that leave may have nearly all others.
    for is_wide in [false, true] {
        let mut decoder = Decoder::new(Limits::default());
        let mut repairs = 0;
        let mut keep = |id| {
            assert_eq!(decoder.on_repair(&Xor, &id, &[0; 10]), Ok(Outcome::Kept), "{id:?}");
            repairs += 1;
        };
        for round in 0..100 {
            let first = round * 254;
            keep(window(first, 2, 0));
            if is_wide && round > 0 {
                keep(window(first - 252, 252, 0));
            }
        }
        let DecoderStats { visits, dropped_equations, .. } = decoder.stats();
        assert!(dropped_equations > 90, "{dropped_equations} equations were dropped");
        // Where the equations have symbols is found out again when one was dropped, and which it is.
        let looks = repairs + 2 * dropped_equations;
        assert!(visits <= looks * u64::from(WINDOW_MAX), "{visits} places");
    }
}

#[derive(Debug, Clone)]
enum Input {
    Source { id: u64, honest: bool, length: usize },
    Repair { code: u8, id: RepairId, honest: bool, length: usize },
}

/// Ids around a place that moves, and sometimes anywhere.
fn id() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..250u64, 1 => any::<u64>(), 1 => (ID_LIMIT - 300)..=ID_LIMIT]
}

fn input() -> impl Strategy<Value = Input> {
    let honest = prop::bool::weighted(0.97);
    let source =
        (id(), honest, 0..1600usize).prop_map(|(id, honest, length)| Input::Source { id, honest, length });
    let repair =
        (0..4u8, id(), prop_oneof![9 => 0..40u16, 1 => any::<u16>()], 0..30u16, honest, 0..1600usize)
            .prop_map(|(code, first, count, key, honest, length)| Input::Repair {
                code,
                id: RepairId { first, count, key },
                honest,
                length,
            });
    prop_oneof![source, repair]
}

fn code(number: u8) -> &'static dyn Code {
    [&Xor as &dyn Code, &Cauchy, &Vandermonde, &Rlc::DENSE][usize::from(number)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn nothing_makes_a_decoder_panic_or_exceed_its_limits(
        inputs in prop::collection::vec(input(), 1..120),
        limit in 0..=300u16,
        work_total in prop_oneof![0..200_000u64, Just(u64::MAX)],
    ) {
        let limits = Limits { window: limit, work_total, work_per_call: 60_000, work_per_source_byte: 1, symbol: 1500 };
        let bound = memory_bound(&Limits { window: limit.clamp(1, WINDOW_MAX), ..limits });
        let sender = sender(256);
        let mut decoder = Decoder::new(limits);
        let mut lied = false;
        for input in inputs {
            let work = decoder.stats().work;
            match input {
                Input::Source { id, honest, length } => {
                    let bytes = if honest && id < 256 { payload(id) } else { lied = true; vec![id as u8; length] };
                    let _ = decoder.on_source(id, &bytes);
                }
                Input::Repair { code: number, id, honest, length } => {
                    let code = code(number);
                    let mut bytes = Vec::new();
                    if !honest || sender.repair(code, &id, &mut bytes).is_err() {
                        bytes = vec![id.key as u8; length];
                        lied = true;
                    }
                    let _ = decoder.on_repair(code, &id, &bytes);
                }
            }
            while let Some((id, bytes)) = decoder.next_recovered() {
                prop_assert!(bytes.len() <= 1500);
                prop_assert!(lied || bytes == payload(id));
            }
            prop_assert!(decoder.memory() <= bound, "{} bytes of {}", decoder.memory(), bound);
            prop_assert!(decoder.stats().work - work <= 60_000);
            prop_assert!(lied || !decoder.is_off());
        }
    }
}

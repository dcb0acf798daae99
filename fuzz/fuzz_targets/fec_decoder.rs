//! The decoder of erasure codes: source and repair symbols of a peer of good faith, which it has to get right, and any others,
//! which must not make it panic or take more than its limits.
#![no_main]

use fulmar_fec::{Cauchy, Code, Decoder, Limits, RepairId, Rlc, SourceWindow, Vandermonde, Xor};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

/// The symbols that the peer of good faith has sent.
const SENT: u64 = 96;
/// More inputs say nothing new and take long.
const INPUTS_MAX: usize = 400;

#[derive(Debug, Arbitrary)]
enum Input {
    Source { id: u8 },
    Repair { code: u8, first: u8, count: u8, key: u8 },
    FalseSource { id: u64, bytes: Vec<u8> },
    FalseRepair { code: u8, first: u64, count: u16, key: u16, bytes: Vec<u8> },
    DamagedRepair { code: u8, first: u8, count: u8, key: u8, place: u16, change: u8 },
}

#[derive(Debug, Arbitrary)]
struct Run {
    window: u8,
    work_total: u32,
    inputs: Vec<Input>,
}

fn code(number: u8) -> &'static dyn Code {
    [&Xor as &dyn Code, &Cauchy, &Vandermonde, &Rlc::DENSE][usize::from(number % 4)]
}

fn payload(id: u64) -> Vec<u8> {
    let length = id * 37 % 90;
    (0..length).map(|i| (id * 101 + i * i * 13 + i) as u8).collect()
}

fn repair(sender: &SourceWindow, code: &dyn Code, id: &RepairId) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    sender.repair(code, id, &mut bytes).ok().map(|()| bytes)
}

fuzz_target!(|run: Run| {
    let mut sender = SourceWindow::new(256);
    for id in 0..SENT {
        sender.push(&payload(id)).expect("such a symbol is legal");
    }
    let limits = Limits {
        window: run.window.into(),
        symbol: 1500,
        work_per_call: 50_000,
        work_total: run.work_total.into(),
        work_per_source_byte: 2,
    };
    let mut decoder = Decoder::new(limits);
    let window = usize::from(run.window.max(1));
    let memory_max = window * (1502 + window) + 9 * 1502 + window * 64 + 4096;
    let mut honest = true;
    for input in run.inputs.into_iter().take(INPUTS_MAX) {
        let work = decoder.stats().work;
        let _ = match input {
            Input::Source { id } => {
                let id = u64::from(id) % SENT;
                decoder.on_source(id, &payload(id))
            }
            Input::Repair { code: number, first, count, key } => {
                let id = RepairId { first: first.into(), count: count.into(), key: key.into() };
                let Some(bytes) = repair(&sender, code(number), &id) else { continue };
                decoder.on_repair(code(number), &id, &bytes)
            }
            Input::FalseSource { id, bytes } => {
                honest = false;
                decoder.on_source(id, &bytes)
            }
            Input::FalseRepair { code: number, first, count, key, bytes } => {
                honest = false;
                decoder.on_repair(code(number), &RepairId { first, count, key }, &bytes)
            }
            Input::DamagedRepair { code: number, first, count, key, place, change } => {
                let id = RepairId { first: first.into(), count: count.into(), key: key.into() };
                let Some(mut bytes) = repair(&sender, code(number), &id) else { continue };
                let place = usize::from(place) % bytes.len();
                bytes[place] ^= change;
                honest &= change == 0;
                decoder.on_repair(code(number), &id, &bytes)
            }
        };
        while let Some((id, bytes)) = decoder.next_recovered() {
            assert!(bytes.len() <= 1500);
            assert!(!honest || bytes == payload(id), "symbol {id} is not what was sent");
        }
        assert!(!honest || !decoder.is_off(), "nothing was inconsistent");
        assert!(decoder.memory() <= memory_max, "{} bytes of {memory_max}", decoder.memory());
        assert!(decoder.stats().work - work <= 50_000, "a call took too much work");
    }
});

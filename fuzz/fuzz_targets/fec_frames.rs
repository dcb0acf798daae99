//! Frames of forward erasure correction, in both dialects, in packets of a peer: a connection recovers what is true, and survives all
//! else with an error or without.
#![no_main]

use bytes::Bytes;
use fulmar_fec::{Cauchy, Code, RepairId, SourceWindow, Vandermonde, length_to_end};
use fulmar_fuzz::Pair;
use fulmar_proto::{FecConfig, FecDialects, PathId};
use fulmar_wire::{
    BlockRepair, Datagram, Dialect, FecRecovered, FecRepair, FecSid, FecWindow, Frame, SourceSymbol, VarInt,
    Writer,
};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

/// The symbols of a peer of good faith.
const SENT: u16 = 60;
/// Those of a block of Reed-Solomon in dialect M.
const BLOCK: u16 = 20;
/// More inputs say nothing new and take long.
const INPUTS_MAX: usize = 200;

#[derive(Debug, Arbitrary)]
enum Input {
    /// What a peer of good faith sends: a symbol, and a repair symbol over some of them.
    Source {
        id: u8,
    },
    Repair {
        first: u8,
        count: u8,
        key: u8,
    },
    /// What others send.
    FalseSource {
        id: u64,
        frames: Vec<u8>,
    },
    FalseRepair {
        scheme: u8,
        first: u64,
        more: u8,
        key: u16,
        symbol: Vec<u8>,
    },
    Recovered {
        first: u64,
        more: u8,
    },
    Window {
        epoch: u64,
        size: u64,
    },
    Raw {
        payload: Vec<u8>,
    },
}

#[derive(Debug, Arbitrary)]
struct Run {
    dialect_m: bool,
    inputs: Vec<Input>,
}

fn encode(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = vec![0; frame.encoded_len(Dialect::SinglePath)];
    frame.encode(Dialect::SinglePath, &mut Writer::new(&mut bytes));
    bytes
}

/// The protected frames of a symbol of the peer of good faith.
fn symbol(id: u64) -> Vec<u8> {
    let data: Vec<u8> = (0..id * 37 % 90).map(|i| (id * 101 + i * i * 13 + i) as u8).collect();
    encode(&Frame::Datagram(Datagram { data: &data }))
}

fn source(dialect_m: bool, id: u64, frames: &[u8]) -> Vec<u8> {
    match dialect_m {
        true => encode(&Frame::SourceSymbol(SourceSymbol { id: VarInt::saturating(id), frames })),
        false => [&encode(&Frame::FecSid(FecSid { id: id as u16 })), frames].concat(),
    }
}

/// `first` is the block in dialect M.
fn repair(dialect_m: bool, scheme: u8, first: u64, more: u8, key: u16, symbol: &[u8]) -> Vec<u8> {
    match dialect_m {
        true => {
            let (block, parity) = (VarInt::saturating(first), VarInt::from_u32(key.into()));
            encode(&Frame::BlockRepair(BlockRepair { block, parity, symbol }))
        }
        false => encode(&Frame::FecRepair(FecRepair { scheme, first: first as u16, more, key, symbol })),
    }
}

/// A repair symbol of the peer of good faith, if there is such a one.
fn true_repair(dialect_m: bool, window: &SourceWindow, first: u8, count: u8, key: u8) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    if !dialect_m {
        let id = RepairId { first: first.into(), count: count.into(), key: key.into() };
        window.repair(&Cauchy as &dyn Code, &id, &mut bytes).ok()?;
        return Some(repair(false, 1, id.first, count.checked_sub(1)?, id.key, &bytes));
    }
    let (block, key) = (u64::from(first) % u64::from(SENT / BLOCK), u16::from(key % 10));
    let id = RepairId { first: block * u64::from(BLOCK), count: BLOCK, key };
    window.repair(&Vandermonde, &id, &mut bytes).ok()?;
    length_to_end(&mut bytes);
    Some(repair(true, 0, block, 0, key, &bytes))
}

fuzz_target!(|run: Run| {
    let m = run.dialect_m;
    let dialects = if m { FecDialects::M } else { FecDialects::X };
    let mut pair = Pair::with_fec(FecConfig { dialects, ..FecConfig::default() });
    let mut window = SourceWindow::new(256);
    for id in 0..SENT {
        window.push(&symbol(id.into())).expect("such a symbol is legal");
    }
    let mut honest = true;
    for input in run.inputs.into_iter().take(INPUTS_MAX) {
        let (is_true, payload) = match input {
            Input::Source { id } => {
                let id = u64::from(id) % u64::from(SENT);
                (true, source(m, id, &symbol(id)))
            }
            Input::Repair { first, count, key } => {
                let Some(payload) = true_repair(m, &window, first, count, key) else { continue };
                (true, payload)
            }
            Input::FalseSource { id, frames } => (false, source(m, id, &frames)),
            Input::FalseRepair { scheme, first, more, key, symbol } => {
                (false, repair(m, scheme, first, more, key, &symbol))
            }
            Input::Recovered { first, more } => {
                (false, encode(&Frame::FecRecovered(FecRecovered { first: VarInt::saturating(first), more })))
            }
            Input::Window { epoch, size } => {
                let (epoch, size) = (VarInt::saturating(epoch), VarInt::saturating(size));
                (false, encode(&Frame::FecWindow(FecWindow { epoch, size })))
            }
            Input::Raw { payload } => (false, payload),
        };
        honest &= is_true;
        let now = pair.now;
        let Some((_, connection)) = pair.server.connections.first_mut() else { break };
        connection.handle_fuzzed_payload(now, PathId::ZERO, Bytes::from(payload));
        while let Some(datagram) = connection.read_datagram() {
            let known = |id: u16| symbol(id.into()).ends_with(&datagram);
            assert!(!honest || (0..SENT).any(known), "what was never sent was recovered");
        }
        if honest {
            let fec = connection.stats().fec.expect("both ends have it");
            assert!(!fec.decoder_off, "true symbols contradict one another");
        }
    }
    pair.exchange();
});

//! What the tests have in common.

use fulmar_fec::{Code, Decoder, Outcome, RepairId, SourceWindow};

/// The bytes of a source symbol: different for each id, of different lengths.
pub(crate) fn payload(id: u64) -> Vec<u8> {
    let mut state = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let length = next() % 60;
    (0..length).map(|_| next()).collect()
}

/// A sender that has pushed the symbols below `end`.
pub(crate) fn sender(end: u64) -> SourceWindow {
    let mut window = SourceWindow::new(256);
    for id in 0..end {
        window.push(&payload(id)).unwrap();
    }
    window
}

/// A repair symbol.
pub(crate) fn repair(sender: &SourceWindow, code: &dyn Code, id: &RepairId) -> Vec<u8> {
    let mut out = Vec::new();
    sender.repair(code, id, &mut out).unwrap();
    out
}

/// Takes what was recovered, and checks that it is what was sent.
pub(crate) fn recovered(decoder: &mut Decoder) -> Vec<u64> {
    let mut ids = Vec::new();
    while let Some((id, bytes)) = decoder.next_recovered() {
        assert_eq!(bytes, payload(id), "symbol {id}");
        ids.push(id);
    }
    ids
}

/// Gives a source symbol to the decoder.
pub(crate) fn source(decoder: &mut Decoder, id: u64) -> Outcome {
    decoder.on_source(id, &payload(id)).unwrap()
}

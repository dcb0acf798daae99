//! Packets that arrive changed.

use fulmar_base::Rng;

use crate::{Change, Context, Element, Packet};

/// Which packets are changed, and how. A packet that is chosen always differs from what was sent, in at most
/// `bytes_max` bytes; an empty one stays as it is. Its length does not change.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Corrupt {
    /// The probability that a packet is changed.
    pub probability: f64,
    /// The most bytes changed, at random places; the number is drawn from `1..=bytes_max`, and 0 counts as 1.
    pub bytes_max: u32,
    /// Whether a changed byte gets a random other value; if not, one of its bits is flipped.
    pub replace: bool,
}

/// Changes packets as a [`Corrupt`] says.
#[derive(Debug)]
pub(crate) struct Corruption(pub(crate) Corrupt);

impl Corruption {
    fn damage(&self, payload: &mut [u8], rng: &mut Rng) {
        let count = 1 + rng.below(u64::from(self.0.bytes_max.max(1)));
        let mut first = None;
        for _ in 0..count {
            let place = rng.below(payload.len() as u64) as usize;
            let change = if self.0.replace { 1 + rng.below(255) as u8 } else { 1 << rng.below(8) };
            // The first place is left alone later, so that no second change takes back the first.
            if first != Some(place) {
                payload[place] ^= change;
            }
            first.get_or_insert(place);
        }
    }
}

impl Element for Corruption {
    fn accept(&mut self, mut packet: Packet, cx: &mut Context<'_>) {
        let chosen = self.0.probability > 0.0 && cx.rng().chance(self.0.probability);
        if chosen && !packet.payload.is_empty() {
            self.damage(&mut packet.payload, cx.rng());
            cx.stats().packets_corrupted += 1;
        }
        cx.pass(packet);
    }

    fn is_transparent(&self) -> bool {
        self.0.probability <= 0.0
    }

    fn apply(&mut self, change: &Change, _cx: &mut Context<'_>) {
        if let Change::Corrupt(corrupt) = change {
            self.0 = *corrupt;
        }
    }
}

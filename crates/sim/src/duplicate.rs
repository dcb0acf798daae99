//! Packets that arrive twice.

use crate::{Change, Context, Element, Packet};

/// Follows a packet with a copy, with a probability. A copy is not copied again and uses no rate; it is
/// corrupted, reordered and delayed on its own.
#[derive(Debug)]
pub(crate) struct Duplicate(pub(crate) f64);

impl Element for Duplicate {
    fn accept(&mut self, packet: Packet, cx: &mut Context<'_>) {
        if self.0 > 0.0 && cx.rng().chance(self.0) {
            let copy = cx.copy_of(&packet);
            cx.stats().packets_duplicated += 1;
            cx.pass(packet);
            cx.pass(copy);
        } else {
            cx.pass(packet);
        }
    }

    fn is_transparent(&self) -> bool {
        self.0 <= 0.0
    }

    fn apply(&mut self, change: &Change, _cx: &mut Context<'_>) {
        if let Change::Duplicate(probability) = change {
            self.0 = *probability;
        }
    }
}

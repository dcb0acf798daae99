//! The largest payload that fits a link.

use crate::{Change, Context, DropReason, Element, Packet};

/// Drops payloads of more than `mtu` bytes, silently: nobody hears of it.
#[derive(Debug)]
pub(crate) struct Mtu(pub(crate) Option<usize>);

impl Element for Mtu {
    fn accept(&mut self, packet: Packet, cx: &mut Context<'_>) {
        match self.0 {
            Some(mtu) if packet.payload.len() > mtu => cx.discard(packet, DropReason::TooLarge),
            _ => cx.pass(packet),
        }
    }

    fn is_transparent(&self) -> bool {
        self.0.is_none()
    }

    fn apply(&mut self, change: &Change, _cx: &mut Context<'_>) {
        if let Change::Mtu(mtu) = change {
            self.0 = *mtu;
        }
    }
}

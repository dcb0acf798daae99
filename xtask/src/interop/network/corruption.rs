//! Damage as the public runner's simulator does it: one byte near the start of a UDP payload gets another value, and the checksum
//! is made right again, so that it is QUIC that has to notice.

use fulmar_sim::{Context, Element, Packet};

use super::ip::IpPacket;

/// Damage is done within this many bytes of the UDP payload.
const REACH: u64 = 50;
/// The most packets damaged one after another.
const RUN_MAX: u32 = 3;

/// Damages packets at random.
#[derive(Debug)]
pub(super) struct Corruption {
    probability: f64,
    run: u32,
}

impl Corruption {
    pub(super) fn new(probability: f64) -> Self {
        Self { probability, run: 0 }
    }
}

impl Element for Corruption {
    fn accept(&mut self, mut packet: Packet, cx: &mut Context<'_>) {
        let chosen = cx.rng().chance(self.probability) && self.run < RUN_MAX;
        self.run = if chosen { self.run + 1 } else { 0 };
        if chosen {
            damage(&mut packet.payload, cx.rng());
        }
        cx.pass(packet);
    }

    fn is_transparent(&self) -> bool {
        self.probability <= 0.0
    }
}

fn damage(bytes: &mut [u8], rng: &mut fulmar_base::Rng) {
    let Some(packet) = IpPacket::parse(bytes) else { return };
    let Some(range) = packet.payload() else { return };
    // Version Negotiation is left alone: it has no protection that could notice.
    if range.is_empty() || is_version_negotiation(&bytes[range.clone()]) {
        return;
    }
    let place = range.start + rng.below(REACH.min(range.len() as u64)) as usize;
    bytes[place] ^= 1 + rng.below(255) as u8;
    packet.restore_checksum(bytes);
}

fn is_version_negotiation(payload: &[u8]) -> bool {
    payload.len() >= 5 && payload[0] & 0x80 != 0 && payload[1..5] == [0; 4]
}

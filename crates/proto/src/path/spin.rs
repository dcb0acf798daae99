//! The latency spin bit (RFC 9000 §17.4): a wave that lets observers on the path measure the round-trip time.

use fulmar_base::Rng;
use fulmar_wire::Side;

use crate::config::SpinBit;
use crate::packed::packed;

/// One in so many paths does not spin even where spinning is on, so that an endpoint that never spins is
/// nothing special (RFC 9000 §17.4).
const SILENT_ONE_IN: u64 = 16;

/// The spin bit of a tuple.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spin {
    /// Whether the bit follows the peer's; otherwise it keeps a value drawn at random.
    spins: bool,
    value: bool,
}

packed!(Spin { spins, value });

impl Spin {
    /// Decides for a new tuple.
    pub(crate) fn new(policy: SpinBit, rng: &mut Rng) -> Self {
        // Drawn in any case, so that the policy does not change what is drawn later.
        let (silent, noise) = (rng.below(SILENT_ONE_IN) == 0, rng.chance(0.5));
        let spins = match policy {
            SpinBit::Off => false,
            SpinBit::MostPaths => !silent,
            SpinBit::EveryPath => true,
        };
        // RFC 9000 §17.4: a tuple that spins begins with 0.
        Self { spins, value: noise && !spins }
    }

    /// The bit of the next packet.
    pub(crate) fn bit(self) -> bool {
        self.value
    }

    /// The newest packet so far arrived with `bit`: a server reflects it, a client inverts it.
    pub(crate) fn on_received(&mut self, bit: bool, side: Side) {
        if self.spins {
            self.value = bit != side.is_client();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bit_of_a_connection_is_a_wave_with_the_length_of_a_round_trip() {
        let mut rng = Rng::from_u64(1);
        let mut client = Spin::new(SpinBit::EveryPath, &mut rng);
        let mut server = Spin::new(SpinBit::EveryPath, &mut rng);
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(client.bit());
            server.on_received(client.bit(), Side::Server);
            client.on_received(server.bit(), Side::Client);
        }
        assert_eq!(seen, [false, true, false, true]);
    }

    #[test]
    fn one_path_in_sixteen_is_silent_and_all_are_where_spinning_is_off() {
        let spinning =
            |policy| (0..1_600).filter(|&seed| Spin::new(policy, &mut Rng::from_u64(seed)).spins).count();
        assert!((1_450..1_550).contains(&spinning(SpinBit::MostPaths)));
        assert_eq!((spinning(SpinBit::Off), spinning(SpinBit::EveryPath)), (0, 1_600));
        let mut off = Spin::new(SpinBit::Off, &mut Rng::from_u64(3));
        let before = off.bit();
        off.on_received(!before, Side::Server);
        assert_eq!(off.bit(), before);
    }
}

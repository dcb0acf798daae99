//! The random number generator of RFC 8681.

/// TinyMT32 with the parameters of RFC 8682 §2.1. It is no source of secrets: both ends draw the same coefficients from it.
#[derive(Debug, Clone)]
pub(super) struct TinyMt32([u32; 4]);

const MAT1: u32 = 0x8f70_11ee;
const MAT2: u32 = 0xfc78_ff1f;
const TMAT: u32 = 0x3793_fdff;

/// The steps that mix the seed, and those whose results are thrown away (RFC 8682 §2.1).
const MIXING_STEPS: u32 = 8;

impl TinyMt32 {
    /// A generator that begins where the seed says.
    pub(super) fn new(seed: u32) -> Self {
        let mut state = [seed, MAT1, MAT2, TMAT];
        for i in 1..MIXING_STEPS {
            let before = state[(i as usize - 1) % 4];
            let mixed = (before ^ (before >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i);
            state[i as usize % 4] ^= mixed;
        }
        let mut generator = Self(state);
        for _ in 0..MIXING_STEPS {
            generator.step();
        }
        generator
    }

    /// The next 32 bits.
    pub(super) fn next_u32(&mut self) -> u32 {
        self.step();
        let [a, _, c, d] = self.0;
        let sum = a.wrapping_add(c >> 8);
        d ^ sum ^ odd_mask(sum, TMAT)
    }

    fn step(&mut self) {
        let [a, b, c, d] = self.0;
        // The highest bit of the state is not part of it.
        let mut x = (a & 0x7fff_ffff) ^ b ^ c;
        x ^= x << 1;
        let y = d ^ (d >> 1) ^ x;
        self.0 = [b, c ^ odd_mask(y, MAT1), x ^ (y << 10) ^ odd_mask(y, MAT2), y];
    }
}

/// `mask` if the number is odd, otherwise 0.
fn odd_mask(number: u32, mask: u32) -> u32 {
    if number & 1 == 1 { mask } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::TinyMt32;

    /// The first numbers with seed 1 (RFC 8682 §2.3).
    const EXPECTED: [u32; 50] = [
        2545341989, 981918433, 3715302833, 2387538352, 3591001365, 3820442102, 2114400566, 2196103051,
        2783359912, 764534509, 643179475, 1822416315, 881558334, 4207026366, 3690273640, 3240535687,
        2921447122, 3984931427, 4092394160, 44209675, 2188315343, 2908663843, 1834519336, 3774670961,
        3019990707, 4065554902, 1239765502, 4035716197, 3412127188, 552822483, 161364450, 353727785,
        140085994, 149132008, 2547770827, 4064042525, 4078297538, 2057335507, 622384752, 2041665899,
        2193913817, 1080849512, 33160901, 662956935, 642999063, 3384709977, 1723175122, 3866752252,
        521822317, 2292524454,
    ];

    #[test]
    fn the_numbers_are_those_of_rfc_8682() {
        let mut random = TinyMt32::new(1);
        assert_eq!([(); 50].map(|()| random.next_u32()), EXPECTED);
    }
}

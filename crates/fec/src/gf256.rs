//! Arithmetic in GF(256), the field with 256 elements.
//!
//! Elements are bytes, read as polynomials over GF(2). Addition is XOR; products are taken modulo
//! x^8 + x^4 + x^3 + x^2 + 1 ([`POLYNOMIAL`]), as in RFC 5510 §8.1 and RFC 8681 §3.7. The generator of
//! the multiplicative group is x, the byte 2.

/// The polynomial that products are reduced by, with its ninth bit.
pub const POLYNOMIAL: u16 = 0x11d;

/// The order of the multiplicative group.
const ORDER: usize = 255;

/// Powers of the generator, twice in a row so that a sum of two logarithms needs no reduction.
static EXP: [u8; 2 * ORDER] = exp_table();

/// Logarithms to the base of the generator. That of 0 does not exist; its entry is never used.
static LOG: [u8; 256] = log_table();

/// For each coefficient its products with 0..16, then those with 16 times 0..16: what a byte shuffle looks up.
pub(crate) static NIBBLES: [[u8; 32]; 256] = nibble_table();

/// For each coefficient the multiplication by it as a matrix over GF(2), in the order of GF2P8AFFINEQB.
#[cfg(target_arch = "x86_64")]
pub(crate) static AFFINE: [u64; 256] = affine_table();

/// The product of two elements.
pub fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    EXP[usize::from(LOG[usize::from(a)]) + usize::from(LOG[usize::from(b)])]
}

/// The inverse of an element, or `None` for 0, which has none.
pub fn inv(a: u8) -> Option<u8> {
    (a != 0).then(|| EXP[ORDER - usize::from(LOG[usize::from(a)])])
}

/// The product by definition, for the tables.
const fn mul_slowly(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        let carry = a & 0x80 != 0;
        a <<= 1;
        if carry {
            a ^= (POLYNOMIAL & 0xff) as u8;
        }
        b >>= 1;
    }
    product
}

const fn exp_table() -> [u8; 2 * ORDER] {
    let mut table = [0; 2 * ORDER];
    let mut power = 1;
    let mut i = 0;
    while i < ORDER {
        table[i] = power;
        table[i + ORDER] = power;
        power = mul_slowly(power, 2);
        i += 1;
    }
    table
}

const fn log_table() -> [u8; 256] {
    let exp = exp_table();
    let mut table = [0; 256];
    let mut i = 0;
    while i < ORDER {
        table[exp[i] as usize] = i as u8;
        i += 1;
    }
    table
}

const fn nibble_table() -> [[u8; 32]; 256] {
    let mut table = [[0; 32]; 256];
    let mut c = 0;
    while c < 256 {
        let mut n = 0;
        while n < 16 {
            table[c][n] = mul_slowly(c as u8, n as u8);
            table[c][n + 16] = mul_slowly(c as u8, (n << 4) as u8);
            n += 1;
        }
        c += 1;
    }
    table
}

/// Row `i` says which bits of the input make bit `i` of the product; the instruction wants row 0 in the highest byte.
#[cfg(target_arch = "x86_64")]
const fn affine_table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut c = 0;
    while c < 256 {
        let mut j = 0;
        while j < 8 {
            let product = mul_slowly(c as u8, 1 << j);
            let mut i = 0;
            while i < 8 {
                if product >> i & 1 != 0 {
                    table[c] |= 1 << (8 * (7 - i) + j);
                }
                i += 1;
            }
            j += 1;
        }
        c += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_definition() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(mul(a, b), mul_slowly(a, b), "{a} * {b}");
            }
        }
    }

    #[test]
    fn the_polynomial_is_that_of_rfc_8681() {
        // x^7 * x = x^8, which leaves x^4 + x^3 + x^2 + 1.
        assert_eq!(mul(0x80, 2), 0x1d);
    }

    #[test]
    fn every_element_but_zero_has_an_inverse() {
        assert_eq!(inv(0), None);
        for a in 1..=255 {
            assert_eq!(inv(a).map(|inverse| mul(a, inverse)), Some(1));
        }
    }
}

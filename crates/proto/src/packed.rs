//! State in a few bytes, while nobody needs it at hand.
//!
//! Most of what a connection keeps for its busy times are numbers that are small or zero after a few packets. What is packed holds
//! them in as many bytes as they take, one after the other, and nothing is lost: what is unpacked is what was packed. It never leaves
//! the process, so there is no format to be kept.

use std::num::NonZeroU64;
use std::time::Duration;

use fulmar_base::Instant;

/// A value that can be kept in a few bytes. [`packed!`] makes a struct one whose fields are.
pub(crate) trait Packed: Sized {
    /// Appends the value.
    fn pack(&self, out: &mut Vec<u8>);

    /// Takes a value from the front of what [`pack`](Self::pack) has written.
    fn unpack(input: &mut &[u8]) -> Self;
}

/// Makes a struct [`Packed`]: all of its fields are named, in any order. One that is forgotten does not compile.
macro_rules! packed {
    ($name:ty { $($field:ident),* $(,)? }) => {
        impl $crate::packed::Packed for $name {
            fn pack(&self, out: &mut Vec<u8>) {
                let Self { $($field),* } = self;
                $($crate::packed::Packed::pack($field, out);)*
            }

            fn unpack(input: &mut &[u8]) -> Self {
                Self { $($field: $crate::packed::Packed::unpack(input)),* }
            }
        }
    };
}

/// Makes an enum [`Packed`] whose variants hold nothing. The first stands for what was never packed.
macro_rules! packed_names {
    ($name:ident { $first:ident $(, $variant:ident)* $(,)? }) => {
        impl $crate::packed::Packed for $name {
            fn pack(&self, out: &mut Vec<u8>) {
                $crate::packed::Packed::pack(&(*self as u8), out);
            }

            fn unpack(input: &mut &[u8]) -> Self {
                let number: u8 = $crate::packed::Packed::unpack(input);
                match number {
                    $(number if number == Self::$variant as u8 => Self::$variant,)*
                    _ => Self::$first,
                }
            }
        }
    };
}

pub(crate) use {packed, packed_names};

/// Bits of a number in each byte; the highest bit says that more follow.
const BITS: u32 = 7;
const MORE: u8 = 1 << BITS;

impl Packed for u64 {
    fn pack(&self, out: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= u64::from(MORE) {
            out.push(rest as u8 | MORE);
            rest >>= BITS;
        }
        out.push(rest as u8);
    }

    fn unpack(input: &mut &[u8]) -> Self {
        let (mut value, mut shift) = (0, 0);
        while let Some((&byte, rest)) = input.split_first() {
            *input = rest;
            value |= u64::from(byte & !MORE) << shift;
            shift += BITS;
            if byte < MORE {
                break;
            }
        }
        value
    }
}

/// As the number that it is made from.
macro_rules! packed_as_number {
    ($($type:ty: $to:expr, $from:expr;)*) => {
        $(impl Packed for $type {
            fn pack(&self, out: &mut Vec<u8>) {
                let to: fn(Self) -> u64 = $to;
                to(*self).pack(out);
            }

            fn unpack(input: &mut &[u8]) -> Self {
                let from: fn(u64) -> Self = $from;
                from(u64::unpack(input))
            }
        })*
    };
}

packed_as_number! {
    bool: u64::from, |number| number != 0;
    u8: u64::from, |number| number as u8;
    u16: u64::from, |number| number as u16;
    u32: u64::from, |number| number as u32;
    usize: |number| number as u64, |number| number as usize;
    NonZeroU64: NonZeroU64::get, |number| NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN);
    Instant: Instant::as_nanos, Instant::from_nanos;
}

impl Packed for Duration {
    fn pack(&self, out: &mut Vec<u8>) {
        self.as_secs().pack(out);
        self.subsec_nanos().pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Self {
        let seconds = u64::unpack(input);
        Self::new(seconds, u32::unpack(input))
    }
}

impl Packed for () {
    fn pack(&self, _out: &mut Vec<u8>) {}

    fn unpack(_input: &mut &[u8]) -> Self {}
}

impl<A: Packed, B: Packed> Packed for (A, B) {
    fn pack(&self, out: &mut Vec<u8>) {
        self.0.pack(out);
        self.1.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Self {
        let first = A::unpack(input);
        (first, B::unpack(input))
    }
}

impl<T: Packed> Packed for Option<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.is_some().pack(out);
        if let Some(value) = self {
            value.pack(out);
        }
    }

    fn unpack(input: &mut &[u8]) -> Self {
        bool::unpack(input).then(|| T::unpack(input))
    }
}

impl<T: Packed> Packed for Box<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        (**self).pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Self {
        Self::new(T::unpack(input))
    }
}

impl<T: Packed, const N: usize> Packed for [T; N] {
    fn pack(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.pack(out));
    }

    fn unpack(input: &mut &[u8]) -> Self {
        std::array::from_fn(|_| T::unpack(input))
    }
}

impl<T: Packed> Packed for Vec<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.len().pack(out);
        self.iter().for_each(|value| value.pack(out));
    }

    fn unpack(input: &mut &[u8]) -> Self {
        (0..usize::unpack(input)).map(|_| T::unpack(input)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    fn check<T: Packed + PartialEq + Debug>(value: &T, len_max: usize) {
        let mut bytes = Vec::new();
        value.pack(&mut bytes);
        assert!(bytes.len() <= len_max, "{value:?} takes {} bytes", bytes.len());
        let mut input = &bytes[..];
        assert_eq!(T::unpack(&mut input), *value);
        assert!(input.is_empty(), "{} bytes are left of {value:?}", input.len());
    }

    #[test]
    fn what_is_unpacked_is_what_was_packed() {
        for number in (0..64).flat_map(|bits| [(1u64 << bits) - 1, 1 << bits, !(1 << bits)]) {
            check(&number, 10);
            check(&Some(Instant::from_nanos(number)), 11);
            check(&Some(Box::new([number as u32, 7])), 7);
            check(&NonZeroU64::new(number), 11);
            check(&Duration::new(number, number as u32 % 1_000_000_000), 15);
        }
        check(&Vec::from([(false, 1u8), (true, 255)]), 6);
        check(&[None::<u64>; 40], 40);
        check(&(usize::MAX, u16::MAX), 13);
    }
}

//! State in a few bytes, while nobody needs it at hand.
//!
//! Most of what a connection keeps for its busy times are numbers that are small or zero after a few packets. What is packed holds
//! them in as many bytes as they take, one after the other, and nothing is lost: what is unpacked is what was packed. It never leaves
//! the process, so there is no format to be kept.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::num::NonZeroU64;
use std::ops::Range;
use std::time::Duration;

use fulmar_base::{Instant, RangeSet, Rng, Timer};
use fulmar_wire::{ConnectionId, EcnCounts, PathId, ResetToken};

/// A value that can be kept in a few bytes. [`packed!`] makes a struct one whose fields are.
pub(crate) trait Packed: Sized {
    /// Appends the value.
    fn pack(&self, out: &mut Vec<u8>);

    /// Takes a value from the front of what [`pack`](Self::pack) has written.
    fn unpack(input: &mut &[u8]) -> Self;
}

/// Makes a struct [`Packed`]: all of its fields are named, in any order. One that is forgotten does not compile. Those that are called
/// `empty` are when it is packed, whoever does that sees to it, and again when it is unpacked.
macro_rules! packed {
    ($name:ident) => {
        impl $crate::packed::Packed for $name {
            fn pack(&self, out: &mut Vec<u8>) {
                $crate::packed::Packed::pack(&self.0, out);
            }

            fn unpack(input: &mut &[u8]) -> Self {
                Self($crate::packed::Packed::unpack(input))
            }
        }
    };
    ($name:ty { $($field:ident),* $(,)? } $(empty { $($empty:ident),* })?) => {
        impl $crate::packed::Packed for $name {
            fn pack(&self, out: &mut Vec<u8>) {
                let Self { $($field,)* $($($empty: _),*)? } = self;
                $($crate::packed::Packed::pack($field, out);)*
            }

            fn unpack(input: &mut &[u8]) -> Self {
                Self {
                    $($field: $crate::packed::Packed::unpack(input),)*
                    $($($empty: Default::default()),*)?
                }
            }
        }
    };
}

/// Makes a struct one that can be packed but for some parts, which are given back and brought again.
macro_rules! packed_around {
    (
        $name:ident { $($field:ident),* $(,)? }
        $(empty { $($empty:ident),* })?
        around { $($part:ident: $type:ty),* }
    ) => {
        impl $name {
            /// Appends what can be packed, and returns the rest.
            pub(crate) fn pack(self, out: &mut Vec<u8>) -> ($($type,)*) {
                let Self { $($field,)* $($($empty: _,)*)? $($part),* } = self;
                $($crate::packed::Packed::pack(&$field, out);)*
                ($($part,)*)
            }

            /// Takes what was packed from the front, and the rest from `parts`.
            pub(crate) fn unpack(
                input: &mut &[u8],
                parts: impl FnOnce(&mut &[u8]) -> ($($type,)*),
            ) -> Self {
                $(let $field = $crate::packed::Packed::unpack(input);)*
                let ($($part,)*) = parts(input);
                Self { $($field,)* $($($empty: Default::default(),)*)? $($part),* }
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

pub(crate) use {packed, packed_around, packed_names};

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
    // The lowest bit is the sign, so that small numbers stay small.
    i64: |number| (number << 1 ^ number >> 63) as u64, |number| (number >> 1) as i64 ^ -((number & 1) as i64);
    Instant: Instant::as_nanos, Instant::from_nanos;
    PathId: |id| id.0.into(), |number| Self(number as u32);
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

/// The very bytes.
fn pack_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(bytes);
}

fn unpack_bytes<const N: usize>(input: &mut &[u8]) -> [u8; N] {
    let Some((bytes, rest)) = input.split_first_chunk() else { return [0; N] };
    *input = rest;
    *bytes
}

impl Packed for ResetToken {
    fn pack(&self, out: &mut Vec<u8>) {
        pack_bytes(&self.0, out);
    }

    fn unpack(input: &mut &[u8]) -> Self {
        Self(unpack_bytes(input))
    }
}

impl Packed for Rng {
    fn pack(&self, out: &mut Vec<u8>) {
        let (seed, drawn) = self.state();
        pack_bytes(&seed, out);
        drawn.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Self {
        let seed = unpack_bytes(input);
        Self::with_state((seed, u64::unpack(input)))
    }
}

impl Packed for ConnectionId {
    fn pack(&self, out: &mut Vec<u8>) {
        self.len().pack(out);
        pack_bytes(self.as_bytes(), out);
    }

    fn unpack(input: &mut &[u8]) -> Self {
        let len = usize::unpack(input).min(input.len());
        let (bytes, rest) = input.split_at(len);
        *input = rest;
        Self::new(bytes).unwrap_or(Self::EMPTY)
    }
}

impl Packed for IpAddr {
    fn pack(&self, out: &mut Vec<u8>) {
        self.is_ipv6().pack(out);
        match self {
            Self::V4(ip) => pack_bytes(&ip.octets(), out),
            Self::V6(ip) => pack_bytes(&ip.octets(), out),
        }
    }

    fn unpack(input: &mut &[u8]) -> Self {
        match bool::unpack(input) {
            false => unpack_bytes::<4>(input).into(),
            true => unpack_bytes::<16>(input).into(),
        }
    }
}

impl Packed for SocketAddr {
    fn pack(&self, out: &mut Vec<u8>) {
        self.ip().pack(out);
        self.port().pack(out);
        if let Self::V6(addr) = self {
            addr.flowinfo().pack(out);
            addr.scope_id().pack(out);
        }
    }

    fn unpack(input: &mut &[u8]) -> Self {
        let ip = IpAddr::unpack(input);
        let port = u16::unpack(input);
        match ip {
            IpAddr::V4(ip) => Self::V4(SocketAddrV4::new(ip, port)),
            IpAddr::V6(ip) => {
                let flowinfo = u32::unpack(input);
                Self::V6(SocketAddrV6::new(ip, port, flowinfo, u32::unpack(input)))
            }
        }
    }
}

impl Packed for EcnCounts {
    fn pack(&self, out: &mut Vec<u8>) {
        let Self { ect0, ect1, ce } = self;
        [*ect0, *ect1, *ce].pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Self {
        let [ect0, ect1, ce] = Packed::unpack(input);
        Self { ect0, ect1, ce }
    }
}

impl Packed for Timer {
    fn pack(&self, out: &mut Vec<u8>) {
        self.deadline().pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Self {
        let mut timer = Self::new();
        if let Some(deadline) = Packed::unpack(input) {
            timer.set(deadline);
        }
        timer
    }
}

impl Packed for Range<u64> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.start.pack(out);
        self.end.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Self {
        let start = u64::unpack(input);
        start..u64::unpack(input)
    }
}

impl Packed for RangeSet {
    fn pack(&self, out: &mut Vec<u8>) {
        self.len().pack(out);
        self.iter().for_each(|range| range.pack(out));
    }

    fn unpack(input: &mut &[u8]) -> Self {
        Vec::<Range<u64>>::unpack(input).into_iter().collect()
    }
}

impl<T: Packed> Packed for VecDeque<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.len().pack(out);
        self.iter().for_each(|value| value.pack(out));
    }

    fn unpack(input: &mut &[u8]) -> Self {
        Vec::unpack(input).into()
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

//! Packet numbers as they are truncated on the wire (RFC 9000 §17.1, appendix A).

/// The most bytes of a packet number that are written.
pub const LEN_MAX: usize = 4;

/// How many bytes, 1 to 4, `number` needs so that a peer that acknowledged `largest_acked` can restore it
/// (RFC 9000 appendix A.2).
pub fn encoded_len(number: u64, largest_acked: Option<u64>) -> usize {
    let unacked = match largest_acked {
        Some(acked) => number.saturating_sub(acked),
        None => number.saturating_add(1),
    };
    // The range must be more than twice as large as the distance.
    let bits = 64 - unacked.leading_zeros() + 1;
    (bits.div_ceil(8) as usize).clamp(1, LEN_MAX)
}

/// Restores a packet number from its `len` low bytes, near the one after `largest` (RFC 9000 appendix A.3).
pub fn decode(largest: Option<u64>, truncated: u32, len: usize) -> u64 {
    let expected = largest.map_or(0, |l| l + 1);
    let window = 1u64 << (len * 8);
    let candidate = (expected & !(window - 1)) | u64::from(truncated);
    if candidate + window / 2 <= expected && candidate < (1 << 62) - window {
        candidate + window
    } else if candidate > expected + window / 2 && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rfc_9000_appendix_a() {
        assert_eq!(encoded_len(0xac5c02, Some(0xabe8b3)), 2);
        assert_eq!(encoded_len(0xace8fe, Some(0xabe8b3)), 3);
        assert_eq!(decode(Some(0xa82f_30ea), 0x9b32, 2), 0xa82f_9b32);
    }

    proptest! {
        #[test]
        fn a_number_survives_truncation(acked in 0u64..1 << 61, gap in 1u64..1 << 30, seen in 0.0f64..1.0) {
            let number = acked + gap;
            let len = encoded_len(number, Some(acked));
            let truncated = (number & ((1u64 << (len * 8)) - 1)) as u32;
            // The receiver has seen anything between what it acknowledged and the packet before this one.
            let largest = acked + (seen * (gap - 1) as f64) as u64;
            prop_assert_eq!(decode(Some(largest), truncated, len), number);
        }

        #[test]
        fn any_input_is_decoded(largest in prop::option::of(0u64..1 << 62), truncated: u32, len in 1usize..=4) {
            decode(largest, truncated & (u32::MAX >> (32 - 8 * len)), len);
        }
    }
}

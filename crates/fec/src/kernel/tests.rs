use proptest::prelude::*;

use super::*;

/// Bytes without a pattern, from a small seed.
fn bytes(seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// What the scalar kernel makes of the same.
fn expected(dst: &[u8], src: &[u8], coefficient: u8) -> Vec<u8> {
    let mut dst = dst.to_vec();
    Kernel::SCALAR.mul_add(&mut dst, src, coefficient);
    dst
}

#[test]
fn the_scalar_kernel_multiplies_as_the_field_does() {
    let src: Vec<u8> = (0..=255).collect();
    for coefficient in (0..=255).step_by(if cfg!(miri) { 50 } else { 1 }) {
        let mut dst = bytes(1, 256);
        let before = dst.clone();
        Kernel::SCALAR.mul_add(&mut dst, &src, coefficient);
        for i in 0..256 {
            assert_eq!(dst[i], before[i] ^ crate::gf256::mul(src[i], coefficient));
        }
    }
}

#[test]
fn all_kernels_agree_for_all_coefficients_and_bytes() {
    let src: Vec<u8> = (0..=255).chain(0..=255).collect();
    let dst = bytes(2, src.len());
    let step = if cfg!(miri) { 50 } else { 1 };
    for kernel in Kernel::available() {
        for coefficient in (0..=255).step_by(step) {
            let mut sum = dst.clone();
            kernel.mul_add(&mut sum, &src, coefficient);
            assert_eq!(sum, expected(&dst, &src, coefficient), "{kernel:?}, coefficient {coefficient}");
        }
    }
}

#[test]
fn all_kernels_agree_for_all_lengths_and_alignments() {
    let lengths = if cfg!(miri) { 60..70 } else { 0..200 };
    for kernel in Kernel::available() {
        for length in lengths.clone() {
            for shift in [0, 1, 7, 15, 31] {
                let src = bytes(3, length + shift);
                let before = bytes(4, length + shift + 3);
                let mut sum = before.clone();
                kernel.mul_add(&mut sum[shift / 2..], &src[shift..], 0x8e);
                let mut scalar = before.clone();
                Kernel::SCALAR.mul_add(&mut scalar[shift / 2..], &src[shift..], 0x8e);
                assert_eq!(sum, scalar, "{kernel:?}, {length} bytes from {shift}");
            }
        }
    }
}

#[test]
fn a_coefficient_of_one_is_xor_and_zero_does_nothing() {
    for kernel in Kernel::available() {
        let src = bytes(5, 100);
        let dst = bytes(6, 120);
        let mut sum = dst.clone();
        kernel.mul_add(&mut sum, &src, 0);
        assert_eq!(sum, dst);
        kernel.mul_add(&mut sum, &src, 1);
        kernel.xor(&mut sum, &src);
        assert_eq!(sum, dst);
    }
}

#[test]
fn what_is_behind_the_source_stays() {
    for kernel in Kernel::available() {
        let mut dst = [9; 80];
        kernel.mul_add(&mut dst, &[255; 70], 3);
        assert_eq!(dst[70..], [9; 10]);
    }
}

#[test]
fn kernels_are_found_by_their_names() {
    for kernel in Kernel::available() {
        assert_eq!(Kernel::named(kernel.name()), Some(kernel));
    }
    assert_eq!(Kernel::named("scalar"), Some(Kernel::SCALAR));
    assert_eq!(Kernel::named("abacus"), None);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: if cfg!(miri) { 4 } else { 256 }, ..ProptestConfig::default() })]

    #[test]
    fn all_kernels_agree(
        src in prop::collection::vec(any::<u8>(), 0..1600),
        more in 0..70usize,
        shift in 0..64usize,
        coefficient: u8,
    ) {
        let shift = shift.min(src.len());
        let src = &src[shift..];
        let dst = bytes(7, src.len() + more);
        for kernel in Kernel::available() {
            let mut sum = dst.clone();
            kernel.mul_add(&mut sum, src, coefficient);
            prop_assert_eq!(&sum, &expected(&dst, src, coefficient), "{:?}", kernel);
        }
    }
}

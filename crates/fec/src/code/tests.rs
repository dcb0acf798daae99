use std::collections::BTreeSet;

use super::*;
use crate::gf256::mul;

fn row(code: &dyn Code, first: u64, count: u16, key: u16) -> Vec<u8> {
    let mut out = [0; WINDOW_MAX as usize];
    coefficients(code, &RepairId { first, count, key }, &mut out).unwrap().to_vec()
}

#[test]
fn all_coefficients_of_xor_are_one() {
    assert_eq!(row(&Xor, 7, 256, 0), [1; 256]);
}

#[test]
fn cauchy_coefficients_are_inverses_of_sums_that_all_differ() {
    let (first, count, repairs) = (1_000_003, 200, 55);
    for key in 0..repairs {
        let row = row(&Cauchy, first, count, key);
        let x = (first - 1 - u64::from(key)) as u8;
        for (coefficient, id) in row.iter().zip(first..) {
            assert_eq!(mul(*coefficient, x ^ id as u8), 1);
        }
    }
}

#[test]
fn cauchy_coefficients_do_not_depend_on_where_the_window_ends() {
    assert_eq!(row(&Cauchy, 50, 20, 3), row(&Cauchy, 50, 60, 3)[..20]);
}

#[test]
fn the_matrix_of_vandermonde_is_that_of_its_definition() {
    // The row of K + r in the Vandermonde matrix is the combination of the rows above that the coefficients say.
    let power = |base: u8, exponent: u8| (0..exponent).fold(1, |power, _| mul(power, base));
    for count in [1, 2, 5, 20] {
        for key in 0..10 {
            let row = row(&Vandermonde, 999, count, key);
            for column in 0..count as u8 {
                let sum = (0u8..).zip(&row).fold(0, |sum, (j, c)| sum ^ mul(*c, power(j, column)));
                assert_eq!(sum, power((count + key) as u8, column), "{count} symbols, repair {key}");
            }
        }
    }
}

#[test]
fn a_dense_random_code_uses_the_numbers_of_rfc_8681_without_zeros() {
    // RFC 8681, appendix A: tinymt32_rand256 with seed 1.
    let expected =
        [37, 225, 177, 176, 21, 246, 54, 139, 168, 237, 211, 187, 62, 190, 104, 135, 210, 99, 176, 11];
    assert_eq!(row(&Rlc::DENSE, 0, 20, 1), expected);
    for key in 0..200 {
        assert!(!row(&Rlc::DENSE, 0, 256, key).contains(&0));
    }
}

#[test]
fn a_sparse_random_code_decides_before_each_coefficient() {
    // With seed 1 the generator gives the nibbles 5, 1, 1, 0, 5, 6, ... (RFC 8681, appendix A). At the threshold 4 the first
    // number says no; the second says yes and the third is the coefficient; the fourth says yes; the sixth says no.
    let sparse = Rlc::with_density_threshold(4).unwrap();
    assert_eq!(row(&sparse, 0, 4, 1), [0, 177, 21, 0]);
    assert_eq!(Rlc::with_density_threshold(16), None);
}

#[test]
fn the_density_threshold_is_kept_on_average() {
    for threshold in 0..16 {
        let code = Rlc::with_density_threshold(threshold).unwrap();
        let nonzero =
            (0..100).flat_map(|key| row(&code, 0, 256, key)).filter(|coefficient| *coefficient != 0).count();
        let expected = 25_600.0 * (f64::from(threshold) + 1.0) / 16.0;
        assert!((nonzero as f64 - expected).abs() < 500.0, "threshold {threshold}: {nonzero}");
    }
}

#[test]
fn repair_symbols_of_a_window_differ() {
    for code in [&Cauchy as &dyn Code, &Vandermonde, &Rlc::DENSE] {
        let rows: BTreeSet<Vec<u8>> = (0..50).map(|key| row(code, 12, 100, key)).collect();
        assert_eq!(rows.len(), 50, "{}", code.name());
    }
}

#[test]
fn what_a_code_does_not_have_is_refused() {
    let mut out = [0; WINDOW_MAX as usize];
    let mut refused = |code: &dyn Code, first, count, key| {
        coefficients(code, &RepairId { first, count, key }, &mut out).unwrap_err()
    };
    assert_eq!(refused(&Xor, 0, 0, 0), CodeError::Window { first: 0, count: 0 });
    assert_eq!(refused(&Xor, 0, 257, 0), CodeError::Window { first: 0, count: 257 });
    assert_eq!(refused(&Xor, 0, 4, 1), CodeError::Key { key: 1, count: 4 });
    assert_eq!(refused(&Cauchy, 0, 255, 0), CodeError::Window { first: 0, count: 255 });
    assert_eq!(refused(&Cauchy, 0, 200, 55), CodeError::Key { key: 55, count: 200 });
    assert_eq!(refused(&Rlc::DENSE, u64::MAX, 2, 0), CodeError::Window { first: u64::MAX, count: 2 });
    assert_eq!(refused(&Rlc::DENSE, ID_LIMIT - 1, 2, 0), CodeError::Window { first: ID_LIMIT - 1, count: 2 });
    assert!(coefficients(&Rlc::DENSE, &RepairId { first: ID_LIMIT - 2, count: 2, key: 9 }, &mut out).is_ok());
    assert!(coefficients(&Cauchy, &RepairId { first: 0, count: 200, key: 54 }, &mut out).is_ok());
}

#[test]
fn blocks_have_consecutive_symbols() {
    assert_eq!(Blocks::new(0), None);
    assert_eq!(Blocks::new(257), None);
    let blocks = Blocks::new(20).unwrap();
    assert_eq!((blocks.block_of(59), blocks.completes(59)), (2, true));
    assert_eq!((blocks.block_of(60), blocks.completes(60)), (3, false));
    assert_eq!(blocks.repair(2, 9), Some(RepairId { first: 40, count: 20, key: 9 }));
    assert_eq!(blocks.repair(u64::MAX / 20, 0), None);
    assert_eq!(blocks.repair(u64::MAX, 0), None);
    assert_eq!(blocks.repair(ID_LIMIT / 20, 0), None, "its last ids are too large");
}

#[test]
fn the_keys_of_windows_that_overlap_have_different_points() {
    let mut keys = CauchyKeys::default();
    let mut latest: Vec<(u64, u64)> = Vec::new();
    for step in 0..2000u64 {
        let (first, count) = (step * 3, 60);
        let id = keys.next(first, count).unwrap();
        assert!(id.key < 195);
        let point = (first + 255 - u64::from(id.key)) % 256;
        latest.retain(|(end, _)| *end > first);
        assert!(latest.iter().all(|(_, other)| *other != point), "step {step}");
        latest.push((first + u64::from(count), point));
    }
    assert_eq!(keys.next(0, 255), None);
    // More repair symbols than there are keys: they begin anew.
    let used: BTreeSet<u16> = (0..40).map(|_| keys.next(1 << 20, 235).unwrap().key).collect();
    assert_eq!(used.len(), 20);
}

#[test]
fn a_second_order_over_a_long_window_leaves_out_so_many_symbols_that_its_keys_are_new() {
    let mut keys = CauchyKeys::default();
    let mut points = BTreeSet::new();
    // Of 256 symbols as many are kept as there are keys for.
    for (repairs, kept) in [(4, 251), (3, 248), (8, 240)] {
        let count = keys.longest(300, 256, repairs).unwrap();
        assert_eq!(count, kept);
        for _ in 0..repairs {
            let id = keys.next(300 - u64::from(count), count).unwrap();
            assert!(points.insert(id.first - 1 - u64::from(id.key)), "{id:?}");
        }
    }
    // Short windows are kept, and so are those that are the only ones.
    assert_eq!(keys.longest(700, 100, 5), Some(100));
    (0..254).for_each(|_| assert!(keys.next(1_000, 1).is_some()));
    assert_eq!(keys.longest(1_001, 1, 5), Some(1));
    assert_eq!(keys.longest(1_001, 1, 255), None);
    assert_eq!(keys.longest(3, 8, 1), Some(3), "no symbols come before the first");
}

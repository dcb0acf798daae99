use super::*;

#[test]
fn cube_roots_are_exact() {
    for (value, root) in [(0, 0), (1, 1), (7, 1), (8, 2), (26, 2), (27, 3), (10u128.pow(30), 10u64.pow(10))] {
        assert_eq!(cube_root(value), root);
    }
    assert_eq!(cube_root(u128::MAX), 6_981_463_658_331);
}

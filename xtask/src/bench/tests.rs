use super::*;

#[test]
fn the_median_is_the_middle_or_between_the_two_middles() {
    assert_eq!(median(&[3.0]), 3.0);
    assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
    assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), 3.0);
}

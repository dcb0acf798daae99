use super::*;

fn take(numbers: &mut TxNumbers, count: usize, rng: &mut Rng) -> Vec<u64> {
    (0..count)
        .map(|_| {
            let number = numbers.next();
            numbers.advance(rng);
            number
        })
        .collect()
}

#[test]
fn numbers_increase_and_every_gap_is_a_known_skip() {
    let mut rng = Rng::from_u64(3);
    let mut numbers = TxNumbers::new(&mut rng);
    let taken = take(&mut numbers, 20_000, &mut rng);
    assert_eq!(taken[0], 0);
    let missing: Vec<u64> = (0..numbers.next()).filter(|n| taken.binary_search(n).is_err()).collect();
    assert!(missing.len() >= 5, "skips: {missing:?}");
    assert!(missing.iter().all(|&n| numbers.is_skipped(n)));
    assert!(taken.iter().all(|&n| !numbers.is_skipped(n)));
}

#[test]
fn skips_become_rarer() {
    // Averaged over seeds, the second half of the numbers has fewer skips than the first tenth.
    let (mut early, mut late) = (0, 0);
    for seed in 0..50 {
        let mut rng = Rng::from_u64(seed);
        let mut numbers = TxNumbers::new(&mut rng);
        take(&mut numbers, 10_000, &mut rng);
        early += numbers.skipped.iter().filter(|&&n| n < 1_000).count();
        late += numbers.skipped.iter().filter(|&&n| n >= 5_000).count();
    }
    assert!(early > 2 * late, "{early} skips early, {late} late");
}

#[test]
fn a_range_with_a_skip_is_recognised() {
    let mut rng = Rng::from_u64(5);
    let mut numbers = TxNumbers::new(&mut rng);
    take(&mut numbers, 10, &mut rng);
    let skipped = numbers.next();
    numbers.skip();
    assert!(numbers.any_skipped(&(0..=skipped)));
    assert!(numbers.any_skipped(&(skipped..=skipped)));
    assert!(!numbers.any_skipped(&(skipped + 1..=u64::MAX)));
}

#[test]
fn memory_is_bounded() {
    let mut rng = Rng::from_u64(5);
    let mut numbers = TxNumbers::new(&mut rng);
    for _ in 0..1_000 {
        numbers.skip();
    }
    assert_eq!(numbers.skipped.len(), MAX_REMEMBERED_SKIPS);
    assert!(numbers.is_skipped(999) && !numbers.is_skipped(0));
}

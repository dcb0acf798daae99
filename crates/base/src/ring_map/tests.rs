use super::*;

#[test]
fn memory_that_is_no_longer_needed_is_given_back() {
    let mut map = RingMap::new();
    let mut fill = |first: u64, count: u64| {
        (first..first + count).for_each(|key| map.push(key, [0_u8; 100]));
        (first..first + count).for_each(|key| assert!(map.remove(key).is_some()));
        map.slots.capacity()
    };
    let large = fill(0, 1_000);
    assert!(large >= 1_000, "the next may be as many");
    assert_eq!(fill(1_000, 300), large);
    assert!(fill(2_000, 100) <= 400);
    assert!(fill(3_000, 1) <= SLOTS_KEPT);
}

#[test]
fn a_value_is_seen_once_before_it_is_removed() {
    let mut map = RingMap::new();
    map.push(3, 'a');
    map.push(4, 'b');
    let mut seen = Vec::new();
    for keys in [3..4, 0..4, 7..9, 4..4] {
        map.remove_range(keys, |key, value| seen.push((key, *value)));
    }
    assert_eq!((seen, map.first_key(), map.len()), (vec![(3, 'a')], Some(4), 1));
}

#[test]
fn many_skipped_keys_take_no_memory() {
    let mut map = RingMap::new();
    for n in 0..1_000 {
        map.push(n * 10_000, n);
    }
    assert!(map.slots.capacity() + map.aside.as_ref().unwrap().list.capacity() < 5_000);
    // A dense run behind them is indexed again.
    (0..500).for_each(|n| map.push(10_000_000 + n, n));
    assert_eq!((map.len(), map.first_key(), map.end_key()), (1_500, Some(0), 10_000_500));
    assert_eq!((map.get(70_000), map.get(70_001), map.get(10_000_007)), (Some(&7), None, Some(&7)));
    *map.get_mut(70_000).unwrap() = 8;
    let mut seen = Vec::new();
    map.remove_range(60_000..80_000, |key, value| seen.push((key, *value)));
    assert_eq!(seen, [(60_000, 6), (70_000, 8)]);
    assert_eq!(map.remove(70_000), None);
    assert_eq!(map.remove(0), Some(0));
    assert_eq!((map.first_key(), map.len()), (Some(10_000), 1_497));
    let keys: Vec<u64> = map.iter().map(|(key, _)| key).collect();
    assert!(keys.is_sorted() && keys.len() == map.len());
    assert!(map.iter_mut().rev().map(|(key, _)| key).eq(keys.iter().rev().copied()));
    map.remove_range(0..10_000_499, |_, _| ());
    assert_eq!(map.drain().collect::<Vec<_>>(), [(10_000_499, 499)]);
    assert!(map.is_empty() && map.first_key().is_none());
}

/// The same as a tree does, whatever is skipped and removed.
#[test]
fn it_is_a_map() {
    use crate::Rng;
    use std::collections::BTreeMap;

    let mut rng = Rng::from_u64(7);
    for _ in 0..50 {
        let (mut map, mut tree, mut next) = (RingMap::new(), BTreeMap::new(), 0);
        for _ in 0..400 {
            match rng.below(4) {
                0 => next += rng.below(3_000),
                1 => {
                    let start = rng.below(next + 1);
                    let end = start + rng.below(2_000);
                    let mut seen = Vec::new();
                    map.remove_range(start..end, |key, value| seen.push((key, *value)));
                    let keys: Vec<u64> = tree.range(start..end).map(|(key, _)| *key).collect();
                    let expected: Vec<_> = keys.iter().map(|key| (*key, tree.remove(key).unwrap())).collect();
                    assert_eq!(seen, expected);
                }
                2 => {
                    let key = tree.keys().nth(rng.below(tree.len() as u64 + 1) as usize).copied();
                    let key = key.unwrap_or(next);
                    assert_eq!(map.remove(key), tree.remove(&key));
                }
                _ => {
                    for _ in 0..rng.below(40) {
                        map.push(next, next * 3);
                        tree.insert(next, next * 3);
                        next += 1;
                    }
                }
            }
            assert_eq!(map.len(), tree.len());
            assert_eq!(map.first_key(), tree.keys().next().copied());
            let most = 4 * (2 * SPARSE_FACTOR as usize * map.peak.max(1) + SPARSE_SLOTS as usize);
            assert!(map.slots.len() <= most, "{} slots for {}", map.slots.len(), map.len());
        }
        assert!(map.iter().map(|(key, value)| (key, *value)).eq(tree));
    }
}

#[test]
fn removal_moves_the_front() {
    let mut map = RingMap::new();
    for key in [5, 6, 9] {
        map.push(key, key * 10);
    }
    assert_eq!(map.len(), 3);
    assert_eq!(map.remove(6), Some(60));
    assert_eq!(map.first_key(), Some(5));
    assert_eq!(map.remove(5), Some(50));
    assert_eq!(map.first_key(), Some(9));
    assert_eq!(map.get(7), None);
    assert_eq!(map.remove(5), None);
    assert_eq!(map.iter().map(|(k, v)| (k, *v)).collect::<Vec<_>>(), [(9, 90)]);
    assert_eq!(map.remove(9), Some(90));
    assert!(map.is_empty() && map.first_key().is_none());
    map.push(20, 1);
    assert_eq!(map.drain().collect::<Vec<_>>(), [(20, 1)]);
    map.push(21, 2);
    assert_eq!(map.get(21), Some(&2));
}

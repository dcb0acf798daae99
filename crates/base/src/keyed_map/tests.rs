use super::*;

/// The bucket of a key among a thousand.
fn bucket(hash: HashKey, key: u64) -> u64 {
    hash.hash_one(key) & 1_023
}

#[test]
fn keys_that_collide_in_one_map_do_not_in_another() {
    let (known, victim) = (HashKey::new(&mut Rng::from_u64(1)), HashKey::new(&mut Rng::from_u64(2)));
    // What an attacker would send who knew the secret.
    let colliding: Vec<u64> = (0..2_000_000).filter(|key| bucket(known, *key) == 0).collect();
    assert!(colliding.len() > 1_000);
    let together = colliding.iter().filter(|key| bucket(victim, **key) == 0).count();
    assert!(together < 20, "{together} of {}", colliding.len());
}

#[test]
fn entries_are_visited_in_the_order_of_their_keys() {
    let mut map = KeyedMap::new(HashKey::new(&mut Rng::from_u64(3)));
    for key in [5, 3, 9, 1] {
        assert_eq!(map.insert(key, key * 10), None);
    }
    assert_eq!((map.insert(3, 33), map.remove(&9), map.len()), (Some(30), Some(90), 3));
    let mut seen = Vec::new();
    map.for_each_sorted(|key, value| seen.push((*key, *value)));
    assert_eq!(seen, [(1, 10), (3, 33), (5, 50)]);
}

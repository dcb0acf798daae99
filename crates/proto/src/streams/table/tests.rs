use std::collections::BTreeSet;

use fulmar_wire::{Dir, Side};

use super::*;

fn id(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Uni, index)
}

fn stream(index: u64) -> Stream {
    Stream::new(id(index), Some(SendHalf::new(0)), None)
}

fn end(table: &mut Table, id: StreamId) {
    table.get_mut(id).unwrap().send = None;
    table.remove(id);
}

#[test]
fn streams_are_found_until_they_are_over() {
    let mut rng = Rng::from_u64(5);
    let (mut table, mut known) = (Table::new(&mut rng), BTreeSet::new());
    for index in 0..5_000 {
        table.insert(stream(index));
        known.insert(id(index));
        // Now many at a time, now few, now none.
        while known.len() as u64 > rng.below(40) * u64::from(index / 500 % 2 == 0) {
            let over = *known.iter().nth(rng.below(known.len() as u64) as usize).unwrap();
            end(&mut table, over);
            known.remove(&over);
            assert!(!table.contains(over) && table.get_mut(over).is_none());
        }
        if rng.chance(0.1) {
            table.rest();
        }
        let asked = id(index - rng.below(index.min(50) + 1));
        assert_eq!(table.get_mut(asked).map(|stream| stream.id), known.get(&asked).copied());
        assert_eq!((table.len(), table.sending().count()), (known.len(), known.len()));
        assert_eq!(table.iter_mut().map(|(id, _)| id).collect::<BTreeSet<_>>(), known);
        assert_eq!(table.slots.len(), table.len() + table.free.len());
    }
}

#[test]
fn a_slot_is_used_again_and_given_back_at_rest() {
    let mut table = Table::new(&mut Rng::from_u64(1));
    (0..10).for_each(|index| table.insert(stream(index)));
    for index in [3, 9, 7, 8] {
        end(&mut table, id(index));
    }
    table.insert(stream(10));
    assert_eq!((table.slots.len(), table.slots[8].id), (10, id(10)));
    end(&mut table, id(10));
    table.rest();
    assert_eq!((table.slots.capacity(), table.free.len()), (7, 1));
    (0..10).filter(|index| ![3, 7, 8, 9].contains(index)).for_each(|index| end(&mut table, id(index)));
    assert_eq!(table.slots.capacity(), 7, "the next streams find room");
    table.rest();
    assert_eq!((table.slots.capacity(), table.free.capacity()), (0, 0));
}

#[test]
fn room_for_four_times_as_many_streams_as_there_were_is_kept_when_none_is_left() {
    let mut table = Table::new(&mut Rng::from_u64(5));
    let mut next = 0;
    let mut come_and_go = |count: u64| {
        let ids = next..next + count;
        next += count;
        ids.clone().for_each(|index| table.insert(stream(index)));
        ids.for_each(|index| end(&mut table, id(index)));
        table.slots.capacity()
    };
    assert!(come_and_go(100) >= 100);
    assert!(come_and_go(40) >= 100, "there were nearly as many");
    assert!(come_and_go(5) <= 20);
}

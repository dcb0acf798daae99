use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Op {
    Insert(Range<u64>),
    InsertOne(u64),
    Remove(Range<u64>),
}

fn op() -> impl Strategy<Value = Op> {
    let range = (0u64..60, 0u64..12).prop_map(|(start, len)| start..start + len);
    prop_oneof![
        range.clone().prop_map(Op::Insert),
        (0u64..60).prop_map(Op::InsertOne),
        range.prop_map(Op::Remove)
    ]
}

proptest! {
    #[test]
    fn behaves_like_a_set_of_numbers(ops in proptest::collection::vec(op(), 0..60)) {
        let mut set = RangeSet::new();
        let mut model = BTreeSet::new();
        for op in ops {
            match op {
                Op::Insert(range) => {
                    let before = model.len();
                    model.extend(range.clone());
                    prop_assert_eq!(set.insert(range), (model.len() - before) as u64);
                }
                Op::InsertOne(value) => prop_assert_eq!(set.insert_one(value), model.insert(value)),
                Op::Remove(range) => {
                    let before = model.len();
                    model.retain(|v| !range.contains(v));
                    prop_assert_eq!(set.remove(range), (before - model.len()) as u64);
                }
            }
            prop_assert_eq!(set.iter().flatten().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
            let ranges: Vec<_> = set.iter().collect();
            prop_assert!(ranges.windows(2).all(|w| w[0].end < w[1].start), "ranges touch: {:?}", ranges);
            prop_assert_eq!(set.max(), model.last().copied());
            for value in 0..75 {
                prop_assert_eq!(set.contains(value), model.contains(&value));
                let behind: Vec<_> = ranges.iter().filter(|range| range.end > value).cloned().collect();
                prop_assert_eq!(set.iter_behind(value).collect::<Vec<_>>(), behind);
            }
        }
    }
}

use proptest::prelude::*;

use super::*;

fn points(values: &[(u64, u64)]) -> Points {
    let mut points = Points::default();
    for (at, value) in values {
        points.push(Instant::from_nanos(*at), *value);
    }
    points
}

#[test]
fn few_points_stay_as_they_are() {
    let few = points(&[(0, 5), (10, 7), (20, 6)]);
    assert_eq!(few.thinned(10, 0, 20), few.as_slice());
}

#[test]
fn a_single_peak_among_a_million_points_is_kept() {
    let values: Vec<(u64, u64)> =
        (0..1_000_000).map(|at| (at, if at == 654_321 { 99 } else { at % 7 })).collect();
    let thinned = points(&values).thinned(500, 0, 1_000_000);
    assert!(thinned.len() <= 2_000, "{}", thinned.len());
    assert!(thinned.contains(&Point { at: 654_321, value: 99 }));
    assert!(thinned.is_sorted_by_key(|point| point.at));
}

#[test]
fn points_out_of_order_are_put_in_order() {
    let odd = points(&[(10, 1), (5, 2)]);
    assert_eq!(odd.as_slice(), [Point { at: 10, value: 1 }, Point { at: 10, value: 2 }]);
}

proptest! {
    #[test]
    fn every_column_keeps_its_extremes(
        values in prop::collection::vec((0u64..1_000, any::<u64>()), 1..400), buckets in 1u64..20,
    ) {
        let mut values = values;
        values.sort_unstable();
        let all = points(&values);
        let (from, to) = (values[0].0, values[values.len() - 1].0);
        let thinned = all.thinned(buckets, from, to);
        prop_assert!(thinned.len() as u64 <= 4 * buckets.max(values.len() as u64));
        let column = |at: u64| (at - from) * buckets / (to - from + 1);
        for wanted in 0..buckets {
            let of = |points: &[Point]| {
                let mut own: Vec<u64> =
                    points.iter().filter(|p| column(p.at) == wanted).map(|p| p.value).collect();
                own.sort_unstable();
                (own.first().copied(), own.last().copied())
            };
            prop_assert_eq!(of(&thinned), of(all.as_slice()));
        }
    }
}

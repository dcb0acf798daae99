use super::*;

fn by_connection(bytes: &[u64]) -> MoreFigures {
    MoreFigures { bytes_by_connection: bytes.to_vec(), ..MoreFigures::default() }
}

#[test]
fn jains_index_is_one_for_equal_flows_and_low_for_a_greedy_one() {
    assert_eq!(by_connection(&[5, 5, 5]).jain_index(), Some(1.0));
    assert_eq!(by_connection(&[9, 0, 0]).jain_index(), Some(1.0 / 3.0));
    assert_eq!(by_connection(&[0, 0]).jain_index(), None);
}

#[test]
fn the_smallest_share_is_that_of_the_slowest_flow() {
    assert_eq!(by_connection(&[30, 10]).share_min(), Some(0.25));
    assert_eq!(by_connection(&[]).share_min(), None);
}

#[test]
fn a_percentile_is_a_delay_that_occurred() {
    let datagram_delays = (1..=100).map(Duration::from_millis).collect();
    let figures = MoreFigures { datagram_delays, ..MoreFigures::default() };
    assert_eq!(figures.datagram_delay_ms(0.5), Some(50.0));
    assert_eq!(figures.datagram_delay_ms(0.99), Some(99.0));
    assert_eq!(MoreFigures::default().datagram_delay_ms(0.5), None);
}

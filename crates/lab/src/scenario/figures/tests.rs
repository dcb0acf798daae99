use super::*;
use crate::scenario::{ControllerName, Scenario};

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

/// A run of 2 MB up at 10 Mbit/s, with these lines before and behind the description of the link.
fn upload(before: &str, behind: &str) -> Figures {
    let link = "title = \"x\"\n[link]\nrate_mbps = 10\ndelay_ms = 10\nqueue_ms = 40\n";
    let connection = "[[connection]]\nupload_bytes = 2_000_000\n";
    let text = format!("{before}\n{link}{behind}\n{connection}");
    Scenario::parse("s", &text).unwrap().run(Some(ControllerName::Cubic), 1).unwrap()
}

#[test]
fn a_link_carries_no_more_than_it_can_beside_a_background_an_earlier_connection_or_another_rate() {
    let background = "[[connection]]\nupload_bytes = 5_000_000\nbackground = true\n";
    let slower = "[[schedule]]\nat_s = 0.5\nset = { rate_mbps = 4 }\n";
    for (before, behind, rate_mbps) in
        [("", background, 10.0), ("seeded = true", "", 10.0), ("", slower, 6.0), ("", "", 10.0)]
    {
        let figures = upload(before, behind);
        let case = format!("{before}{behind}: {:?}", figures.up);
        let utilisation = figures.up.utilisation.unwrap();
        assert!((0.75..=1.0).contains(&utilisation), "{case}");
        assert!((utilisation..utilisation + 0.1).contains(&figures.up.load.unwrap()), "{case}");
        let goodput = figures.goodput_mbps().unwrap();
        assert!((0.6 * rate_mbps..rate_mbps).contains(&goodput), "{goodput}, {case}");
    }
}

#[test]
fn a_rate_that_holds_from_the_beginning_is_the_only_one_that_counts() {
    let figures = upload("", "[[schedule]]\nat_s = 0\nset = { rate_mbps = 2 }\n");
    assert!((0.9..=1.0).contains(&figures.up.utilisation.unwrap()), "{:?}", figures.up);
}

#[test]
fn the_share_of_acknowledgements_is_about_the_connections_that_are_measured() {
    let shares = ["", "seeded = true"].map(|before| upload(before, "").down.ack_share.unwrap());
    assert!((shares[0] / shares[1] - 1.0).abs() < 0.3, "{shares:?}");
}

#[test]
fn all_bytes_of_a_run_count_that_has_nothing_beside_what_is_measured() {
    let figures = upload("", "");
    let capacity = 10e6 / 8.0 * figures.completion_s.unwrap();
    assert_eq!(figures.up.load, Some(figures.up.bytes_sent as f64 / capacity));
    assert_eq!(figures.goodput_mbps(), Some(2_000_000.0 * 8.0 / 1e6 / figures.completion_s.unwrap()));
}

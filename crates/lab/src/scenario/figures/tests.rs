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
    assert_eq!(by_connection(&[9]).jain_index(), None);
}

#[test]
fn the_smallest_share_is_that_of_the_slowest_flow() {
    assert_eq!(by_connection(&[30, 10]).share_min(), Some(0.25));
    assert_eq!(by_connection(&[]).share_min(), None);
    assert_eq!(by_connection(&[9]).share_min(), None);
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
fn what_follows_completion_does_not_count() {
    let figures = upload("", "");
    let capacity = 10e6 / 8.0 * figures.completion_s.unwrap();
    let all = figures.up.bytes_sent as f64 / capacity;
    assert!((0.99 * all..=all).contains(&figures.up.load.unwrap()), "{:?}", figures.up);
    assert_eq!(figures.goodput_mbps(), Some(2_000_000.0 * 8.0 / 1e6 / figures.completion_s.unwrap()));
    let datagrams = "datagrams = { from = \"client\", count = 2_000, bytes = 1_000, interval_ms = 2 }\n";
    let short = run(&format!("{LINK}[[connection]]\nupload_bytes = 10_000\n{datagrams}"));
    assert!(short.completion_s.unwrap() < 0.2, "the datagrams take four seconds");
    let [load, utilisation] = [short.up.load, short.up.utilisation].map(Option::unwrap);
    assert!(utilisation > 0.1 && utilisation <= load && load <= 1.0, "{:?}", short.up);
}

#[test]
fn copies_that_a_link_makes_do_not_use_it() {
    let figures = run(&format!("{LINK}duplicate = 0.2\n[[connection]]\nupload_bytes = 2_000_000\n"));
    assert!((0.8..=1.0).contains(&figures.up.utilisation.unwrap()), "{:?}", figures.up);
}

#[test]
fn a_run_begins_with_its_first_connection() {
    let [at_once, late] = [0, 10].map(|start_s| {
        run(&format!("{LINK}[[connection]]\nupload_bytes = 2_000_000\nstart_s = {start_s}\n"))
    });
    assert_eq!(at_once.goodput_mbps(), late.goodput_mbps());
    assert_eq!(at_once.up.utilisation, late.up.utilisation);
    assert_eq!(at_once.completion_s, late.completion_s);
}

const LINK: &str = "title = \"x\"\nwatch = \"up\"\n[link]\nrate_mbps = 10\ndelay_ms = 10\nqueue_ms = 40\n";

fn run(text: &str) -> Figures {
    Scenario::parse("s", text).unwrap().run(Some(ControllerName::Cubic), 1).unwrap()
}

/// A run of 5 MB up over these links, one after another.
fn in_a_row(links: &[&str]) -> Figures {
    let hops: String = links[1..].iter().map(|hop| format!("[[hop]]\nlink = {{ {hop} }}\n")).collect();
    let first = links[0].replace(", ", "\n");
    let datagrams = "datagrams = { from = \"client\", count = 500, bytes = 100, interval_ms = 10 }\n";
    run(&format!(
        "title = \"x\"\nwatch = \"up\"\n[link]\n{first}\n{hops}[[connection]]\nupload_bytes = 5_000_000\n{datagrams}\
         [[schedule]]\nat_s = 2\nsuspend = {{ duration_ms = 300, side = \"both\" }}\n"
    ))
}

#[test]
fn the_bottleneck_is_found_wherever_it_lies() {
    let (wide, narrow) = ("rate_mbps = 100, delay_ms = 10", "rate_mbps = 10, delay_ms = 10, queue_ms = 40");
    let [behind, before] = [[wide, narrow], [narrow, wide]].map(|links| in_a_row(&links));
    for metric in ["utilisation", "queue_delay_p99_ms"] {
        let [behind, before] = [&behind, &before].map(|figures| figures.metrics[metric]);
        assert!((behind / before - 1.0).abs() < 0.05, "{metric}: {behind} and {before}");
    }
    assert!(behind.metrics["utilisation"] > 0.8 && behind.up.utilisation.unwrap() < 0.2);
    assert_eq!(behind.up.packets_dropped, 0);
    assert!(behind.hops[0].up.packets_dropped > 0 && before.up.packets_dropped > 0);
}

#[test]
fn hops_stand_in_their_order() {
    let figures = in_a_row(&[
        "rate_mbps = 100, delay_ms = 1",
        "rate_mbps = 20, delay_ms = 1",
        "rate_mbps = 40, delay_ms = 1",
    ]);
    let [first, second] = [0, 1].map(|hop| figures.hops[hop].up.utilisation.unwrap());
    assert!((first / second - 2.0).abs() < 0.05, "{first} and {second}");
    assert_eq!(figures.hops[0].up.packets_sent, figures.up.packets_sent);
    assert!(figures.hops[1].down.packets_sent > 100 && upload("", "").hops.is_empty());
}

#[test]
fn a_delay_is_the_same_whichever_link_has_it() {
    let rate = "rate_mbps = 10, queue_ms = 300";
    let [one, two] = [
        in_a_row(&[&format!("{rate}, delay_ms = 100"), "delay_ms = 0"]),
        in_a_row(&[&format!("{rate}, delay_ms = 10"), "delay_ms = 90"]),
    ];
    for metric in ["full_rate_after_rtts", "back_at_rate_rtts", "datagram_delay_p99_outside_events_ms"] {
        let [one, two] = [&one, &two].map(|figures| figures.metrics[metric]);
        assert!((one - two).abs() <= 0.1 * one.max(1.0), "{metric}: {one} and {two}");
    }
}

#[test]
fn the_rate_that_is_reached_again_after_a_stop_is_that_of_the_schedule() {
    let slower = "[[schedule]]\nat_s = 1\nset = { rate_mbps = 5 }\n";
    let stop = "[[schedule]]\nat_s = 2\nsuspend = { duration_ms = 100, side = \"both\" }\n";
    let figures = run(&format!("{LINK}{slower}{stop}[[connection]]\nupload_bytes = 5_000_000\n"));
    let rounds = figures.metrics["back_at_rate_rtts"];
    assert!(rounds < 20.0, "{rounds}");
}

#[test]
fn transfers_that_end_compete_until_the_first_one_is_done() {
    let two = "[[connection]]\nupload_bytes = 1_000_000\n[[connection]]\nupload_bytes = 4_000_000\n";
    let figures = run(&format!("{LINK}{two}"));
    assert!(figures.metrics["share_min"] > 0.3, "{:?}", figures.metrics);
    assert!(figures.more.bytes_by_connection.iter().sum::<u64>() < 4_000_000);
    // One after the other they do not compete, and with a time each everything counts.
    let turns = run(&format!("{LINK}[[connection]]\nupload_bytes = 100_000\nrepeat = 3\n"));
    assert!(!turns.metrics.contains_key("jain_index") && !turns.metrics.contains_key("share_min"));
    let timed = "[[connection]]\nupload_bytes = 90_000_000\nstop_after_s = 2\n".repeat(2);
    let timed = run(&format!("{LINK}{timed}"));
    assert_eq!(timed.more.bytes_by_connection.iter().sum::<u64>(), timed.bytes);
    assert!(timed.metrics["jain_index"] > 0.5);
}

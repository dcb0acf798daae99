//! Connections of the lab with several paths.

use fulmar_lab::scenario::Scenario;

/// Two equal links, and a download.
const TWO: &str = r#"
title = "two links"
[[path]]
name = "A"
link = { rate_mbps = 20, delay_ms = 10, queue_ms = 40 }
[[path]]
name = "B"
link = { rate_mbps = 20, delay_ms = 10, queue_ms = 40 }
[[connection]]
download_bytes = 5_000_000
"#;

/// Seconds with both links, and with one alone.
fn both_and_alone(settings: &[&str], controller: &str, only: &str) -> (f64, f64) {
    let controller = format!("controller={controller}");
    let settings = settings.iter().copied().chain([&*controller]);
    let scenario = Scenario::parse("two", TWO).unwrap().with_settings(settings).unwrap();
    let time = |scenario: &Scenario| scenario.run(None, 1).unwrap().completion_s.unwrap();
    (time(&scenario), time(&scenario.with_only(only).unwrap()))
}

/// Bytes that each path brought to the client.
fn bytes_down(settings: &[&str]) -> Vec<u64> {
    let scenario = Scenario::parse("two", TWO).unwrap().with_settings(settings.iter().copied()).unwrap();
    let controller = scenario.default_controller().unwrap();
    let report = scenario.lab(controller, 1).unwrap().run().unwrap();
    report.paths.iter().map(|path| path.down.bytes_delivered).collect()
}

#[test]
fn a_connection_has_a_path_over_each_link() {
    let bytes = bytes_down(&[]);
    assert!(bytes.len() == 2 && bytes.iter().all(|bytes| *bytes > 1_000_000), "{bytes:?}");
}

#[test]
fn without_multipath_the_first_link_carries_all() {
    let bytes = bytes_down(&["client.multipath=false"]);
    assert!(bytes[0] > 5_000_000 && bytes[1] == 0, "{bytes:?}");
}

#[test]
fn an_end_allows_no_more_paths_than_its_setting_says() {
    let bytes = bytes_down(&["server.paths_max=1"]);
    assert!(bytes[0] > 5_000_000 && bytes[1] == 0, "{bytes:?}");
}

#[test]
fn the_handshake_completes_over_the_second_link_when_the_first_is_dead() {
    for settings in [&[][..], &["server.multipath=false"][..]] {
        let dead = ["path.A.link.loss=everything"];
        let scenario = Scenario::parse("two", TWO).unwrap();
        let scenario = scenario.with_settings(dead.iter().chain(settings).copied()).unwrap();
        let figures = scenario.run(None, 1).unwrap();
        let handshake = figures.more.handshake_s.unwrap();
        // The second attempt begins after 250 ms, and takes a round trip.
        assert!((0.27..0.35).contains(&handshake), "{handshake}");
    }
}

#[test]
fn the_quicker_of_two_attempts_stays_and_the_other_is_closed() {
    let scenario = Scenario::parse("two", TWO).unwrap();
    let slow = ["path.A.link.delay_ms=400", "connection.0.download_bytes=100_000"];
    let scenario = scenario.with_settings(slow).unwrap();
    let report = scenario.lab(scenario.default_controller().unwrap(), 1).unwrap().run().unwrap();
    let handshake = report.connections[0].client.handshake.unwrap().as_secs_f64();
    assert!((0.27..0.35).contains(&handshake), "{handshake}");
    // The server has heard of both.
    assert_eq!((report.connections.len(), report.server_sessions), (1, 2));
}

#[test]
fn the_link_of_an_attempt_that_has_lost_is_used_all_the_same() {
    // It is slower than the start of the second attempt, but the better one of the two.
    let bytes =
        bytes_down(&["path.A.link.delay_ms=150", "path.A.link.queue_ms=300", "path.B.link.rate_mbps=2"]);
    assert!(bytes[0] > bytes[1], "{bytes:?}");
    // It is dead for two seconds, and is tried again.
    let dead = "path.A.schedule=[{ at_s = 0, set = { loss = \"everything\" } }, { at_s = 2, set = { loss = \"none\" } }]";
    let bytes = bytes_down(&[dead, "path.B.link.rate_mbps=2"]);
    assert!(bytes[0] > bytes[1], "{bytes:?}");
}

#[test]
fn a_backup_carries_no_data_as_long_as_the_other_path_works() {
    let bytes = bytes_down(&["path.B.backup=true"]);
    assert!(bytes[0] > 5_000_000 && bytes[1] < 50_000, "{bytes:?}");
    // A link that dies: the backup takes over.
    let bytes = bytes_down(&[
        "path.B.backup=true",
        "path.A.schedule=[{ at_s = 1, set = { loss = \"everything\" } }]",
    ]);
    assert!(bytes[0] > 1_000_000 && bytes[1] > 1_000_000, "{bytes:?}");
}

#[test]
fn a_path_that_the_client_abandons_carries_nothing_afterwards() {
    let bytes = bytes_down(&["path.A.abandoned_at_s=0.1"]);
    assert!(bytes[0] < 300_000 && bytes[1] > 4_500_000, "{bytes:?}");
}

#[test]
fn a_path_that_is_abandoned_at_once_goes_when_there_is_another_one() {
    let bytes = bytes_down(&["path.A.abandoned_at_s=0"]);
    assert!(bytes[0] < 300_000 && bytes[1] > 4_500_000, "{bytes:?}");
}

#[test]
fn a_connection_may_have_one_path_beside_others_with_several() {
    let bytes = bytes_down(&["connection.0.multipath=false"]);
    assert!(bytes[0] > 5_000_000 && bytes[1] == 0, "{bytes:?}");
}

#[test]
fn paths_are_opened_and_abandoned_until_all_have_been_there() {
    let churn = ["connection.0.churn={ paths = 50, each_ms = 60 }"];
    let scenario = Scenario::parse("two", TWO).unwrap().with_settings(churn).unwrap();
    let figures = scenario.run(None, 1).unwrap();
    assert_eq!(figures.metrics["paths_validated"], 50.0);
    // No further ones are kept open.
    assert!(figures.paths[0].down.bytes_sent > 1_000_000, "{:?}", figures.paths);
}

#[test]
fn a_slow_path_hears_of_its_packets_over_a_quick_one() {
    // The quick link can do little but tell: the slow one grows in rounds of 310 ms with it, and of 600 ms without.
    let slow = [
        "path.A.link.rate_mbps=1",
        "path.B.link.delay_ms=300",
        "path.B.link.queue_ms=600",
        "connection.0.download_bytes=3_000_000",
    ];
    let scenario = Scenario::parse("two", TWO).unwrap().with_settings(slow).unwrap();
    let time = |scenario: &Scenario| scenario.run(None, 1).unwrap().completion_s.unwrap();
    let (both, alone) = (time(&scenario), time(&scenario.with_only("B").unwrap()));
    assert!(both < alone * 0.95, "{both} s with a quick path, {alone} s without");
}

#[test]
fn a_fast_long_path_is_not_held_up_by_a_slow_short_one() {
    // The short path is the quicker one for a packet, the long one for a transfer. The connection begins on the long one.
    let pair = [
        "path.A.link.rate_mbps=135",
        "path.A.link.delay_ms=92",
        "path.A.link.queue_ms=184",
        "path.B.link.rate_mbps=11",
        "path.B.link.delay_ms=16",
        "path.B.link.queue_ms=32",
    ];
    for controller in ["bbr", "cubic"] {
        for bytes in [1_000_000, 10_000_000] {
            let bytes = format!("connection.0.download_bytes={bytes}");
            let settings: Vec<&str> = pair.iter().copied().chain([&*bytes]).collect();
            let (both, alone) = both_and_alone(&settings, controller, "A");
            assert!(both < alone, "{controller}, {bytes}: {both} s with both, {alone} s with the long one");
        }
    }
}

#[test]
fn a_fast_path_that_comes_later_starts_as_fast_as_a_first_one() {
    let pair = [
        "path.A.link.rate_mbps=4",
        "path.A.link.delay_ms=23",
        "path.A.link.queue_ms=90",
        "path.B.link.rate_mbps=160",
        "path.B.link.delay_ms=75",
        "path.B.link.queue_ms=75",
        "connection.0.download_bytes=10_000_000",
    ];
    for controller in ["bbr", "cubic"] {
        let (both, alone) = both_and_alone(&pair, controller, "B");
        // It is there a round trip later, and the other one carries little.
        assert!(both < alone + 0.15, "{controller}: {both} s with both, {alone} s with the fast one");
    }
}

#[test]
fn the_end_of_a_transfer_is_no_burst_on_a_short_narrow_path() {
    let pair = [
        "path.A.link.rate_mbps=31",
        "path.A.link.delay_ms=21.6",
        "path.A.link.queue_ms=43",
        "path.B.link.rate_mbps=2.6",
        "path.B.link.delay_ms=10",
        "path.B.link.queue_ms=10",
        "connection.0.download_bytes=100_000",
    ];
    for controller in ["bbr", "cubic"] {
        let (both, alone) = both_and_alone(&pair, controller, "A");
        assert!(both < alone * 1.4, "{controller}: {both} s with both, {alone} s with the wide one");
    }
}

#[test]
fn a_narrow_link_that_overflows_does_not_hold_up_the_end_although_it_is_quick() {
    // The narrow one loses half of what it is given: its queue is short, and its losses are taken for chance.
    let pair = [
        "path.A.link.rate_mbps=125",
        "path.A.link.delay_ms=63",
        "path.A.link.queue_ms=58",
        "path.B.link.rate_mbps=2.1",
        "path.B.link.delay_ms=5",
        "path.B.link.queue_ms=19",
        "path.B.link.loss={ uniform = { probability = 0.019 } }",
        "connection.0.download_bytes=950_000",
    ];
    let (both, alone) = both_and_alone(&pair, "cubic", "A");
    assert!(both < alone * 1.05, "{both} s with both, {alone} s with the wide one");
}

#[test]
fn a_narrow_way_back_does_not_slow_down_the_start_of_a_wide_path() {
    // The first acknowledgements of the wide path come over the quick one. Then those of the quick one fill its way back.
    let pair = [
        "path.A.link.delay_ms=13",
        "path.A.link.queue_ms=26",
        "path.A.up.rate_mbps=0.05",
        "path.A.up.queue_ms=500",
        "path.B.link.rate_mbps=60",
        "path.B.link.delay_ms=67",
        "path.B.link.queue_ms=134",
        "connection.0.download_bytes=20_000_000",
    ];
    for controller in ["cubic", "newreno"] {
        let (both, alone) = both_and_alone(&pair, controller, "B");
        assert!(both < alone * 1.2, "{controller}: {both} s with both, {alone} s with the wide one");
    }
}

use super::*;

const SCENARIO: &str = r#"title = "A small download"
[link]
rate_mbps = 10
delay_ms = 10
[down]
rate_mbps = 2.5
[[connection]]
download_bytes = 20_000
"#;

/// Why a file cannot be read.
pub(super) fn complaint(text: &str) -> String {
    Scenario::parse("file.toml", text).unwrap_err().to_string()
}

#[test]
fn what_makes_no_sense_is_refused_with_line_and_field() {
    let changed = |from: &str, to: &str| SCENARIO.replace(from, to);
    let repeat =
        |how: &str| format!("[[schedule]]\nat_s = 1\nset = {{ mtu = 1400 }}\nrepeat = {{ {how} }}\n");
    for (text, expected) in [
        (changed("delay_ms = 10", "dealy_ms = 10"), "file.toml:4: [link] dealy_ms: unknown field `dealy_ms`"),
        (changed("delay_ms = 10", "delay_ms = -1"), "file.toml:4: [link] delay_ms: a time is between 0 and"),
        (changed("rate_mbps = 2.5", "rate_mbps = \"2\""), "file.toml:6: [down] rate_mbps: invalid type"),
        (
            changed("rate_mbps = 2.5", "loss = { uniform = { probability = 1.5 } }"),
            "file.toml:6: [down] loss: a probability is between 0 and 1, not 1.5",
        ),
        (
            changed(
                "rate_mbps = 2.5",
                "loss = { burst = { probability = 0.1, length_min = 3, length_max = 2 } }",
            ),
            "file.toml:6: [down] loss: no burst has at least 3 packets and at most 2",
        ),
        (
            changed("rate_mbps = 2.5", "loss = { pattern = { period = 4, offset = 4, lost = 1 } }"),
            "file.toml:6: [down] loss: a pattern of 4 packets has no 1 behind the first 4 to lose",
        ),
        (
            changed("rate_mbps = 2.5", "loss = { pattern = { period = 4, lost = 5 } }"),
            "file.toml:6: [down] loss: a pattern of 4 packets has no 5 to lose",
        ),
        (
            changed("rate_mbps = 2.5", "aqm = { red = { min_bytes = 9_000, max_bytes = 9_000 } }"),
            "file.toml:6: [down] aqm: 9000 bytes are not less than 9000",
        ),
        (changed("rate_mbps = 2.5", "mtu = 0"), "file.toml:6: [down] mtu: invalid value: integer `0`"),
        (
            format!("{SCENARIO}[controllers.bbr]\ninitial_window = 0\n"),
            "file.toml:9: [controllers.bbr]: invalid value: integer `0`, expected a nonzero",
        ),
        (
            format!("{SCENARIO}[endpoints]\npaths_max = 0\n"),
            "file.toml:10: [endpoints] paths_max: at least 1 is needed",
        ),
        (
            changed(
                "download_bytes = 20_000",
                "datagrams = { from = \"client\", count = 1, bytes = 1_421, interval_ms = 1 }",
            ),
            "file.toml:7: [[connection]]: a datagram of 1421 bytes never fits a packet, which has room for 1420",
        ),
        (
            format!("{SCENARIO}[[comparison]]\ngoal = \"G\"\nquantiles = [0.5, 1.5]\n"),
            "file.toml:11: [[comparison]] quantiles: a probability is between 0 and 1, not 1.5",
        ),
        (changed("[[connection]]", "[[conection]]"), "file.toml:7: [[conection]]: unknown field `conection`"),
        (
            changed("download_bytes = 20_000", "streams = 2"),
            "file.toml:7: [[connection]]: a connection needs `upload_bytes`",
        ),
        (
            format!("{SCENARIO}[endpoints]\ninitial_mtu = 100\n"),
            "file.toml:10: [endpoints] initial_mtu: initial_mtu is under 1200 bytes",
        ),
        (
            format!("{SCENARIO}[[schedule]]\nat_s = 1\nset = {{}}\n"),
            "file.toml:9: [[schedule]]: an entry needs `suspend`, or `set`",
        ),
        (
            format!("{SCENARIO}{}", repeat("count = 1_000_000_000, every_ms = 1")),
            "file.toml:9: [[schedule]]: a change is repeated at most 100000 times",
        ),
        (
            format!("{SCENARIO}{}", repeat("count = 2, every_ms = 0")),
            "file.toml:9: [[schedule]]: a change that is repeated needs an `every_ms` above 0",
        ),
        (
            format!("{SCENARIO}[[goal]]\ngoal = 1\n[[goal]]\ncontroller = \"cubic\"\n"),
            "file.toml:11: [[goal]]: a goal needs `goal`, `reference` or both",
        ),
        (
            format!("{SCENARIO}[[goal]]\nmetric = \"completion_ratio\"\ngoal = 1\n"),
            "file.toml:9: [[goal]]: a completion_ratio needs a `[baseline]`",
        ),
        (
            format!("{SCENARIO}[[connection]]\nupload_bytes = 1\nrepeat = 10_000\n"),
            "file.toml: a scenario has 1 to",
        ),
        (
            format!("{SCENARIO}[[connection]]\ndownload_bytes = 1\n"),
            "file.toml:9: [[connection]]: the server sends the same on all connections",
        ),
        (
            "title = 'x'\nconnection = []\n".to_owned(),
            "file.toml: a scenario has 1 to 10000 connections, not 0",
        ),
        ("title = ".to_owned(), "file.toml:1: title: "),
        (String::new(), "file.toml: missing field `title`"),
        ("# A link\ntitle = 'x'\n".to_owned(), "file.toml: missing field `connection`"),
        ("title".to_owned(), "file.toml:1: "),
    ] {
        let complaint = complaint(&text);
        assert!(complaint.starts_with(expected), "{complaint}\ninstead of {expected}");
    }
}

#[test]
fn the_server_sends_the_same_on_all_connections_in_whatever_order_they_stand() {
    let datagrams = "datagrams = { from = \"server\", count = 5, bytes = 20, interval_ms = 10 }";
    let media = "media = [{ from = \"server\", frames = 5, interval_ms = 10, bytes = 20 }]";
    let client_media = "media = [{ from = \"client\", frames = 5, interval_ms = 10, bytes = 20 }]";
    let (upload, download) = ("upload_bytes = 5", "download_bytes = 5");
    let other = "download_bytes = 6";
    let parse = |first: &str, second: &str| {
        let text = format!("title = 'x'\n[[connection]]\n{first}\n[[connection]]\n{second}\n");
        Scenario::parse("s", &text)
    };
    for (one, two) in
        [(upload, datagrams), (upload, media), (download, datagrams), (download, media), (download, other)]
    {
        for (first, second) in [(one, two), (two, one)] {
            let told = parse(first, second).unwrap_err().to_string();
            assert!(
                told.ends_with("the server sends the same on all connections"),
                "{first} {second}: {told}"
            );
        }
    }
    for (one, two) in [(upload, download), (download, client_media), (datagrams, datagrams)] {
        for (first, second) in [(one, two), (two, one)] {
            let figures = parse(first, second).unwrap().run(None, 1).unwrap();
            let frames = if [one, two].contains(&client_media) { 5 } else { 0 };
            assert_eq!(figures.more.frame_delays.len(), frames, "{first} {second}");
        }
    }
}

#[test]
fn datagrams_are_judged_by_the_deadline_of_their_connection() {
    let connection = |deadline: &str| {
        format!(
            "[[connection]]\ndatagrams = {{ from = \"client\", count = 10, bytes = 20, interval_ms = 20{deadline} }}\n"
        )
    };
    let share = |deadlines: [&str; 2]| {
        let head = "title = 'x'\n[link]\nrate_mbps = 10\ndelay_ms = 10\n";
        let text = head.to_owned() + &deadlines.map(connection).concat();
        Scenario::parse("s", &text).unwrap().run(None, 1).unwrap().more.datagrams_in_time
    };
    let (short, long) = (", deadline_ms = 5", ", deadline_ms = 60");
    assert_eq!([share([long, short]), share([short, long])], [Some(0.5); 2]);
    assert_eq!([share([long, ""]), share(["", long]), share(["", ""])], [Some(1.0), Some(1.0), None]);
}

#[test]
fn one_direction_goes_before_both() {
    let (up, down) = Scenario::parse("s", SCENARIO).unwrap().link().build(1);
    assert_eq!((up.rate_bps, down.rate_bps), (Some(10_000_000), Some(2_500_000)));
    assert_eq!(up.delay, down.delay);
}

#[test]
fn a_schedule_can_repeat_a_change_in_one_direction() {
    let schedule = "[[schedule]]\nat_s = 1\ndirection = \"up\"\nset = { delay_ms = 5 }\nrepeat = { count = 3, every_ms = 250 }\n";
    let (up, down) = Scenario::parse("s", &format!("{SCENARIO}{schedule}")).unwrap().link().build(1);
    let times: Vec<u64> = up.schedule.iter().map(|entry| entry.at.as_nanos() / 1_000_000).collect();
    assert_eq!(times, [1_000, 1_250, 1_500]);
    assert!(down.schedule.is_empty());
}

#[test]
fn a_schedule_can_suspend_the_link() {
    let stop = "[[schedule]]\nat_s = 1\nsuspend = { duration_ms = 250, side = \"send\" }\n";
    let scenario = Scenario::parse("s", &format!("{SCENARIO}{stop}").replace("20_000", "1_000_000")).unwrap();
    let plain = Scenario::parse("s", &SCENARIO.replace("20_000", "1_000_000")).unwrap();
    let times = [plain, scenario].map(|scenario| scenario.run(None, 1).unwrap().completion_s.unwrap());
    let later = times[1] - times[0];
    assert!((0.2..0.4).contains(&later), "{times:?}");
}

#[test]
fn every_scenario_is_judged_over_many_seeds() {
    assert_eq!(Scenario::parse("s", SCENARIO).unwrap().runs(), 20);
    assert_eq!(Scenario::parse("s", &format!("runs = 7\n{SCENARIO}")).unwrap().runs(), 7);
}

#[test]
fn the_seed_decides_where_a_pattern_of_loss_begins() {
    let losses = |pattern: &str| {
        let text = SCENARIO.replace("[link]", &format!("[link]\nloss = {{ pattern = {{ {pattern} }} }}"));
        let scenario = Scenario::parse("s", &text).unwrap();
        let of = |seed| scenario.link().build(seed).0.loss;
        let all: Vec<_> = (1..=20).map(|seed| format!("{:?}", of(seed))).collect();
        assert_eq!(of(3), of(3));
        all.into_iter().collect::<std::collections::BTreeSet<_>>().len()
    };
    assert!(losses("period = 64, lost = 2") > 10);
    assert_eq!(losses("period = 64, offset = 32, lost = 2"), 1);
}

#[test]
fn settings_change_by_their_path() {
    let scenario = Scenario::parse("s", SCENARIO).unwrap();
    let settings =
        ["up.rate_mbps=1", "connection.0.streams=3", "controller=newreno", "link.loss=\"everything\""];
    let changed = scenario.with_settings(settings).unwrap();
    assert_eq!(changed.link().build(1).0.rate_bps, Some(1_000_000));
    assert_eq!(changed.file.connection[0].client_workload().streams, 3);
    assert_eq!(changed.default_controller(), Some(ControllerName::Newreno));
    assert_eq!(changed.name(), "s");
    for (setting, expected) in [
        ("up.rate", "s: `up.rate` is not `key=value`"),
        ("connection.1.streams=1", "s: `connection.1.streams`: `connection` has 1 entries, counted from 0"),
        ("title.x=1", "s: `title.x`: `title` is not a table"),
    ] {
        assert_eq!(scenario.with_settings([setting]).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_setting_that_makes_no_sense_is_named_without_a_line() {
    let scenario = Scenario::parse("s", SCENARIO).unwrap();
    for (settings, expected) in [
        (&["link.delay_ms=5", "up.rate=1"][..], "s with up.rate=1: [up] rate: unknown field `rate`"),
        (&["limit_s=1", "link.delay_ms=-1"], "s with link.delay_ms=-1: [link] delay_ms: a time is between"),
        (
            &["connection.0.streams=1.5", "runs=0"],
            "s with connection.0.streams=1.5, runs=0: [[connection]] streams: invalid type",
        ),
        (&["title=5"], "s with title=5: title: invalid type"),
    ] {
        let error = scenario.with_settings(settings.iter().copied()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}\ninstead of {expected}");
    }
}

#[test]
fn a_run_has_the_figures_of_both_sides() {
    let figures = Scenario::parse("s", SCENARIO).unwrap().run(None, 1).unwrap();
    // 2.5 Mbit/s take 64 ms for the data alone, and two round trips come before the last byte.
    assert!((0.1..0.3).contains(&figures.completion_s.unwrap()), "{figures:?}");
    assert_eq!((figures.bytes, figures.server.connections_accepted), (20_100, 1));
    let side = &figures.client;
    assert!(side.acks_sent > 0 && side.ack_bytes >= 5 * side.acks_sent && side.ack_bytes < side.bytes_sent);
    assert!(side.rtt_min_ms >= Some(20.0) && side.rtt_max_ms >= side.rtt_min_ms, "{side:?}");
    assert!(figures.server.cwnd_max >= 12_000 && figures.more.bytes_in_flight_max > 0);
}

#[test]
fn connections_in_sequence_do_not_overlap() {
    let repeated = Scenario::parse("s", &SCENARIO.replace("20_000", "20_000\nrepeat = 3")).unwrap();
    let one = Scenario::parse("s", SCENARIO).unwrap().run(None, 1).unwrap();
    let three = repeated.run(None, 1).unwrap();
    assert_eq!(three.server.connections_accepted, 3);
    assert!(three.completion_s.unwrap() > 2.9 * one.completion_s.unwrap(), "{three:?}");
}

#[test]
fn streams_in_sequence_take_a_round_trip_each() {
    let times = ["sequence", "parallel"].map(|order| {
        let text = SCENARIO.replace("20_000", &format!("1_000\nstreams = 10\norder = \"{order}\""));
        Scenario::parse("s", &text).unwrap().run(None, 1).unwrap().completion_s.unwrap()
    });
    // Nine more round trips of 20 ms.
    assert!(times[0] - times[1] > 0.15, "{times:?}");
}

#[test]
fn datagrams_keep_their_pace_and_their_deadline() {
    let figures = [5, 40].map(|deadline| {
        let datagrams = format!(
            "datagrams = {{ from = \"server\", count = 50, bytes = 200, interval_ms = 20, deadline_ms = {deadline} }}"
        );
        let text = SCENARIO.replace("download_bytes = 20_000", &datagrams);
        Scenario::parse("s", &text).unwrap().run(None, 1).unwrap().more
    });
    // The link alone takes 10 ms. The first datagram waits behind the end of the handshake.
    assert_eq!(figures.each_ref().map(|more| more.datagrams_in_time), [Some(0.0), Some(1.0)]);
    assert_eq!(figures[1].datagram_delays.len(), 50);
    let delay = figures[1].datagram_delay_ms(0.5).unwrap();
    assert!((10.0..12.0).contains(&delay), "{delay}");
}

#[test]
fn a_run_that_went_wrong_has_its_packets() {
    let scenario = Scenario::parse("s", &format!("limit_s = 0.05\n{SCENARIO}")).unwrap();
    let error = scenario.run_with_capture(None, 1, Side::Client).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("it is not over after 0.05 s, the limit (`limit_s`)"), "{text}");
    let packets = error.capture().expect("a capture");
    // More than the header, the secrets and an Initial packet.
    assert!(packets.len() > 2_000, "{} bytes", packets.len());
    assert!(scenario.run(None, 1).unwrap_err().capture().is_none(), "nobody asked for it");
}

#[test]
fn cross_traffic_takes_its_share_of_the_link() {
    let times = [
        "",
        "cross_traffic = { rate_mbps = 5 }",
        "cross_traffic = { rate_mbps = 5, on_ms = 1, off_ms = 1000000 }",
    ];
    let times = times.map(|traffic| {
        let text = SCENARIO.replace("20_000", "2_000_000").replace("[link]", &format!("[link]\n{traffic}"));
        let text = text.replace("rate_mbps = 2.5", "rate_mbps = 10");
        Scenario::parse("s", &text).unwrap().run(None, 1).unwrap().completion_s.unwrap()
    });
    // Half of 10 Mbit/s is left, and all of it where the others are off.
    assert!(times[1] > 1.6 * times[0] && times[2] < 1.1 * times[0], "{times:?}");
}

#[test]
fn a_download_survives_what_changes_the_clients_address() {
    let base = SCENARIO.replace("20_000", "2_000_000");
    for kind in ["rebinding", "move", "leap"] {
        let text = format!(
            "{base}[nat]\nkind = \"port-restricted-cone\"\n[[shift]]\nat_s = 0.5\nkind = \"{kind}\"\n"
        );
        let figures = Scenario::parse("s", &text).unwrap().run(None, 1).unwrap();
        assert_eq!(figures.bytes, 2_000_100, "{kind}");
    }
    let alone = format!("{base}[[shift]]\nat_s = 0.5\nkind = \"rebinding\"\n");
    let complaint = Scenario::parse("file.toml", &alone).unwrap_err().to_string();
    assert!(complaint.contains("[[shift]]: a rebinding needs a `[nat]`"), "{complaint}");
}

#[test]
fn a_path_may_be_abandoned_after_the_end() {
    let path = "link = { rate_mbps = 10, delay_ms = 10, queue_ms = 20 }\n";
    let text = format!(
        "title = \"t\"\n[[path]]\nname = \"A\"\n{path}abandoned_at_s = 0.2\n[[path]]\nname = \"B\"\n{path}\
         [[connection]]\ndownload_bytes = 100_000\n"
    );
    let figures = Scenario::parse("s", &text).unwrap().run(None, 1).unwrap();
    assert!(figures.completion_s.is_some_and(|end| end < 0.2), "{figures:?}");
}

#[test]
fn goodput_and_utilisation_are_told() {
    let figures =
        Scenario::parse("s", &SCENARIO.replace("20_000", "2_000_000")).unwrap().run(None, 1).unwrap();
    let (goodput, utilisation) = (figures.metrics["goodput_mbps"], figures.metrics["utilisation"]);
    // 2.5 Mbit/s, less headers and the start.
    assert!((2.0..2.5).contains(&goodput) && (0.85..1.0).contains(&utilisation), "{goodput} {utilisation}");
    assert!(utilisation * 2.5 > goodput);
}

#[test]
fn what_the_schedule_does_is_told() {
    let schedule = "[[schedule]]\nat_s = 1\ndirection = \"up\"\nset = { delay_ms = 5 }\n\
                    [[schedule]]\nat_s = 0.5\nsuspend = { duration_ms = 100, side = \"send\" }\nrepeat = { count = 2, every_ms = 1000 }\n";
    let events = Scenario::parse("s", &format!("{SCENARIO}{schedule}")).unwrap().events();
    let millis = |at: fulmar_base::Instant| at.as_nanos() / 1_000_000;
    let told: Vec<_> =
        events.iter().map(|event| (millis(event.start), millis(event.end), event.what.as_str())).collect();
    let stop = "suspend = { duration_ms = 100, side = \"send\" }";
    assert_eq!(told, [(500, 600, stop), (1_000, 1_000, "up, set = { delay_ms = 5 }"), (1_500, 1_600, stop)]);
}

#[test]
fn waiting_in_the_queue_and_round_trips_are_told() {
    let text = SCENARIO.replace("20_000", "2_000_000").replace("[link]", "[link]\nqueue_ms = 100");
    let figures = Scenario::parse("s", &text).unwrap().run(Some(ControllerName::Cubic), 1).unwrap();
    let metric = |name: &str| figures.metrics[name];
    let (queue, queue_most) = (metric("queue_delay_p50_ms"), metric("queue_delay_p99_ms"));
    // CUBIC fills the queue, and no packet waits longer than that is.
    assert!(queue > 5.0 && queue < queue_most && queue_most < 104.0, "{queue} {queue_most}");
    let (rtt, rtt_most) = (metric("rtt_p50_ms"), metric("rtt_p99_ms"));
    assert!(rtt > 20.0 + queue / 2.0 && rtt <= rtt_most && rtt_most < 150.0, "{rtt} {rtt_most}");
    assert_eq!(figures.server.rtt_p50_ms, Some(rtt));
}

#[test]
fn packets_pass_one_router_after_another() {
    let base = SCENARIO.replace("20_000", "500_000");
    let hops = "[[hop]]\nlink = { rate_mbps = 100, delay_ms = 20 }\n[[hop]]\ndown = { rate_mbps = 1, queue_ms = 100 }\n";
    let nat = "[nat]\nkind = \"symmetric\"\n[[shift]]\nat_s = 1\nkind = \"rebinding\"\n";
    let run = |more: &str| Scenario::parse("s", &format!("{base}{more}")).unwrap().run(None, 1).unwrap();
    let (plain, far, behind_nat) = (run(""), run(hops), run(&format!("{hops}{nat}")));
    // The slowest link decides: 500,000 bytes take 4 s at 1 Mbit/s, and 1.6 s at 2.5.
    let times = [&plain, &far, &behind_nat].map(|figures| figures.completion_s.unwrap());
    assert!(times[0] < 2.0 && (4.1..5.0).contains(&times[1]) && (4.1..6.0).contains(&times[2]), "{times:?}");
    assert!(far.client.rtt_min_ms.unwrap() >= plain.client.rtt_min_ms.unwrap() + 40.0);
}

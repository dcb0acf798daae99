use super::*;
use crate::scenario::Scenario;

fn links(space: &Space, count: u64) -> Vec<DrawnLink> {
    Exploration::new(space, 5, count, vec![ControllerName::Bbr]).links().to_vec()
}

#[test]
fn a_link_is_the_same_however_many_are_drawn_and_another_with_another_seed() {
    let space = Space::default();
    assert_eq!(links(&space, 3), links(&space, 30)[..3]);
    assert_ne!(DrawnLink::draw(&space, 5, 0), DrawnLink::draw(&space, 6, 0));
}

#[test]
fn links_fill_the_space_and_do_not_leave_it() {
    let drawn = links(&Space::default(), 300);
    for link in &drawn {
        assert!((1.0..=1_000.0).contains(&link.rate_mbps), "{link:?}");
        assert!((2.0..=1_200.0).contains(&link.rtt_ms), "{link:?}");
        let is_shortest = link.queue_bytes == 15_000;
        assert!(link.queue_bdp >= 0.15 && (link.queue_bdp <= 3.0 || is_shortest), "{link:?}");
        assert!(link.queue_bytes >= 15_000, "{link:?}");
        let bdp_bytes = link.rate_mbps * 1e6 / 8.0 * link.rtt_ms / 1e3;
        assert!((link.queue_bytes as f64 / bdp_bytes / link.queue_bdp - 1.0).abs() < 1e-3, "{link:?}");
        assert!((0.0..=0.08).contains(&link.loss_share), "{link:?}");
        assert!((30_000..=30_000_000).contains(&link.bytes), "{link:?}");
        assert!(link.return_rate_mbps <= link.rate_mbps && link.return_rate_mbps >= 0.5, "{link:?}");
        assert!(!link.upload && link.ideal_s > 2.0 * link.rtt_ms / 1e3, "{link:?}");
    }
    let count = |wanted: fn(&DrawnLink) -> bool| drawn.iter().filter(|link| wanted(link)).count();
    assert!((90..150).contains(&count(|link| link.loss == DrawnLoss::None)));
    assert!((60..120).contains(&count(|link| link.loss == DrawnLoss::Bursts)));
    assert!((20..70).contains(&count(|link| link.jitter == DrawnJitter::Wifi)));
    assert!((45..105).contains(&count(|link| link.return_rate_mbps < link.rate_mbps)));
    assert!((70..130).contains(&count(|link| link.rate_mbps < 10.0)));
}

#[test]
fn a_space_replaces_what_it_names_and_complains_with_the_place() {
    let text = "direction = \"upload\"\nrtt_ms = [50, 50]\nbytes = [30_000, 30_000]\n[jitter]\nbell_share = 0\nwifi_share = 0\n";
    let space = Space::parse("mine.toml", text).unwrap();
    for link in links(&space, 20) {
        assert!(link.upload && link.rtt_ms == 50.0 && link.bytes == 30_000, "{link:?}");
        assert_eq!(link.jitter, DrawnJitter::None);
    }
    for (text, told) in [
        ("rtt_ms = [50, 2]", "mine.toml:1: rtt_ms: a range"),
        ("[loss]\nsingle_share = 0.7\nburst_share = 0.7", "mine.toml:2: [loss] single_share: shares"),
        ("speed = [1, 2]", "mine.toml:1: speed: unknown field"),
    ] {
        let complaint = Space::parse("mine.toml", text).unwrap_err().to_string();
        assert!(complaint.starts_with(told), "{complaint}");
    }
}

#[test]
fn without_loss_the_ideal_is_close_and_the_scenario_file_repeats_the_run() {
    let text = "rate_mbps = [20, 20]\nrtt_ms = [40, 40]\nqueue_bdp = [1, 1]\nbytes = [2e6, 2e6]\n\
                [loss]\nsingle_share = 0\nburst_share = 0\n[jitter]\nbell_share = 0\nwifi_share = 0\n[slow_return]\nshare = 0\n";
    let space = Space::parse("space", text).unwrap();
    let exploration = Exploration::new(&space, 1, 1, vec![ControllerName::Cubic]);
    let link = &exploration.links()[0];
    // Two round trips, 2 MB at 20 Mbit/s, and two packets of 1,200 bytes.
    assert!((link.ideal_s - (0.08 + 0.836 + 0.00096)).abs() < 1e-9, "{}", link.ideal_s);
    let outcome = exploration.run(0).unwrap();
    let ratio = outcome.ratio.unwrap();
    assert!((0.95..1.6).contains(&ratio), "{ratio}");
    let file = Scenario::parse("worst.toml", &link.toml()).unwrap();
    let again = file.run(Some(ControllerName::Cubic), link.seed).unwrap();
    assert_eq!(again.completion_s, outcome.completion_s);
}

#[test]
fn where_one_packet_in_five_stops_half_of_the_transfers_do_not_beat_the_ideal() {
    // A short transfer over a Wi-Fi that stops: whether the flight of the handshake meets a stop is chance, that of the data does.
    let link = DrawnLink::draw(&Space::default(), 11, 117);
    assert_eq!(link.jitter, DrawnJitter::Wifi, "{link:?}");
    let scenario = link.scenario().unwrap();
    for controller in [ControllerName::Bbr, ControllerName::Cubic] {
        let mut ratios: Vec<f64> = (0..51)
            .map(|seed| scenario.run(Some(controller), seed).unwrap().completion_s.unwrap() / link.ideal_s)
            .collect();
        ratios.sort_by(f64::total_cmp);
        assert!(ratios[25] >= 0.95, "{controller}: {ratios:?}");
    }
}

#[test]
fn settings_change_the_scenario_of_every_link_and_wrong_ones_are_told() {
    let text = "rate_mbps = [20, 20]\nrtt_ms = [40, 40]\nbytes = [1e5, 1e5]\n";
    let space = Space::parse("space", text).unwrap();
    let with = |settings: &[&str]| {
        Exploration::new(&space, 1, 2, vec![ControllerName::Cubic])
            .with_settings(settings.iter().map(|setting| (*setting).to_owned()).collect())
    };
    let exploration = with(&["endpoints.fec=constant:10,2", "endpoints.fec_code=rlc"]);
    for link in exploration.links() {
        let figures = exploration.scenario(link).unwrap().run(Some(ControllerName::Cubic), 1).unwrap();
        let sender = if link.upload { figures.client } else { figures.server };
        assert!(sender.fec.expect("it is on").repairs_sent > 10);
    }
    assert!(exploration.run(0).unwrap().ratio.is_some());
    assert!(with(&["endpoints.fec=parity"]).run(0).is_err());
}

#[test]
fn the_share_that_is_lost_is_the_share_that_was_drawn() {
    let text = "rate_mbps = [50, 50]\nrtt_ms = [20, 20]\nbytes = [2e7, 2e7]\nqueue_bdp = [3, 3]\n\
                loss = { single_share = 0, burst_share = 1, probability = [0.04, 0.04], burst_packets = [4, 4] }\n\
                jitter = { bell_share = 0, wifi_share = 0 }\nslow_return = { share = 0 }\n";
    let space = Space::parse("space", text).unwrap();
    let link = DrawnLink::draw(&space, 1, 0);
    // Now and then a queue overflows as well.
    let scenario = link.scenario().unwrap();
    let (dropped, sent) = (1..=5).fold((0, 0), |(dropped, sent), seed| {
        let down = scenario.run(Some(ControllerName::Bbr), seed).unwrap().down;
        (dropped + down.packets_dropped, sent + down.packets_sent)
    });
    let lost = dropped as f64 / sent as f64;
    assert!((0.033..0.055).contains(&lost), "{lost}");
}

#[test]
fn short_bursts_of_a_large_share_lose_that_share() {
    let link = |share: f64| {
        let text = format!(
            "rate_mbps = [50, 50]\nrtt_ms = [20, 20]\nbytes = [5e6, 5e6]\nqueue_bdp = [3, 3]\n\
             loss = {{ single_share = 0, burst_share = 1, probability = [{share}, {share}], burst_packets = [2, 2] }}\n\
             jitter = {{ bell_share = 0, wifi_share = 0 }}\nslow_return = {{ share = 0 }}\n"
        );
        DrawnLink::draw(&Space::parse("space", &text).unwrap(), 1, 0)
    };
    let figures = link(0.3).scenario().unwrap().run(Some(ControllerName::Bbr), 1).unwrap();
    let lost = figures.down.packets_dropped as f64 / figures.down.packets_sent as f64;
    assert!((0.28..0.325).contains(&lost), "{lost}");
    assert!(link(0.7).toml().contains("probability = 0.5385"), "{}", link(0.7).toml());
    assert!(link(0.7).scenario().is_ok());
}

#[test]
fn percentiles_count_what_went_wrong_as_beyond_all_others() {
    let exploration = Exploration::new(&Space::default(), 1, 20, vec![ControllerName::Bbr]);
    let outcome = |number: usize| {
        let failed = exploration.panicked(number, "out of bounds");
        Outcome { ratio: (number != 7).then_some(1.0 + number as f64), ..failed }
    };
    let outcomes: Vec<Outcome> = (0..20).map(outcome).collect();
    let all = summaries(&exploration, &outcomes);
    let summary = &all[0];
    assert_eq!((summary.class, summary.links, summary.failed), ("all", 20, 1));
    // Of 1 to 20 without 8: the tenth, and the nineteenth.
    assert_eq!((summary.median, summary.p95, summary.worst), (Some(11.0), Some(20.0), None));
    let of_loss: usize = all.iter().filter(|summary| summary.class.contains("loss")).map(|s| s.links).sum();
    assert_eq!(of_loss, 20);
}

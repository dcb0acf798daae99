use super::super::test_link::{Link, SIZE, Transfer};
use super::super::test_path::{ack, lose_all, loss, rtt, spurious};
use super::*;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn transfer(link: Link, packets: u64) -> Transfer {
    Transfer::new(&Bbr1Config::default(), &link.shared(), packets)
}

fn phase(transfer: &Transfer) -> &'static str {
    transfer.congestion.controller().state()
}

#[test]
fn a_bottleneck_is_filled() {
    // 10 MB take 8 s at the rate of the link.
    let mut transfer = transfer(Link::standard(), 8_000);
    let time = transfer.run();
    assert!(time < Duration::from_millis(8_400), "{time:?}");
    assert!(transfer.packets_lost < 100, "{}", transfer.packets_lost);
}

#[test]
fn the_states_follow_one_another() {
    let mut transfer = transfer(Link::new(10, 20, 100), 100_000);
    assert_eq!(phase(&transfer), "startup");
    for state in ["drain", "probe bandwidth"] {
        assert!(transfer.run_until(Duration::from_secs(2), |transfer| phase(transfer) != "startup"));
        assert!(transfer.run_until(Duration::from_secs(2), |transfer| phase(transfer) == state), "{state}");
    }
    let pace = transfer.congestion.pacing_rate();
    assert!((900_000..=1_600_000).contains(&pace), "{pace}");
}

#[test]
fn random_loss_does_not_slow_it() {
    // 1 % of loss at 50 Mbit/s and 100 ms; 10 MB take 1.6 s.
    let mut transfer = transfer(Link { loss: Some(100), ..Link::new(50, 50, 100) }, 8_000);
    let time = transfer.run();
    assert!(time < Duration::from_millis(2_150), "{time:?}");
}

#[test]
fn a_satellite_link_is_filled_without_an_overshoot() {
    // 100 MB at 250 Mbit/s: 3.2 s, and four of the one-way delays.
    let mut transfer = transfer(Link::new(250, 300, 600), 80_000);
    let time = transfer.run();
    assert!(time < Duration::from_millis(4_900), "{time:?}");
    assert!(transfer.packets_lost <= 200, "{}", transfer.packets_lost);
}

#[test]
fn the_round_trip_time_is_probed_when_it_seems_longer() {
    let link = Link::new(10, 20, 100).shared();
    let mut transfer = Transfer::new(&Bbr1Config::default(), &link, 100_000);
    assert!(transfer.run_until(Duration::from_secs(5), |transfer| phase(transfer) == "probe bandwidth"));
    link.borrow_mut().one_way += Duration::from_millis(5);
    assert!(transfer.run_until(Duration::from_secs(8), |transfer| phase(transfer) == "probe rtt"));
    assert_eq!(transfer.congestion.controller().window(), 4 * u64::from(SIZE));
    assert!(transfer.run_until(Duration::from_secs(1), |transfer| phase(transfer) == "probe bandwidth"));
}

#[test]
fn a_stop_leaves_the_bandwidth_as_it_was() {
    let link = Link::new(10, 3, 260).shared();
    let mut transfer = Transfer::new(&Bbr1Config::default(), &link, 100_000);
    transfer.run_until(Duration::from_secs(1), |_| false);
    for _ in 0..6 {
        link.borrow_mut().stopped_until = transfer.now + Duration::from_millis(250);
        transfer.run_until(Duration::from_millis(260), |_| false);
    }
    let before = transfer.packets_acked;
    transfer.run_until(Duration::from_millis(500), |_| false);
    // 500 packets at the rate of the link.
    assert!(transfer.packets_acked - before >= 450, "{}", transfer.packets_acked - before);
}

#[test]
fn a_flight_lost_as_a_whole_leaves_two_packets() {
    let mut bbr1 = Bbr1::new(&Bbr1Config::default(), Instant::ZERO, SIZE);
    let now = Instant::from_millis(100);
    bbr1.on_congestion(now, &CongestionEvent { persistent: true, ..loss(now) });
    assert_eq!(bbr1.window(), 2 * u64::from(SIZE));
}

#[test]
fn a_flight_that_was_only_late_gives_the_window_back() {
    let mut bbr1 = Bbr1::new(&Bbr1Config::default(), Instant::ZERO, SIZE);
    let (before, now) = (bbr1.window(), at(100));
    lose_all(&mut bbr1, now, &CongestionEvent { persistent: true, ..loss(now) });
    assert_eq!(bbr1.window(), 2 * u64::from(SIZE));
    bbr1.on_spurious_loss(at(110), &spurious(now));
    assert_eq!(bbr1.window(), before);
}

#[test]
fn the_first_flight_of_a_long_path_goes_on_at_the_pace_of_a_usual_one() {
    // One packet is answered after 600 ms, as in a handshake: what follows leaves as if that had been 100 ms.
    let mut transfer = transfer(Link::new(10, 300, 1_000), 1);
    transfer.run();
    assert_eq!(transfer.congestion.pacing_rate(), 10 * 10 * u64::from(SIZE));
}

#[test]
fn the_queue_of_a_probe_is_drained_no_longer_than_it_takes() {
    let now = at(50);
    let rtt = rtt(Duration::from_millis(50));
    let next_after = |index: usize, prior_in_flight: u64| {
        let mut bbr = Bbr1::new(&Bbr1Config::default(), Instant::ZERO, SIZE);
        let ack = AckEvent { prior_in_flight, ..ack(u64::from(SIZE), at(0), &rtt) };
        // The phase has just begun.
        bbr.advance_cycle(now, index, now, &ack);
        matches!(bbr.phase, Phase::ProbeBw(next, _) if next == index + 1)
    };
    let window = 10 * u64::from(SIZE);
    assert_eq!([window, window + 1].map(|flight| next_after(1, flight)), [true, false], "after a probe");
    assert_eq!(
        [window, window + 1].map(|flight| next_after(2, flight)),
        [false, false],
        "no round trip has passed"
    );
}

#[test]
fn the_pace_goes_through_its_cycle_but_after_silence() {
    let mut bbr = Bbr1::new(&Bbr1Config::default(), Instant::ZERO, SIZE);
    let gains = |bbr: &mut Bbr1| {
        [0, 1, 2, 7].map(|index| {
            bbr.phase = Phase::ProbeBw(index, Instant::ZERO);
            bbr.pacing_gain()
        })
    };
    assert_eq!(gains(&mut bbr), [125, 75, 100, 100]);
    bbr.idle_restart = true;
    assert_eq!(gains(&mut bbr), [100; 4]);
}

#[test]
fn a_path_that_holds_next_to_nothing_has_four_packets_in_flight() {
    let mut bbr = Bbr1::new(&Bbr1Config::default(), Instant::ZERO, SIZE);
    assert_eq!(bbr.inflight(100), 10 * u64::from(SIZE), "nothing is known");
    bbr.min_rtt.on_sample(at(20), Some(Duration::from_millis(20)), Duration::ZERO);
    assert_eq!([100, 200].map(|gain| bbr.inflight(gain)), [4 * u64::from(SIZE); 2]);
}

#[test]
fn a_retreat_from_the_window_of_an_earlier_connection_ends_the_startup() {
    let mut bbr = Bbr1::new(&Bbr1Config::default(), at(0), SIZE);
    bbr.on_resume(at(0), ResumeStep::Jump { window: 500_000, rtt: Duration::from_millis(100) });
    assert_eq!((bbr.state(), bbr.window()), ("startup", 500_000));
    bbr.on_resume(at(100), ResumeStep::Retreat { window: 50_000 });
    assert_eq!((bbr.state(), bbr.window()), ("drain", 50_000));
    bbr.on_resume(at(200), ResumeStep::Retreat { window: 0 });
    assert_eq!(bbr.window(), 4 * u64::from(SIZE), "BBRMinPipeCwnd");
}

#[test]
fn a_startup_that_the_application_limits_grows_no_window_beyond_what_it_uses() {
    let mut transfer = transfer(Link::new(10, 20, 100), 0);
    transfer.app_interval = Some(Duration::from_millis(5));
    transfer.run_until(Duration::from_secs(20), |_| false);
    assert_eq!(phase(&transfer), "startup");
    // 2.89 times what is under way at a packet in 5 ms, and a few packets.
    let window = transfer.congestion.controller().window() / u64::from(SIZE);
    assert!((10..50).contains(&window), "{window} packets");
}

#[test]
fn the_window_doubles_with_each_round_of_startup() {
    // A path that holds 500 packets, of which the first flight has ten.
    let mut transfer = transfer(Link::new(50, 50, 100), 100_000);
    let first = transfer.congestion.controller().window();
    transfer.run_until(Duration::from_millis(450), |_| false);
    assert_eq!(phase(&transfer), "startup");
    let window = transfer.congestion.controller().window();
    assert!(window >= 8 * first, "{first} and {window}");
}

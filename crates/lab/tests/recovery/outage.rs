//! Paths that carry nothing for a while.

use std::time::Duration;

use fulmar_proto::TimerStyle;
use fulmar_proto::congestion::CongestionControl;
use fulmar_sim::{Change, LinkConfig, Loss};

use crate::run::{Download, at, controllers, download, ms, stopping, upload, with};

/// The default idle timeout is 30 s: a sixteenth of it lies between two probes at most.
const PROBE_INTERVAL_MAX: Duration = Duration::from_millis(1_875);

#[test]
fn a_path_that_comes_back_after_ten_seconds_is_noticed_soon() {
    // Ends of the outage that differ by less than the distance of two probes, so that none is a lucky one.
    for (controller, end) in controllers().iter().flat_map(|c| (0..6).map(move |n| (c, 12_000 + 330 * n))) {
        let link = LinkConfig::with_rate(10_000_000, ms(50), ms(100));
        let link =
            link.then(at(2_000), Change::Loss(Loss::Everything)).then(at(end), Change::Loss(Loss::None));
        let mut run = download(link, with(controller, TimerStyle::OncePerRtt), 5_000_000);
        run.run_until(at(end));
        let before = Download::read(&run.simulation);
        let back = run
            .simulation
            .run_until(Duration::from_secs(10), |simulation| Download::read(simulation) > before);
        back.expect("the download goes on");
        // The probe needs 50 ms to arrive; what it asks for comes with the next round trip. Reminders are a
        // sixteenth of the silence apart, and two timeouts at least, which is less.
        let late = run.simulation.now().saturating_since(at(end));
        assert!(late <= PROBE_INTERVAL_MAX + ms(160), "{controller:?} {end}: {late:?}");
        assert!(late <= ms((end - 2_000) / 16 + 250), "{controller:?} {end}: {late:?}");
        run.finish(Duration::from_secs(60));
    }
}

#[test]
fn classic_timers_come_later() {
    let controllers = controllers();
    let time = |timers| {
        let link = LinkConfig::with_rate(10_000_000, ms(50), ms(100));
        let link = link.then(at(2_000), Change::Loss(Loss::Everything));
        let link = link.then(at(12_000), Change::Loss(Loss::None));
        // Who receives asks and tells what has arrived, so that a download goes on with either; what is sent to it waits for timers.
        upload(link, with(&controllers[1], timers), 5_000_000)
    };
    let (ours, classic) = (time(TimerStyle::OncePerRtt), time(TimerStyle::Classic));
    assert!(ours + ms(1_000) < classic, "{ours:?} {classic:?}");
}

#[test]
fn a_path_of_many_interruptions_is_used_between_them() {
    let interrupted = |length| {
        let link = LinkConfig::with_rate(20_000_000, ms(25), ms(50));
        (0..100).fold(link, |link, number| {
            let start = 700 + number * (700 + length);
            link.then(at(start), Change::Loss(Loss::Everything))
                .then(at(start + length), Change::Loss(Loss::None))
        })
    };
    for controller in controllers() {
        let config = with(&controller, TimerStyle::OncePerRtt);
        let time = |length| {
            download(interrupted(length), config.clone(), 10_000_000).finish(Duration::from_secs(120)).time
        };
        // Half of the time it carries nothing, and each time 50 ms or two timeouts pass until that is noticed. Then slow start
        // needs nine round trips of 50 ms to 250 kB, the capacity and the queue; 4 s carry all.
        let (short, long) = (time(500), time(1_000));
        assert!(short <= ms(18_000), "{controller:?}: {short:?}");
        assert!(long <= ms(26_000), "{controller:?}: {long:?}");
    }
}

#[test]
fn a_radio_that_stops_and_delivers_in_a_burst_costs_its_pause_only() {
    for (controller, length) in controllers().iter().flat_map(|c| [80, 160, 250].map(|length| (c, length))) {
        let config = with(controller, TimerStyle::OncePerRtt);
        let link = LinkConfig::with_rate(10_000_000, ms(3), ms(260));
        let steady = download(link.clone(), config.clone(), 3_000_000).finish(Duration::from_secs(20));
        let stopped = stopping(link, 1_000, length);
        let mut run = download(stopped, config, 3_000_000);
        run.run_until(at(1_000));
        let window = run.server().cwnd;
        run.run_until(at(1_050 + length));
        // The window of BBR moves with its phases; that of the others only grows without loss.
        let kept =
            if matches!(controller, CongestionControl::Bbr(_)) { window / 4 * 3 } else { window / 10 * 9 };
        assert!(run.server().cwnd >= kept, "{controller:?}: {} of {window}", run.server().cwnd);
        let run = run.finish(Duration::from_secs(20));
        assert_eq!(run.server.packets_lost, 0, "{controller:?}");
        // Probes ask with data that has not left before.
        assert!(run.server.pto_count > 0 || length < 250, "{controller:?}");
        assert_eq!(run.server.streams.bytes_retransmitted, 0, "{controller:?}");
        assert!(
            run.time <= steady.time + ms(length + 10),
            "{controller:?}, {length} ms: {:?}, steady {:?}",
            run.time,
            steady.time
        );
    }
}

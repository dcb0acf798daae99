//! Unreliable datagrams with deadlines and priorities, on a link that cannot carry all of them.

use std::time::Duration;

use fulmar_lab::{Connecting, ConnectionReport, Lab, Workload};
use fulmar_sim::LinkConfig;

const MILLISECOND: Duration = Duration::from_millis(1);
const COUNT: u32 = 600;

/// A client that sends a datagram of 1000 bytes every 2 ms, which is 4 Mbit/s, over a link of 2 Mbit/s.
fn overloaded(workload: Workload) -> ConnectionReport {
    let link = LinkConfig::with_rate(2_000_000, 20 * MILLISECOND, 40 * MILLISECOND);
    let workload = Workload {
        datagrams: COUNT,
        datagram_size: 1_000..=1_000,
        datagram_interval: Some(2 * MILLISECOND),
        ..workload
    };
    let lab = Lab::new(3).link(link.clone(), link).connection(Connecting::new(workload));
    lab.run().expect("nothing goes wrong").connections.remove(0)
}

/// The delays of the datagrams that arrived, in the order of sending.
fn delays(report: &ConnectionReport) -> Vec<(u64, Duration)> {
    let sent = &report.client.datagram_times_sent;
    let received = &report.server.datagram_times_received;
    received.iter().map(|(index, at)| (*index, *at - sent[*index as usize])).collect()
}

fn percentile(mut delays: Vec<Duration>, share: f64) -> Duration {
    delays.sort();
    delays[((delays.len() - 1) as f64 * share) as usize]
}

#[test]
fn datagrams_of_no_use_are_not_sent_and_their_application_hears_of_each() {
    let plain = overloaded(Workload::default());
    let lifetime = 50 * MILLISECOND;
    let timely = overloaded(Workload { datagram_lifetime: Some(lifetime), ..Workload::default() });
    for report in [&plain, &timely] {
        let stats = report.client.stats.as_ref().expect("the connection ended");
        let datagrams = &stats.datagrams;
        assert_eq!(datagrams.sent + datagrams.late + datagrams.dropped_outgoing, u64::from(COUNT));
        assert_eq!(report.client.datagrams_dropped, datagrams.late + datagrams.dropped_outgoing);
        assert_eq!(datagrams.notices_lost, 0);
        println!(
            "{} sent, {} late, {} received",
            datagrams.sent, datagrams.late, report.server.datagrams_received
        );
    }
    assert!(timely.client.datagrams_dropped > 100, "{} were dropped", timely.client.datagrams_dropped);
    assert_eq!(plain.client.datagrams_dropped, 0);
    let [plain, timely] = [&plain, &timely].map(|report| delays(report).into_iter().map(|(_, delay)| delay));
    let (plain, timely) = (percentile(plain.collect(), 0.95), percentile(timely.collect(), 1.0));
    println!("95 % within {plain:?} without deadlines, all within {timely:?} with them");
    // At worst a datagram leaves at its deadline and waits in the queue of the link.
    assert!(timely <= lifetime + (20 + 40 + 10) * MILLISECOND, "{timely:?}");
    assert!(plain > 2 * timely, "{plain:?}");
}

#[test]
fn urgent_datagrams_overtake_the_others() {
    let report = overloaded(Workload { datagram_urgent: 0.1, ..Workload::default() });
    // Which ones were urgent is told by their speed: without priorities, delays would only grow.
    let all = delays(&report);
    let late_half: Vec<Duration> =
        all.iter().filter(|(index, _)| *index > u64::from(COUNT) / 2).map(|(_, delay)| *delay).collect();
    let fast = late_half.iter().filter(|delay| **delay < 100 * MILLISECOND).count();
    println!(
        "{fast} of {} were fast; the median took {:?}",
        late_half.len(),
        percentile(late_half.clone(), 0.5)
    );
    assert!(fast * 20 > late_half.len() && fast * 5 < late_half.len(), "{fast} of {}", late_half.len());
    assert!(percentile(late_half, 0.5) > 300 * MILLISECOND);
}

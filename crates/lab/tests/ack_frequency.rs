//! How often acknowledgements come, as the ends have agreed: often enough for the window, rarely enough for the
//! return path.

use std::time::Duration;

use fulmar_lab::{Connecting, Lab, RunReport, Workload};
use fulmar_proto::{ConnectionStats, TransportConfig};
use fulmar_sim::LinkConfig;

const MEGABIT: u64 = 1_000_000;
const MEGABYTE: u64 = 1_000_000;

/// An upload of so many bytes over a link of `up` and `down` bits per second.
fn upload(
    bytes: u64,
    up: u64,
    down: u64,
    delay: Duration,
    queue: Duration,
    ack_frequency: bool,
) -> RunReport {
    let window = 64 * MEGABYTE;
    let config = TransportConfig {
        ack_frequency,
        // Flow control is not what is looked at.
        stream_receive_window: window,
        stream_receive_window_max: window,
        receive_window: window,
        receive_window_max: window,
        send_window: window,
        ..TransportConfig::default()
    };
    Lab::new(1)
        .link(LinkConfig::with_rate(up, delay, queue), LinkConfig::with_rate(down, delay, queue))
        .both(config)
        .connection(Connecting::new(Workload::upload(bytes)))
        .run()
        .unwrap_or_else(|failure| panic!("{failure}"))
}

fn server(report: &RunReport) -> &ConnectionStats {
    report.connections[0].server.stats.as_ref().expect("the server took part")
}

fn client(report: &RunReport) -> &ConnectionStats {
    report.connections[0].client.stats.as_ref().expect("the client took part")
}

fn line(name: &str, report: &RunReport) {
    let (c, s) = (client(report), server(report));
    println!(
        "{name}: {:.3} s, {} packets, {} lost, {} spurious, {} PTOs, cwnd {}, srtt {:?} min {:?}; {} acks {} bytes {} ack-only, {} sent bytes, gap {} delay {:?}; return queue max {} dropped {}",
        report.duration.as_secs_f64(),
        c.packets_sent,
        c.packets_lost,
        c.packets_spurious,
        c.pto_count,
        c.cwnd,
        c.rtt,
        c.rtt_min,
        s.acks_sent,
        s.ack_bytes,
        s.ack_only_bytes,
        s.bytes_sent,
        s.ack_gap,
        s.ack_delay,
        report.down.queue_bytes_max,
        report.down.packets_dropped_in_all()
    );
}

#[test]
fn explore() {
    let ms = Duration::from_millis;
    for on in [true, false] {
        line("100M", &upload(20 * MEGABYTE, 100 * MEGABIT, 100 * MEGABIT, ms(10), ms(40), on));
        line(
            "10us",
            &upload(20 * MEGABYTE, 1000 * MEGABIT, 1000 * MEGABIT, Duration::from_micros(10), ms(5), on),
        );
        line("sat", &upload(100 * MEGABYTE, 250 * MEGABIT, 3 * MEGABIT, ms(300), ms(600), on));
        line("asym", &upload(10 * MEGABYTE, 10 * MEGABIT, MEGABIT / 10, ms(1), ms(100), on));
        line("asym40", &upload(10 * MEGABYTE, 40 * MEGABIT, 4 * MEGABIT / 10, ms(1), ms(100), on));
        line("asym1000", &upload(100 * MEGABYTE, 1000 * MEGABIT, MEGABIT, ms(1), ms(100), on));
        line("1M", &upload(1 * MEGABYTE, MEGABIT, MEGABIT, ms(300), ms(600), on));
        line("10M", &upload(4 * MEGABYTE, 10 * MEGABIT, 10 * MEGABIT, ms(10), ms(20), on));
    }
}

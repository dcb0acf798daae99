//! Streams that are reset but for their beginning, over a link that loses packets.

use std::time::Duration;

use fulmar_lab::{Connecting, Lab, Workload};
use fulmar_proto::TransportConfig;
use fulmar_sim::{LinkConfig, Loss};

const MILLISECOND: Duration = Duration::from_millis(1);

/// Forty streams of which all are reset; the bytes that the server has read. The checkers of the lab compare what was
/// promised with what was read.
fn bytes_read(seed: u64, reset_at: f64, server: TransportConfig) -> (u64, u64) {
    let mut link = LinkConfig::with_rate(5_000_000, 20 * MILLISECOND, 60 * MILLISECOND);
    link.loss = Loss::Uniform { probability: 0.05 };
    let workload = Workload {
        streams: 40,
        size: 50_000..=50_000,
        reset: 1.0,
        reset_at,
        unordered: 0.3,
        ..Workload::default()
    };
    let lab = Lab::new(seed).link(link.clone(), link).server(server).connection(Connecting::new(workload));
    let report = lab.run().expect("what was promised arrives").connections.remove(0);
    (report.client.bytes_written, report.server.bytes_read)
}

#[test]
fn what_was_promised_arrives_in_spite_of_losses() {
    for seed in 0..10 {
        let (written, all) = bytes_read(seed, 1.0, TransportConfig::default());
        let (_, none) = bytes_read(seed, 0.0, TransportConfig::default());
        println!("{written} bytes were written, {all} and {none} read");
        // Promises are drawn evenly from what was written.
        assert!(all * 3 > written && all < written, "{all} of {written}");
        assert!(none < all);
    }
}

#[test]
fn a_server_without_the_extension_sees_plain_resets() {
    let without = TransportConfig { reset_stream_at: false, ..TransportConfig::default() };
    let (written, read) = bytes_read(1, 1.0, without);
    assert!(read < written);
}

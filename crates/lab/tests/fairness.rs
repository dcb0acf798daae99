//! What flows of different controllers leave each other on a link that both fill.

use std::sync::Arc;
use std::time::Duration;

use fulmar_lab::{Close, Connecting, Lab, Workload};
use fulmar_proto::congestion::{BbrConfig, CongestionControl, CubicConfig};
use fulmar_proto::{Side, TransportConfig};
use fulmar_sim::LinkConfig;

/// The share of the second of two uploads of a minute.
fn share_of_second(seed: u64, link: &LinkConfig, controllers: [CongestionControl; 2]) -> f64 {
    let mut lab = Lab::new(seed).link(link.clone(), link.clone());
    for congestion in controllers {
        let transport = TransportConfig { congestion, ..TransportConfig::default() };
        let upload = Connecting::new(Workload::upload(1_000_000_000)).transport(Arc::new(transport));
        lab = lab.connection(upload.close(Close::After(Side::Client, Duration::from_secs(60))));
    }
    let report = lab.run().unwrap();
    let [first, second] = [0, 1].map(|flow| report.connections[flow].server.bytes_read as f64);
    second / (first + second)
}

fn bbr_and_cubic() -> [CongestionControl; 2] {
    [CongestionControl::Bbr(BbrConfig::default()), CongestionControl::Cubic(CubicConfig::default())]
}

/// 10 Mbit/s with this delay each way, and a queue of so many bandwidth-delay products.
fn link(delay_ms: u64, products: f64) -> LinkConfig {
    let delay = Duration::from_millis(delay_ms);
    LinkConfig::with_rate(10_000_000, delay, (delay * 2).mul_f64(products))
}

/// The median of five runs. Single ones may lie beyond a quarter: of 16 on the long path with the longest queue two or three do.
fn median_share(link: &LinkConfig) -> f64 {
    let mut shares = [1, 2, 3, 4, 5].map(|seed| share_of_second(seed, link, bbr_and_cubic()));
    shares.sort_by(f64::total_cmp);
    shares[2]
}

#[test]
fn on_a_long_path_bbr_and_cubic_get_a_quarter_at_least() {
    for products in [0.25, 1.0, 5.0] {
        let share = median_share(&link(50, products));
        assert!((0.25..=0.75).contains(&share), "{products} products: {share:.3}");
    }
}

#[test]
fn on_a_short_path_bbr_and_cubic_get_a_quarter_at_least() {
    for products in [0.25, 1.0, 5.0] {
        let share = median_share(&link(10, products));
        assert!((0.25..=0.75).contains(&share), "{products} products: {share:.3}");
    }
}

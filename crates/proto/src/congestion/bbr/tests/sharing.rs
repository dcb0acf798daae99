//! Links that are shared.

use super::*;
use crate::congestion::CubicConfig;
use crate::congestion::test_link::run_together;

/// The share of the first of two flows in the bytes that arrive in a minute, in percent, and the use of the link.
fn share(link: Link, first: &dyn ControllerFactory, second: &dyn ControllerFactory) -> (u64, u64) {
    let capacity = volume(link.bytes_per_second, seconds(60)) / u64::from(SIZE);
    let link = link.shared();
    let mut both = [Transfer::new(first, &link, PLENTY), Transfer::new(second, &link, PLENTY)];
    run_together(&mut both, Instant::from_millis(60_000));
    let [one, other] = both.map(|transfer| transfer.packets_acked);
    (one * 100 / (one + other), (one + other) * 100 / capacity)
}

#[test]
fn two_flows_share_a_link() {
    let bbr = BbrConfig::default();
    for queue in [20, 100] {
        let (share, used) = share(Link::new(10, 10, queue), &bbr, &bbr);
        // Jain's index is above 0.95 between 39 % and 61 %.
        assert!((39..=61).contains(&share), "{queue} ms: {share} %");
        assert!(used >= 95, "{queue} ms: {used} %");
    }
}

#[test]
fn cubic_keeps_its_share_and_leaves_one() {
    // A queue of one bandwidth-delay product, and of five.
    for queue in [20, 100] {
        let (share, used) = share(Link::new(10, 10, queue), &BbrConfig::default(), &CubicConfig::default());
        assert!((25..=75).contains(&share), "{queue} ms: {share} %");
        assert!(used >= 95, "{queue} ms: {used} %");
    }
}

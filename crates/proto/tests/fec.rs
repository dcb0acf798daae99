//! Forward erasure correction between two ends.

mod pair;

use std::time::Duration;

use fulmar_proto::{FecCode, FecConfig, FecMode, Side, TransportConfig};
use pair::Pair;

#[test]
fn a_constant_rate_is_kept_in_bulk() {
    for (code, source, repair) in
        [(FecCode::ReedSolomon, 20, 10), (FecCode::Rlc, 10, 2), (FecCode::Xor, 2, 1)]
    {
        let fec = FecConfig { mode: FecMode::Constant { source, repair }, code, ..FecConfig::default() };
        let config = || TransportConfig { fec: Some(fec), ..TransportConfig::default() };
        let mut pair = Pair::new(config(), config());
        pair.run_for(Duration::from_millis(100));
        pair.transfer(Side::Server, 1_000_000, Duration::from_secs(10));
        let stats = pair.server.conn().stats().fec.expect("both ends have it");
        let blocks = stats.symbols_sent / u64::from(source);
        assert!(blocks > 30, "{stats:?}");
        assert_eq!(stats.repairs_sent, blocks * u64::from(repair), "{code:?} {stats:?}");
    }
}

#[test]
fn the_bulk_of_a_long_transfer_takes_as_many_packets_as_without_protection() {
    let packets = |fec: Option<FecConfig>| {
        // All of it may leave as soon as congestion control allows.
        let config = || TransportConfig {
            fec,
            stream_receive_window: 20 << 20,
            stream_receive_window_max: 20 << 20,
            receive_window: 20 << 20,
            receive_window_max: 20 << 20,
            send_window: 20 << 20,
            ..TransportConfig::default()
        };
        let mut pair = Pair::new(config(), config());
        pair.run_for(Duration::from_millis(100));
        pair.transfer(Side::Server, 10_000_000, Duration::from_secs(10));
        let stats = pair.server.conn().stats();
        (stats.packets_sent, stats.fec.map(|fec| fec.symbols_sent))
    };
    let (without, _) = packets(None);
    let (with, symbols) = packets(Some(FecConfig::default()));
    let symbols = symbols.expect("both ends have it");
    // The window that repair symbols at the end cover, a few small packets, and the repair symbols.
    assert!((200..300).contains(&symbols), "{symbols}");
    assert!(with <= without + 20, "{with} packets, {without} without");
}

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

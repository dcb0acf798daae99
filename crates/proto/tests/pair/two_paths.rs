//! Two ends with two paths (RFC 10069).

use std::time::Duration;

use fulmar_proto::{FourTuple, MultipathConfig, PathId, TransportConfig};

use super::{Pair, Setup};

/// The other address of the client.
pub const OTHER: &str = "10.0.1.1:1000";
/// The path that begins there.
pub const SECOND: PathId = PathId(1);

pub fn multipath_config() -> TransportConfig {
    TransportConfig { multipath: Some(MultipathConfig::default()), ..TransportConfig::default() }
}

impl Pair {
    /// Both ends with a second path that is validated.
    pub fn with_two_paths() -> Self {
        Self::with_two_paths_and(&multipath_config())
    }

    pub fn with_two_paths_and(config: &TransportConfig) -> Self {
        let mut pair = Setup { client: config.clone(), server: config.clone(), ..Setup::default() }.connect();
        pair.open_second();
        pair
    }

    /// Opens the second path, and waits until it is validated.
    pub fn open_second(&mut self) {
        self.client.more_addrs = vec![OTHER.parse().unwrap()];
        let (now, ip) = (self.now, self.client.more_addrs[0].ip());
        let addrs = FourTuple::new(self.server.addr, Some(ip));
        assert_eq!(self.client.conn().open_path(now, addrs), Ok(SECOND));
        self.run_for(Duration::from_millis(100));
        assert!(self.client.conn().paths().all(|path| path.validated));
    }
}

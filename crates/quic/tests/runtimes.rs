//! Endpoints whose workers live in runtimes of their own.

mod common;

use std::time::Duration;

use common::{ALPN, Identity, loopback, run, within};
use fulmar::{ConnectionError, Endpoint, TransportConfig};
use tokio::runtime::Builder;

#[test]
fn a_worker_needs_no_other_runtime_than_its_own() {
    let of_worker = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let binding = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let identity = Identity::new();
    let transport =
        TransportConfig { max_idle_timeout: Some(Duration::from_millis(300)), ..TransportConfig::default() };
    let server = binding.block_on(async {
        Endpoint::builder()
            .server_config(identity.server_config(transport, ALPN))
            .runtimes(vec![of_worker.handle().clone()])
            .bind(loopback())
            .expect("an endpoint")
    });
    drop(binding);
    run(async {
        let client = Endpoint::client(loopback()).expect("an endpoint");
        let config = identity.client_config(TransportConfig::default(), ALPN);
        let addr = server.local_addr().expect("an address");
        let accept = async { server.accept().await.expect("an attempt").await.expect("a connection") };
        let connect = client.connect_with(config, addr, "localhost").expect("a valid configuration");
        let (accepted, connected) = tokio::join!(accept, connect);
        let connected = connected.expect("a connection");
        // Its timers ring.
        let end = within(Duration::from_secs(5), accepted.closed()).await;
        assert_eq!(end, ConnectionError::TimedOut);
        connected.closed().await;
    });
    drop(server);
}

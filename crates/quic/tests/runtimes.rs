//! Endpoints whose workers live in runtimes of their own.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{ALPN, Identity, Pair, loopback, run, within};
use fulmar::{ConnectionError, Endpoint, Instant, PathEvent, PathManager, TransportConfig};
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

/// A manager that does nothing but to hold this: it lives as long as its connection.
#[derive(Debug)]
struct Held(#[expect(dead_code, reason = "it is counted")] Arc<()>);

impl PathManager for Held {
    fn on_event(&mut self, _now: Instant, _event: &PathEvent) {}

    fn manage(&mut self, _now: Instant, _connection: &mut fulmar::proto::Connection) {}

    fn next_timeout(&self) -> Option<Instant> {
        None
    }
}

#[test]
fn a_runtime_that_ends_leaves_no_connection_behind() {
    let token = Arc::new(());
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let pair = Pair::new().await;
        pair.client.set_path_manager(Held(token.clone()));
        pair.server.set_path_manager(Held(token.clone()));
    });
    // What was touched last is still queued.
    drop(runtime);
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn a_connection_that_outlives_its_runtime_ends_with_its_last_handle() {
    let token = Arc::new(());
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let pair = runtime.block_on(Pair::new());
    drop(runtime);
    pair.client.set_path_manager(Held(token.clone()));
    assert_eq!(pair.client.close_reason(), Some(ConnectionError::LocallyClosed));
    drop(pair);
    assert_eq!(Arc::strong_count(&token), 1);
}

//! Who takes the logs of connections.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{ALPN, Identity, loopback, run};
use fulmar::{Endpoint, LogBatch, LogDelivery, LogSink, TransportConfig, VarInt};

/// Counts what it is given, and panics.
#[derive(Default)]
struct Panics(AtomicUsize);

impl LogSink for Panics {
    fn take(&self, _: LogBatch) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("on purpose");
    }
}

#[test]
fn a_sink_that_panics_leaves_the_endpoint_alone() {
    run(async {
        let identity = Identity::new();
        let server = Endpoint::server(identity.server_config(TransportConfig::default(), ALPN), loopback())
            .expect("an endpoint");
        let addr = server.local_addr().expect("an address");
        let sink = Arc::new(Panics::default());
        let transport = TransportConfig { log_entries: 1_000, ..TransportConfig::default() };
        let client = Endpoint::builder()
            .client_config(identity.client_config(transport, ALPN))
            .log_sink(sink.clone(), LogDelivery::AtTheEnd)
            .bind(loopback())
            .expect("an endpoint");
        for ended in 1..=2 {
            let accept = async { server.accept().await.expect("an attempt").await.expect("a connection") };
            let connect = client.connect(addr, "localhost").expect("an open endpoint");
            let (_accepted, connected) = tokio::join!(accept, connect);
            connected.expect("a connection").close(VarInt::ZERO, b"done");
            client.wait_idle().await;
            assert_eq!(sink.0.load(Ordering::Relaxed), ended);
        }
    });
}

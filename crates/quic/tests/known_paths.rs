//! A server begins with what an earlier connection from the same client has shown of the path (RFC 9959).

mod common;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{ALPN, Identity, loopback, run};
use fulmar::congestion::{AckEvent, CongestionEvent, Controller, ControllerFactory, ResumeStep, Sent};
use fulmar::{CongestionControl, Endpoint, Instant, TransportConfig, VarInt};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

/// How long the relay keeps each datagram: the round-trip time is twice that.
const ONE_WAY: Duration = Duration::from_millis(30);
const SIZE: usize = 2_000_000;
/// What is in flight at most, in bytes: many times what a connection begins with, so that it is worth remembering.
const WINDOW: u64 = 400_000;
const FIRST_WINDOW: u64 = 15_000;

/// Carries datagrams between one client and `server`, each a while later. Returns where the client is to send.
async fn relay(server: SocketAddr) -> SocketAddr {
    let outer = Arc::new(UdpSocket::bind(loopback()).await.expect("a socket"));
    let inner = Arc::new(UdpSocket::bind(loopback()).await.expect("a socket"));
    inner.connect(server).await.expect("an address");
    let addr = outer.local_addr().expect("a bound socket");
    tokio::spawn(async move {
        let mut buffer = [0; 65_536];
        let (len, client) = outer.recv_from(&mut buffer).await.expect("a datagram");
        outer.connect(client).await.expect("an address");
        inner.send(&buffer[..len]).await.expect("sent");
        tokio::spawn(carry(outer.clone(), inner.clone()));
        carry(inner, outer).await;
    });
    addr
}

async fn carry(from: Arc<UdpSocket>, to: Arc<UdpSocket>) {
    let (queue, mut waiting) = mpsc::unbounded_channel::<(tokio::time::Instant, Vec<u8>)>();
    tokio::spawn(async move {
        while let Some((due, datagram)) = waiting.recv().await {
            tokio::time::sleep_until(due).await;
            let _ = to.send(&datagram).await;
        }
    });
    let mut buffer = vec![0; 65_536];
    // The other end may be gone.
    while let Ok(len) = from.recv(&mut buffer).await {
        let _ = queue.send((tokio::time::Instant::now() + ONE_WAY, buffer[..len].to_vec()));
    }
}

/// A controller whose window grows to [`WINDOW`], and which notes what it is told of careful resume.
#[derive(Debug)]
struct Growing {
    window: u64,
    steps: Arc<Mutex<Vec<ResumeStep>>>,
}

impl Controller for Growing {
    fn on_sent(&mut self, _now: Instant, _sent: &Sent) {}

    fn on_ack(&mut self, _now: Instant, ack: &AckEvent<'_>) {
        self.window = WINDOW.min(self.window + ack.acked_bytes);
    }

    fn on_congestion(&mut self, _now: Instant, _event: &CongestionEvent) {}

    fn on_resume(&mut self, _now: Instant, step: ResumeStep) {
        self.steps.lock().expect("no panic").push(step);
    }

    fn on_mtu(&mut self, _max_datagram_size: u16) {}

    fn window(&self) -> u64 {
        self.window
    }

    fn state(&self) -> &'static str {
        "growing"
    }

    fn name(&self) -> &'static str {
        "growing"
    }
}

#[derive(Debug, Default)]
struct GrowingFactory(Arc<Mutex<Vec<ResumeStep>>>);

impl ControllerFactory for GrowingFactory {
    fn build(&self, _now: Instant, _max_datagram_size: u16) -> Box<dyn Controller> {
        Box::new(Growing { window: FIRST_WINDOW, steps: self.0.clone() })
    }
}

async fn download(identity: &Identity, server: SocketAddr) {
    let client = Endpoint::client(loopback()).expect("a client endpoint");
    client.set_default_client_config(identity.client_config(TransportConfig::default(), ALPN));
    let connection = client.connect(relay(server).await, "localhost").expect("an address").await;
    let connection = connection.expect("a handshake");
    let mut recv = connection.accept_uni().await.expect("a stream");
    let received = recv.read_to_end(SIZE).await.expect("all of it");
    assert_eq!(received.len(), SIZE);
    connection.close(VarInt::ZERO, b"");
    client.wait_idle().await;
}

/// The steps of careful resume of a server in the first of two downloads, and in both.
async fn steps_of_two_downloads(known_paths: usize) -> [Vec<ResumeStep>; 2] {
    let identity = Identity::new();
    let steps = Arc::new(Mutex::new(Vec::new()));
    let congestion = CongestionControl::Custom(Arc::new(GrowingFactory(steps.clone())));
    let transport = TransportConfig { congestion, ..TransportConfig::default() };
    let server = Endpoint::builder().server_config(identity.server_config(transport, ALPN));
    let server = server.known_paths(known_paths).bind(loopback()).expect("a server endpoint");
    let addr = server.local_addr().expect("a bound socket");
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            let connection = incoming.await.expect("a handshake");
            let mut send = connection.open_uni().await.expect("a stream");
            send.write_all(&vec![7; SIZE]).await.expect("it is open");
            send.finish().expect("it is open");
            connection.closed().await;
        }
    });
    let so_far = || steps.lock().expect("no panic").clone();
    download(&identity, addr).await;
    let first = so_far();
    download(&identity, addr).await;
    [first, so_far()]
}

#[test]
fn a_second_connection_begins_where_the_first_one_was() {
    run(async {
        let [first, both] = steps_of_two_downloads(8).await;
        assert_eq!(first, [], "nothing was known");
        // It tries half of what it knows (RFC 9959 §4.2), which is what was in flight in a round trip.
        let Some(ResumeStep::Jump { window, .. }) = both.first() else { panic!("no jump: {both:?}") };
        assert!((WINDOW / 8..=WINDOW).contains(window), "{both:?}");
        let [_, both] = steps_of_two_downloads(0).await;
        assert_eq!(both, [], "nothing is remembered");
    });
}

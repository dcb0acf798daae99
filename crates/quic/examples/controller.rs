//! A congestion controller of one's own, made outside of the crate, that serves and fetches a megabyte.
//!
//! A controller is told what was sent, acknowledged and lost, and says how much may be in flight. Everything else -
//! pacing, loss detection, what is sent - stays with the connection. This one is the simplest that is fair: it adds a
//! packet per round trip and halves its window when something is lost. Run it with
//! `cargo run -p fulmar --example controller`.

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;

use fulmar::congestion::{AckEvent, CongestionEvent, Controller, ControllerFactory, Sent};
use fulmar::{CongestionControl, Endpoint, Instant, TransportConfig, VarInt, tls};

/// Ten packets of the smallest size that every path carries.
const FIRST_WINDOW: u64 = 12_000;

/// Additive increase, multiplicative decrease.
#[derive(Debug)]
struct Aimd {
    packet: u64,
    window: u64,
    /// Bytes acknowledged since the window last grew.
    acked: u64,
    /// Losses of packets that were sent until then are part of the last reaction.
    reacted: Instant,
}

impl Controller for Aimd {
    fn on_sent(&mut self, _now: Instant, _sent: &Sent) {}

    fn on_ack(&mut self, _now: Instant, ack: &AckEvent<'_>) {
        // A window that the application did not use was not tested.
        if ack.app_limited || ack.largest_sent_time <= self.reacted {
            return;
        }
        self.acked += ack.acked_bytes;
        if self.acked >= self.window {
            self.acked = 0;
            self.window += self.packet;
        }
    }

    fn on_congestion(&mut self, now: Instant, event: &CongestionEvent) {
        if event.largest_sent_time > self.reacted {
            self.window = (self.window / 2).max(2 * self.packet);
            self.reacted = now;
        }
    }

    fn on_mtu(&mut self, max_datagram_size: u16) {
        self.packet = u64::from(max_datagram_size);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn state(&self) -> &'static str {
        "congestion avoidance"
    }

    fn name(&self) -> &'static str {
        "aimd"
    }
}

/// Makes a controller for each network path.
#[derive(Debug)]
struct AimdFactory;

impl ControllerFactory for AimdFactory {
    fn build(&self, now: Instant, max_datagram_size: u16) -> Box<dyn Controller> {
        Box::new(Aimd { packet: max_datagram_size.into(), window: FIRST_WINDOW, acked: 0, reacted: now })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let cert = made.cert.der().clone();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(cert.clone())?;

    let congestion = CongestionControl::Custom(Arc::new(AimdFactory));
    let transport = Arc::new(TransportConfig { congestion, ..TransportConfig::default() });

    let config = tls::server_config(vec![cert], key.into(), &[b"example"])?.with_transport(transport)?;
    let server = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into())?;
    let addr = server.local_addr()?;
    let serving = tokio::spawn(async move {
        let connection = server.accept().await.ok_or("no connection")?.await?;
        let mut send = connection.open_uni().await?;
        send.write_all(&vec![7; 1_000_000]).await?;
        send.finish()?;
        connection.closed().await;
        let stats = connection.stats();
        println!("{}: {} bytes sent, a window of {} bytes", stats.controller, stats.bytes_sent, stats.cwnd);
        Ok::<_, Box<dyn Error + Send + Sync>>(())
    });

    let client = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    client.set_default_client_config(tls::client_config(roots, &[b"example"])?);
    let connection = client.connect(addr, "localhost")?.await?;
    let received = connection.accept_uni().await?.read_to_end(2_000_000).await?;
    assert_eq!(received.len(), 1_000_000);
    connection.close(VarInt::ZERO, b"done");
    client.wait_idle().await;
    serving.await?.map_err(|error| error.to_string())?;
    Ok(())
}

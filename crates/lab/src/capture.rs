//! What one side sees of a run, as a file for Wireshark: its packets, and the secrets that open them.

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use fulmar_base::Instant;
use fulmar_proto::Side;
use fulmar_sim::{Packet, PcapNg};
use rustls::KeyLog;

/// What a capture file is made of when the run is over.
#[derive(Debug)]
pub(crate) struct Capture {
    side: Side,
    secrets: Arc<Secrets>,
    packets: Vec<(Instant, Packet)>,
}

/// Secrets that TLS gave out, in the format of NSS key logs.
#[derive(Debug, Default)]
pub(crate) struct Secrets(Mutex<String>);

impl KeyLog for Secrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        // A string takes everything.
        let _ = writeln!(lines, "{label} {} {}", hex(client_random), hex(secret));
    }
}

impl Capture {
    /// Of what `side` sends and receives; `secrets` are those of the client.
    pub(crate) fn new(side: Side, secrets: Arc<Secrets>) -> Self {
        Self { side, secrets, packets: Vec::new() }
    }

    /// A host sent a packet, or got one.
    pub(crate) fn on_packet(&mut self, host: Side, at: Instant, packet: &Packet) {
        if host == self.side {
            self.packets.push((at, packet.clone()));
        }
    }

    /// The file.
    pub(crate) fn finish(&self) -> Vec<u8> {
        self.write().expect("memory takes everything")
    }

    fn write(&self) -> io::Result<Vec<u8>> {
        let mut file = PcapNg::new(Vec::new())?;
        let interface = file.interface(if self.side.is_client() { "client" } else { "server" })?;
        // Wireshark gives a connection up at the first packet that it has no secret for, so all of them come first.
        file.secrets(&self.secrets.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        for (at, packet) in &self.packets {
            file.packet(interface, *at, packet)?;
        }
        file.finish()
    }
}

//! What one side sees of a run, as a file for Wireshark: its packets, and the secrets that open them.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use fulmar_base::Instant;
use fulmar_proto::Side;
use fulmar_sim::{InterfaceId, Packet, PcapNg};
use rustls::KeyLog;

/// Why writing cannot fail.
const IN_MEMORY: &str = "memory takes everything";

/// A capture file that grows with the run.
#[derive(Debug)]
pub(crate) struct Capture {
    side: Side,
    file: PcapNg<Vec<u8>>,
    interface: InterfaceId,
    secrets: Arc<Secrets>,
}

/// Secrets that TLS gave out and that are not in the file yet, in the format of NSS key logs.
#[derive(Debug, Default)]
pub(crate) struct Secrets(Mutex<String>);

impl Secrets {
    fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl KeyLog for Secrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        // A string takes everything.
        let _ = writeln!(lines, "{label} {} {}", hex(client_random), hex(secret));
    }
}

impl Capture {
    /// An empty file of what `side` sends and receives; `secrets` are those of the client.
    pub(crate) fn new(side: Side, secrets: Arc<Secrets>) -> Self {
        let mut file = PcapNg::new(Vec::new()).expect(IN_MEMORY);
        let interface = file.interface(if side.is_client() { "client" } else { "server" }).expect(IN_MEMORY);
        Self { side, file, interface, secrets }
    }

    /// A host sent a packet, or got one.
    pub(crate) fn on_packet(&mut self, host: Side, at: Instant, packet: &Packet) {
        if host != self.side {
            return;
        }
        // Wireshark uses secrets for what follows them in the file.
        let secrets = self.secrets.take();
        if !secrets.is_empty() {
            self.file.secrets(&secrets).expect(IN_MEMORY);
        }
        self.file.packet(self.interface, at, packet).expect(IN_MEMORY);
    }

    /// The whole file. Secrets that no packet followed are left out.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.file.finish().expect(IN_MEMORY)
    }
}

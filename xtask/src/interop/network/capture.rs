//! What passed at the two ends of a network.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::Duration;

use fulmar_base::Instant;
use fulmar_sim::PcapNg;
use fulmar_wire::Side;

use super::ip::IpPacket;
use crate::Result;

/// An end of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Client,
    Server,
}

/// A packet that was seen at an end.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Since the router was started.
    pub(crate) at: Duration,
    pub(crate) place: Place,
    /// Who sent it.
    pub(crate) from: Side,
    pub(crate) packet: IpPacket,
    pub(crate) bytes: Vec<u8>,
}

impl Seen {
    /// The UDP payload, if it is a datagram.
    pub(crate) fn payload(&self) -> Option<&[u8]> {
        self.packet.payload().map(|range| &self.bytes[range])
    }
}

/// All packets of a run, in the order in which they were seen.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    packets: Vec<Seen>,
}

impl Capture {
    pub(super) fn add(&mut self, seen: Seen) {
        self.packets.push(seen);
    }

    /// What was seen at one end.
    pub(crate) fn at(&self, place: Place) -> impl Iterator<Item = &Seen> {
        self.packets.iter().filter(move |seen| seen.place == place)
    }

    /// Writes a capture file for Wireshark, with an interface for each end and the TLS secrets.
    pub(crate) fn write(&self, path: &Path, key_log: &str) -> Result<()> {
        let mut file = PcapNg::new(BufWriter::new(File::create(path)?))?;
        let client = file.interface("client")?;
        let server = file.interface("server")?;
        if !key_log.is_empty() {
            file.secrets(key_log)?;
        }
        for seen in &self.packets {
            let interface = if seen.place == Place::Client { client } else { server };
            let at = Instant::ZERO + seen.at;
            file.ip_packet(interface, at, &seen.bytes)?;
        }
        file.finish()?;
        Ok(())
    }
}

//! A connection on a host, with its application and what watches both.

use std::net::SocketAddr;
use std::time::Duration;

use fulmar_base::Instant;
use fulmar_proto::{
    Connection, ConnectionHandle, ConnectionStats, PathManager, Side, Transmit, TransmitBatch,
};
use fulmar_sim::Distribution;

use super::Outbox;
use super::client_paths::ClientPaths;
use super::race::{Race, Rival};
use crate::Application;
use crate::checkers::{Amplification, Flight};

/// Trains that a connection may send at one instant. The largest windows of the lab have fewer.
pub(super) const TRAINS_MAX: u32 = 20_000;

/// Datagrams smaller than this do not make a train of more than [`SMALL_SEGMENTS_MAX`]: what they carry fits a
/// larger one.
const SMALL_SEGMENT: usize = 600;
/// The probes of all three packet number spaces.
const SMALL_SEGMENTS_MAX: usize = 6;

/// A connection with its application, kept after its end for the report.
#[derive(Debug)]
pub struct Session {
    pub(super) handle: ConnectionHandle,
    pub(super) connection: Connection,
    pub(super) application: Application,
    pub(super) manager: ClientPaths,
    pub(super) amplification: Option<Amplification>,
    pub(super) flight: Flight,
    pub(super) peaks: Peaks,
    pub(super) rtts: Distribution,
    pub(super) started: Instant,
    /// When the attempt began that the connection is.
    pub(super) attempted: Instant,
    /// Attempts over other paths, as long as none has succeeded.
    pub(super) race: Option<Race>,
    pub(super) rivals: Vec<Rival>,
    pub(super) wake: Option<Instant>,
}

/// The largest values of figures that the connection itself tells only as they are now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peaks {
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// The round-trip time, each time that something was sent.
    pub rtt: Duration,
}

impl Peaks {
    fn note(&mut self, stats: &ConnectionStats) {
        self.bytes_in_flight = self.bytes_in_flight.max(stats.bytes_in_flight);
        // Before the first measurement the latest value is an assumption.
        if stats.rtt_min.is_some() {
            self.rtt = self.rtt.max(stats.rtt_latest);
        }
    }
}

impl Session {
    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Its application.
    pub fn application(&self) -> &Application {
        &self.application
    }

    /// The largest values so far.
    pub fn peaks(&self) -> Peaks {
        self.peaks
    }

    /// The latest round-trip time, each time that something was sent.
    pub fn rtts(&self) -> &Distribution {
        &self.rtts
    }

    /// When the connection began on this host.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// How long the handshake took since the first attempt to connect, once it is complete.
    pub fn handshake_duration(&self) -> Option<Duration> {
        let duration = self.connection.stats().handshake_duration?;
        Some(self.attempted.saturating_since(self.started) + duration)
    }

    /// How many paths the peer has answered on beyond the first, at a client.
    pub fn paths_validated(&self) -> u64 {
        self.manager.validated()
    }

    /// Whether the workload is done, and the connection remembers no stream and no data.
    pub fn is_settled(&self) -> bool {
        let (streams, bytes) = (self.connection.open_streams(), self.connection.send_buffered());
        self.application.is_done() && self.manager.is_done() && streams == 0 && bytes == 0
    }

    pub(super) fn describe(&self) -> String {
        let stats = self.connection.stats();
        let wake = (self.connection.poll_timeout(), self.application.next_wake());
        let open = self.connection.open_streams();
        let flight = (stats.bytes_in_flight, stats.cwnd);
        format!("wakes at {wake:?}, {open} streams, {flight:?} in flight, {}", self.application.describe())
    }

    pub(super) fn next_wake(&self) -> Option<Instant> {
        let timer = self.connection.poll_timeout().map(|(at, _)| at);
        let others = [self.application.next_wake(), self.manager.next_timeout(), self.race_timeout()];
        timer.into_iter().chain(others.into_iter().flatten()).min()
    }

    /// Opens the paths that are wanted, after the application has taken the events.
    pub(super) fn manage_paths(&mut self, now: Instant) {
        for event in self.application.take_path_events() {
            self.manager.on_event(now, &event);
        }
        self.manager.manage(now, &mut self.connection);
    }

    pub(super) fn note_received(&mut self, payload: &[u8], cid_len: usize) {
        if let Some(amplification) = &mut self.amplification {
            amplification.on_received(payload, cid_len);
        }
    }

    /// Sends all that the connection wants sent.
    pub(super) fn transmit(
        &mut self,
        from: SocketAddr,
        batch: &mut TransmitBatch,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), String> {
        let stats = self.connection.stats();
        self.flight.before_sending(&stats);
        self.peaks.note(&stats);
        for train in 0.. {
            let Some(transmit) = self.connection.poll_transmit(outbox.now, batch) else { break };
            if train == TRAINS_MAX {
                return Err("sends without end".to_owned());
            }
            if let Some(amplification) = &mut self.amplification {
                amplification.on_sent(transmit.len as u64)?;
            }
            let stats = self.connection.stats();
            self.flight.after_sending(&stats)?;
            self.peaks.note(&stats);
            // Before the first measurement the latest value is an assumption.
            if stats.rtt_min.is_some() {
                self.rtts.note(stats.rtt_latest);
            }
            send_train(self.connection.side(), &transmit, batch.bytes(), from, outbox)?;
        }
        Ok(())
    }
}

pub(super) fn send_train(
    side: Side,
    transmit: &Transmit,
    bytes: &[u8],
    from: SocketAddr,
    outbox: &mut Outbox<'_>,
) -> Result<(), String> {
    let segment = transmit.segment_size.unwrap_or(transmit.len);
    if transmit.len == 0 || transmit.len != bytes.len() || segment == 0 {
        return Err(format!("{transmit:?} does not describe a batch of {} bytes", bytes.len()));
    }
    if segment < SMALL_SEGMENT && bytes.len() > segment * SMALL_SEGMENTS_MAX {
        return Err(format!("a train of {} bytes in datagrams of {segment}", bytes.len()));
    }
    let from = SocketAddr::new(transmit.addrs.local_ip.unwrap_or(from.ip()), from.port());
    for datagram in bytes.chunks(segment) {
        check_initial_size(side, datagram)?;
        outbox.send(from, transmit.addrs.remote, transmit.ecn, datagram);
    }
    Ok(())
}

/// A client pads each datagram with an Initial packet (RFC 9000 §14.1).
fn check_initial_size(side: Side, datagram: &[u8]) -> Result<(), String> {
    const FORM_AND_TYPE: u8 = 0xb0;
    const LONG_INITIAL: u8 = 0x80;
    let initial = datagram.first().is_some_and(|first| first & FORM_AND_TYPE == LONG_INITIAL);
    if side.is_client() && initial && datagram.len() < 1_200 {
        return Err(format!("a client's Initial packet in a datagram of {} bytes", datagram.len()));
    }
    Ok(())
}

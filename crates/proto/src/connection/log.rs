//! What is noted in the connection's log, if it has one: few calls, each one line where it is made.

use std::net::IpAddr;
use std::time::Duration;

use fulmar_base::Instant;

use super::Connection;
use super::slot::Blocked;
use crate::log::{BlockedReason, ConnectionLog, Figures, LogEvent};

impl Connection {
    /// The log, if `TransportConfig::log_entries` asks for one.
    pub fn log(&self) -> Option<&ConnectionLog> {
        self.log.as_deref()
    }

    /// The log, to move its entries elsewhere.
    pub fn log_mut(&mut self) -> Option<&mut ConnectionLog> {
        self.log.as_deref_mut()
    }

    /// Notes an event.
    #[inline]
    pub(super) fn note(&mut self, now: Instant, event: LogEvent) {
        if let Some(log) = &mut self.log {
            log.push(now, event);
        }
    }

    /// Notes which figures of the path are different. `blocked` says why no more is sent, if that is known.
    #[inline]
    pub(super) fn note_figures(&mut self, now: Instant, blocked: Option<Blocked>) {
        // Taken out for the call, so that the figures can be borrowed.
        if let Some(mut log) = self.log.take() {
            log.note(now, &self.figures(blocked));
            self.log = Some(log);
        }
    }

    fn figures(&self, blocked: Option<Blocked>) -> Figures {
        let (tuple, datagrams) = (&self.path.tuple, self.datagrams.stats());
        let (controller, rtt) = (tuple.flow.controller(), &tuple.rtt);
        let measured = |duration: Duration| if rtt.has_sample() { duration.as_nanos() as u64 } else { 0 };
        let ip = match tuple.addrs.remote.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        Figures {
            window: (controller.window(), tuple.flow.bytes_in_flight()),
            ssthresh: controller.ssthresh(),
            rates: (tuple.flow.pacing_rate(), tuple.flow.delivery_rate()),
            rtt: (measured(rtt.latest()), measured(rtt.smoothed())),
            rtt_bounds: (measured(rtt.min()), measured(rtt.variance())),
            queues: self.timestamps.as_ref().and_then(|extension| extension.delays(tuple.id)).map(|delays| {
                (delays.forward_queue.as_nanos() as u64, delays.return_queue.as_nanos() as u64)
            }),
            phase: controller.state(),
            mtu: tuple.mtu(),
            ecn: Some(tuple.ecn.state()),
            key_generation: self.handshake.one_rtt_keys().map_or(0, |keys| keys.generation()),
            peer: Some((ip.octets(), tuple.addrs.remote.port())),
            blocked: blocked.map(BlockedReason::from),
            datagrams_dropped: (datagrams.late, datagrams.dropped_outgoing),
        }
    }
}

impl From<Blocked> for BlockedReason {
    fn from(blocked: Blocked) -> Self {
        match blocked {
            Blocked::NothingToSend => Self::NothingToSend,
            Blocked::Window => Self::Window,
            Blocked::Pacer => Self::Pacer,
            Blocked::Credit => Self::Credit,
        }
    }
}

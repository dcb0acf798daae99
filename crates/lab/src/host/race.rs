//! Several attempts at one connection, each over another pair of addresses, of which the first one that succeeds stays
//! ("happy eyeballs", RFC 8305): the first path may be down.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_proto::{ClientConfig, Connection, ConnectionHandle, FourTuple, TransmitBatch, VarInt};

use super::session::{TRAINS_MAX, send_train};
use super::{Outbox, Session};

/// How long an attempt has before the next one begins beside it (RFC 8305 §5, Connection Attempt Delay).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// What further attempts are made from.
#[derive(Debug)]
pub(super) struct Race {
    config: ClientConfig,
    /// Where no attempt was made yet.
    others: VecDeque<FourTuple>,
    next: Instant,
}

/// An attempt beside that of the session: one that goes on, or one that has lost and is not forgotten yet.
#[derive(Debug)]
pub(super) struct Rival {
    pub(super) handle: ConnectionHandle,
    pub(super) connection: Connection,
    pub(super) started: Instant,
}

impl Race {
    pub(super) fn new(now: Instant, config: &ClientConfig, others: VecDeque<FourTuple>) -> Self {
        Self { config: config.clone(), others, next: now + ATTEMPT_DELAY }
    }

    /// Where to begin an attempt now, if it is time for one.
    pub(super) fn next_attempt(&mut self, now: Instant) -> Option<(ClientConfig, FourTuple)> {
        if self.next > now {
            return None;
        }
        self.next = now + ATTEMPT_DELAY;
        Some((self.config.clone(), self.others.pop_front()?))
    }

    fn next_timeout(&self) -> Option<Instant> {
        (!self.others.is_empty()).then_some(self.next)
    }
}

impl Rival {
    /// Sends all that the attempt wants sent.
    fn transmit(
        &mut self,
        from: SocketAddr,
        batch: &mut TransmitBatch,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), String> {
        for train in 0.. {
            let Some(transmit) = self.connection.poll_transmit(outbox.now, batch) else { break };
            if train == TRAINS_MAX {
                return Err("a further attempt sends without end".to_owned());
            }
            send_train(self.connection.side(), &transmit, batch.bytes(), from, outbox)?;
        }
        Ok(())
    }
}

impl Session {
    /// Ends the race when an attempt has succeeded, and goes over to another one when that of the session is over.
    pub(super) fn decide_race(&mut self, now: Instant) {
        if self.race.is_none() {
            return;
        }
        let is_complete = |connection: &Connection| connection.stats().handshake_duration.is_some();
        if !is_complete(&self.connection) {
            let complete = self.rivals.iter().position(|rival| is_complete(&rival.connection));
            let alive = || self.rivals.iter().position(|rival| !rival.connection.is_closed());
            let other = complete.or_else(|| alive().filter(|_| self.connection.is_closed()));
            if let Some(rival) = other.map(|index| &mut self.rivals[index]) {
                std::mem::swap(&mut self.connection, &mut rival.connection);
                std::mem::swap(&mut self.handle, &mut rival.handle);
                std::mem::swap(&mut self.attempted, &mut rival.started);
                self.flight = Default::default();
                let own = self.connection.paths().next().map(|path| path.addrs);
                self.manager = self.manager.anew(own);
            }
        }
        if is_complete(&self.connection) || self.connection.is_closed() {
            self.race = None;
            for rival in &mut self.rivals {
                rival.connection.close(now, VarInt::from_u32(0), Bytes::new());
            }
        }
    }

    /// When the race or one of its attempts wants to be woken.
    pub(super) fn race_timeout(&self) -> Option<Instant> {
        let rivals = self.rivals.iter().filter_map(|rival| Some(rival.connection.poll_timeout()?.0));
        rivals.chain(self.race.as_ref().and_then(Race::next_timeout)).min()
    }

    /// Lets the attempts beside that of the session go on.
    pub(super) fn service_rivals(
        &mut self,
        from: SocketAddr,
        batch: &mut TransmitBatch,
        outbox: &mut Outbox<'_>,
    ) -> Result<(), String> {
        for rival in &mut self.rivals {
            if rival.connection.poll_timeout().is_some_and(|(at, _)| at <= outbox.now) {
                rival.connection.handle_timeout(outbox.now);
            }
            rival.transmit(from, batch, outbox)?;
        }
        Ok(())
    }

    /// The connection that datagrams for this handle belong to.
    pub(super) fn connection_of(&mut self, handle: ConnectionHandle) -> &mut Connection {
        let rival = self.rivals.iter_mut().find(|rival| rival.handle == handle);
        rival.map_or(&mut self.connection, |rival| &mut rival.connection)
    }

    /// Whether the server's end of an attempt that has lost has this key.
    pub(crate) fn has_rival(&self, key: u64) -> bool {
        self.rivals.iter().any(|rival| crate::application::key_of(&rival.connection) == Some(key))
    }
}

//! What is known of a server while requests go there: its connections, and whether QUIC gets through.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use fulmar::{ConnectionError, Instant};

use super::super::alt_svc::Used;
use super::super::connection::ClientConnection;
use super::super::dial::Dial;
use super::super::network::Vantage;
use super::super::race::Winner;
use super::super::tcp::Pool;
use crate::error::Error;
use crate::shared::now;

/// For how long TCP is taken at once after QUIC has failed; twice as long after each further time, up to the maximum.
const BROKEN_FIRST: Duration = Duration::from_secs(5 * 60);
const BROKEN_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What is known of it while requests go there.
#[derive(Debug, Default)]
pub(in crate::client) struct State {
    pub(super) http3: Option<ClientConnection>,
    pub(super) tcp: Pool,
    /// Where QUIC has reached it, and which alternative service that is.
    pub(super) last: Option<(SocketAddr, Option<Arc<Used>>)>,
    /// Whether QUIC is tried beside requests over TCP.
    pub(in crate::client) is_quic_tried: bool,
    /// How often the server has named new places, or this end has moved to another network. Attempts that began before say nothing of what
    /// is now.
    pub(in crate::client) generation: u64,
    broken: Option<Broken>,
    /// Where this end was when it last connected.
    pub(super) vantage: Option<Vantage>,
    /// The connection that is being made, or the last of them, while somebody waits for it.
    pub(super) dial: Weak<Dial>,
    /// Whether the last that was made is one of HTTP/1.1, which requests do not share.
    pub(super) is_unshared: bool,
}

/// QUIC did not get through.
#[derive(Debug, Clone, Copy)]
struct Broken {
    until: Instant,
    times: u32,
}

impl State {
    pub(super) fn open_http3(&mut self) -> Option<ClientConnection> {
        self.http3.take_if(|http3| !http3.is_open());
        self.http3.clone()
    }

    pub(super) fn dial_under_way(&self) -> Option<Arc<Dial>> {
        self.dial.upgrade().filter(|dial| !dial.is_over())
    }

    /// A connection with early data has not arrived in time: nothing more goes there.
    pub(super) fn give_up_early(&mut self, early: &ClientConnection) {
        self.last = None;
        self.http3.take_if(|http3| http3.is_same(early));
    }

    pub(in crate::client) fn on_http3(&mut self, http3: ClientConnection) {
        self.broken = None;
        self.last = Some((http3.quic().remote_address(), http3.alternative().cloned()));
        self.http3 = Some(http3);
        self.is_unshared = false;
    }

    pub(super) fn on_winner(&mut self, winner: &Winner) {
        match winner {
            Winner::Quic(http3) => self.on_http3(http3.clone()),
            Winner::Tcp(connection) => {
                // One that has got through meanwhile is as good.
                self.http3.take_if(|http3| http3.is_early() || !http3.is_open());
                let shared = connection.share();
                self.is_unshared = shared.is_none();
                if let Some(shared) = shared {
                    self.tcp.keep(shared);
                }
            }
        }
    }

    /// What QUIC has failed by is no more, nor what comes of attempts that are under way.
    pub(super) fn forget_failures(&mut self) {
        (self.broken, self.is_quic_tried) = (None, false);
        self.generation += 1;
    }

    /// Whether QUIC may get through, and is not tried beside requests over TCP.
    pub(in crate::client) fn may_try_quic(&self) -> bool {
        !self.is_broken() && !self.is_quic_tried
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some_and(|broken| now() < broken.until)
    }

    /// An attempt of QUIC has failed that began when the server had named new places so often. One of which nothing was sent, because this
    /// machine has no route, or one that is too narrow, says nothing of whether QUIC gets through.
    pub(in crate::client) fn on_failure(&mut self, generation: u64, error: Option<&Error>) {
        use ConnectionError::{DatagramsTooLarge, Unsent};
        let is_unsent = matches!(error, Some(Error::Connection(Unsent(_) | DatagramsTooLarge)));
        if self.generation != generation || is_unsent {
            return;
        }
        let times = self.broken.map_or(0, |broken| broken.times);
        let pause = BROKEN_FIRST.saturating_mul(1 << times.min(16)).min(BROKEN_MAX);
        self.broken = Some(Broken { until: now() + pause, times: times + 1 });
    }
}

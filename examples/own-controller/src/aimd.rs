//! The controller: slow start until the first loss, then a steady increase, and a decrease at most once in a round trip.

use fulmar_cli::Instant;
use fulmar_cli::congestion::{AckEvent, CongestionEvent, Controller, ControllerFactory, Sent};
use serde::Deserialize;

/// What `[controllers.aimd]` of a scenario may say.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Datagrams that the window grows by in a round trip.
    increase: f64,
    /// What is left of the window after a loss.
    decrease: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { increase: 1.0, decrease: 0.5 }
    }
}

impl ControllerFactory for Config {
    fn build(&self, _now: Instant, max_datagram_size: u16) -> Box<dyn Controller> {
        let datagram = f64::from(max_datagram_size);
        // RFC 9002 §7.2: ten datagrams.
        Box::new(Aimd {
            config: self.clone(),
            datagram,
            window: 10.0 * datagram,
            threshold: f64::INFINITY,
            reacted: None,
        })
    }
}

/// The controller of a path. Sizes are in bytes.
#[derive(Debug, Clone)]
struct Aimd {
    config: Config,
    datagram: f64,
    window: f64,
    /// Below it the window doubles in each round trip.
    threshold: f64,
    /// When the window last shrank: losses of packets that left before are of the same congestion.
    reacted: Option<Instant>,
}

impl Controller for Aimd {
    fn on_sent(&mut self, _now: Instant, _sent: &Sent) {}

    fn on_ack(&mut self, _now: Instant, ack: &AckEvent<'_>) {
        // A window that was not used is not tested (RFC 9002 §7.8).
        if ack.app_limited {
            return;
        }
        let acked = ack.acked_bytes as f64;
        self.window += match self.window < self.threshold {
            true => acked,
            false => self.config.increase * self.datagram * acked / self.window,
        };
    }

    fn on_congestion(&mut self, now: Instant, event: &CongestionEvent) {
        if self.reacted.is_some_and(|reacted| event.largest_sent_time <= reacted) {
            return;
        }
        self.reacted = Some(now);
        self.window = (self.window * self.config.decrease).max(2.0 * self.datagram);
        self.threshold = self.window;
    }

    fn on_mtu(&mut self, max_datagram_size: u16) {
        self.datagram = f64::from(max_datagram_size);
    }

    fn window(&self) -> u64 {
        self.window as u64
    }

    fn state(&self) -> &'static str {
        if self.window < self.threshold { "slow start" } else { "congestion avoidance" }
    }

    fn name(&self) -> &'static str {
        "aimd"
    }
}

//! Congestion control: how much may be in flight on a tuple, and how fast it may leave.
//!
//! Owns the [`Controller`] trait and its implementations, the pacer, and the sampling of the delivery
//! rate. Knows no packet number space and no frame: events come in as sums over an ACK frame. A controller
//! of one's own implements [`Controller`] and [`ControllerFactory`]. RFC 9002 §7, RFC 9438 (CUBIC),
//! RFC 9406 (HyStart++), draft-ietf-ccwg-bbr (BBR),
//! draft-briscoe-iccrg-prague-congestion-control (Prague).

mod base_rtt;
mod bbr;
mod bbr1;
mod bridge;
mod capacity;
mod careful_resume;
mod coupled;
mod cubic;
mod delay;
mod delivery_rate;
mod events;

mod full_pipe;
mod hystart;
#[cfg(test)]
mod link_tests;
mod loss_delay;
mod loss_round;
mod new_reno;
mod pacer;
mod packet_train;
mod prague;
mod random_loss;
mod rate_watch;
mod recovery;
mod reno_window;
mod rested;
mod saved_path;
mod slow_start;
mod state;
#[cfg(test)]
mod test_link;
#[cfg(test)]
mod test_path;
mod train_probing;
mod units;
mod unvalidated_flight;

use std::fmt::Debug;
use std::sync::Arc;

use fulmar_base::Instant;

pub use self::bbr::{Bbr, BbrConfig};
pub use self::bbr1::{Bbr1, Bbr1Config};
pub use self::careful_resume::ResumeStep;
pub use self::coupled::CoupledShare;
pub use self::cubic::{Cubic, CubicConfig};
pub use self::delivery_rate::{DeliverySnapshot, RateSample};
pub use self::events::{AckEvent, Cause, CongestionEvent, LostPacket, Sent, SpuriousLoss};
pub use self::new_reno::{NewReno, NewRenoConfig};
pub use self::prague::{Prague, PragueConfig};
pub use self::rested::Rested;
pub use self::saved_path::{SAVED_PATH_LIFETIME, SavedPath};

pub(crate) use self::state::{CongestionState, PacketInFlight};
use crate::datagram::Ecn;

/// A congestion controller: one tuple's window.
///
/// The connection calls [`Controller::on_sent`] for each packet that counts in flight,
/// [`Controller::on_ack`] once for each ACK frame that acknowledges such packets, and
/// [`Controller::on_congestion`] after it when the same ACK frame, or the loss timer, shows losses. `now`
/// never goes back. Calls must not depend on anything but their arguments and earlier calls: the lab
/// replays them.
pub trait Controller: Send + Debug {
    /// The controller in fewer bytes, if it has such a form, for a while in which nothing is sent or received. What is woken from it must
    /// say and do the same as this one.
    fn rest(&self) -> Option<Rested> {
        None
    }

    /// A packet left.
    fn on_sent(&mut self, now: Instant, sent: &Sent);

    /// Packets were acknowledged.
    fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>);

    /// One packet was lost. Called for each, before the call of [`Controller::on_congestion`] that sums them
    /// up; for controllers that want to know what was in flight when that packet was sent.
    fn on_packet_lost(&mut self, now: Instant, lost: &LostPacket) {
        let _ = (now, lost);
    }

    /// Packets were lost, or the peer reports that packets met congestion.
    fn on_congestion(&mut self, now: Instant, event: &CongestionEvent);

    /// Whether the losses of the last call of [`Controller::on_congestion`] were taken for chance, and not for congestion: then
    /// they are no reason either to give up what careful resume tries.
    fn took_for_chance(&self) -> bool {
        false
    }

    /// Packets declared lost have arrived after all, or were dropped for their ECN marks. If all losses that caused the last reaction were of
    /// that kind, the controller should undo it.
    fn on_spurious_loss(&mut self, now: Instant, spurious: &SpuriousLoss) {
        let _ = (now, spurious);
    }

    /// A step of careful resume, with what an earlier connection knew of the path (RFC 9959). A controller that ignores it
    /// starts as always.
    fn on_resume(&mut self, now: Instant, step: ResumeStep) {
        let _ = (now, step);
    }

    /// Other paths of the connection grow, too: from now on, and until it is said anew, this one has this share of its growth and
    /// of its reductions. Called only where paths are coupled. A controller that ignores it is not coupled.
    fn couple(&mut self, share: CoupledShare) {
        let _ = share;
    }

    /// The largest size of a datagram changed, in bytes of UDP payload.
    fn on_mtu(&mut self, max_datagram_size: u16);

    /// The bytes that may be in flight; on a path that stops again and again some more, for a controller that begins without a
    /// [pace](Self::pacing_rate) of its own (`bridge.rs`).
    fn window(&self) -> u64;

    /// The rate at which packets should leave, in bytes per second. With `None` the pacer derives it from
    /// the window and the smoothed round-trip time.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// The bytes that may leave at once. With `None` it is ten packets after silence, as in the initial window, or what the
    /// rate gives in two milliseconds, if that is more; and while packets are in flight two packets, or what it gives in one, unless
    /// the controller [is searching](Controller::is_searching).
    fn burst(&self) -> Option<u64> {
        None
    }

    /// The bytes of a packet train that is due: they leave at once, ahead of the pace, and a pause that pays for them
    /// follows. Called after each ACK frame; a train is returned once. How it is spaced on arrival shows the capacity of
    /// the path.
    fn take_packet_train(&mut self) -> u64 {
        0
    }

    /// Whether no more may leave now than arrives, however much room the window has. So in recovery, while it is not known
    /// how much the path holds (the conservative bound of RFC 9937).
    fn conserves(&self) -> bool {
        false
    }

    /// Whether the window, or the rate, rises fast in search of what the path holds, as in slow start.
    fn is_searching(&self) -> bool {
        self.ssthresh().is_none_or(|ssthresh| self.window() < ssthresh)
    }

    /// The slow start threshold in bytes, if there is one and it was set.
    fn ssthresh(&self) -> Option<u64> {
        None
    }

    /// The ECN codepoint with which packets leave, as long as the path proves to keep it (RFC 9000 §13.4): ECT(0),
    /// or ECT(1) for a controller that reacts to marks as RFC 9331 §4 demands. `NotEct` asks for no marks; so does
    /// `Ce`, which is for routers to set.
    fn ecn_codepoint(&self) -> Ecn {
        Ecn::Ect0
    }

    /// The state in a word or two, for logs and statistics.
    fn state(&self) -> &'static str;

    /// The name of the algorithm.
    fn name(&self) -> &'static str;
}

/// Makes a controller for each new tuple.
pub trait ControllerFactory: Send + Sync + Debug {
    /// A controller in its first state. `max_datagram_size` is in bytes of UDP payload.
    fn build(&self, now: Instant, max_datagram_size: u16) -> Box<dyn Controller>;
}

/// The choice of a congestion controller.
#[derive(Debug, Clone)]
pub enum CongestionControl {
    /// NewReno as in RFC 9002 §7.
    NewReno(NewRenoConfig),
    /// CUBIC as in RFC 9438.
    Cubic(CubicConfig),
    /// BBR version 3 as in draft-ietf-ccwg-bbr.
    Bbr(BbrConfig),
    /// BBR version 1 as in draft-cardwell-iccrg-bbr-congestion-control-00.
    Bbr1(Bbr1Config),
    /// Prague as in draft-briscoe-iccrg-prague-congestion-control, for L4S networks.
    Prague(PragueConfig),
    /// A controller from outside of this crate.
    Custom(Arc<dyn ControllerFactory>),
}

impl Default for CongestionControl {
    /// BBR: it shares fairly with itself and with CUBIC, and is the one that a lossy or a long path does not starve.
    fn default() -> Self {
        Self::Bbr(BbrConfig::default())
    }
}

impl ControllerFactory for CongestionControl {
    fn build(&self, now: Instant, max_datagram_size: u16) -> Box<dyn Controller> {
        match self {
            Self::NewReno(config) => config.build(now, max_datagram_size),
            Self::Cubic(config) => config.build(now, max_datagram_size),
            Self::Bbr1(config) => config.build(now, max_datagram_size),
            Self::Bbr(config) => config.build(now, max_datagram_size),
            Self::Prague(config) => config.build(now, max_datagram_size),
            Self::Custom(factory) => factory.build(now, max_datagram_size),
        }
    }
}

/// The initial window (RFC 9002 §7.2): ten datagrams, but not more than 14,720 bytes unless two datagrams
/// are.
fn initial_window(max_datagram_size: u16) -> u64 {
    let size = u64::from(max_datagram_size);
    (10 * size).min((2 * size).max(14_720))
}

/// The smallest window (RFC 9002 §7.2, kMinimumWindow).
fn minimum_window(max_datagram_size: u16) -> u64 {
    2 * u64::from(max_datagram_size)
}

/// The slow start threshold when nothing has got through for long, from the window and the threshold before it.
///
/// A departure from RFC 9438 §4.8 and from the pseudocode of RFC 9002 (appendix B.6), which reduce it as after any loss. A path that
/// delivered all until it delivered nothing was interrupted and not overfilled: how much it holds is as well known as before.
/// Slow start from the smallest window finds out whether that still holds. A threshold that shrank with each interruption
/// would leave nothing to a path with many of them.
fn threshold_after_outage(window: u64, ssthresh: Option<u64>) -> Option<u64> {
    ssthresh.map(|ssthresh| ssthresh.max(window))
}

/// The window after a change of the datagram size: an initial window that nothing has changed yet is
/// computed anew (RFC 9002 §7.2), and no window is below the minimum.
fn window_after_mtu_change(window: u64, old_size: u16, new_size: u16) -> u64 {
    let window = if window == initial_window(old_size) { initial_window(new_size) } else { window };
    window.max(minimum_window(new_size))
}

#[cfg(test)]
mod tests {
    use super::initial_window;

    #[test]
    fn an_initial_window_is_ten_datagrams_or_some_kilobytes_or_two_datagrams() {
        let windows = [1_200, 1_472, 1_500, 7_361, 9_000].map(initial_window);
        assert_eq!(windows, [12_000, 14_720, 14_720, 14_722, 18_000]);
    }
}

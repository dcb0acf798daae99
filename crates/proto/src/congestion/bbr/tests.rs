//! The cases of draft-ietf-ccwg-bbr, "BBR Example Test Cases", over a simulated link; each test names its case.

mod losses;
mod path_changes;
mod probing;
mod sharing;
mod startup;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use super::*;
use crate::congestion::DeliverySnapshot;
use crate::congestion::test_link::{Link, SIZE, Transfer};
use crate::congestion::units::volume;
use crate::packed::Packed;

/// More than any test sends.
const PLENTY: u64 = 10_000_000;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A transfer whose controller can be looked at.
struct Path {
    transfer: Transfer,
    link: Rc<RefCell<Link>>,
    bbr: Arc<Mutex<Bbr>>,
}

impl Path {
    /// There is always something to send.
    fn new(link: Link) -> Self {
        let bbr = Arc::new(Mutex::new(Bbr::new(&BbrConfig::default(), Instant::ZERO, SIZE)));
        let link = link.shared();
        Self { transfer: Transfer::new(&Watched(bbr.clone()), &link, PLENTY), link, bbr }
    }

    /// The application has a packet each so often.
    fn with_application(link: Link, interval: Duration) -> Self {
        let mut path = Self::new(link);
        path.limit_application(interval);
        path
    }

    fn limit_application(&mut self, interval: Duration) {
        self.transfer.packets_left = 0;
        self.transfer.app_interval = Some(interval);
    }

    fn look<T>(&self, at: impl FnOnce(&Bbr) -> T) -> T {
        at(&self.bbr.lock().expect("no test panics with it"))
    }

    fn phase(&self) -> Phase {
        self.look(|bbr| bbr.phase)
    }

    /// Runs until the controller is as `done` says.
    fn until(&mut self, limit: Duration, done: impl Fn(&Bbr) -> bool) {
        let bbr = self.bbr.clone();
        let reached = self.transfer.run_until(limit, |_| done(&bbr.lock().expect("no test panics with it")));
        assert!(reached, "{:?} after {limit:?}", self.phase());
    }

    fn until_phase(&mut self, phase: Phase) {
        self.until(seconds(30), |bbr| bbr.phase == phase);
    }

    /// Runs on, and returns the share of the link's rate that was delivered meanwhile, in percent.
    fn utilization(&mut self, time: Duration) -> u64 {
        let before = self.transfer.packets_acked;
        self.transfer.run_until(time, |_| false);
        let bytes = (self.transfer.packets_acked - before) * u64::from(SIZE);
        bytes * 100 / volume(self.link.borrow().bytes_per_second, time)
    }
}

/// A controller that the test keeps a handle of, and the factory that gives it away.
#[derive(Debug, Clone)]
struct Watched(Arc<Mutex<Bbr>>);

impl Watched {
    fn with<T>(&self, act: impl FnOnce(&mut Bbr) -> T) -> T {
        act(&mut self.0.lock().expect("no test panics with it"))
    }
}

impl ControllerFactory for Watched {
    fn build(&self, _now: Instant, max_datagram_size: u16) -> Box<dyn Controller> {
        assert_eq!(max_datagram_size, SIZE);
        Box::new(self.clone())
    }
}

impl Controller for Watched {
    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        self.with(|bbr| bbr.on_sent(now, sent));
    }

    fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>) {
        self.with(|bbr| bbr.on_ack(now, ack));
    }

    fn on_packet_lost(&mut self, now: Instant, lost: &LostPacket) {
        self.with(|bbr| bbr.on_packet_lost(now, lost));
    }

    fn on_congestion(&mut self, now: Instant, event: &CongestionEvent) {
        self.with(|bbr| bbr.on_congestion(now, event));
    }

    fn on_spurious_loss(&mut self, now: Instant, spurious: &SpuriousLoss) {
        self.with(|bbr| bbr.on_spurious_loss(now, spurious));
    }

    fn on_mtu(&mut self, max_datagram_size: u16) {
        self.with(|bbr| bbr.on_mtu(max_datagram_size));
    }

    fn window(&self) -> u64 {
        self.with(|bbr| bbr.window())
    }

    fn burst(&self) -> Option<u64> {
        self.with(|bbr| bbr.burst())
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.with(|bbr| bbr.pacing_rate())
    }

    fn state(&self) -> &'static str {
        self.with(|bbr| bbr.state())
    }

    fn name(&self) -> &'static str {
        self.with(|bbr| bbr.name())
    }
}

#[test]
fn the_model_is_packed_into_few_bytes_and_nothing_is_lost() {
    // With losses, jitter and stops there is something in every part of it.
    let lossy = Link { loss: Some(50), jitter: Some(Duration::from_millis(3)), ..Link::new(20, 20, 100) };
    for link in [Link::new(10, 20, 200), Link::new(100, 1, 50), lossy] {
        let mut path = Path::new(link);
        for step in 0..400 {
            path.transfer.run_until(Duration::from_millis(step % 90), |_| false);
            path.look(|bbr| {
                let mut bytes = Vec::new();
                bbr.pack(&mut bytes);
                let mut input = &bytes[..];
                assert_eq!(format!("{:?}", Bbr::unpack(&mut input)), format!("{bbr:?}"));
                assert!(input.is_empty());
            });
        }
    }
    let bbr = Bbr::new(&BbrConfig::default(), Instant::from_millis(5), SIZE);
    let mut bytes = Vec::new();
    bbr.pack(&mut bytes);
    assert!(bytes.len() < size_of::<Bbr>() / 4, "{} of {} bytes", bytes.len(), size_of::<Bbr>());
}

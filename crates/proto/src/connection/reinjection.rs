//! What lies on a path that is slow or silent is said again on another one.
//!
//! Frames are not bound to the path that they have left on, and their owners know how to say them again. Each packet is
//! repeated once at most, so that no more than a window of a path is sent twice.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::PathId;

use super::delivery::{Fate, Owners};
use super::path_choice::delay;
use super::recovery::Recovery;
use super::spare_capacity::needs_copy;
use super::transmit::Sender;
use crate::ids::SpaceId;
use crate::packet::{SentFrame, SentPacket};
use crate::path::{Multipath, Path, Paths, Tuple};
use crate::scheduler::{loss_chance, until_resent};

/// Whether a path may be expected to carry what another one has not: it has proven itself, and answers.
pub(super) fn works(path: &Path) -> bool {
    path.tuple.validated && path.pto.backoff.count() == 0
}

/// Whether there is a path beside this one that works.
pub(super) fn has_other_that_works(paths: &Paths, id: PathId) -> bool {
    paths.iter().any(|path| path.id != id && works(path))
}

impl Recovery<'_> {
    /// A path has fallen silent while others work: all that is under way on it is said again at once, and whichever copy arrives
    /// first counts. The path goes on being probed.
    pub(super) fn repeat_elsewhere(&mut self, id: PathId) {
        let Some(path) = self.owners.paths.get_mut(id) else { return };
        let frames: Vec<SentFrame> =
            path.space.take_for_probe().flat_map(|packet| packet.frames.iter().cloned()).collect();
        self.owners.deliver(SpaceId::Data(id), &frames, Fate::Probed);
    }
}

/// Queues frames that are under way on a path once more, for the path that sends: that they arrive sooner, or at all, holds for it alone.
pub(super) fn repeat_here(sender: &mut Sender<'_>, under_way_on: PathId, frames: &[SentFrame]) {
    let here = sender.parts.path().id;
    Owners::of(&mut sender.parts).deliver(SpaceId::Data(under_way_on), frames, Fate::Probed);
    if let Some(multipath) = &mut sender.parts.paths.multipath {
        multipath.repeats_on = Some(here);
    }
}

/// How long so many bytes are on the wire of a tuple, at the rate that its window and its pacer allow.
fn wire_time(tuple: &Tuple, bytes: u64) -> Duration {
    let window = tuple.congestion.window() as f64;
    let rate = (window / tuple.rtt.smoothed().as_secs_f64()).min(tuple.congestion.pacing_rate() as f64);
    Duration::from_secs_f64(bytes as f64 / rate.max(1.0))
}

/// The path that copies would leave on.
struct Here {
    now: Instant,
    /// How long a packet is on its way to the peer, and how far that varies.
    delay: Duration,
    varies: Duration,
    /// A full packet: its bytes, and their time on the wire.
    packet: u64,
    packet_time: Duration,
    /// When the newest packet was sent that the peer has answered.
    answered: Instant,
    repeats_losses: bool,
}

/// The path on which something is under way.
struct There {
    /// After what time it is acknowledged, and when it should have been at the latest.
    answered: Duration,
    overdue: Duration,
    /// The chance that a packet is lost, and after what time it would arrive then.
    chance: f64,
    again: Duration,
}

impl Here {
    fn new(now: Instant, path: &Path, multipath: Option<&Multipath>, repeats_losses: bool) -> Self {
        let packet = u64::from(path.tuple.mtu());
        Self {
            now,
            delay: delay(path, multipath),
            varies: path.tuple.rtt.variance(),
            packet,
            packet_time: wire_time(&path.tuple, packet),
            answered: path.tuple.congestion.newest_acked(),
            repeats_losses,
        }
    }

    fn other(&self, path: &Path, multipath: Option<&Multipath>) -> There {
        let rtt = &path.tuple.rtt;
        let answered = rtt.smoothed().max(rtt.latest());
        let (delivered, lost) = path.tuple.congestion.totals();
        There {
            answered,
            overdue: rtt.pto_base(),
            chance: if self.repeats_losses { loss_chance(delivered, lost) } else { 0.0 },
            again: until_resent(answered) + self.delay.min(delay(path, multipath)),
        }
    }

    /// When a copy would arrive that stands behind so many bytes.
    fn arrival(&self, before: u64) -> Instant {
        self.now + self.delay + self.packet_time.mul_f64(before as f64 / self.packet as f64)
    }

    /// Whether a copy is there before what was sent then is acknowledged, or that is overdue.
    fn is_quicker(&self, there: &There, sent: Instant, before: u64) -> bool {
        sent + there.answered > self.arrival(before) + self.varies
            || sent + there.overdue <= self.now && sent < self.answered
    }

    /// Whether a copy saves more time, by the chance that what was sent then is lost, than it takes.
    fn pays(&self, there: &There, sent: Instant, before: u64) -> bool {
        let saved = (sent + there.again).saturating_since(self.arrival(before));
        saved.mul_f64(there.chance) > self.packet_time
    }
}

/// Queues what is under way on other paths, if a copy from here arrives before an acknowledgement could tell that it was of no
/// use: on slower paths almost all of it, also for what they lose. What should have been acknowledged by now is late, and no
/// acknowledgement is to be waited for: where a queue has filled meanwhile, the path is slower than it was known to be. That counts only for
/// what left before something that this path has had acknowledged, as all paths may have fallen silent. It is a writer of spare
/// capacity, and asked when nothing else may be sent: at the end of a transfer, and where the head of a stream is missing and flow
/// control or the buffer lets nothing more follow. What the window has room for is the budget, and each copy stands behind those before it.
///
/// What another path may lose is repeated, too, where a copy is there so much sooner than what would be sent again after the loss that by
/// the chance of one it saves more time than it takes on the wire: the rule for copies on one path (`spare_capacity.rs`). So does the end of a
/// transfer not wait for a narrow path that overflows, although it is a quick one.
pub(super) fn repeat_what_is_slow(sender: &mut Sender<'_>) {
    if sender.parts.paths.is_single() || !works(sender.parts.path()) {
        return;
    }
    let (id, room) = (sender.parts.path().id, sender.tuple().congestion.window_left());
    let multipath = sender.parts.paths.multipath.as_deref();
    let here = Here::new(sender.now, sender.parts.path(), multipath, sender.config.preemptive_repeat);
    let mut frames = Vec::new();
    let mut last = None;
    while let Some(other) = sender.parts.paths.next_id(last) {
        last = Some(other);
        let multipath = sender.parts.paths.multipath.as_deref();
        let path = sender.parts.paths.get(other).filter(|_| other != id);
        let Some(there) = path.map(|path| here.other(path, multipath)) else { continue };
        let Some(path) = sender.parts.paths.get_mut(other) else { continue };
        let fec = sender.parts.extensions.fec_sender();
        let wanted = |packet: &SentPacket, before| {
            let sent = packet.time_sent;
            here.is_quicker(&there, sent, before)
                || here.pays(&there, sent, before) && needs_copy(packet, fec.as_deref())
        };
        path.space.take_slow(room, wanted, &mut frames);
        if !frames.is_empty() {
            return repeat_here(sender, other, &frames);
        }
    }
}

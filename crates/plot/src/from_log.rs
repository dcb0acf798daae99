//! The log of a connection as the events of its timelines.

use std::collections::VecDeque;

use fulmar_base::Instant;
use fulmar_proto::log::{ConnectionState, LogEntry, LogEvent};
use fulmar_proto::{PathId, SpaceId};

use crate::timeline::{SentFrameInfo, SpaceKey, Timeline};
use crate::timelines::Timelines;

/// The type of a DATAGRAM frame (RFC 9221 §4).
const DATAGRAM: std::ops::RangeInclusive<u64> = 0x30..=0x31;

impl Timelines {
    /// The courses of an end of a connection and of its paths, by its log.
    pub fn from_log(entries: &[LogEntry]) -> Self {
        let mut reader = Reader::default();
        for entry in entries {
            reader.take(entry);
        }
        reader.timelines
    }
}

/// The frames of the packet that is not complete yet.
#[derive(Default)]
struct Reader {
    timelines: Timelines,
    frames: Vec<SentFrameInfo>,
    /// Those of packets of a datagram that is not complete yet.
    ended: VecDeque<Vec<SentFrameInfo>>,
    acked: Vec<(PathId, u64, u64)>,
}

impl Reader {
    fn take(&mut self, entry: &LogEntry) {
        let at = entry.at;
        let timelines = &mut self.timelines;
        match entry.event {
            LogEvent::Stream { id, offset, len, .. } => {
                self.frames.push(SentFrameInfo::Stream { id: id.as_u64(), offset, len: len.into() });
            }
            LogEvent::Frame { kind, value } if DATAGRAM.contains(&kind.0) => {
                self.frames.push(SentFrameInfo::Datagram(value));
            }
            LogEvent::FramesEnd => self.ended.push_back(std::mem::take(&mut self.frames)),
            LogEvent::AckRange { path, first, last } => self.acked.push((path, first, last)),
            LogEvent::PacketSent { space, number, size, ack_eliciting, .. } => {
                let frames = self.ended.pop_front().unwrap_or_else(|| std::mem::take(&mut self.frames));
                timelines.packet_sent(at, (key(space), number), size.into(), ack_eliciting, &frames);
                self.acked.clear();
            }
            LogEvent::PacketReceived { space, .. } => {
                for (path, first, last) in &self.acked {
                    // An acknowledgement may come over another path.
                    let space = if matches!(space, SpaceId::Data(_)) { SpaceId::Data(*path) } else { space };
                    timelines.packets_acked(at, key(space), *first, *last);
                }
                self.frames.clear();
                self.acked.clear();
            }
            LogEvent::PacketLost { space, number, mtu_probe: true, .. } => {
                timelines.probe_lost(key(space), number);
            }
            LogEvent::PacketLost { space, number, .. } => timelines.packet_lost(at, key(space), number),
            LogEvent::ProbeTimeout { space, .. } => {
                if let Some(timeline) = timelines.path(key(space).1) {
                    timeline.probe_timeout(at);
                }
            }
            LogEvent::State(ConnectionState::Confirmed) => {
                timelines.space_discarded(key(SpaceId::Initial));
                timelines.space_discarded(key(SpaceId::Handshake));
            }
            ref figure => take_figure(timelines, at, figure),
        }
    }
}

fn take_figure(timelines: &mut Timelines, at: Instant, event: &LogEvent) {
    let mut on = |path: PathId, take: &dyn Fn(&mut Timeline)| {
        if let Some(timeline) = timelines.path(path.0) {
            take(timeline);
        }
    };
    match *event {
        LogEvent::Window { path, window, in_flight } => on(path, &|timeline| {
            timeline.window(at, window);
            timeline.in_flight(at, in_flight);
        }),
        LogEvent::SlowStartThreshold { path, bytes: Some(threshold) } => {
            on(path, &|timeline| timeline.ssthresh(at, threshold));
        }
        LogEvent::Rates { path, pacing, delivery } => on(path, &|timeline| {
            timeline.pacing_rate(at, pacing);
            if delivery > 0 {
                timeline.delivery_rate(at, delivery);
            }
        }),
        LogEvent::Rtt { path, latest, smoothed } => on(path, &|timeline| {
            timeline.rtt(at, latest);
            timeline.rtt_smoothed(at, smoothed);
        }),
        LogEvent::RttBounds { path, min, .. } => on(path, &|timeline| timeline.rtt_min(at, min)),
        LogEvent::Phase { path, name } => on(path, &|timeline| timeline.phase(at, name)),
        LogEvent::Mtu { path, bytes } => on(path, &|timeline| timeline.mtu(at, bytes.into())),
        _ => {}
    }
}

fn key(space: SpaceId) -> SpaceKey {
    match space {
        SpaceId::Initial => (0, 0),
        SpaceId::Handshake => (1, 0),
        SpaceId::Data(path) => (2, path.0),
    }
}

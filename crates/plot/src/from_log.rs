//! The log of a connection as the events of a timeline.

use std::collections::VecDeque;

use fulmar_base::Instant;
use fulmar_proto::SpaceId;
use fulmar_proto::log::{ConnectionState, LogEntry, LogEvent};

use crate::timeline::{SentFrameInfo, SpaceKey, Timeline};

/// The type of a DATAGRAM frame (RFC 9221 §4).
const DATAGRAM: std::ops::RangeInclusive<u64> = 0x30..=0x31;

impl Timeline {
    /// The course of an end of a connection, by its log.
    pub fn from_log(entries: &[LogEntry]) -> Self {
        let mut reader = Reader::default();
        for entry in entries {
            reader.take(entry);
        }
        reader.timeline
    }
}

/// The frames of the packet that is not complete yet.
#[derive(Default)]
struct Reader {
    timeline: Timeline,
    frames: Vec<SentFrameInfo>,
    /// Those of packets of a datagram that is not complete yet.
    ended: VecDeque<Vec<SentFrameInfo>>,
    acked: Vec<(u64, u64)>,
}

impl Reader {
    fn take(&mut self, entry: &LogEntry) {
        let at = entry.at;
        let timeline = &mut self.timeline;
        match entry.event {
            LogEvent::Stream { id, offset, len, .. } => {
                self.frames.push(SentFrameInfo::Stream { id: id.as_u64(), offset, len: len.into() });
            }
            LogEvent::Frame { kind, value } if DATAGRAM.contains(&kind.0) => {
                self.frames.push(SentFrameInfo::Datagram(value));
            }
            LogEvent::FramesEnd => self.ended.push_back(std::mem::take(&mut self.frames)),
            LogEvent::AckRange { first, last } => self.acked.push((first, last)),
            LogEvent::PacketSent { space, number, size, ack_eliciting, .. } => {
                let frames = self.ended.pop_front().unwrap_or_else(|| std::mem::take(&mut self.frames));
                timeline.packet_sent(at, (key(space), number), size.into(), ack_eliciting, &frames);
                self.acked.clear();
            }
            LogEvent::PacketReceived { space, .. } => {
                for (first, last) in &self.acked {
                    timeline.packets_acked(at, key(space), *first, *last);
                }
                self.frames.clear();
                self.acked.clear();
            }
            LogEvent::PacketLost { space, number, mtu_probe: true, .. } => {
                timeline.probe_lost(key(space), number);
            }
            LogEvent::PacketLost { space, number, .. } => timeline.packet_lost(at, key(space), number),
            LogEvent::ProbeTimeout { .. } => timeline.probe_timeout(at),
            LogEvent::State(ConnectionState::Confirmed) => {
                timeline.space_discarded(key(SpaceId::Initial));
                timeline.space_discarded(key(SpaceId::Handshake));
            }
            ref figure => take_figure(timeline, at, figure),
        }
    }
}

fn take_figure(timeline: &mut Timeline, at: Instant, event: &LogEvent) {
    match *event {
        LogEvent::Window { window, in_flight } => {
            timeline.window(at, window);
            timeline.in_flight(at, in_flight);
        }
        LogEvent::SlowStartThreshold(Some(threshold)) => timeline.ssthresh(at, threshold),
        LogEvent::Rates { pacing, delivery } => {
            timeline.pacing_rate(at, pacing);
            if delivery > 0 {
                timeline.delivery_rate(at, delivery);
            }
        }
        LogEvent::Rtt { latest, smoothed } => {
            timeline.rtt(at, latest);
            timeline.rtt_smoothed(at, smoothed);
        }
        LogEvent::RttBounds { min, .. } => timeline.rtt_min(at, min),
        LogEvent::Phase(name) => timeline.phase(at, name),
        LogEvent::Mtu(mtu) => timeline.mtu(at, mtu.into()),
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

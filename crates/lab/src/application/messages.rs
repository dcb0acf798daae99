//! Unreliable datagrams.

use std::time::Duration;

use bytes::Bytes;
use fulmar_base::{Instant, RangeSet, Rng};
use fulmar_proto::{Connection, DatagramOptions, DroppedDatagram, SendDatagramError, Side};

use super::{Pace, pause};
use crate::Workload;
use crate::content::Content;
use crate::workload::draw;

/// Each message begins with its index, as a big-endian number.
const INDEX_LEN: usize = 8;

/// How long a side that sent its messages at a steady pace waits for the last one to arrive before it is done.
const LINGER: Duration = Duration::from_secs(5);

/// The unreliable datagrams that one side sends and receives. They may get lost, but none may arrive changed, or
/// twice if the peer sends each over one path.
#[derive(Debug)]
pub struct Messages {
    side: Side,
    to_send: u32,
    /// The last message of a paced stream may be under way.
    lingers: bool,
    sent: u64,
    /// Those that the connection took and never sent.
    dropped: RangeSet,
    received: RangeSet,
    received_count: u64,
    /// Whether the peer may have sent one over several paths.
    may_repeat: bool,
    times_sent: Vec<Instant>,
    times_received: Vec<(u64, Instant)>,
}

impl Messages {
    pub(super) fn new(side: Side, workload: &Workload) -> Self {
        Self {
            side,
            to_send: workload.datagrams,
            lingers: false,
            sent: 0,
            dropped: RangeSet::new(),
            received: RangeSet::new(),
            received_count: 0,
            may_repeat: workload.datagrams_repeat,
            times_sent: Vec::new(),
            times_received: Vec::new(),
        }
    }

    /// Messages that the connection has taken.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Messages that arrived.
    pub fn received(&self) -> u64 {
        self.received_count
    }

    /// The index after that of the last message that arrived, in the order of sending.
    pub fn received_end(&self) -> u64 {
        self.received.max().map_or(0, |last| last + 1)
    }

    /// How many messages the connection took and never sent, as it says.
    pub fn dropped(&self) -> u64 {
        self.dropped.iter().map(|range| range.end - range.start).sum()
    }

    /// A message that the peer has received although this side was told that it was never sent.
    pub fn dropped_and_received(&self, peer: &Self) -> Option<u64> {
        self.dropped.iter().flatten().find(|index| peer.received.contains(*index))
    }

    /// When the connection took each message, by index.
    pub fn times_sent(&self) -> &[Instant] {
        &self.times_sent
    }

    /// The indices of the messages that arrived, and when, in the order of arrival.
    pub fn times_received(&self) -> &[(u64, Instant)] {
        &self.times_received
    }

    pub(super) fn all_sent(&self) -> bool {
        self.to_send == 0 && !self.lingers
    }

    /// Sends what is left, until the connection has no room or it is time to rest.
    pub(super) fn send(
        &mut self,
        now: Instant,
        key: u64,
        connection: &mut Connection,
        workload: &Workload,
        rng: &mut Rng,
    ) -> Result<Pace, String> {
        self.lingers = false;
        while self.to_send > 0 {
            let room = connection.max_datagram_size().unwrap_or(0);
            if room < INDEX_LEN {
                // The peer takes none.
                self.to_send = 0;
                break;
            }
            let len = (draw(&workload.datagram_size, rng) as usize).clamp(INDEX_LEN, room);
            let mut message = self.sent.to_be_bytes().to_vec();
            message.resize(len, 0);
            Content::of_datagram(key, self.sent, self.side).fill(0, &mut message[INDEX_LEN..]);
            let urgent = workload.datagram_urgent > 0.0 && rng.chance(workload.datagram_urgent);
            let options = DatagramOptions {
                priority: urgent.into(),
                deadline: workload.datagram_lifetime.map(|lifetime| now + lifetime),
                makes_room: rng.chance(0.2),
                protection: None,
            };
            match connection.send_datagram_with(Bytes::from(message), &options) {
                Ok(id) if id.0 != self.sent => {
                    return Err(format!("datagram {} is called {id:?}", self.sent));
                }
                Ok(_) => {
                    self.to_send -= 1;
                    self.sent += 1;
                    self.times_sent.push(now);
                }
                Err(SendDatagramError::Blocked(_)) => return Ok(Pace::Wait),
                Err(error) => return Err(format!("a datagram of {len} bytes, {room} allowed: {error}")),
            }
            if let Some(interval) = workload.datagram_interval {
                self.lingers = self.to_send == 0;
                return Ok(Pace::Rest(if self.lingers { LINGER } else { interval }));
            }
            if let Some(pause) = pause(workload, rng) {
                return Ok(Pace::Rest(pause));
            }
        }
        Ok(Pace::Wait)
    }

    /// Hears which messages were never sent.
    pub(super) fn note_dropped(&mut self, connection: &mut Connection) -> Result<(), String> {
        while let Some(DroppedDatagram { id, .. }) = connection.dropped_datagram() {
            if id.0 >= self.sent || !self.dropped.insert_one(id.0) {
                return Err(format!("{id:?} was dropped twice, or never sent"));
            }
        }
        Ok(())
    }

    /// Reads what has arrived.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        key: Option<u64>,
        connection: &mut Connection,
    ) -> Result<(), String> {
        while let Some(message) = connection.read_datagram() {
            let key = key.ok_or("a datagram before the handshake is complete")?;
            let (index, content) = message.split_first_chunk::<INDEX_LEN>().ok_or("a datagram was cut")?;
            let index = u64::from_be_bytes(*index);
            let expected = Content::of_datagram(key, index, !self.side);
            if expected.first_difference(0, content).is_some() {
                return Err(format!("datagram {index} was changed on the way"));
            }
            if !self.received.insert_one(index) {
                if self.may_repeat {
                    continue;
                }
                return Err(format!("datagram {index} arrived twice"));
            }
            self.received_count += 1;
            self.times_received.push((index, now));
        }
        Ok(())
    }
}

//! A stream of frames at a steady pace, as of audio or video.

use std::collections::BTreeMap;

use fulmar_base::Instant;
use fulmar_proto::{Connection, Dir, StreamId};

use super::{Pace, Receiving, Sending};
use crate::MediaStream;

/// The frames that one side sends on a stream of their own, and when each of them came into being.
#[derive(Debug)]
pub struct Frames {
    media: MediaStream,
    stream: Option<StreamId>,
    /// The offset behind each frame, and its time.
    made: Vec<(u64, Instant)>,
}

impl Frames {
    pub(super) fn new(media: MediaStream) -> Self {
        Self { media, stream: None, made: Vec::new() }
    }

    /// The stream, if it was opened.
    pub fn stream(&self) -> Option<StreamId> {
        self.stream
    }

    /// From the time at which each frame came into being until the peer's application had read its last byte.
    /// Frames that were not read are left out.
    pub fn delays(&self, receiving: &BTreeMap<StreamId, Receiving>) -> Vec<std::time::Duration> {
        let Some(receiving) = self.stream.and_then(|id| receiving.get(&id)) else { return Vec::new() };
        self.made.iter().filter_map(|(end, made)| Some(receiving.read_at(*end)? - *made)).collect()
    }

    pub(super) fn all_sent(&self) -> bool {
        self.made.len() as u64 == u64::from(self.media.frames)
    }

    /// Makes the next frame, which waits in `sending` until the connection takes it. There are no frames before the peer
    /// allows a stream for them.
    pub(super) fn send(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        sending: &mut BTreeMap<StreamId, Sending>,
    ) -> Result<Pace, String> {
        if self.all_sent() {
            return Ok(Pace::Wait);
        }
        let Some(id) = self.open(connection, sending)? else {
            return Ok(Pace::Rest(self.media.interval));
        };
        let sending = sending.get_mut(&id).ok_or("a stream of frames is not known")?;
        let end = sending.grow(self.media.frame_bytes(self.made.len() as u32));
        self.made.push((end, now));
        Ok(if self.all_sent() { Pace::Wait } else { Pace::Rest(self.media.interval) })
    }

    /// The stream, which is opened if it is not yet and the peer allows.
    fn open(
        &mut self,
        connection: &mut Connection,
        sending: &mut BTreeMap<StreamId, Sending>,
    ) -> Result<Option<StreamId>, String> {
        if self.stream.is_some() {
            return Ok(self.stream);
        }
        let Some(id) = connection.streams().open(Dir::Uni) else { return Ok(None) };
        connection
            .streams()
            .send(id)
            .set_priority(self.media.priority)
            .map_err(|error| format!("stream {id} gets no priority: {error}"))?;
        sending.insert(id, Sending::growing(id, self.media.total_bytes()));
        self.stream = Some(id);
        Ok(self.stream)
    }
}

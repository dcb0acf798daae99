//! When the application is told of something: that there is data to read, or room to write.

use fulmar_wire::StreamId;

use super::priority::{HeldByLevel, Priority};
use super::send::SendHalf;
use super::{StreamEvent, Streams};

impl Streams {
    /// The next event for the application.
    pub(crate) fn poll_event(&mut self) -> Option<StreamEvent> {
        let event = self.events.poll()?;
        match event {
            StreamEvent::Readable(id) => {
                if let Some(stream) = self.table.get_mut(id) {
                    stream.queued_readable = false;
                }
            }
            StreamEvent::Writable(id) => {
                if let Some(stream) = self.table.get_mut(id) {
                    stream.queued_writable = false;
                }
            }
            StreamEvent::Opened { .. }
            | StreamEvent::Available { .. }
            | StreamEvent::Finished(_)
            | StreamEvent::Stopped { .. } => {}
        }
        Some(event)
    }

    pub(super) fn push_readable(&mut self, id: StreamId) {
        if let Some(stream) = self.table.get_mut(id)
            && !std::mem::replace(&mut stream.queued_readable, true)
        {
            self.events.push(StreamEvent::Readable(id));
        }
    }

    /// Tells the application that it can write to a stream again, if it waits and that is so. What the levels hold is found out
    /// if it matters, and stays true for other writers that are woken before anything is written or released.
    pub(super) fn wake_writer(&mut self, id: StreamId, levels: &mut Option<HeldByLevel>) {
        let Some(stream) = self.table.get_mut(id) else { return };
        let Some(send) = stream.send.as_mut().filter(|send| send.write_blocked) else { return };
        if send.credit_room() == 0 || !send.has_unsent_room() {
            return;
        }
        let (held, priority) = (send.held(), send.priority());
        let room = match self.has_peers_only(priority) {
            true => self.budget.room(held),
            false => {
                let levels = levels.get_or_insert_with(|| self.held_by_level());
                self.budget.room_beside(held, levels.at_least(priority.level()))
            }
        };
        if room < self.budget.wake_room() {
            // Other streams of the connection may be the ones that make room.
            if let Some(send) = self.table.send_mut(id)
                && !std::mem::replace(&mut send.queued_waiting, true)
            {
                self.budget.wait(id);
            }
            return;
        }
        let Some(stream) = self.table.get_mut(id) else { return };
        let Some(send) = &mut stream.send else { return };
        send.write_blocked = false;
        if !std::mem::replace(&mut stream.queued_writable, true) {
            self.events.push(StreamEvent::Writable(id));
        }
    }

    /// What a stream that holds `held` bytes may add to what is buffered. What is buffered on streams of lower priority takes nothing
    /// from it: it would not leave before.
    pub(super) fn budget_room(&mut self, held: u64, priority: Priority) -> u64 {
        if self.has_peers_only(priority) {
            return self.budget.room(held);
        }
        let sending = self.table.iter_mut().filter_map(|(_, stream)| stream.send.as_ref());
        let peers = sending.filter(|send| send.priority().level() >= priority.level());
        let peers_held = peers.map(SendHalf::held).sum();
        self.budget.room_beside(held, peers_held)
    }

    /// Whether a stream shares the buffer with all others, as none has another priority, or as it makes no difference.
    fn has_peers_only(&self, priority: Priority) -> bool {
        let has_ranks = priority != Priority::default() || self.fresh.has_ranks();
        !has_ranks || !self.budget.is_scarce()
    }

    fn held_by_level(&mut self) -> HeldByLevel {
        let sending = self.table.iter_mut().filter_map(|(_, stream)| stream.send.as_ref());
        sending.map(|send| (send.priority().level(), send.held())).collect()
    }

    /// Wakes the writers that wait for room in the buffer of all streams, in the order in which they came.
    pub(super) fn wake_waiting(&mut self, levels: &mut Option<HeldByLevel>) {
        if !self.budget.should_wake() {
            return;
        }
        for id in self.budget.take_waiting() {
            if let Some(send) = self.table.send_mut(id) {
                send.queued_waiting = false;
            }
            self.wake_writer(id, levels);
        }
    }

    /// Bytes of a stream need no longer be held.
    pub(super) fn release(&mut self, id: StreamId, bytes: u64) {
        if bytes > 0 {
            self.budget.release(bytes);
            let mut levels = None;
            self.wake_writer(id, &mut levels);
            self.wake_waiting(&mut levels);
        }
    }
}

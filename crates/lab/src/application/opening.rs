//! Opening streams and accepting them.

use fulmar_base::Instant;
use fulmar_proto::{Connection, Dir, StreamId};

use super::tasks::{Pace, Task};
use super::{Application, Receiving, Sending, pause};
use crate::workload::draw;

impl Application {
    /// Opens the next stream of the workload.
    pub(super) fn open(&mut self, now: Instant, connection: &mut Connection) -> Result<Pace, String> {
        while self.streams_to_open > 0 && !self.is_in_sequence() {
            let bidirectional = self.workload.bidirectional;
            let drawn = if self.rng.chance(bidirectional) { Dir::Bi } else { Dir::Uni };
            // What was refused is tried again, not something else.
            let dir = self.waits_to_open.take().unwrap_or(drawn);
            let Some(id) = connection.streams().open(dir) else {
                self.waits_to_open = Some(dir);
                return Ok(Pace::Wait);
            };
            self.streams_to_open -= 1;
            self.last_opened = Some(id);
            let size = draw(&self.workload.size, &mut self.rng);
            self.start_sending(now, id, size)?;
            if dir == Dir::Bi {
                self.start_receiving(id)?;
            }
            if let Some(pause) = pause(&self.workload, &mut self.rng) {
                return Ok(Pace::Rest(pause));
            }
        }
        Ok(Pace::Wait)
    }

    /// Whether the next stream has to wait for the end of the one before it.
    fn is_in_sequence(&self) -> bool {
        let Some(last) = self.last_opened.filter(|_| self.workload.in_sequence) else { return false };
        self.sending.get(&last).is_some_and(|sending| !sending.is_over())
            || self.receiving.get(&last).is_some_and(|receiving| !receiving.is_over())
    }

    /// Opens the next stream if the one before it has just ended.
    pub(super) fn continue_sequence(&mut self, now: Instant) {
        if self.workload.in_sequence && self.streams_to_open > 0 && !self.is_in_sequence() {
            self.plan(now, Task::Open);
        }
    }

    pub(super) fn accept(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        dir: Dir,
    ) -> Result<(), String> {
        while let Some(id) = connection.streams().accept(dir) {
            if id.dir() != dir || id.initiator() == self.side {
                return Err(format!("accepted stream {id}, which the peer cannot have opened"));
            }
            self.start_receiving(id)?;
            if dir == Dir::Bi {
                let size = draw(&self.workload.reply, &mut self.rng);
                self.start_sending(now, id, size)?;
            }
        }
        Ok(())
    }

    fn start_sending(&mut self, now: Instant, id: StreamId, size: u64) -> Result<(), String> {
        let sending = Sending::new(id, size, &self.workload, &mut self.rng);
        if self.sending.insert(id, sending).is_some() {
            return Err(format!("stream {id} was opened twice"));
        }
        self.plan(now, Task::Write(id));
        Ok(())
    }

    fn start_receiving(&mut self, id: StreamId) -> Result<(), String> {
        let receiving = Receiving::new(id, &self.workload, &mut self.rng);
        match self.receiving.insert(id, receiving) {
            None => Ok(()),
            Some(_) => Err(format!("stream {id} was opened twice")),
        }
    }
}

//! The application on one side of a connection: it follows a [`Workload`] and keeps a record of what it did and
//! saw, which the checkers compare with the peer's.
//!
//! It acts on events alone and never looks whether something might have become possible meanwhile: an event that
//! the connection forgets is a stream that hangs.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | [`Application`]: events |
//! | `opening` | opening streams and accepting them |
//! | `tasks` | what is to be done, and when |
//! | `reads` | when something was read, and how much |
//! | `sending` | one direction of a stream, at its source |
//! | `receiving` | one direction of a stream, at its end |
//! | `messages` | unreliable datagrams |
//! | `frames` | streams of frames at a steady pace |

mod frames;
mod messages;
mod opening;
mod reads;
mod receiving;
mod sending;
mod tasks;

use std::collections::BTreeMap;
use std::time::Duration;

use fulmar_base::{Instant, Rng};
use fulmar_proto::{
    Connection, ConnectionError, Dir, EarlyData, Event, PathEvent, Side, StreamEvent, StreamId,
};

pub use self::frames::Frames;
pub use self::messages::Messages;
pub use self::receiving::{Receiving, ReceivingEnd};
pub use self::sending::{Sending, SendingEnd, SendingFate};

use self::reads::Reads;
use self::tasks::{Pace, Task, Tasks};
use crate::Workload;
use crate::content::Content;
use crate::workload::draw;

/// What the secret that both ends derive from the handshake is asked for.
const EXPORTER_LABEL: &[u8] = b"EXPORTER-fulmar-lab";

/// Application error codes are below this bound.
const CODES: u64 = 1 << 20;

/// The application on one side of a connection.
#[derive(Debug)]
pub struct Application {
    side: Side,
    workload: Workload,
    rng: Rng,
    /// Derived from the handshake, so both ends of a connection, and nobody else, have the same.
    key: Option<u64>,
    /// What the content is made of instead, where it has to be known before the handshake is complete.
    early_key: Option<u64>,
    confirmed: bool,
    lost: Option<ConnectionError>,
    streams_to_open: u32,
    /// A stream is to be opened as soon as the peer allows.
    waits_to_open: Option<Dir>,
    /// The stream that this side opened last.
    last_opened: Option<StreamId>,
    reads: Reads,
    sending: BTreeMap<StreamId, Sending>,
    receiving: BTreeMap<StreamId, Receiving>,
    messages: Messages,
    /// One for each stream of frames of the workload.
    frames: Vec<Frames>,
    tasks: Tasks,
    /// What happened to paths, for who manages them.
    path_events: Vec<PathEvent>,
}

impl Application {
    /// An application that begins when its connection is established.
    pub(crate) fn new(side: Side, workload: Workload, rng: Rng) -> Self {
        Self {
            side,
            streams_to_open: workload.streams,
            messages: Messages::new(side, &workload),
            frames: workload.media.iter().copied().map(Frames::new).collect(),
            workload,
            rng,
            key: None,
            early_key: None,
            confirmed: false,
            lost: None,
            waits_to_open: None,
            last_opened: None,
            reads: Reads::default(),
            sending: BTreeMap::new(),
            receiving: BTreeMap::new(),
            tasks: Tasks::default(),
            path_events: Vec::new(),
        }
    }

    /// The application may begin before the handshake is complete: `key` is known to both ends. A client does so if its
    /// connection can send early data.
    pub(crate) fn begin_early(&mut self, now: Instant, connection: &Connection, key: u64) {
        self.early_key = Some(key);
        if self.side.is_client() && connection.early_data() == EarlyData::Offered {
            self.plan(now, Task::Open);
        }
    }

    /// The key of the connection, which its other end has as well; `None` before the handshake is complete.
    pub fn key(&self) -> Option<u64> {
        self.key
    }

    /// Whether the handshake was confirmed.
    pub fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Why the connection ended, if it has.
    pub fn lost(&self) -> Option<&ConnectionError> {
        self.lost.as_ref()
    }

    /// What this side sends, by stream.
    pub fn sending(&self) -> &BTreeMap<StreamId, Sending> {
        &self.sending
    }

    /// What this side receives, by stream.
    pub fn receiving(&self) -> &BTreeMap<StreamId, Receiving> {
        &self.receiving
    }

    /// The unreliable datagrams.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// The streams of frames that this side sends.
    pub fn frames(&self) -> &[Frames] {
        &self.frames
    }

    /// When something was read first.
    pub fn first_read(&self) -> Option<Instant> {
        self.reads.first
    }

    /// When something was read last: bytes of a stream, or its end.
    pub fn last_read(&self) -> Option<Instant> {
        self.reads.last
    }

    /// The longest time between two reads.
    pub fn read_gap_max(&self) -> Option<Duration> {
        self.reads.gap_max
    }

    /// Bytes of all streams that were read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.reads.bytes
    }

    /// Whether the workload is done and every stream has come to an end that this side knows of.
    pub fn is_done(&self) -> bool {
        self.key.is_some()
            && self.streams_to_open == 0
            && self.messages.all_sent()
            && self.frames.iter().all(Frames::all_sent)
            && self.sending.values().all(Sending::is_over)
            && self.receiving.values().all(Receiving::is_over)
    }

    /// What is not done, for a failure's report.
    pub(crate) fn describe(&self) -> String {
        if let Some(reason) = &self.lost {
            return format!("lost: {reason}");
        }
        let sending: Vec<_> = self.sending.values().filter(|sending| !sending.is_over()).take(2).collect();
        let receiving: Vec<_> =
            self.receiving.values().filter(|receiving| !receiving.is_over()).take(2).collect();
        format!(
            "key {:?}, {} streams to open, waits for {:?}, {sending:?}, {receiving:?}, {:?}",
            self.key, self.streams_to_open, self.waits_to_open, self.messages,
        )
    }

    /// When the application wants to do something next, although nothing happened.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.tasks.first()
    }

    /// What happened to paths since this was asked last.
    pub(crate) fn take_path_events(&mut self) -> Vec<PathEvent> {
        std::mem::take(&mut self.path_events)
    }

    /// Takes the connection's events and does what is due.
    pub(crate) fn run(&mut self, now: Instant, connection: &mut Connection) -> Result<(), String> {
        while let Some(event) = connection.poll_event() {
            self.on_event(now, connection, event)?;
        }
        while self.lost.is_none()
            && let Some(task) = self.tasks.take_due(now)
        {
            self.perform(now, connection, task)?;
        }
        Ok(())
    }

    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: Event) -> Result<(), String> {
        if let Some(reason) = &self.lost {
            return Err(format!("{event:?} after the connection was lost: {reason}"));
        }
        match event {
            Event::Connected => self.on_connected(now, connection)?,
            Event::HandshakeConfirmed => self.confirmed = true,
            Event::ConnectionLost { reason } => {
                self.lost = Some(reason);
                self.tasks.clear();
            }
            Event::Stream(event) => self.on_stream_event(now, connection, event)?,
            Event::DatagramReceived => self.messages.receive(now, self.early_key.or(self.key), connection)?,
            Event::DatagramsUnblocked => self.plan(now, Task::SendMessage),
            Event::DatagramsDropped => self.messages.note_dropped(connection)?,
            Event::Path(event) => self.path_events.push(event),
        }
        Ok(())
    }

    fn on_connected(&mut self, now: Instant, connection: &mut Connection) -> Result<(), String> {
        let key = key_of(connection).ok_or("no keying material although connected")?;
        if self.key.replace(key).is_some() {
            return Err("connected twice".to_owned());
        }
        self.plan(now, Task::Open);
        self.plan(now, Task::SendMessage);
        for number in 0..self.frames.len() {
            self.plan(now, Task::SendFrame(number));
        }
        Ok(())
    }

    fn on_stream_event(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        event: StreamEvent,
    ) -> Result<(), String> {
        match event {
            StreamEvent::Opened { dir } => self.accept(now, connection, dir)?,
            StreamEvent::Available { dir } => {
                if self.waits_to_open == Some(dir) {
                    self.plan(now, Task::Open);
                }
            }
            StreamEvent::Readable(id) => self.plan(now, Task::Read(id)),
            StreamEvent::Writable(id) => self.plan(now, Task::Write(id)),
            StreamEvent::Finished(id) => self.sending_mut(id)?.on_finished()?,
            StreamEvent::Stopped { id, code } => self.sending_mut(id)?.on_stopped(code)?,
        }
        self.continue_sequence(now);
        Ok(())
    }

    fn perform(&mut self, now: Instant, connection: &mut Connection, task: Task) -> Result<(), String> {
        let pace = match task {
            Task::Open => self.open(now, connection)?,
            Task::Write(id) => {
                let key = self.known_key()?;
                let (workload, rng) = (&self.workload, &mut self.rng);
                let Some(sending) = self.sending.get_mut(&id) else {
                    return Err(format!("an event to write on stream {id}, which is not known"));
                };
                sending.write(Content::of_stream(key, id, self.side), connection, workload, rng)?
            }
            Task::Read(id) => {
                let key = self.known_key()?;
                let (workload, rng) = (&self.workload, &mut self.rng);
                let Some(receiving) = self.receiving.get_mut(&id) else {
                    return Err(format!("an event to read from stream {id}, which is not known"));
                };
                let before = (receiving.bytes(), receiving.end());
                let pace =
                    receiving.read(Content::of_stream(key, id, !self.side), connection, workload, rng)?;
                if before != (receiving.bytes(), receiving.end()) {
                    self.reads.note(now, receiving.bytes() - before.0);
                    if workload.times_reads {
                        receiving.note_time(now);
                    }
                }
                self.continue_sequence(now);
                pace
            }
            Task::SendMessage => {
                let key = self.known_key()?;
                self.messages.send(now, key, connection, &self.workload, &mut self.rng)?
            }
            Task::SendFrame(number) => {
                let pace = self.frames[number].send(now, connection, &mut self.sending)?;
                if let Some(id) = self.frames[number].stream() {
                    self.plan(now, Task::Write(id));
                }
                pace
            }
        };
        if let Pace::Rest(duration) = pace {
            self.plan(now + duration, task);
        }
        Ok(())
    }

    fn plan(&mut self, at: Instant, task: Task) {
        self.tasks.plan(at, task);
    }

    fn known_key(&self) -> Result<u64, String> {
        self.early_key.or(self.key).ok_or_else(|| "data before the handshake is complete".to_owned())
    }

    fn sending_mut(&mut self, id: StreamId) -> Result<&mut Sending, String> {
        self.sending.get_mut(&id).ok_or_else(|| format!("an event for stream {id}, on which nothing is sent"))
    }
}

/// The key of a connection whose handshake is complete.
pub(crate) fn key_of(connection: &Connection) -> Option<u64> {
    let mut key = [0; 8];
    connection.export_keying_material(&mut key, EXPORTER_LABEL, None).ok()?;
    Some(u64::from_be_bytes(key))
}

/// How long the application rests now, if it does.
fn pause(workload: &Workload, rng: &mut Rng) -> Option<Duration> {
    let longest = u64::try_from(workload.pause_max.as_nanos()).unwrap_or(u64::MAX);
    rng.chance(workload.pause).then(|| Duration::from_nanos(draw(&(1..=longest), rng)))
}

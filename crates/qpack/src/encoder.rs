//! The encoder: which fields go into the dynamic table, and how sections are written.

mod config;
mod history;
mod lines;
mod outstanding;
mod policy;
mod repeated;
mod stored;

pub use self::config::{EncoderConfig, PeerSettings};
use self::history::History;
use self::lines::Line;
use self::outstanding::{Outstanding, References};
use self::repeated::Repeated;
use self::stored::Stored;
use crate::error::Error;
use crate::field::FieldRef;
use crate::instruction::{self, DecoderInstruction};
use crate::integer::ReadError;
use crate::prefix::Prefix;

/// Encodes the field sections of one connection.
///
/// Until [`on_settings`](Self::on_settings) the static table alone is used, as the RFC wants it, and if the peer allows no table. Then
/// the lines of the latest section are kept, 4 KiB at most.
///
/// What goes into the table is decided by what was seen before: a field is inserted where its expected use is worth more
/// than what has to go for it. Entries that are worth keeping are duplicated instead of evicted. An entry is never evicted
/// while a section that was not acknowledged refers to it, or before its insertion was acknowledged.
#[derive(Debug)]
pub struct Encoder {
    config: EncoderConfig,
    peer: PeerSettings,
    /// What the table may take, in bytes; zero if there is none.
    capacity: usize,
    /// What the encoder stream takes for now, in bytes.
    room: usize,
    dynamic: Option<Box<Dynamic>>,
    /// What was written without a dynamic table.
    repeated: Repeated,
    /// How the fields of a section are written. Kept for its memory.
    lines: Vec<Line>,
    /// The beginning of an instruction of the decoder stream: at most eleven bytes.
    partial: Vec<u8>,
}

/// What there is beside the static table.
#[derive(Debug)]
struct Dynamic {
    table: Stored,
    history: History,
    outstanding: Outstanding,
    /// How many inserts the decoder is known to have (the Known Received Count).
    known: u64,
}

/// How many lines are kept for their memory.
const LINES_KEPT: usize = 64;

impl Encoder {
    /// An encoder that uses the static table alone until the peer's settings are known.
    #[must_use]
    pub fn new(config: EncoderConfig) -> Self {
        let peer = PeerSettings::default();
        Self {
            config,
            peer,
            capacity: 0,
            room: usize::MAX,
            dynamic: None,
            repeated: Repeated::default(),
            lines: Vec::new(),
            partial: Vec::new(),
        }
    }

    /// Takes the settings of the peer, or those that a client remembers for 0-RTT; those that follow must not contradict.
    ///
    /// # Errors
    ///
    /// QPACK_DECODER_STREAM_ERROR where a capacity that was used already has changed (RFC 9204 §3.2.3).
    pub fn on_settings(&mut self, settings: PeerSettings) -> Result<(), Error> {
        let before = self.peer.max_table_capacity;
        if before != 0 && before != settings.max_table_capacity {
            return Err(Error::decoder_stream("the table has another capacity than was remembered"));
        }
        self.peer = settings;
        self.capacity = usize::try_from(settings.max_table_capacity)
            .unwrap_or(usize::MAX)
            .min(self.config.table_capacity_max);
        if self.capacity < crate::FIELD_OVERHEAD {
            self.capacity = 0;
        } else if self.dynamic.is_none() {
            self.dynamic = Some(Box::new(Dynamic {
                table: Stored::default(),
                history: History::new(),
                outstanding: Outstanding::default(),
                known: 0,
            }));
        }
        Ok(())
    }

    /// Says how many bytes the encoder stream can take from now on, of the flow control of the stream and of the connection.
    /// An instruction that does not fit as a whole is not written (RFC 9204 §2.1.3). Without this there is no limit.
    pub fn set_encoder_stream_room(&mut self, bytes: usize) {
        self.room = bytes;
    }

    /// Appends the encoded field section of a stream to `section`, and what its decoder must be told before to
    /// `encoder_stream`. Both are to be sent, in any order; nothing of either may be dropped but for the whole of a section
    /// whose stream the peer cancels.
    pub fn encode<'a, I>(
        &mut self,
        stream_id: u64,
        fields: I,
        section: &mut Vec<u8>,
        encoder_stream: &mut Vec<u8>,
    ) where
        I: IntoIterator<Item = FieldRef<'a>>,
        I::IntoIter: Clone,
    {
        let fields = fields.into_iter();
        let Some(dynamic) = &mut self.dynamic else {
            self.write_prefix(0, section);
            return self.repeated.write(fields, self.config.cookie_len_min, section);
        };
        let mut lines = std::mem::take(&mut self.lines);
        let mut instructions = Instructions { out: encoder_stream, room: &mut self.room };
        let limits = policy::Limits {
            capacity: self.capacity,
            blocked_streams: usize::try_from(self.peer.blocked_streams).unwrap_or(usize::MAX),
            cookie_len_min: self.config.cookie_len_min,
        };
        let references = dynamic.plan(stream_id, fields.clone(), &limits, &mut lines, &mut instructions);
        let required = references.map_or(0, |references| references.required);
        self.write_prefix(required, section);
        for (line, field) in lines.iter().zip(fields) {
            line.write(field, required, section);
        }
        lines.clear();
        lines.shrink_to(LINES_KEPT);
        self.lines = lines;
    }

    /// Writes what a section begins with that needs so many inserts.
    fn write_prefix(&self, required: u64, section: &mut Vec<u8>) {
        let prefix = Prefix { required, base: required };
        prefix.write(usize::try_from(self.peer.max_table_capacity).unwrap_or(usize::MAX), section);
    }

    /// Handles what came on the decoder stream of the peer, in any pieces.
    ///
    /// # Errors
    ///
    /// QPACK_DECODER_STREAM_ERROR where an instruction acknowledges what was not sent (RFC 9204 §4.4).
    pub fn on_decoder_stream(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut all = std::mem::take(&mut self.partial);
        let mut rest = if all.is_empty() {
            bytes
        } else {
            all.extend_from_slice(bytes);
            &all[..]
        };
        loop {
            match DecoderInstruction::read(&mut rest) {
                Ok(instruction) => self.follow(instruction).map_err(Error::decoder_stream)?,
                Err(ReadError::Incomplete) => break,
                Err(ReadError::Invalid(reason)) => return Err(Error::decoder_stream(reason)),
            }
        }
        self.partial = rest.to_vec();
        Ok(())
    }

    /// How many entries were inserted into the dynamic table, duplicates included.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.dynamic.as_ref().map_or(0, |dynamic| dynamic.table.inserted())
    }

    /// How many streams may be blocked at the decoder for now.
    #[must_use]
    pub fn streams_at_risk(&self) -> usize {
        self.dynamic.as_ref().map_or(0, |dynamic| dynamic.outstanding.streams_at_risk())
    }

    fn follow(&mut self, instruction: DecoderInstruction) -> Result<(), &'static str> {
        match (&mut self.dynamic, instruction) {
            (Some(dynamic), _) => dynamic.follow(instruction),
            // A decoder that was sent nothing has nothing to acknowledge, but it may cancel streams.
            (None, DecoderInstruction::StreamCancellation(_)) => Ok(()),
            (None, _) => Err("something is acknowledged that was not sent"),
        }
    }
}

impl Dynamic {
    fn follow(&mut self, instruction: DecoderInstruction) -> Result<(), &'static str> {
        match instruction {
            DecoderInstruction::SectionAcknowledgment(stream_id) => {
                let section = self.outstanding.acknowledge(stream_id);
                let section = section.ok_or("a section is acknowledged that was not sent")?;
                self.set_known(section.required.max(self.known));
            }
            DecoderInstruction::StreamCancellation(stream_id) => self.outstanding.cancel(stream_id),
            DecoderInstruction::InsertCountIncrement(0) => return Err("an increment of zero"),
            DecoderInstruction::InsertCountIncrement(increment) => {
                let known = self.known + increment;
                if known > self.table.inserted() {
                    return Err("inserts are acknowledged that were not sent");
                }
                self.set_known(known);
            }
        }
        Ok(())
    }

    fn set_known(&mut self, known: u64) {
        self.known = known;
        self.outstanding.on_known(known);
    }
}

/// The encoder stream, as far as it takes something.
struct Instructions<'a> {
    out: &'a mut Vec<u8>,
    room: &'a mut usize,
}

impl Instructions<'_> {
    /// Writes instructions if they fit together, and returns whether they do.
    fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let start = self.out.len();
        write(self.out);
        let len = self.out.len() - start;
        if len > *self.room {
            self.out.truncate(start);
            return false;
        }
        *self.room -= len;
        true
    }

    fn set_capacity(&mut self, capacity: usize) -> bool {
        self.write(|out| instruction::write_set_capacity(out, capacity))
    }
}

//! The decoder: the peer's dynamic table, sections that wait for entries, and what the encoder is told.

mod config;
mod section;
mod waiting;

use bytes::Bytes;

pub use self::config::{DecoderConfig, Excess};
use self::section::decode_section;
use self::waiting::Waiting;
use crate::error::Error;
use crate::field::Field;
use crate::instruction::{DecoderInstruction, EncoderInstruction, NameRef};
use crate::integer::ReadError;
use crate::prefix::Prefix;
use crate::static_table;
use crate::string::Literal;
use crate::table::{Entry, Table};

/// What may wait for the decoder stream, in bytes. A peer that reads nothing of it and goes on is told H3_EXCESSIVE_LOAD.
pub const DECODER_STREAM_WAITING_MAX: usize = 16 * 1024;

/// What became of an encoded field section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decoded {
    /// Its fields, in their order.
    Fields(Vec<Field>),
    /// It waits for entries that have not come. The stream must not be read further until
    /// [`Decoder::unblocked`] gives its fields.
    Blocked,
    /// It was refused because it is larger than this end allows (RFC 9114 §4.2.2). Only its stream is concerned: a server
    /// can answer with status 431.
    Refused(Excess),
}

/// Decodes the field sections of one connection.
///
/// Call [`on_encoder_stream`](Self::on_encoder_stream) with what comes on the peer's encoder stream, then
/// [`unblocked`](Self::unblocked) until it has nothing more; [`decode`](Self::decode) with each field section;
/// [`cancel`](Self::cancel) where a stream is given up; and send what
/// [`take_decoder_stream`](Self::take_decoder_stream) gives. Every error ends the connection with its code.
///
/// Nothing is allocated before the peer inserts an entry or a section waits.
#[derive(Debug)]
pub struct Decoder {
    config: DecoderConfig,
    table: Table,
    /// The beginning of an instruction that is not whole yet. Its strings are limited by the capacity, and so is this.
    partial: Vec<u8>,
    waiting: Waiting,
    /// Instructions for the decoder stream.
    instructions: Vec<u8>,
    /// How many inserts the encoder knows that we have (the Known Received Count).
    acknowledged: u64,
}

impl Decoder {
    /// A decoder with an empty table. Its settings are to be sent to the peer.
    #[must_use]
    pub fn new(config: DecoderConfig) -> Self {
        Self {
            config,
            table: Table::default(),
            partial: Vec::new(),
            waiting: Waiting::default(),
            instructions: Vec::new(),
            acknowledged: 0,
        }
    }

    /// What this decoder allows.
    #[must_use]
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// Handles what came on the encoder stream of the peer, in any pieces.
    ///
    /// # Errors
    ///
    /// QPACK_ENCODER_STREAM_ERROR where the instructions break the rules (RFC 9204 §4.3).
    pub fn on_encoder_stream(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.partial.is_empty() {
            let rest = self.instructions_of(bytes)?;
            self.partial.extend_from_slice(rest);
            return Ok(());
        }
        let mut bytes_so_far = std::mem::take(&mut self.partial);
        bytes_so_far.extend_from_slice(bytes);
        let rest_len = self.instructions_of(&bytes_so_far)?.len();
        bytes_so_far.drain(..bytes_so_far.len() - rest_len);
        if rest_len == 0 {
            // Most instructions are short; the memory of a long one is not kept for the next.
            bytes_so_far = Vec::new();
        }
        self.partial = bytes_so_far;
        Ok(())
    }

    /// Decodes the field section of a stream, or keeps it until its entries have come.
    ///
    /// # Errors
    ///
    /// QPACK_DECOMPRESSION_FAILED where it cannot be decoded, or where more streams are blocked than this end allows.
    pub fn decode(&mut self, stream_id: u64, section: Bytes) -> Result<Decoded, Error> {
        let mut lines = &section[..];
        let prefix = Prefix::read(&mut lines, self.config.max_table_capacity, self.table.inserted())?;
        let at = section.len() - lines.len();
        if prefix.required <= self.table.inserted() {
            return self.decode_lines(stream_id, prefix, &section[at..]);
        }
        if self.waiting.len() >= self.config.blocked_streams || self.waiting.contains(stream_id) {
            return Err(Error::section("more blocked streams than are allowed"));
        }
        if self.waiting.bytes() + section.len() > self.config.blocked_bytes_max {
            self.cancel(stream_id)?;
            return Ok(Decoded::Refused(Excess::BlockedBytes));
        }
        self.waiting.add(stream_id, prefix, section.slice(at..));
        Ok(Decoded::Blocked)
    }

    /// The next stream whose section no longer waits, and what became of it.
    ///
    /// # Errors
    ///
    /// QPACK_DECOMPRESSION_FAILED where the section cannot be decoded.
    pub fn unblocked(&mut self) -> Result<Option<(u64, Decoded)>, Error> {
        let Some((stream_id, prefix, lines)) = self.waiting.take_ready(self.table.inserted()) else {
            return Ok(None);
        };
        Ok(Some((stream_id, self.decode_lines(stream_id, prefix, &lines)?)))
    }

    /// Gives up a stream that was reset, or that will not be read to its end: its section waits no more, and the encoder
    /// learns that it does not hold entries.
    ///
    /// # Errors
    ///
    /// H3_EXCESSIVE_LOAD where the peer does not read its decoder stream.
    pub fn cancel(&mut self, stream_id: u64) -> Result<(), Error> {
        self.waiting.remove(stream_id);
        // RFC 9204 §2.2.2.2: without a table there are no references to forget.
        if self.config.max_table_capacity == 0 {
            return Ok(());
        }
        self.tell(DecoderInstruction::StreamCancellation(stream_id))
    }

    /// Whether there is something to send on the decoder stream.
    #[must_use]
    pub fn has_instructions(&self) -> bool {
        !self.instructions.is_empty() || self.acknowledged < self.table.inserted()
    }

    /// Appends what is to be sent on the decoder stream. Inserts that no section has acknowledged are acknowledged together,
    /// so that it pays to call this once for all that has come.
    pub fn take_decoder_stream(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.instructions);
        let news = self.table.inserted() - self.acknowledged;
        if news > 0 {
            DecoderInstruction::InsertCountIncrement(news).write(out);
            self.acknowledged = self.table.inserted();
        }
    }

    /// How many streams wait for entries.
    #[must_use]
    pub fn blocked_streams(&self) -> usize {
        self.waiting.len()
    }

    fn decode_lines(&mut self, stream_id: u64, prefix: Prefix, lines: &[u8]) -> Result<Decoded, Error> {
        let decoded = decode_section(&self.table, &self.config, prefix, lines)?;
        if prefix.required > 0 {
            // A section that was refused is done with as well: the encoder may forget what it refers to.
            self.tell(DecoderInstruction::SectionAcknowledgment(stream_id))?;
            self.acknowledged = self.acknowledged.max(prefix.required);
        }
        Ok(decoded)
    }

    fn tell(&mut self, instruction: DecoderInstruction) -> Result<(), Error> {
        if self.instructions.len() >= DECODER_STREAM_WAITING_MAX {
            return Err(Error::load("the decoder stream is not read"));
        }
        instruction.write(&mut self.instructions);
        Ok(())
    }

    /// Follows the whole instructions at the beginning, and returns the rest.
    fn instructions_of<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Error> {
        let mut rest = bytes;
        loop {
            match EncoderInstruction::read(&mut rest, self.table.capacity()) {
                Ok(instruction) => self.follow(instruction).map_err(Error::encoder_stream)?,
                Err(ReadError::Incomplete) => return Ok(rest),
                Err(ReadError::Invalid(reason)) => return Err(Error::encoder_stream(reason)),
            }
        }
    }

    fn follow(&mut self, instruction: EncoderInstruction<'_>) -> Result<(), &'static str> {
        let entry = match instruction {
            EncoderInstruction::SetCapacity(capacity) => return self.set_capacity(capacity),
            EncoderInstruction::Duplicate(index) => {
                self.table.get_relative(index).ok_or("a duplicate of what is not there")?.clone()
            }
            EncoderInstruction::InsertWithNameRef(name_ref, value) => {
                Entry { name: self.name(name_ref)?, value: decoded(value)? }
            }
            EncoderInstruction::InsertWithLiteralName(name, value) => {
                Entry { name: decoded(name)?, value: decoded(value)? }
            }
        };
        if self.table.insert(entry) { Ok(()) } else { Err("an entry that is larger than the table") }
    }

    fn set_capacity(&mut self, capacity: u64) -> Result<(), &'static str> {
        match usize::try_from(capacity) {
            Ok(capacity) if capacity <= self.config.max_table_capacity => {
                self.table.set_capacity(capacity);
                Ok(())
            }
            _ => Err("a capacity that is larger than is allowed"),
        }
    }

    fn name(&self, name_ref: NameRef) -> Result<Bytes, &'static str> {
        match name_ref {
            NameRef::Static(index) => static_table::get(index).map(|(name, _)| name),
            NameRef::Dynamic(index) => self.table.get_relative(index).map(|entry| entry.name.clone()),
        }
        .ok_or("a name that is not there")
    }
}

/// A string with an allocation of its own and of its size.
fn decoded(literal: Literal<'_>) -> Result<Bytes, &'static str> {
    Ok(Bytes::from(literal.to_vec()?.into_boxed_slice()))
}

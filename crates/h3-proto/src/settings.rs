//! What each end says about itself (RFC 9114 §7.2.4).

use crate::error::{Error, ErrorCode};
use crate::frame;
use crate::varint;

/// The most settings that are read of a peer. Beyond it the connection ends with H3_EXCESSIVE_LOAD.
pub const SETTINGS_MAX: usize = 64;

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x01;
const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
const QPACK_BLOCKED_STREAMS: u64 = 0x07;
const ENABLE_CONNECT_PROTOCOL: u64 = 0x08;
const H3_DATAGRAM: u64 = 0x33;

/// The settings of an end. What is not said has the values of `default()`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// How large the peer may make the table of this end's QPACK decoder, in bytes.
    pub qpack_max_table_capacity: u64,
    /// How many streams may wait for entries of that table.
    pub qpack_blocked_streams: u64,
    /// The largest field section that is accepted, decoded, in bytes; `None` if there is no limit.
    pub max_field_section_size: Option<u64>,
    /// Whether a server takes extended CONNECT (RFC 9220 §3).
    pub enable_connect_protocol: bool,
    /// Whether HTTP datagrams are taken (RFC 9297 §2.1.1).
    pub h3_datagram: bool,
    /// Settings that this crate does not know, as identifier and value: for sessions. Reserved ones are left out.
    pub others: Vec<(u64, u64)>,
}

impl Settings {
    /// The payload of a SETTINGS frame. It is also how a client keeps the settings of a server for 0-RTT.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |id, value| {
            varint::write(id, &mut out);
            varint::write(value, &mut out);
        };
        let counts = [
            (QPACK_MAX_TABLE_CAPACITY, self.qpack_max_table_capacity),
            (QPACK_BLOCKED_STREAMS, self.qpack_blocked_streams),
            (ENABLE_CONNECT_PROTOCOL, u64::from(self.enable_connect_protocol)),
            (H3_DATAGRAM, u64::from(self.h3_datagram)),
        ];
        counts.into_iter().filter(|(_, value)| *value > 0).for_each(|(id, value)| put(id, value));
        if let Some(size) = self.max_field_section_size {
            put(MAX_FIELD_SECTION_SIZE, size);
        }
        self.others.iter().for_each(|(id, value)| put(*id, *value));
        out
    }

    /// All pairs of a payload, as far as it is one.
    pub(crate) fn pairs(mut payload: &[u8]) -> Option<Vec<(u64, u64)>> {
        let mut pairs = Vec::new();
        while !payload.is_empty() && pairs.len() < SETTINGS_MAX {
            pairs.push((varint::read(&mut payload)?, varint::read(&mut payload)?));
        }
        Some(pairs)
    }

    /// Reads the payload of a SETTINGS frame.
    ///
    /// # Errors
    ///
    /// H3_SETTINGS_ERROR, H3_FRAME_ERROR where it ends early, H3_EXCESSIVE_LOAD beyond [`SETTINGS_MAX`].
    pub fn decode(mut payload: &[u8]) -> Result<Self, Error> {
        let mut settings = Self::default();
        let mut seen = Vec::new();
        while !payload.is_empty() {
            let pair = varint::read(&mut payload).zip(varint::read(&mut payload));
            let (id, value) =
                pair.ok_or(Error::connection(ErrorCode::FrameError, "SETTINGS is cut short"))?;
            if seen.contains(&id) {
                return Err(wrong("a setting comes twice"));
            }
            if seen.len() == SETTINGS_MAX {
                return Err(Error::connection(ErrorCode::ExcessiveLoad, "too many settings"));
            }
            seen.push(id);
            settings.set(id, value)?;
        }
        Ok(settings)
    }

    fn set(&mut self, id: u64, value: u64) -> Result<(), Error> {
        match id {
            QPACK_MAX_TABLE_CAPACITY => self.qpack_max_table_capacity = value,
            QPACK_BLOCKED_STREAMS => self.qpack_blocked_streams = value,
            MAX_FIELD_SECTION_SIZE => self.max_field_section_size = Some(value),
            ENABLE_CONNECT_PROTOCOL => self.enable_connect_protocol = flag(value)?,
            H3_DATAGRAM => self.h3_datagram = flag(value)?,
            // RFC 9114 §7.2.4.1: identifiers of HTTP/2 that have no meaning here.
            0x00 | 0x02..=0x05 => return Err(wrong("a setting of HTTP/2")),
            id if frame::is_reserved(id) => {}
            id => self.others.push((id, value)),
        }
        Ok(())
    }

    /// Checks that nothing is less than a client remembered when it sent 0-RTT (RFC 9114 §7.2.4.2).
    pub(crate) fn check_not_less_than(&self, remembered: &Self) -> Result<(), Error> {
        let size = |settings: &Self| settings.max_field_section_size.unwrap_or(u64::MAX);
        let is_less = self.qpack_blocked_streams < remembered.qpack_blocked_streams
            || size(self) < size(remembered)
            || (remembered.enable_connect_protocol && !self.enable_connect_protocol)
            || (remembered.h3_datagram && !self.h3_datagram);
        if is_less { Err(wrong("less than was promised for 0-RTT")) } else { Ok(()) }
    }
}

fn flag(value: u64) -> Result<bool, Error> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(wrong("a flag that is neither 0 nor 1")),
    }
}

fn wrong(reason: &'static str) -> Error {
    Error::connection(ErrorCode::SettingsError, reason)
}

#[cfg(test)]
mod tests;

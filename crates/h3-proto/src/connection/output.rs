//! What this end sends on streams of its own (RFC 9114 §6.2.1, RFC 9204 §4.2).

use bytes::Bytes;

use super::{Connection, Role};
use crate::config::Config;
use crate::error::SendError;
use crate::frame::{self, stream_type};
use crate::origin;
use crate::settings::Settings;
use crate::varint;

/// What may wait for the control stream, in bytes, before [`SendError::QueueFull`].
pub const CONTROL_WAITING_MAX: usize = 64 * 1024;

/// What may wait for the encoder stream, in bytes. Sections use the dynamic table less while so much waits.
pub const ENCODER_WAITING_MAX: usize = 16 * 1024;

/// The unidirectional streams of this end that a connection cannot do without. They must be among the first to be sent, and are
/// never closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Critical {
    /// The control stream: to be opened at once.
    Control,
    /// The stream of the QPACK encoder. It need not be opened before there is something for it.
    Encoder,
    /// The stream of the QPACK decoder, likewise.
    Decoder,
}

impl Critical {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Control, Self::Encoder, Self::Decoder];
}

#[derive(Debug)]
pub(super) struct Output {
    control: Vec<u8>,
    pub(super) encoder: Vec<u8>,
    has_encoder: bool,
    has_decoder: bool,
    /// What the transport takes of the encoder stream.
    encoder_room: usize,
}

impl Output {
    pub(super) fn new(role: Role, config: &Config) -> Self {
        let mut control = Vec::new();
        varint::write(stream_type::CONTROL, &mut control);
        frame::write(frame::SETTINGS, &settings(role, config).encode(), &mut control);
        if let Some(random) = config.grease {
            let payload = &random.to_be_bytes()[..(random % 8) as usize];
            frame::write(frame::reserved(random >> 8), payload, &mut control);
        }
        if role == Role::Server && !config.origins.is_empty() {
            frame::write(frame::ORIGIN, &origin::encode(&config.origins), &mut control);
        }
        Self {
            control,
            encoder: Vec::new(),
            has_encoder: false,
            has_decoder: false,
            encoder_room: usize::MAX,
        }
    }

    /// Puts a frame on the control stream.
    fn control(&mut self, ty: u64, payload: &[u8]) -> Result<(), SendError> {
        if self.control.len() + payload.len() > CONTROL_WAITING_MAX {
            return Err(SendError::QueueFull);
        }
        frame::write(ty, payload, &mut self.control);
        Ok(())
    }

    /// What was put on the control stream and not taken yet.
    pub(super) fn waiting_for_control(&self) -> &[u8] {
        &self.control
    }

    /// How much the encoder may write.
    pub(super) fn encoder_room(&self) -> usize {
        self.encoder_room.min(ENCODER_WAITING_MAX.saturating_sub(self.encoder.len()))
    }

    pub(super) fn took_encoder_room(&mut self, len: usize) {
        if self.encoder_room != usize::MAX {
            self.encoder_room = self.encoder_room.saturating_sub(len);
        }
    }
}

/// The settings of this end.
fn settings(role: Role, config: &Config) -> Settings {
    let mut others = config.settings.clone();
    if let Some(random) = config.grease {
        others.push((frame::reserved(random >> 16), random >> 40));
    }
    Settings {
        qpack_max_table_capacity: config.decoder.max_table_capacity as u64,
        qpack_blocked_streams: config.decoder.blocked_streams as u64,
        max_field_section_size: Some(config.decoder.field_section_size_max as u64),
        enable_connect_protocol: role == Role::Server && config.enable_connect_protocol,
        h3_datagram: config.h3_datagram,
        others,
    }
}

impl Connection {
    /// The settings of this end.
    pub(super) fn settings(&self) -> Settings {
        settings(self.role, &self.config)
    }

    /// Puts a frame on the control stream.
    pub(super) fn send_control(&mut self, ty: u64, payload: &[u8]) -> Result<(), SendError> {
        self.output.control(ty, payload)?;
        self.shared.log.control_created(ty, payload);
        Ok(())
    }

    /// Whether there is something to write to one of the streams.
    #[must_use]
    pub fn has_output(&self, stream: Critical) -> bool {
        match stream {
            Critical::Control => !self.output.control.is_empty(),
            Critical::Encoder => !self.output.encoder.is_empty(),
            Critical::Decoder => self.shared.decoder.has_instructions(),
        }
    }

    /// Takes what is to be written to one of the streams, behind what was taken before. A stream without flow control credit is
    /// better asked later: what waits here is limited, and what waits outside is not.
    pub fn take_output(&mut self, stream: Critical) -> Bytes {
        if !self.has_output(stream) {
            return Bytes::new();
        }
        let mut out = Vec::new();
        match stream {
            Critical::Control => out = std::mem::take(&mut self.output.control),
            Critical::Encoder => {
                if !std::mem::replace(&mut self.output.has_encoder, true) {
                    varint::write(stream_type::ENCODER, &mut out);
                }
                out.append(&mut self.output.encoder);
            }
            Critical::Decoder => {
                if !std::mem::replace(&mut self.output.has_decoder, true) {
                    varint::write(stream_type::DECODER, &mut out);
                }
                self.shared.decoder.take_decoder_stream(&mut out);
            }
        }
        out.into()
    }

    /// Says how many bytes the transport takes of the encoder stream, of the credit of the stream and of the connection, behind what was
    /// taken here (RFC 9204 §2.1.3). Without this there is no limit but [`ENCODER_WAITING_MAX`].
    pub fn set_encoder_stream_room(&mut self, bytes: usize) {
        self.output.encoder_room = bytes.saturating_sub(self.output.encoder.len());
    }
}

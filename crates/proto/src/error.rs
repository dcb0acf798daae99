//! Errors that close a connection.

use std::borrow::Cow;
use std::fmt;

use fulmar_wire::{FrameError, FrameType, TransportErrorCode};

/// A violation of the protocol: the connection closes with this code (RFC 9000 §20.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransportError {
    /// The code that CONNECTION_CLOSE carries.
    pub code: TransportErrorCode,
    /// The type of the frame that caused the error, if one did.
    pub frame: Option<FrameType>,
    /// What happened, in words.
    pub reason: Cow<'static, str>,
}

impl TransportError {
    /// An error that no frame in particular caused.
    pub fn new(code: TransportErrorCode, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { code, frame: None, reason: reason.into() }
    }

    /// The same error, caused by a frame of type `frame`.
    #[must_use]
    pub fn with_frame(mut self, frame: FrameType) -> Self {
        self.frame = Some(frame);
        self
    }

    /// PROTOCOL_VIOLATION.
    pub fn protocol_violation(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(TransportErrorCode::PROTOCOL_VIOLATION, reason)
    }
}

impl From<FrameError> for TransportError {
    fn from(error: FrameError) -> Self {
        Self::new(error.code, error.reason).with_frame(error.frame_type)
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(frame) = self.frame {
            write!(f, " in {frame}")?;
        }
        if !self.reason.is_empty() {
            write!(f, ": {}", self.reason)?;
        }
        Ok(())
    }
}

impl std::error::Error for TransportError {}

//! Why transport parameters are refused.

use std::fmt;

use super::table::Row;
use super::{AVAILABLE_VERSIONS_MAX, PARAMETERS_MAX};
use crate::{Truncated, VarInt};

/// Transport parameters that a peer must not send: a connection error of type TRANSPORT_PARAMETER_ERROR
/// (RFC 9000 §7.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TransportParameterError {
    /// The bytes end in the middle of an id or a length.
    #[error("the transport parameters end in the middle of one")]
    Truncated,
    /// There are more parameters than this implementation looks at.
    #[error("there are more than {PARAMETERS_MAX} transport parameters")]
    TooMany,
    /// One parameter is malformed or illegal.
    #[error("transport parameter {parameter} {problem}")]
    Illegal {
        /// Which one.
        parameter: ParameterId,
        /// What is wrong with it.
        problem: ParameterProblem,
    },
}

/// The number of a transport parameter. It is displayed by its registered name if this implementation knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterId(pub VarInt);

impl fmt::Display for ParameterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Row::find(self.0) {
            Some(row) => f.write_str(row.name),
            None => write!(f, "{:#x}", self.0.get()),
        }
    }
}

/// What is wrong with a transport parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParameterProblem {
    /// It occurs twice.
    #[error("occurs more than once")]
    Duplicate,
    /// A client sent what only a server may send.
    #[error("may only be sent by a server")]
    ServerOnly,
    /// The bytes end before the value does.
    #[error("is too short")]
    Truncated,
    /// Bytes follow the value.
    #[error("is too long")]
    TrailingBytes,
    /// A connection ID is longer than 20 bytes.
    #[error("holds a connection ID of more than 20 bytes")]
    CidTooLong,
    /// A list of versions is longer than this implementation looks at.
    #[error("lists more than {AVAILABLE_VERSIONS_MAX} versions")]
    TooManyVersions,
    /// The value breaks a rule, which the text names.
    #[error("{0}")]
    Value(&'static str),
}

impl From<Truncated> for ParameterProblem {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

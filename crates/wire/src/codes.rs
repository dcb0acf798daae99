//! Numbers with names: transport errors and frame types.

use std::fmt;

macro_rules! named_numbers {
    ($(#[$doc:meta])* $type:ident { $($(#[$item_doc:meta])* $name:ident = $value:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(pub u64);

        impl $type {
            $($(#[$item_doc])* pub const $name: Self = Self($value);)*

            /// The name in the standard, if the number has one.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

named_numbers! {
    /// A transport error code (RFC 9000 §20.1).
    TransportErrorCode {
        /// The connection ends without an error.
        NO_ERROR = 0x00,
        /// The implementation has failed.
        INTERNAL_ERROR = 0x01,
        /// The server takes no more connections.
        CONNECTION_REFUSED = 0x02,
        /// More data than flow control allows.
        FLOW_CONTROL_ERROR = 0x03,
        /// More streams than allowed.
        STREAM_LIMIT_ERROR = 0x04,
        /// A frame that does not fit the state of its stream.
        STREAM_STATE_ERROR = 0x05,
        /// The final size of a stream changed or was exceeded.
        FINAL_SIZE_ERROR = 0x06,
        /// A frame that cannot be decoded.
        FRAME_ENCODING_ERROR = 0x07,
        /// Transport parameters that are malformed or illegal.
        TRANSPORT_PARAMETER_ERROR = 0x08,
        /// More connection IDs than allowed.
        CONNECTION_ID_LIMIT_ERROR = 0x09,
        /// A violation without a code of its own.
        PROTOCOL_VIOLATION = 0x0a,
        /// A token that is not valid.
        INVALID_TOKEN = 0x0b,
        /// The application has failed, told before its own codes may be sent.
        APPLICATION_ERROR = 0x0c,
        /// More handshake data than is buffered.
        CRYPTO_BUFFER_EXCEEDED = 0x0d,
        /// An illegal key update.
        KEY_UPDATE_ERROR = 0x0e,
        /// The keys have been used as often as is safe.
        AEAD_LIMIT_REACHED = 0x0f,
        /// No network path works.
        NO_VIABLE_PATH = 0x10,
        /// Version negotiation was interfered with (RFC 9368).
        VERSION_NEGOTIATION_ERROR = 0x11,
        /// The application has abandoned a path (RFC 10069).
        APPLICATION_ABANDON_PATH = 0x3e,
        /// There are no resources for a path (RFC 10069).
        PATH_RESOURCE_LIMIT_REACHED = 0x3e75,
        /// A path does not work well enough (RFC 10069).
        PATH_UNSTABLE_OR_POOR = 0x3e76,
        /// There is no connection ID for a path (RFC 10069).
        NO_CID_AVAILABLE_FOR_PATH = 0x3e77,
    }
}

impl TransportErrorCode {
    /// The code of a TLS alert: CRYPTO_ERROR (RFC 9001 §4.8).
    pub const fn crypto(alert: u8) -> Self {
        Self(0x100 + alert as u64)
    }
}

impl fmt::Display for TransportErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.0) {
            (Some(name), _) => f.write_str(name),
            (None, 0x100..=0x1ff) => write!(f, "CRYPTO_ERROR (TLS alert {})", self.0 - 0x100),
            (None, code) => write!(f, "error {code:#x}"),
        }
    }
}

named_numbers! {
    /// The type of a frame. Types that span several numbers are named by their first (RFC 9000 §19).
    FrameType {
        /// §19.1.
        PADDING = 0x00,
        /// §19.2.
        PING = 0x01,
        /// §19.3.
        ACK = 0x02,
        /// §19.3, with ECN counts.
        ACK_ECN = 0x03,
        /// §19.4.
        RESET_STREAM = 0x04,
        /// §19.5.
        STOP_SENDING = 0x05,
        /// §19.6.
        CRYPTO = 0x06,
        /// §19.7.
        NEW_TOKEN = 0x07,
        /// §19.8, 0x08 to 0x0f.
        STREAM = 0x08,
        /// §19.9.
        MAX_DATA = 0x10,
        /// §19.10.
        MAX_STREAM_DATA = 0x11,
        /// §19.11, bidirectional streams.
        MAX_STREAMS_BIDI = 0x12,
        /// §19.11, unidirectional streams.
        MAX_STREAMS_UNI = 0x13,
        /// §19.12.
        DATA_BLOCKED = 0x14,
        /// §19.13.
        STREAM_DATA_BLOCKED = 0x15,
        /// §19.14, bidirectional streams.
        STREAMS_BLOCKED_BIDI = 0x16,
        /// §19.14, unidirectional streams.
        STREAMS_BLOCKED_UNI = 0x17,
        /// §19.15.
        NEW_CONNECTION_ID = 0x18,
        /// §19.16.
        RETIRE_CONNECTION_ID = 0x19,
        /// §19.17.
        PATH_CHALLENGE = 0x1a,
        /// §19.18.
        PATH_RESPONSE = 0x1b,
        /// §19.19, by the transport.
        CONNECTION_CLOSE = 0x1c,
        /// §19.19, by the application.
        APPLICATION_CLOSE = 0x1d,
        /// §19.20.
        HANDSHAKE_DONE = 0x1e,
        /// draft-ietf-quic-reliable-stream-reset §4.
        RESET_STREAM_AT = 0x24,
        /// draft-ietf-quic-ack-frequency §5.
        IMMEDIATE_ACK = 0x1f,
        /// RFC 9221 §4.
        DATAGRAM = 0x30,
        /// RFC 9221 §4, with a length.
        DATAGRAM_WITH_LENGTH = 0x31,
        /// RFC 10069.
        PATH_ACK = 0x3e,
        /// RFC 10069, with ECN counts.
        PATH_ACK_ECN = 0x3f,
        /// draft-ietf-quic-ack-frequency §4.
        ACK_FREQUENCY = 0xaf,
        /// Forward erasure correction: what follows is a source symbol. A number of our own, as the next two.
        FEC_SID = 0x3fec,
        /// Forward erasure correction: a repair symbol.
        FEC_REPAIR = 0x3fed,
        /// Forward erasure correction: what was recovered.
        FEC_RECOVERED = 0x3fee,
        /// draft-michel-quic-fec-01 §10.2, as are the next three: a repair symbol.
        REPAIR = 0x32a80fec,
        /// draft-michel-quic-fec-01: a source symbol.
        SOURCE_SYMBOL = 0x32a80fec55,
        /// draft-michel-quic-fec-01: the source symbols that arrived or were recovered.
        SYMBOL_ACK = 0x32a80fecac,
        /// draft-michel-quic-fec-01: how many symbols the sender of this keeps.
        FEC_WINDOW = 0x32a80fecc0,
        /// draft-huitema-quic-ts §2.3.
        TIMESTAMP = 0x2f5,
        /// draft-ietf-quic-address-discovery §4.1, an IPv4 address.
        OBSERVED_ADDRESS_V4 = 0x9f81a6,
        /// draft-ietf-quic-address-discovery §4.1, an IPv6 address.
        OBSERVED_ADDRESS_V6 = 0x9f81a7,
        /// RFC 10069.
        PATH_ABANDON = 0x3e75,
        /// RFC 10069.
        PATH_STATUS_BACKUP = 0x3e76,
        /// RFC 10069.
        PATH_STATUS_AVAILABLE = 0x3e77,
        /// RFC 10069.
        PATH_NEW_CONNECTION_ID = 0x3e78,
        /// RFC 10069.
        PATH_RETIRE_CONNECTION_ID = 0x3e79,
        /// RFC 10069.
        MAX_PATH_ID = 0x3e7a,
        /// RFC 10069.
        PATHS_BLOCKED = 0x3e7b,
        /// RFC 10069.
        PATH_CIDS_BLOCKED = 0x3e7c,
    }
}

impl FrameType {
    /// Whether RFC 10069 defines it (§4): a frame for several paths, which only 1-RTT packets carry.
    pub const fn is_multipath(self) -> bool {
        matches!(self.0, 0x3e | 0x3f | 0x3e75..=0x3e7c)
    }
}

impl fmt::Display for FrameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.0) {
            (_, 0x08..=0x0f) => f.write_str("STREAM"),
            (Some(name), _) => f.write_str(name),
            (None, number) => write!(f, "frame type {number:#x}"),
        }
    }
}

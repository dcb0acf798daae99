//! What the peer is told when the application drops a handle.

use fulmar_proto::VarInt;

/// What the peer is told when handles are dropped before their end. The codes mean what the application protocol says.
///
/// ```
/// # fn set_up(connection: &fulmar::Connection) {
/// // An HTTP/3 server: who drops a response gives it up, and does not end it (RFC 9114 §8.1).
/// connection.set_drop_codes(fulmar::DropCodes {
///     reset_stream: Some(0x102u32.into()),   // H3_INTERNAL_ERROR
///     stop_sending: 0x100u32.into(),         // H3_NO_ERROR
///     connection_close: 0x100u32.into(),
/// });
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DropCodes {
    /// A [`SendStream`](crate::SendStream) that was neither finished nor reset is reset with this code (RESET_STREAM, RFC 9000
    /// §19.4). `None`, the default, finishes it: what was written is delivered.
    pub reset_stream: Option<VarInt>,
    /// A [`RecvStream`](crate::RecvStream) whose end was not read is stopped with this code (STOP_SENDING, RFC 9000 §19.5). By
    /// default 0.
    pub stop_sending: VarInt,
    /// A connection whose last handle is dropped is closed with this code (CONNECTION_CLOSE, RFC 9000 §19.19). By default 0.
    pub connection_close: VarInt,
}

impl Default for DropCodes {
    fn default() -> Self {
        Self { reset_stream: None, stop_sending: VarInt::ZERO, connection_close: VarInt::ZERO }
    }
}

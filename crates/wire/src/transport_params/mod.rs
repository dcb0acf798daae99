//! Transport parameters: what each end tells the other in the TLS handshake (RFC 9000 §7.4, §18).
//!
//! | module | what it owns |
//! |---|---|
//! | `table` | one row for each parameter: number, name, who may send it, field, encoding, rule |
//! | `codec` | the encodings |
//! | `error` | why parameters are refused |

mod codec;
mod error;
mod table;

use std::net::{SocketAddrV4, SocketAddrV6};
use std::time::Duration;

use fulmar_base::Rng;

use self::codec::put_varint;
pub use self::error::{ParameterId, ParameterProblem, TransportParameterError};
use self::table::{ROWS, Row, Sender};
use crate::{ConnectionId, PathId, Reader, ResetToken, Side, VarInt, Version};

/// The most parameters that are read, known or not. Some 40 are registered.
const PARAMETERS_MAX: usize = 256;

/// The most available versions that are read or written (RFC 9368 §3).
const AVAILABLE_VERSIONS_MAX: usize = 64;

/// The most streams of one kind over the life of a connection (RFC 9000 §4.6).
const STREAMS_MAX: u64 = 1 << 60;

/// The transport parameters of one end.
///
/// The default is what RFC 9000 §18.2 assumes of parameters that are absent. [`TransportParameters::read`]
/// returns only what is legal; who fills in parameters to send keeps to the ranges that the fields name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransportParameters {
    /// The destination connection ID of the client's first Initial packet. Only from a server.
    pub original_dcid: Option<ConnectionId>,
    /// How long the connection may be silent, in milliseconds on the wire. None is without a limit.
    pub max_idle_timeout: Option<Duration>,
    /// The token of the connection ID of the handshake. Only from a server.
    pub stateless_reset_token: Option<ResetToken>,
    /// The largest UDP payload that the sender of this takes, in bytes; at least 1,200.
    pub max_udp_payload_size: VarInt,
    /// The first limit of data on the connection, in bytes.
    pub initial_max_data: VarInt,
    /// The first limit of data on bidirectional streams that the sender of this opens, in bytes.
    pub initial_max_stream_data_bidi_local: VarInt,
    /// The first limit of data on bidirectional streams that the receiver of this opens, in bytes.
    pub initial_max_stream_data_bidi_remote: VarInt,
    /// The first limit of data on unidirectional streams that the receiver of this opens, in bytes.
    pub initial_max_stream_data_uni: VarInt,
    /// How many bidirectional streams the receiver of this may open at first; at most 2^60.
    pub initial_max_streams_bidi: VarInt,
    /// How many unidirectional streams the receiver of this may open at first; at most 2^60.
    pub initial_max_streams_uni: VarInt,
    /// The exponent of 2 that scales delays in ACK frames; at most 20.
    pub ack_delay_exponent: u8,
    /// The longest deliberate delay of an acknowledgement, in milliseconds on the wire; below 2^14 ms.
    pub max_ack_delay: Duration,
    /// Whether the peer must not move to another address during the handshake or after it.
    pub disable_active_migration: bool,
    /// Where the client should move to. Only from a server.
    pub preferred_address: Option<PreferredAddress>,
    /// How many connection IDs the sender of this stores; at least 2.
    pub active_connection_id_limit: VarInt,
    /// The source connection ID of the sender's first Initial packet.
    pub initial_scid: Option<ConnectionId>,
    /// The source connection ID of the Retry packet. Only from a server.
    pub retry_scid: Option<ConnectionId>,
    /// Whether the sender of this takes RESET_STREAM_AT frames (draft-ietf-quic-reliable-stream-reset §3). Two numbers are
    /// in use for it: both are written, and either is read.
    pub reset_stream_at: bool,
    /// The largest DATAGRAM frame that the sender of this takes, in bytes with its header (RFC 9221 §3).
    /// None, or 0 on the wire, is without DATAGRAM frames.
    pub max_datagram_frame_size: Option<VarInt>,
    /// Whether the sender of this takes packets with any value of the QUIC bit (RFC 9287 §3).
    pub grease_quic_bit: bool,
    /// The versions of version negotiation (RFC 9368 §3).
    pub version_information: Option<VersionInformation>,
    /// Whether the sender of this sends timestamps, and wants them (draft-huitema-quic-ts §2.1). None is without the extension.
    pub time_stamps: Option<TimeStamps>,
    /// What the sender of this does and wants in address discovery (draft-ietf-quic-address-discovery §3). None is without
    /// the extension.
    pub address_discovery: Option<AddressDiscovery>,
    /// What the sender of this can recover by forward erasure correction. None is without the extension.
    pub fec: Option<FecParameters>,
    /// 1 if the sender of this takes part in forward erasure correction (draft-michel-quic-fec-01 §6.1), 0 if not.
    pub enable_fec: u8,
    /// The code that the sender of this decodes, which its peer has to use (draft-michel-quic-fec-01 §6.2). The draft names none;
    /// those who speak it have 0 for none, 1 for XOR and 2 for Reed-Solomon.
    pub decoder_fec_scheme: VarInt,
    /// The shortest delay of acknowledgements that can be asked for, in microseconds on the wire; at most
    /// `max_ack_delay` (draft-ietf-quic-ack-frequency §3). None is without the extension.
    pub min_ack_delay: Option<Duration>,
    /// The largest path ID at first (RFC 10069 §2.1). None is without multipath.
    pub initial_max_path_id: Option<PathId>,
}

/// The roles of an end in the exchange of timestamps, with their numbers on the wire (draft-huitema-quic-ts §2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TimeStamps {
    /// It wants them.
    Receive = 1,
    /// It sends them, if they are wanted.
    Send = 2,
    /// Both.
    Both = 3,
}

impl TimeStamps {
    /// Whether the end wants timestamps.
    pub fn receives(self) -> bool {
        self != Self::Send
    }

    /// Whether the end sends timestamps to who wants them.
    pub fn sends(self) -> bool {
        self != Self::Receive
    }
}

/// The roles of an end in address discovery, with their numbers on the wire (draft-ietf-quic-address-discovery §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum AddressDiscovery {
    /// It tells its peer from which address the peer's packets come.
    Provide = 0,
    /// It wants to be told.
    Receive = 1,
    /// Both.
    Both = 2,
}

impl AddressDiscovery {
    /// Whether the end tells its peer.
    pub fn provides(self) -> bool {
        self != Self::Receive
    }

    /// Whether the end wants to be told.
    pub fn receives(self) -> bool {
        self != Self::Provide
    }
}

/// What a decoder for forward erasure correction takes: how its end announces that it has one. A parameter of our own.
///
/// On the wire: the version, the bitmap, the window, the longest symbol, all variable-length integers. What follows them in
/// other versions is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FecParameters {
    /// The version of the frames. Others than [`FecParameters::VERSION`] are as if the parameter were absent.
    pub version: VarInt,
    /// The codes that it knows: bit 0 for XOR, 1 for Reed-Solomon with a Cauchy matrix, 2 for sliding-window random linear codes
    /// (RFC 8681).
    pub schemes: VarInt,
    /// The most source symbols that a repair symbol may cover, and that are looked at.
    pub window: VarInt,
    /// The most bytes of a source symbol.
    pub symbol: VarInt,
}

impl FecParameters {
    /// The version that this implementation speaks.
    pub const VERSION: VarInt = VarInt::from_u32(1);
}

/// An address to which a server wants its client to move after the handshake (RFC 9000 §9.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreferredAddress {
    /// The address over IPv4.
    pub v4: Option<SocketAddrV4>,
    /// The address over IPv6. Only the address and the port are sent.
    pub v6: Option<SocketAddrV6>,
    /// The connection ID to use there, with the sequence number 1; not empty.
    pub cid: ConnectionId,
    /// The stateless reset token of that connection ID.
    pub reset_token: ResetToken,
}

/// The versions that an end uses and knows (RFC 9368 §3). No number is 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionInformation {
    /// The version of the connection, as the sender of this sees it.
    pub chosen: Version,
    /// The versions the sender knows, at most 64: those of a client compatible with the chosen one and
    /// including it, the best first; those of a server all that it deploys.
    pub available: Vec<Version>,
}

impl Default for TransportParameters {
    fn default() -> Self {
        Self {
            original_dcid: None,
            max_idle_timeout: None,
            stateless_reset_token: None,
            max_udp_payload_size: VarInt::from_u32(65_527),
            initial_max_data: VarInt::ZERO,
            initial_max_stream_data_bidi_local: VarInt::ZERO,
            initial_max_stream_data_bidi_remote: VarInt::ZERO,
            initial_max_stream_data_uni: VarInt::ZERO,
            initial_max_streams_bidi: VarInt::ZERO,
            initial_max_streams_uni: VarInt::ZERO,
            ack_delay_exponent: 3,
            max_ack_delay: Duration::from_millis(25),
            disable_active_migration: false,
            preferred_address: None,
            active_connection_id_limit: VarInt::from_u32(2),
            initial_scid: None,
            retry_scid: None,
            reset_stream_at: false,
            max_datagram_frame_size: None,
            grease_quic_bit: false,
            version_information: None,
            time_stamps: None,
            address_discovery: None,
            fec: None,
            enable_fec: 0,
            decoder_fec_scheme: VarInt::ZERO,
            min_ack_delay: None,
            initial_max_path_id: None,
        }
    }
}

impl TransportParameters {
    /// Reads the parameters that `sender` sent. Parameters with unknown numbers are ignored.
    ///
    /// Whether the connection IDs are there and are the right ones is for the connection to ask
    /// (RFC 9000 §7.3).
    ///
    /// # Errors
    /// If a parameter is malformed, illegal, occurs twice or may not come from `sender`.
    pub fn read(sender: Side, bytes: &[u8]) -> Result<Self, TransportParameterError> {
        let mut parameters = Self::default();
        let mut seen = Vec::new();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let id = reader.varint().map_err(|_| TransportParameterError::Truncated)?;
            let len = reader.varint().map_err(|_| TransportParameterError::Truncated)?;
            note_id(&mut seen, id)?;
            let len = usize::try_from(len.get()).unwrap_or(usize::MAX);
            let value = reader.bytes(len).map_err(|truncated| illegal(id, truncated.into()))?;
            // RFC 9000 §7.4.2: parameters that are not supported are ignored.
            if let Some(row) = Row::find(id) {
                parameters.read_one(row, sender, value).map_err(|problem| illegal(id, problem))?;
            }
        }
        parameters.check_together(sender)?;
        Ok(parameters)
    }

    /// Reads the value of one parameter.
    fn read_one(&mut self, row: &Row, sender: Side, value: &[u8]) -> Result<(), ParameterProblem> {
        // RFC 9000 §18.2: a server refuses what a client must not send.
        if row.sender == Sender::Server && sender.is_client() {
            return Err(ParameterProblem::ServerOnly);
        }
        let mut reader = Reader::new(value);
        (row.read)(&mut reader, self)?;
        if reader.is_empty() { Ok(()) } else { Err(ParameterProblem::TrailingBytes) }
    }

    /// The rules that concern more than one parameter, or depend on the sender.
    fn check_together(&self, sender: Side) -> Result<(), TransportParameterError> {
        // draft-ietf-quic-ack-frequency §3: the shortest delay is not above the longest.
        if self.min_ack_delay.is_some_and(|delay| delay > self.max_ack_delay) {
            return Err(rule_broken(table::MIN_ACK_DELAY, "is above max_ack_delay"));
        }
        // RFC 9000 §18.2: a server without connection IDs gives no preferred address.
        if self.preferred_address.is_some() && self.initial_scid.is_some_and(|cid| cid.is_empty()) {
            return Err(rule_broken(table::PREFERRED_ADDRESS, "is given by a server without connection IDs"));
        }
        // RFC 9368 §4: the list of a client says how much it prefers the version it has chosen.
        let lacks_chosen = |versions: &VersionInformation| !versions.available.contains(&versions.chosen);
        if sender.is_client() && self.version_information.as_ref().is_some_and(lacks_chosen) {
            return Err(rule_broken(
                table::VERSION_INFORMATION,
                "does not list the chosen version as available",
            ));
        }
        Ok(())
    }

    /// The parameters as `sender` sends them: those that differ from their defaults.
    ///
    /// A client does not write what only servers send. With `grease`, a reserved parameter with random content
    /// lies at a random place among the others, so that peers keep ignoring what they do not know
    /// (RFC 9000 §18.1).
    pub fn write(&self, sender: Side, grease: Option<&mut Rng>) -> Vec<u8> {
        let defaults = Self::default();
        let rows = ROWS.iter().filter(|row| row.sender == Sender::Either || sender.is_server());
        let mut parameters: Vec<(VarInt, Vec<u8>)> = Vec::with_capacity(ROWS.len() + 1);
        parameters
            .extend(rows.filter_map(|row| Some((VarInt::saturating(row.id), (row.write)(self, &defaults)?))));
        if let Some(rng) = grease {
            let place = rng.below(parameters.len() as u64 + 1) as usize;
            parameters.insert(place, reserved_parameter(rng));
        }
        let sizes = parameters.iter().map(|(_, value)| 2 * VarInt::MAX.size() + value.len());
        let mut out = Vec::with_capacity(sizes.sum());
        for (id, value) in parameters {
            put_varint(&mut out, id);
            put_varint(&mut out, VarInt::saturating(value.len() as u64));
            out.extend_from_slice(&value);
        }
        out
    }
}

/// Remembers that a parameter occurred, in a sorted list.
fn note_id(seen: &mut Vec<VarInt>, id: VarInt) -> Result<(), TransportParameterError> {
    // RFC 9000 §7.4: no parameter occurs twice.
    let Err(place) = seen.binary_search(&id) else { return Err(illegal(id, ParameterProblem::Duplicate)) };
    if seen.len() == PARAMETERS_MAX {
        return Err(TransportParameterError::TooMany);
    }
    seen.insert(place, id);
    Ok(())
}

fn illegal(id: VarInt, problem: ParameterProblem) -> TransportParameterError {
    TransportParameterError::Illegal { parameter: ParameterId(id), problem }
}

fn rule_broken(id: u64, why: &'static str) -> TransportParameterError {
    illegal(VarInt::saturating(id), ParameterProblem::Value(why))
}

/// A parameter of those that peers must ignore, with up to 16 random bytes (RFC 9000 §18.1).
fn reserved_parameter(rng: &mut Rng) -> (VarInt, Vec<u8>) {
    const MULTIPLES: u64 = (VarInt::MAX.get() - 27) / 31 + 1;
    let id = VarInt::saturating(31 * rng.below(MULTIPLES) + 27);
    let mut value = vec![0; rng.below(17) as usize];
    rng.fill(&mut value);
    (id, value)
}

#[cfg(test)]
mod tests;

//! The table of transport parameters: everything that tells one parameter from another is in its row.

use std::time::Duration;

use super::codec::{
    Cid, Codec, Discovery, Fec, Flag, Microseconds, Milliseconds, NonZeroMilliseconds, NonZeroNumber, Number,
    Optional, Path, Preferred, SmallNumber, Stamps, Token, Versions,
};
use super::{ParameterProblem, PreferredAddress, STREAMS_MAX, TransportParameters, VersionInformation};
use crate::{Reader, VarInt, Version};

/// One transport parameter.
pub(super) struct Row {
    /// The registered number.
    pub(super) id: u64,
    /// The registered name.
    pub(super) name: &'static str,
    /// Who may send it.
    pub(super) sender: Sender,
    /// Reads the value into its field and checks it.
    pub(super) read: fn(&mut Reader<'_>, &mut TransportParameters) -> Result<(), ParameterProblem>,
    /// The encoded value, if the field in the first differs from that in the second, the defaults.
    pub(super) write: fn(&TransportParameters, &TransportParameters) -> Option<Vec<u8>>,
}

/// Who may send a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    Either,
    Server,
}

/// The numbers of parameters that rules about several parameters name.
pub(super) const PREFERRED_ADDRESS: u64 = 0x0d;
pub(super) const VERSION_INFORMATION: u64 = 0x11;
pub(super) const MIN_ACK_DELAY: u64 = 0xff04_de1b;

impl Row {
    /// The row of a parameter that this implementation knows.
    pub(super) fn find(id: VarInt) -> Option<&'static Self> {
        ROWS.iter().find(|row| row.id == id.get())
    }
}

macro_rules! rows {
    ($($id:tt $name:literal $sender:ident $field:ident: $codec:ty $(, $check:expr)?;)*) => {
        /// Every parameter, in the order in which they are written.
        pub(super) static ROWS: &[Row] = &[$(Row {
            id: $id,
            name: $name,
            sender: Sender::$sender,
            read: |reader, parameters| {
                let value = <$codec as Codec>::read(reader)?;
                $(check($check, &value)?;)?
                parameters.$field = value;
                Ok(())
            },
            write: |parameters, defaults| {
                (parameters.$field != defaults.$field).then(|| encoded::<$codec>(&parameters.$field))
            },
        },)*];
    };
}

rows! {
    // RFC 9000 §18.2.
    0x00 "original_destination_connection_id" Server original_dcid: Optional<Cid>;
    0x01 "max_idle_timeout" Either max_idle_timeout: NonZeroMilliseconds;
    0x02 "stateless_reset_token" Server stateless_reset_token: Optional<Token>;
    0x03 "max_udp_payload_size" Either max_udp_payload_size: Number, (payload_size, "is below 1200");
    0x04 "initial_max_data" Either initial_max_data: Number;
    0x05 "initial_max_stream_data_bidi_local" Either initial_max_stream_data_bidi_local: Number;
    0x06 "initial_max_stream_data_bidi_remote" Either initial_max_stream_data_bidi_remote: Number;
    0x07 "initial_max_stream_data_uni" Either initial_max_stream_data_uni: Number;
    // RFC 9000 §4.6: more streams than that have no number.
    0x08 "initial_max_streams_bidi" Either initial_max_streams_bidi: Number, (stream_count, "is above 2^60");
    0x09 "initial_max_streams_uni" Either initial_max_streams_uni: Number, (stream_count, "is above 2^60");
    0x0a "ack_delay_exponent" Either ack_delay_exponent: SmallNumber, (exponent, "is above 20");
    0x0b "max_ack_delay" Either max_ack_delay: Milliseconds, (ack_delay, "is 2^14 milliseconds or more");
    0x0c "disable_active_migration" Either disable_active_migration: Flag;
    PREFERRED_ADDRESS "preferred_address" Server preferred_address: Optional<Preferred>,
        (has_cid, "has a connection ID of zero length");
    0x0e "active_connection_id_limit" Either active_connection_id_limit: Number, (cid_limit, "is below 2");
    0x0f "initial_source_connection_id" Either initial_scid: Optional<Cid>;
    0x10 "retry_source_connection_id" Server retry_scid: Optional<Cid>;
    // RFC 9368 §3.
    VERSION_INFORMATION "version_information" Either version_information: Optional<Versions>,
        (versions, "contains the version number 0");
    // draft-ietf-quic-reliable-stream-reset §3. The second is the number of drafts 05 to 07, which some peers know alone.
    0x1d "reset_stream_at" Either reset_stream_at: Flag;
    0x17f7586d2cb571 "reset_stream_at (draft 07)" Either reset_stream_at: Flag;
    // RFC 9221 §3.
    0x20 "max_datagram_frame_size" Either max_datagram_frame_size: NonZeroNumber;
    // RFC 10069 §2.1.
    0x3e "initial_max_path_id" Either initial_max_path_id: Optional<Path>;
    // RFC 9287 §3.
    0x2ab2 "grease_quic_bit" Either grease_quic_bit: Flag;
    // Our own: forward erasure correction.
    0x3fed "fec" Either fec: Optional<Fec>;
    // draft-huitema-quic-ts §2.1.
    0x7158 "enable_time_stamp" Either time_stamps: Optional<Stamps>;
    // draft-michel-quic-fec-01 §6: forward erasure correction.
    0x238ffecd "decoder_fec_scheme" Either decoder_fec_scheme: Number;
    0x238ffece01 "enable_fec" Either enable_fec: SmallNumber, (flag, "is above 1");
    // draft-ietf-quic-address-discovery §3.
    0x9f81a176 "address_discovery" Either address_discovery: Optional<Discovery>;
    // draft-ietf-quic-ack-frequency §3.
    MIN_ACK_DELAY "min_ack_delay" Either min_ack_delay: Optional<Microseconds>;
}

/// Applies the last column of the table: a rule, and what is wrong with a value that breaks it.
fn check<V>((rule, wrong): (fn(&V) -> bool, &'static str), value: &V) -> Result<(), ParameterProblem> {
    if rule(value) { Ok(()) } else { Err(ParameterProblem::Value(wrong)) }
}

fn encoded<C: Codec>(value: &C::Value) -> Vec<u8> {
    let mut out = Vec::new();
    C::write(value, &mut out);
    out
}

fn payload_size(maximum: &VarInt) -> bool {
    maximum.get() >= 1200
}

fn stream_count(maximum: &VarInt) -> bool {
    maximum.get() <= STREAMS_MAX
}

fn exponent(exponent: &u8) -> bool {
    *exponent <= 20
}

fn flag(flag: &u8) -> bool {
    *flag <= 1
}

fn ack_delay(delay: &Duration) -> bool {
    *delay < Duration::from_millis(1 << 14)
}

fn cid_limit(limit: &VarInt) -> bool {
    limit.get() >= 2
}

fn has_cid(address: &Option<PreferredAddress>) -> bool {
    address.is_none_or(|address| !address.cid.is_empty())
}

fn versions(information: &Option<VersionInformation>) -> bool {
    let none = Version::NEGOTIATION;
    information.as_ref().is_none_or(|v| v.chosen != none && !v.available.contains(&none))
}

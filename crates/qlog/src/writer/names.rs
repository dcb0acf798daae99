//! The words of the drafts for what the log knows.

use fulmar_h3_proto::ErrorCode;
use fulmar_proto::log::{
    BlockedReason, ConnectionState, EcnState, MigrationState, PacketDropReason, RepairOutcome,
};
use fulmar_proto::{CipherSuite, PathId, SpaceId, TransportErrorCode};

pub(super) fn packet_type(space: SpaceId) -> &'static str {
    match space {
        SpaceId::Initial => "initial",
        SpaceId::Handshake => "handshake",
        SpaceId::Data(_) => "1RTT",
    }
}

/// What tells the path of a packet or a figure, if it is not the first: packet numbers belong to paths. The drafts have no word for it
/// yet; it is the one of the frames of multipath.
pub(super) fn path_id(path: PathId) -> String {
    match path {
        PathId::ZERO => String::new(),
        PathId(path) => format!(",\"path_id\":{path}"),
    }
}

pub(super) fn number_space(space: SpaceId) -> &'static str {
    match space {
        SpaceId::Initial => "initial",
        SpaceId::Handshake => "handshake",
        SpaceId::Data(_) => "application_data",
    }
}

pub(super) fn ecn_state(state: EcnState) -> &'static str {
    match state {
        EcnState::Testing => "testing",
        EcnState::Unknown => "unknown",
        EcnState::Capable => "capable",
        EcnState::Failed => "failed",
    }
}

pub(super) fn connection_state(state: ConnectionState) -> &'static str {
    match state {
        ConnectionState::Attempted => "attempted",
        ConnectionState::Established => "handshake_complete",
        ConnectionState::Confirmed => "handshake_confirmed",
        ConnectionState::Closing => "closing",
        ConnectionState::Draining => "draining",
        ConnectionState::TimedOut | ConnectionState::Drained => "closed",
    }
}

pub(super) fn migration_state(state: MigrationState) -> &'static str {
    match state {
        MigrationState::ProbingStarted => "probing_started",
        MigrationState::ProbingAbandoned => "probing_abandoned",
        MigrationState::ProbingSuccessful => "probing_successful",
        MigrationState::MigrationStarted => "migration_started",
        MigrationState::MigrationAbandoned => "migration_abandoned",
        MigrationState::MigrationComplete => "migration_complete",
    }
}

pub(super) fn drop_trigger(reason: PacketDropReason) -> &'static str {
    match reason {
        PacketDropReason::Unreadable => "invalid",
        PacketDropReason::Unwanted => "rejected",
        PacketDropReason::Duplicate => "duplicate",
        PacketDropReason::Unauthenticated => "decryption_failure",
        PacketDropReason::NoKeys => "key_unavailable",
    }
}

pub(super) fn tls_cipher(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::Aes128Gcm => "AES_128_GCM_SHA256",
        CipherSuite::Aes256Gcm => "AES_256_GCM_SHA384",
        CipherSuite::ChaCha20Poly1305 => "CHACHA20_POLY1305_SHA256",
    }
}

/// The name of a transport error; `None`: the drafts have none.
pub(super) fn transport_error(code: u64) -> Option<String> {
    match code {
        0x100..=0x1ff => Some(format!("crypto_error_{code:#x}")),
        // The drafts know those of RFC 9000.
        0..=0x10 => TransportErrorCode(code).name().map(str::to_ascii_lowercase),
        _ => None,
    }
}

/// What the error codes of the application mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ApplicationErrors {
    /// That is known to the application alone, or not yet.
    #[default]
    Unnamed,
    /// Those of HTTP/3.
    Http3,
}

impl ApplicationErrors {
    pub(super) fn of_alpn(alpn: &[u8]) -> Self {
        if alpn == b"h3" { Self::Http3 } else { Self::Unnamed }
    }

    /// The name of an error; `None`: the drafts have none.
    pub(super) fn name(self, code: u64) -> Option<&'static str> {
        let place = code.checked_sub(ErrorCode::NoError.code()).filter(|_| self == Self::Http3)?;
        *HTTP3_ERRORS.get(usize::try_from(place).ok()?)?
    }
}

/// HTTP3ApplicationError of draft-ietf-quic-qlog-h3-events, from H3_NO_ERROR on. It has no names for the errors of QPACK and of HTTP datagrams, and for
/// 0x10e one from before RFC 9114 (`http_early_response`), which would tell something else than H3_MESSAGE_ERROR.
const HTTP3_ERRORS: [Option<&str>; 17] = [
    Some("http_no_error"),
    Some("http_general_protocol_error"),
    Some("http_internal_error"),
    Some("http_stream_creation_error"),
    Some("http_closed_critical_stream"),
    Some("http_frame_unexpected"),
    Some("http_frame_error"),
    Some("http_excessive_load"),
    Some("http_id_error"),
    Some("http_settings_error"),
    Some("http_missing_settings"),
    Some("http_request_rejected"),
    Some("http_request_cancelled"),
    Some("http_request_incomplete"),
    None,
    Some("http_connect_error"),
    Some("http_version_fallback"),
];

/// The fields of an error with this name, or else with its code.
pub(super) fn error(key: &str, name: Option<&str>, code: u64) -> String {
    match name {
        Some(name) => format!("\"{key}\":\"{name}\""),
        None => format!("\"{key}\":\"unknown\",\"error_code\":{code}"),
    }
}

/// How a transport parameter is told: its number, its name, whether it is a flag.
pub(super) const PARAMETERS: [(u64, &str, bool); 22] = [
    (0x01, "max_idle_timeout", false),
    (0x03, "max_udp_payload_size", false),
    (0x04, "initial_max_data", false),
    (0x05, "initial_max_stream_data_bidi_local", false),
    (0x06, "initial_max_stream_data_bidi_remote", false),
    (0x07, "initial_max_stream_data_uni", false),
    (0x08, "initial_max_streams_bidi", false),
    (0x09, "initial_max_streams_uni", false),
    (0x0a, "ack_delay_exponent", false),
    (0x0b, "max_ack_delay", false),
    (0x0c, "disable_active_migration", true),
    (0x0e, "active_connection_id_limit", false),
    (0x1d, "reset_stream_at", true),
    (0x20, "max_datagram_frame_size", false),
    (0x2ab2, "grease_quic_bit", true),
    // Those of extensions that the drafts do not know.
    (0x3e, "initial_max_path_id", false),
    (0x3fed, "fec", false),
    (0x7158, "enable_time_stamp", false),
    (0x238f_fecd, "decoder_fec_scheme", false),
    (0x9f81_a176, "address_discovery", false),
    (0xff04_de1b, "min_ack_delay", false),
    (0x23_8ffe_ce01, "enable_fec", false),
];

/// What became of a repair symbol of forward erasure correction.
pub(crate) fn repair_outcome(outcome: RepairOutcome) -> &'static str {
    match outcome {
        RepairOutcome::Kept => "kept",
        RepairOutcome::Used => "used",
        RepairOutcome::Redundant => "redundant",
        RepairOutcome::Dropped => "dropped",
    }
}

/// Why no more is sent.
pub(crate) fn blocked(reason: BlockedReason) -> &'static str {
    match reason {
        BlockedReason::NothingToSend => "application",
        BlockedReason::Window => "congestion_control",
        BlockedReason::Pacer => "pacing",
        BlockedReason::AmplificationLimit => "amplification_protection",
    }
}

//! The words of the drafts for what the log knows.

use fulmar_proto::log::{
    BlockedReason, ConnectionState, EcnState, MigrationState, PacketDropReason, RepairOutcome,
};
use fulmar_proto::{CipherSuite, SpaceId, TransportErrorCode};

pub(super) fn packet_type(space: SpaceId) -> &'static str {
    match space {
        SpaceId::Initial => "initial",
        SpaceId::Handshake => "handshake",
        SpaceId::Data(_) => "1RTT",
    }
}

/// What tells the path of a packet, if it is not the first: numbers belong to paths. The drafts have no word for it yet; it is the one
/// of the frames of multipath.
pub(super) fn path_of(space: SpaceId) -> String {
    match space {
        SpaceId::Data(path) if path.0 > 0 => format!(",\"path_id\":{}", path.0),
        _ => String::new(),
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

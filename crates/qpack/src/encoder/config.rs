//! What an encoder may use.

/// How much an encoder uses of what the peer allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncoderConfig {
    /// The largest dynamic table, in bytes, however much more the peer allows. Zero turns it off. 4096 by default.
    pub table_capacity_max: usize,
    /// Cookies of fewer bytes are sent as literals that are never indexed, as they might be guessed
    /// (RFC 9204 §7.1.3). 20 by default.
    pub cookie_len_min: usize,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        Self { table_capacity_max: 4096, cookie_len_min: 20 }
    }
}

/// What the peer's decoder allows, from its SETTINGS. Both are zero until they have come, or were remembered for 0-RTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeerSettings {
    /// SETTINGS_QPACK_MAX_TABLE_CAPACITY, in bytes.
    pub max_table_capacity: u64,
    /// SETTINGS_QPACK_BLOCKED_STREAMS.
    pub blocked_streams: u64,
}

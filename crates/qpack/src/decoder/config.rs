//! What a decoder allows.

/// What a decoder allows to the peer, and how much it does for a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecoderConfig {
    /// SETTINGS_QPACK_MAX_TABLE_CAPACITY: how large the peer may make the dynamic table, in bytes. 4096 by default.
    pub max_table_capacity: usize,
    /// SETTINGS_QPACK_BLOCKED_STREAMS: how many streams may wait for entries at a time. 100 by default.
    pub blocked_streams: usize,
    /// SETTINGS_MAX_FIELD_SECTION_SIZE: the largest section, decoded, with 32 bytes for each field (RFC 9114 §4.2.2). 64 KiB
    /// by default.
    pub field_section_size_max: usize,
    /// The most fields of a section. 512 by default.
    pub fields_max: usize,
    /// The most fields named `cookie` of a section: RFC 9114 §4.2.1 lets a client split what is one for the application.
    /// 256 by default.
    pub cookie_crumbs_max: usize,
    /// What all sections that wait may take together, encoded, in bytes. 256 KiB by default.
    pub blocked_bytes_max: usize,
}

impl Default for DecoderConfig {
    fn default() -> Self {
        Self {
            max_table_capacity: 4096,
            blocked_streams: 100,
            field_section_size_max: 64 * 1024,
            fields_max: 512,
            cookie_crumbs_max: 256,
            blocked_bytes_max: 256 * 1024,
        }
    }
}

/// Of what a section has more than this end allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Excess {
    /// Its size, decoded ([`DecoderConfig::field_section_size_max`]).
    Size,
    /// The number of its fields ([`DecoderConfig::fields_max`]).
    Fields,
    /// The number of cookies ([`DecoderConfig::cookie_crumbs_max`]).
    CookieCrumbs,
    /// The bytes that wait for entries ([`DecoderConfig::blocked_bytes_max`]).
    BlockedBytes,
}

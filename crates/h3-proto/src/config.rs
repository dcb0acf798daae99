//! What an end offers, and how much a peer can make it do.

use fulmar_qpack::{DecoderConfig, EncoderConfig};

/// How often something may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How often at once, after a time of rest.
    pub burst: u32,
    /// How often a second in the long run.
    pub per_second: u32,
}

/// What an end offers and limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// What the QPACK decoder allows: the size and number of fields of a section above all.
    pub decoder: DecoderConfig,
    /// What the QPACK encoder uses.
    pub encoder: EncoderConfig,
    /// The largest HEADERS frame, encoded, in bytes. Larger ones are refused. 64 KiB by default.
    pub section_encoded_max: usize,
    /// What the parts of HEADERS frames that are not whole may take on all streams together, in bytes. What goes beyond it is
    /// refused. 256 KiB by default.
    pub sections_partial_max: usize,
    /// How many frames and streams that bring nothing may come in a row: empty ones, unknown ones, repeated settings of a
    /// value. Those that bring something count against them. 1024 by default; the next one ends the connection with H3_EXCESSIVE_LOAD.
    pub useless_max: u32,
    /// How often a client may begin a request; more are rejected with H3_REQUEST_REJECTED. No limit by default, as the
    /// transport limits those that are open at a time.
    pub requests: Option<Rate>,
    /// How often a client may give up a request at once: before its response has begun, and before 50 ms are over; more often ends the
    /// connection with H3_EXCESSIVE_LOAD. 500 at once and 50 a second by default. Requests that time out do not count; those that become
    /// malformed behind their head do, as this end gives them up.
    pub resets: Rate,
    /// Whether a server takes extended CONNECT (RFC 9220). Off by default.
    pub enable_connect_protocol: bool,
    /// Whether HTTP datagrams are taken (RFC 9297). Off by default; the transport must take datagrams, too.
    pub h3_datagram: bool,
    /// Settings that this crate does not know, as identifier and value, for sessions.
    pub settings: Vec<(u64, u64)>,
    /// Streams that begin with a number of a session: see [`SessionStreams`].
    pub session_streams: SessionStreams,
    /// What a server says it is authoritative for (ORIGIN, RFC 9412), as `https://example.org`. At most 16 KiB together.
    pub origins: Vec<String>,
    /// Whether responses of a server get a Date where they have none (RFC 9110 §6.6.1). This crate has no clock: it is the owner that adds it. On
    /// by default; off for a server whose clock is not right.
    pub date_header: bool,
    /// A random number, of which a setting and a frame are made that mean nothing (RFC 9114 §7.2.8); `None` sends none.
    pub grease: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            decoder: DecoderConfig::default(),
            encoder: EncoderConfig::default(),
            section_encoded_max: 64 * 1024,
            sections_partial_max: 256 * 1024,
            useless_max: 1024,
            requests: None,
            resets: Rate { burst: 500, per_second: 50 },
            enable_connect_protocol: false,
            h3_datagram: false,
            settings: Vec::new(),
            session_streams: SessionStreams::default(),
            origins: Vec::new(),
            date_header: true,
            grease: None,
        }
    }
}

/// How streams begin that belong to a session: a number that says the kind, and the stream ID of the session's request. What
/// follows is not read by this crate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionStreams {
    /// The first numbers of bidirectional streams: 0x41 of WebTransport.
    pub bidirectional: Vec<u64>,
    /// The types of unidirectional streams: 0x54 of WebTransport.
    pub unidirectional: Vec<u64>,
}

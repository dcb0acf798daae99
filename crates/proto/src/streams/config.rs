//! What the two ends allow each other, and what this end keeps in memory.

/// The most streams of a direction that may be open at once, whatever is asked for.
pub(crate) const CONCURRENT_MAX: u64 = 1 << 20;

/// How the streams of a connection behave. Sizes are in bytes.
#[derive(Debug, Clone)]
pub(crate) struct StreamsConfig {
    /// Bidirectional streams that the peer may have open at a time.
    pub(crate) max_concurrent_bidi: u64,
    /// Unidirectional streams that the peer may have open at a time.
    pub(crate) max_concurrent_uni: u64,
    /// What the peer may send on a stream ahead of the application, at first.
    pub(crate) stream_receive_window: u64,
    /// The same, as far as it may grow.
    pub(crate) stream_receive_window_max: u64,
    /// What the peer may send on all streams together ahead of the application, at first.
    pub(crate) receive_window: u64,
    /// The same, as far as it may grow.
    pub(crate) receive_window_max: u64,
    /// What all streams together buffer for sending at most.
    pub(crate) send_window: u64,
    /// Whether the peer may send RESET_STREAM_AT.
    pub(crate) reset_stream_at: bool,
}

/// What is needed of a [`StreamsConfig`] for as long as the connection lives. Sizes are in bytes.
#[derive(Debug)]
pub(super) struct Windows {
    /// What the peer may send on a stream ahead of the application, at first.
    pub(super) stream_receive: u64,
    /// The same, as far as it may grow.
    pub(super) stream_receive_max: u64,
    /// What the peer may send on all streams together ahead of the application, as far as it may grow.
    pub(super) receive_max: u64,
    /// What all streams together buffer for sending at most.
    pub(super) send: u64,
}

impl StreamsConfig {
    /// The windows alone, without what holds for the beginning of a connection.
    pub(super) fn windows(&self) -> Windows {
        Windows {
            stream_receive: self.stream_receive_window,
            stream_receive_max: self.stream_receive_window_max,
            receive_max: self.receive_window_max,
            send: self.send_window,
        }
    }

    /// The limits that this end gives to the peer with its transport parameters.
    pub(crate) fn initial_limits(&self) -> InitialLimits {
        InitialLimits {
            max_data: self.receive_window,
            max_stream_data_bidi_local: self.stream_receive_window,
            max_stream_data_bidi_remote: self.stream_receive_window,
            max_stream_data_uni: self.stream_receive_window,
            max_streams_bidi: self.max_concurrent_bidi,
            max_streams_uni: self.max_concurrent_uni,
            reset_stream_at: self.reset_stream_at,
        }
    }
}

/// The defaults of [`TransportConfig`](crate::TransportConfig) as well, which has no others.
impl Default for StreamsConfig {
    fn default() -> Self {
        Self {
            max_concurrent_bidi: 128,
            max_concurrent_uni: 128,
            stream_receive_window: 1 << 20,
            stream_receive_window_max: 96 << 20,
            receive_window: 3 << 19,
            receive_window_max: 128 << 20,
            send_window: 128 << 20,
            reset_stream_at: true,
        }
    }
}

/// The limits that one end gives the other with its transport parameters (RFC 9000 §18.2). "Local" and
/// "remote" are as seen by the end that gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct InitialLimits {
    /// `initial_max_data`.
    pub(crate) max_data: u64,
    /// `initial_max_stream_data_bidi_local`.
    pub(crate) max_stream_data_bidi_local: u64,
    /// `initial_max_stream_data_bidi_remote`.
    pub(crate) max_stream_data_bidi_remote: u64,
    /// `initial_max_stream_data_uni`.
    pub(crate) max_stream_data_uni: u64,
    /// `initial_max_streams_bidi`.
    pub(crate) max_streams_bidi: u64,
    /// `initial_max_streams_uni`.
    pub(crate) max_streams_uni: u64,
    /// `reset_stream_at`: whether it takes RESET_STREAM_AT.
    pub(crate) reset_stream_at: bool,
}

//! Early data: what a client that resumes sends with its first packets, before it has heard of the server
//! (RFC 9001 §4.6, RFC 9000 §7.4.1).

use fulmar_base::Instant;
use fulmar_wire::TransportParameters;

use crate::connection::Connection;
use crate::connection::delivery::Fate;
use crate::error::TransportError;
use crate::ids::SpaceId;
use crate::streams::InitialLimits;

/// What became of the early data of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyData {
    /// There is none: nothing was resumed, or it was not asked for.
    Unused,
    /// It can be sent, and the server has not said yet whether it takes it.
    Offered,
    /// The server has taken it. An attacker may have sent it again to another server (RFC 8446 §8).
    Accepted,
    /// The server has not taken it: everything is sent again with the keys of this connection.
    Rejected,
}

/// The limits of the server that hold for early data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::connection) struct RememberedLimits {
    streams: InitialLimits,
    datagram_frame_max: u64,
    active_connection_ids: u64,
}

impl RememberedLimits {
    pub(in crate::connection) fn of(parameters: &TransportParameters) -> Self {
        Self {
            streams: stream_limits(parameters),
            datagram_frame_max: parameters.max_datagram_frame_size.map_or(0, |size| size.get()),
            active_connection_ids: parameters.active_connection_id_limit.get(),
        }
    }

    /// Whether a limit is lower than in `before` (RFC 9000 §7.4.1, RFC 9221 §3).
    fn is_reduced_since(&self, before: &Self) -> bool {
        let values = |limits: &Self| {
            let streams = &limits.streams;
            [
                streams.max_data,
                streams.max_stream_data_bidi_local,
                streams.max_stream_data_bidi_remote,
                streams.max_stream_data_uni,
                streams.max_streams_bidi,
                streams.max_streams_uni,
                streams.reset_stream_at.into(),
                limits.datagram_frame_max,
                limits.active_connection_ids,
            ]
        };
        values(self).iter().zip(values(before)).any(|(now, before)| *now < before)
    }
}

/// The limits for streams in transport parameters.
pub(in crate::connection) fn stream_limits(parameters: &TransportParameters) -> InitialLimits {
    InitialLimits {
        max_data: parameters.initial_max_data.get(),
        max_stream_data_bidi_local: parameters.initial_max_stream_data_bidi_local.get(),
        max_stream_data_bidi_remote: parameters.initial_max_stream_data_bidi_remote.get(),
        max_stream_data_uni: parameters.initial_max_stream_data_uni.get(),
        max_streams_bidi: parameters.initial_max_streams_bidi.get(),
        max_streams_uni: parameters.initial_max_streams_uni.get(),
        reset_stream_at: parameters.reset_stream_at,
    }
}

impl Connection {
    /// What became of early data. On a server it is `Accepted` if the client has sent some that was taken.
    pub fn early_data(&self) -> EarlyData {
        self.handshake.early_data
    }

    /// A client that resumes takes the keys of early data, and the limits that the server had then.
    pub(in crate::connection) fn offer_early_data(&mut self) {
        let handshake = &mut self.handshake;
        let Some(remembered) = handshake.tls.take_zero_rtt_keys(&mut handshake.keys) else { return };
        let limits = RememberedLimits::of(&remembered);
        self.streams.apply_peer_limits(&limits.streams);
        self.datagrams.set_peer_frame_max(limits.datagram_frame_max);
        handshake.remembered = Some(Box::new(limits));
        handshake.early_data = EarlyData::Offered;
    }

    /// The handshake of a client is complete: the server has taken early data, or not.
    pub(in crate::connection) fn conclude_early_data(
        &mut self,
        now: Instant,
        parameters: &TransportParameters,
    ) -> Result<(), TransportError> {
        let handshake = &mut self.handshake;
        if handshake.early_data != EarlyData::Offered {
            return Ok(());
        }
        handshake.keys.discard_zero_rtt();
        let limits = RememberedLimits::of(parameters);
        if handshake.session().early_data_accepted() {
            handshake.early_data = EarlyData::Accepted;
            if handshake.remembered.take().is_some_and(|before| limits.is_reduced_since(&before)) {
                return Err(TransportError::protocol_violation("early data was taken under reduced limits"));
            }
        } else {
            handshake.early_data = EarlyData::Rejected;
            self.take_back_early_data(now, &limits.streams);
        }
        Ok(())
    }

    /// The server has nothing of what was sent: a Retry or a rejection has made it void. All of it is sent again,
    /// under `limits`.
    fn take_back_early_data(&mut self, now: Instant, limits: &InitialLimits) {
        let space = SpaceId::Data(self.paths.primary().id);
        let mut recovery = self.recovery(now);
        for frames in recovery.forget_sent(space) {
            recovery.owners.deliver(space, &frames, Fate::Lost);
        }
        self.streams.restart(limits);
    }

    /// A Retry, or another version: early data has to be sent again, and may (RFC 9000 §17.2.5.3).
    pub(in crate::connection) fn repeat_early_data(&mut self, now: Instant) {
        if let Some(limits) = self.handshake.remembered.as_ref().map(|limits| limits.streams) {
            self.take_back_early_data(now, &limits);
        }
    }

    /// There are no keys of early data any more; the server can have none of it.
    pub(in crate::connection) fn give_up_early_data(&mut self, now: Instant) {
        if self.handshake.early_data == EarlyData::Offered {
            self.repeat_early_data(now);
            self.handshake.keys.discard_zero_rtt();
        }
    }
}

//! What the settings and traits of this crate ask for can be named with it alone.

use std::sync::Arc;

use fulmar::congestion::Controller;
use fulmar::log::{BlockedReason, LogEvent};
use fulmar::{
    CidGenerator, ConnectError, ConnectionId, Ecn, EndpointConfig, Instant, ResetKey, Rng, TimerReason,
    TimerStyle, TransportConfig, UnknownTimerStyle, proto,
};

#[derive(Debug)]
struct Counted;

impl CidGenerator for Counted {
    fn generate(&self, rng: &mut Rng) -> ConnectionId {
        ConnectionId::new(&rng.below(1 << 40).to_be_bytes()).expect("8 bytes")
    }

    fn cid_len(&self) -> usize {
        8
    }
}

/// What a controller of one's own that wants marks says.
fn codepoint_of(controller: &dyn Controller) -> Ecn {
    match controller.ecn_codepoint() {
        Ecn::NotEct => Ecn::Ect1,
        other => other,
    }
}

/// What a sink of one's own counts.
fn why(event: &LogEvent) -> Option<BlockedReason> {
    match event {
        LogEvent::Blocked { reason, .. } => Some(*reason),
        _ => None,
    }
}

/// What a path manager of one's own may ask.
fn next_timer(connection: &proto::Connection) -> Option<(Instant, TimerReason)> {
    connection.poll_timeout()
}

#[test]
fn everything_has_a_name_here() {
    let transport = TransportConfig { timers: TimerStyle::Classic, ..TransportConfig::default() };
    assert_eq!("classic".parse::<TimerStyle>(), Ok::<_, UnknownTimerStyle>(transport.timers));
    let mut endpoint = EndpointConfig::new(ResetKey::new(&[7; 32]));
    endpoint.cid_generator = Arc::new(Counted);
    let cid = endpoint.cid_generator.generate(&mut Rng::from_u64(1));
    assert_eq!(cid.len(), endpoint.cid_generator.cid_len());
    let error = ConnectError::Config(proto::ConnectError::InvalidServerName("?".to_owned()));
    assert!(matches!(&error, ConnectError::Config(proto::ConnectError::InvalidServerName(_))));
    let _ = (codepoint_of, why, next_timer);
}

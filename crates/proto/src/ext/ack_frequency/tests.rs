use fulmar_wire::{Dialect, TransportErrorCode, frames};

use super::*;
use crate::rtt::Rtt;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The extension with a peer that takes frames.
fn negotiated() -> AckFrequency {
    let peer = TransportParameters { min_ack_delay: Some(millis(2)), ..TransportParameters::default() };
    AckFrequency::new(millis(1), &peer)
}

fn frame(sequence: u32, threshold: u64, micros: u64, reordering: u64) -> fulmar_wire::AckFrequency {
    fulmar_wire::AckFrequency {
        sequence: sequence.into(),
        ack_eliciting_threshold: VarInt::try_from(threshold).unwrap(),
        max_ack_delay_micros: VarInt::try_from(micros).unwrap(),
        reordering_threshold: VarInt::try_from(reordering).unwrap(),
    }
}

#[test]
fn the_newest_request_wins() {
    let mut extension = negotiated();
    let policy = |ack_eliciting_threshold, micros, reordering_threshold| AckPolicy {
        ack_eliciting_threshold,
        max_ack_delay: Duration::from_micros(micros),
        reordering_threshold,
    };
    assert_eq!(extension.on_frame(&frame(3, 9, 5_000, 3)), Ok(Some(policy(10, 5_000, 3))));
    for obsolete in [3, 2, 0] {
        assert_eq!(extension.on_frame(&frame(obsolete, 4, 6_000, 1)), Ok(None));
    }
    // An ACK for every packet; the shortest delay; never because of reordering.
    assert_eq!(extension.on_frame(&frame(4, 0, 1_000, 0)), Ok(Some(policy(1, 1_000, 0))));
    // The largest numbers do no harm.
    let max = VarInt::MAX.get();
    assert_eq!(
        extension.on_frame(&frame(5, max, 16_383_999, max)),
        Ok(Some(policy(u32::MAX, 16_383_999, max)))
    );
}

#[test]
fn illegal_delays_are_refused() {
    for micros in [0, 999, 16_384_000, VarInt::MAX.get()] {
        let mut extension = negotiated();
        let error = extension.on_frame(&frame(0, 1, micros, 1)).unwrap_err();
        assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION, "{micros}");
    }
    let mut extension = negotiated();
    assert!(extension.on_frame(&frame(8, 1, 1_000, 1)).is_ok());
    assert!(extension.on_frame(&frame(7, 1, 999, 1)).is_err(), "obsolete, but illegal");
}

/// A path of 100 Mbit/s and 20 ms: 250,000 bytes in a window.
struct Path {
    rtt: Rtt,
    now: Instant,
    window: u64,
    packets_sent: u64,
    packet_threshold: u64,
}

impl Path {
    fn new() -> Self {
        let mut rtt = Rtt::default();
        rtt.update(at(0), millis(20), Duration::ZERO, None);
        Self { rtt, now: at(0), window: 250_000, packets_sent: 1_000, packet_threshold: 3 }
    }

    /// A round trip in which four ACKs come.
    fn round(&mut self, extension: &mut AckFrequency) {
        for _ in 0..4 {
            self.now += millis(6);
            let figures = AckFigures {
                rtt: &self.rtt,
                window: self.window,
                mtu: 1_452,
                pace: None,
                packets_sent: self.packets_sent,
                packet_threshold: self.packet_threshold,
            };
            extension.on_ack(self.now, self.window / 4, &figures);
        }
    }
}

/// What is written into a packet: sequence number, threshold, delay, reordering threshold.
fn written(extension: &mut AckFrequency) -> Option<(u64, u64, u64, u64)> {
    let mut buffer = [0; 100];
    let mut out = FrameWriter::new(&mut buffer, Dialect::SinglePath);
    extension.write(&mut out);
    let payload = out.finish();
    let bytes = &buffer[..payload.len];
    let frame = frames(bytes, Dialect::SinglePath).next()?;
    let Ok(Frame::AckFrequency(frame)) = frame else { panic!("not a request: {frame:?}") };
    let sequence = frame.sequence.get();
    assert_eq!(payload.frames.as_slice(), [SentFrame::AckFrequency { sequence }]);
    let delay = frame.max_ack_delay_micros.get();
    Some((sequence, frame.ack_eliciting_threshold.get(), delay, frame.reordering_threshold.get()))
}

#[test]
fn what_suits_the_path_is_asked_for_once() {
    let (mut extension, mut path) = (negotiated(), Path::new());
    path.packets_sent = 127;
    path.round(&mut extension);
    path.round(&mut extension);
    assert_eq!(written(&mut extension), None, "the window is young");
    path.packets_sent = 128;
    path.round(&mut extension);
    path.round(&mut extension);
    assert!(extension.wants_to_send(1_000));
    assert_eq!(written(&mut extension), Some((0, 31, 5_000, 3)));
    extension.on_acked(0);
    for _ in 0..5 {
        path.round(&mut extension);
        assert_eq!(written(&mut extension), None);
    }
    path.window = 50_000;
    path.round(&mut extension);
    path.round(&mut extension);
    assert_eq!(written(&mut extension), Some((1, 8, 5_000, 3)));
}

#[test]
fn a_change_is_asked_for_once_in_a_round_trip_at_most() {
    let (mut extension, mut path) = (negotiated(), Path::new());
    path.round(&mut extension);
    let mut requests = 0;
    for i in 0..20 {
        path.packet_threshold = 3 + i;
        path.round(&mut extension);
        requests += u64::from(written(&mut extension).is_some());
    }
    assert!((15..=20).contains(&requests), "{requests}");
}

#[test]
fn what_comes_after_a_silence_tells_nothing() {
    let (mut extension, mut path) = (negotiated(), Path::new());
    path.round(&mut extension);
    path.round(&mut extension);
    assert!(written(&mut extension).is_some());
    for _ in 0..10 {
        path.now += millis(1_000);
        path.window = 3_000;
        let figures = AckFigures {
            rtt: &path.rtt,
            window: path.window,
            mtu: 1_452,
            pace: Some(3_000),
            packets_sent: 2_000,
            packet_threshold: 3,
        };
        extension.on_ack(path.now, 100, &figures);
        assert!(!extension.wants_to_send(1_000));
    }
}

#[test]
fn a_lost_request_is_repeated_under_a_new_number_and_an_old_one_is_not() {
    let (mut extension, mut path) = (negotiated(), Path::new());
    path.round(&mut extension);
    path.round(&mut extension);
    assert_eq!(written(&mut extension), Some((0, 31, 5_000, 3)));
    extension.on_lost(0);
    assert_eq!(written(&mut extension), Some((1, 31, 5_000, 3)));
    path.packet_threshold = 7;
    path.round(&mut extension);
    path.round(&mut extension);
    assert_eq!(written(&mut extension), Some((2, 31, 5_000, 7)));
    extension.on_lost(1);
    assert_eq!(written(&mut extension), None, "a newer one is under way");
    extension.on_acked(2);
    extension.on_lost(2);
    assert_eq!(written(&mut extension), None, "it has arrived");
}

#[test]
fn until_a_request_is_acknowledged_the_longest_delay_counts() {
    let (mut extension, mut path) = (negotiated(), Path::new());
    assert_eq!(extension.peer_max_ack_delay(), Some(millis(25)));
    path.round(&mut extension);
    path.round(&mut extension);
    assert!(written(&mut extension).is_some());
    assert_eq!(extension.peer_max_ack_delay(), Some(millis(25)));
    extension.on_acked(0);
    assert_eq!(extension.peer_max_ack_delay(), Some(millis(5)));
}

#[test]
fn a_peer_without_the_extension_is_not_asked() {
    let mut extension = AckFrequency::new(millis(1), &TransportParameters::default());
    let mut path = Path::new();
    path.round(&mut extension);
    path.round(&mut extension);
    assert!(!extension.may_request() && !extension.wants_to_send(1_000));
    assert_eq!(written(&mut extension), None);
    assert_eq!(extension.peer_max_ack_delay(), None);
    // It may ask all the same.
    assert!(matches!(extension.on_frame(&frame(0, 1, 1_000, 1)), Ok(Some(_))));
}

#[test]
fn a_window_that_jumps_is_answered_at_once_but_not_before_its_first_packets_are_over() {
    let (mut extension, mut path) = (negotiated(), Path::new());
    path.window = 20_000;
    path.packets_sent = 20;
    path.round(&mut extension);
    path.window = 2_000_000;
    let figures = AckFigures {
        rtt: &path.rtt,
        window: path.window,
        mtu: 1_452,
        pace: None,
        packets_sent: path.packets_sent,
        packet_threshold: path.packet_threshold,
    };
    extension.on_ack(path.now + millis(1), 5_000, &figures);
    assert!(!extension.wants_to_send(127));
    assert!(extension.wants_to_send(128));
    assert_eq!(written(&mut extension), Some((0, 31, 5_000, 3)));
}

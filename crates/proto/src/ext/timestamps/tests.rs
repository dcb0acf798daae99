use fulmar_wire::TimeStamps::{Both, Receive, Send};
use fulmar_wire::TransportErrorCode;

use super::*;

const MILLIS: Duration = Duration::from_millis(1);

fn peer(time_stamps: Option<TimeStamps>) -> TransportParameters {
    TransportParameters { time_stamps, ..TransportParameters::default() }
}

fn extension() -> Timestamps {
    Timestamps::new(Instant::ZERO, Some(Both), &peer(Some(Both))).unwrap()
}

/// A path with queues in both directions, and a peer whose clock is ahead by an hour and 100 ppm too fast.
struct Path {
    extension: Timestamps,
    tuple: u32,
}

impl Path {
    /// A packet leaves at `sent` and waits `forward` in a queue, its acknowledgement is sent `waited` later and itself
    /// waits `back`. The empty path takes 10 ms in each direction.
    fn packet(&mut self, sent: u64, forward: u64, waited: u64, back: u64) -> OneWayDelays {
        let sent = Instant::from_millis(sent);
        let acked = sent + MILLIS * (10 + forward + waited) as u32;
        let now = acked + MILLIS * (10 + back) as u32;
        let peer_micros = 3_600_000_000 + acked.as_nanos() / 1_000 * 10_001 / 10_000;
        self.extension.on_frame(&Timestamp { time: VarInt::saturating(peer_micros >> 3) }).unwrap();
        let tuple = TupleId(self.tuple);
        let ack_delay = MILLIS * waited as u32;
        self.extension.on_rtt_sample(RttSample { rtt: now - sent, ack_delay, tuple });
        assert!(self.extension.end_packet(now, 20 * MILLIS));
        self.extension.delays(tuple).unwrap()
    }
}

fn close_to(measured: Duration, millis: u64) -> bool {
    measured.abs_diff(MILLIS * millis as u32) < Duration::from_micros(300)
}

#[test]
fn the_queue_of_each_direction_is_told_whatever_the_clocks_say() {
    let mut path = Path { extension: extension(), tuple: 0 };
    path.packet(0, 0, 0, 0);
    for (number, (forward, back)) in [(0, 0), (50, 0), (0, 70), (30, 20), (5, 0)].into_iter().enumerate() {
        let delays = path.packet(100 + 200 * number as u64, forward, 7, back);
        assert!(close_to(delays.forward_queue, forward), "{forward}, {back}: {delays:?}");
        assert!(close_to(delays.return_queue, back), "{forward}, {back}: {delays:?}");
        assert!(close_to(delays.forward, 10 + forward) && close_to(delays.back, 10 + back), "{delays:?}");
    }
}

#[test]
fn clocks_that_drift_apart_are_forgiven_in_time() {
    let mut path = Path { extension: extension(), tuple: 0 };
    for second in 0..1_000 {
        let delays = path.packet(second * 1_000, 0, 0, 0);
        // 100 ppm in a minute are 6 ms; in 1000 s they would be 100.
        let most = Duration::from_micros(6_500);
        assert!(delays.forward_queue < most && delays.return_queue < most, "{second}: {delays:?}");
    }
}

#[test]
fn another_tuple_begins_anew() {
    let mut path = Path { extension: extension(), tuple: 0 };
    path.packet(0, 0, 0, 0);
    assert!(close_to(path.packet(100, 40, 0, 0).forward_queue, 40));
    path.tuple = 1;
    assert_eq!(path.packet(200, 40, 0, 0).forward_queue, Duration::ZERO);
    assert_eq!(path.extension.delays(TupleId(0)), None);
}

#[test]
fn a_stamp_without_a_measurement_tells_nothing_and_is_forgotten() {
    let mut extension = extension();
    let sample = RttSample { rtt: 20 * MILLIS, ack_delay: Duration::ZERO, tuple: TupleId(0) };
    let now = Instant::from_millis(100);
    extension.on_frame(&Timestamp { time: VarInt::from_u32(5) }).unwrap();
    assert!(!extension.end_packet(now, MILLIS));
    extension.on_rtt_sample(sample);
    assert!(!extension.end_packet(now, MILLIS));
    extension.on_frame(&Timestamp { time: VarInt::from_u32(5) }).unwrap();
    assert!(!extension.end_packet(now, MILLIS));
    assert_eq!(extension.delays(TupleId(0)), None);
}

#[test]
fn lies_do_no_harm() {
    let mut extension = extension();
    for (number, time) in [u64::MAX, 0, 1 << 50, VarInt::MAX.get(), 3].into_iter().enumerate() {
        for ack_delay in [Duration::ZERO, Duration::MAX] {
            let now = Instant::from_millis(number as u64);
            extension.on_frame(&Timestamp { time: VarInt::saturating(time) }).unwrap();
            extension.on_rtt_sample(RttSample { rtt: MILLIS, ack_delay, tuple: TupleId(0) });
            extension.end_packet(now, Duration::MAX);
        }
    }
    let mut parameters = peer(Some(Both));
    parameters.ack_delay_exponent = 20;
    let mut extension = Timestamps::new(Instant::ZERO, Some(Both), &parameters).unwrap();
    extension.on_frame(&Timestamp { time: VarInt::MAX }).unwrap();
    assert_eq!(extension.stamp, None);
}

#[test]
fn who_sends_to_whom_follows_from_both_announcements() {
    for (local, remote, sends, takes) in [
        (Some(Both), Some(Both), true, true),
        (Some(Send), Some(Receive), true, false),
        (Some(Receive), Some(Send), false, true),
        (Some(Send), Some(Send), false, false),
        (Some(Both), None, false, true),
    ] {
        let mut extension = Timestamps::new(Instant::ZERO, local, &peer(remote)).unwrap();
        let mut payload = [0; 20];
        let mut out = FrameWriter::new(&mut payload, fulmar_wire::Dialect::SinglePath);
        extension.write(Instant::from_millis(8), 3, &mut out);
        let len = out.finish().len;
        let expected: &[u8] = if sends { &[0x42, 0xf5, 0x43, 0xe8] } else { &[] };
        assert_eq!(&payload[..len], expected, "{local:?}, {remote:?}");
        let taken = extension.on_frame(&Timestamp { time: VarInt::ZERO });
        assert_eq!(taken.is_ok(), takes);
    }
    assert!(Timestamps::new(Instant::ZERO, None, &peer(Some(Both))).is_none());
    assert_eq!(unrequested_timestamp().code, TransportErrorCode::PROTOCOL_VIOLATION);
}

use super::*;

const PTO: Duration = Duration::from_millis(100);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// After the handshake, with a timeout of ten seconds and a PING after four.
fn idle() -> Idle {
    let mut idle = Idle::new(at(0), Some(Duration::from_secs(10)), Some(Duration::from_secs(4)));
    idle.on_established(at(0), PTO);
    idle
}

#[test]
fn only_the_first_question_after_an_answer_puts_the_end_off() {
    // RFC 9000 §10.1: otherwise an end that keeps asking a dead peer would never give up.
    let mut idle = idle();
    idle.on_received(at(1_000), || PTO);
    assert_eq!(idle.deadline(), Some(at(11_000)));
    idle.on_ack_eliciting_sent(at(3_000), || PTO);
    assert_eq!(idle.deadline(), Some(at(13_000)));
    idle.on_ack_eliciting_sent(at(5_000), || PTO);
    assert_eq!(idle.deadline(), Some(at(13_000)));
    idle.on_received(at(6_000), || PTO);
    idle.on_ack_eliciting_sent(at(7_000), || PTO);
    assert_eq!(idle.deadline(), Some(at(17_000)));
}

#[test]
fn a_silence_is_long_after_more_than_five_seconds_and_three_round_trips_without_a_packet_either_way() {
    let mut idle = idle();
    let short = Duration::from_millis(20);
    assert!(!idle.is_long_silent(at(5_000), short) && idle.is_long_silent(at(5_001), short));
    let far = Duration::from_secs(4);
    assert!(!idle.is_long_silent(at(12_000), far) && idle.is_long_silent(at(12_001), far));
    idle.on_ack_eliciting_sent(at(4_000), || PTO);
    assert!(!idle.is_long_silent(at(9_000), short) && idle.is_long_silent(at(9_001), short));
}

#[test]
fn a_connection_that_is_over_neither_ends_nor_asks_any_more() {
    let mut idle = idle();
    assert_eq!((idle.deadline(), idle.keep_alive_deadline()), (Some(at(10_000)), Some(at(4_000))));
    idle.stop();
    assert_eq!((idle.deadline(), idle.keep_alive_deadline()), (None, None));
}

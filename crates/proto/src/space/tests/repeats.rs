//! What is repeated although it is not lost.

use super::*;

#[test]
fn what_was_sent_again_is_repeated_once_and_nothing_else_is() {
    let mut f = Fixture::new();
    f.send(2, 0);
    let again = f.send_packet(SentPacket { resends: 1, ..packet(0) });
    f.send_packet(SentPacket { resends: 1, repeated: true, ..packet(0) });
    assert_eq!(f.space.take_resent(1, |_| true).count(), 1);
    let repeated: Vec<_> = f.space.unacked().filter(|(_, packet)| packet.repeated).map(|(n, _)| n).collect();
    assert_eq!(repeated, [again, again + 1]);
    f.send_packet(SentPacket { resends: 1, ..packet(1) });
    f.send_packet(SentPacket { resends: 2, copies: true, ..packet(1) });
    assert_eq!(f.space.take_resent(1, |_| true).count(), 1, "the new one alone");
    assert_eq!(f.space.take_resent(2, |_| true).count(), 1, "the second copy");
    assert_eq!(f.space.take_resent(2, |_| true).count(), 0, "once");
}

#[test]
fn what_is_slow_is_repeated_as_far_as_the_budget_reaches_and_the_rest_with_the_next_one() {
    let mut f = Fixture::new();
    for millis in 0..3 {
        let id = StreamId::new(Side::Client, Dir::Uni, millis);
        let frames = [SentFrame::Stream { id, offset: 0, len: 900, fin: false }].into_iter().collect();
        f.send_packet(SentPacket { frames, ..packet(millis) });
    }
    let mut repeated = |budget| {
        let mut frames = Vec::new();
        f.space.take_slow(budget, |_, _| true, &mut frames);
        frames.len()
    };
    assert_eq!(repeated(999), 0);
    assert_eq!(repeated(2_000), 2);
    assert_eq!(repeated(2_000), 1);
    assert_eq!(repeated(2_000), 0, "each once");
}

#[test]
fn a_move_repeats_what_left_over_other_tuples() {
    let mut f = Fixture::new();
    f.send(2, 0);
    let elsewhere = f.send_packet(SentPacket { tuple: TupleId(5), ..packet(0) });
    f.send_packet(quiet_packet(0));
    assert_eq!(f.space.take_for_move(TupleId(5)).count(), 2);
    assert_eq!(f.space.take_for_move(TupleId(5)).count(), 0, "once");
    let rest: Vec<_> = f.space.unacked().filter(|(_, packet)| !packet.repeated).map(|(n, _)| n).collect();
    assert_eq!(rest[0], elsewhere);
}

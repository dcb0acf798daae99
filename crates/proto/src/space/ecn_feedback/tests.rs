use super::*;

/// A monitor after `sent` packets with ECT(0).
fn monitor(sent: u64) -> EcnMonitor {
    let mut monitor = EcnMonitor::default();
    (0..sent).for_each(|_| monitor.on_sent(Ecn::Ect0));
    monitor
}

fn acked(ect0: u64) -> AckedMarks {
    let mut marks = AckedMarks::default();
    (0..ect0).for_each(|_| marks.add(Ecn::Ect0));
    marks
}

fn counts(ect0: u64, ect1: u64, ce: u64) -> Option<EcnCounts> {
    Some(EcnCounts { ect0, ect1, ce })
}

#[test]
fn verdicts() {
    // Sent, the counts of two ACKs that newly acknowledge two marked packets each, the second verdict.
    let cases = [
        ("all arrived", counts(2, 0, 0), counts(4, 0, 0), Some(EcnFeedback::Valid { ce: 0, validated: 2 })),
        (
            "one was marked",
            counts(2, 0, 0),
            counts(3, 0, 1),
            Some(EcnFeedback::Valid { ce: 1, validated: 2 }),
        ),
        (
            "an ACK was lost",
            counts(2, 0, 0),
            counts(5, 0, 1),
            Some(EcnFeedback::Valid { ce: 1, validated: 2 }),
        ),
        ("a mark disappeared", counts(2, 0, 0), counts(3, 0, 0), Some(EcnFeedback::Invalid)),
        ("a count fell", counts(2, 0, 1), counts(5, 0, 0), Some(EcnFeedback::Invalid)),
        ("the counts are missing", counts(2, 0, 0), None, Some(EcnFeedback::Invalid)),
        ("more than were sent", counts(2, 0, 0), counts(11, 0, 0), Some(EcnFeedback::Invalid)),
        ("another codepoint", counts(2, 0, 0), counts(2, 2, 2), Some(EcnFeedback::Invalid)),
        ("too many marks", counts(2, 0, 0), counts(4, 0, 11), Some(EcnFeedback::Invalid)),
    ];
    for (name, first, second, expected) in cases {
        let mut monitor = monitor(10);
        monitor.on_ack(first, acked(2));
        assert_eq!(monitor.on_ack(second, acked(2)), expected, "{name}");
    }
}

#[test]
fn a_space_that_never_marked_hears_nothing() {
    assert_eq!(monitor(0).on_ack(None, AckedMarks::default()), None);
    assert_eq!(monitor(0).on_ack(counts(1, 0, 0), AckedMarks::default()), Some(EcnFeedback::Invalid));
}

#[test]
fn the_largest_counts_overflow_nothing() {
    let mut monitor = monitor(3);
    let max = (1 << 62) - 1;
    assert_eq!(monitor.on_ack(counts(max, max, max), acked(3)), Some(EcnFeedback::Invalid));
}

#[test]
fn every_mark_may_have_become_one_of_congestion() {
    assert_eq!(
        monitor(3).on_ack(counts(0, 0, 3), acked(3)),
        Some(EcnFeedback::Valid { ce: 3, validated: 3 })
    );
    assert_eq!(monitor(3).on_ack(counts(0, 0, 4), acked(3)), Some(EcnFeedback::Invalid));
}

#[test]
fn either_mark_is_counted() {
    let mut monitor = EcnMonitor::default();
    let mut marks = AckedMarks::default();
    for mark in [Ecn::Ect1, Ecn::Ect1, Ecn::Ect0, Ecn::NotEct] {
        monitor.on_sent(mark);
        marks.add(mark);
    }
    assert_eq!(monitor.on_ack(counts(1, 2, 0), marks), Some(EcnFeedback::Valid { ce: 0, validated: 3 }));
}

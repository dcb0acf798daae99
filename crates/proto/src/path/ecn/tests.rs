use super::*;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A packet that left so many milliseconds after the start.
fn packet(millis: u64, ecn: Ecn) -> SentPacket {
    SentPacket { ecn, ..SentPacket::sent_at(at(millis)) }
}

/// The peer reports that so many marks have arrived.
fn confirm(ecn: &mut EcnValidation, validated: u64) -> u64 {
    ecn.on_feedback(EcnFeedback::Valid { ce: 0, validated })
}

/// A marked packet that left so many milliseconds after the start has arrived.
fn arrive(ecn: &mut EcnValidation, millis: u64) {
    ecn.on_packet_acked(&packet(millis, Ecn::Ect0));
    confirm(ecn, 1);
}

/// A tuple whose marks have arrived.
fn capable() -> EcnValidation {
    let mut ecn = EcnValidation::new(true);
    ecn.on_sent(Ecn::Ect0, 1);
    confirm(&mut ecn, 1);
    ecn
}

/// Sends so many packets of a busy end and returns their codepoints.
fn send(ecn: &mut EcnValidation, packets: u64) -> Vec<Ecn> {
    let mut send = || {
        let codepoint = ecn.codepoint(Ecn::Ect0, false);
        ecn.on_sent(codepoint, 1);
        codepoint
    };
    (0..packets).map(|_| send()).collect()
}

fn count_marked(codepoints: &[Ecn]) -> usize {
    codepoints.iter().filter(|&&it| it == Ecn::Ect0).count()
}

#[test]
fn a_path_that_keeps_marks_is_used() {
    let mut ecn = EcnValidation::new(true);
    ecn.on_sent(Ecn::Ect0, TEST_PACKETS);
    assert_eq!(ecn.codepoint(Ecn::Ect0, false), Ecn::NotEct);
    assert_eq!(confirm(&mut ecn, 4), 0);
    assert_eq!(ecn.codepoint(Ecn::Ect0, false), Ecn::Ect0);
    assert_eq!(ecn.on_feedback(EcnFeedback::Valid { ce: 2, validated: 4 }), 2);
}

#[test]
fn the_first_test_marks_every_second_packet_and_ten_of_them() {
    let mut ecn = EcnValidation::new(true);
    let codepoints = send(&mut ecn, 40);
    assert_eq!(codepoints[..4], [Ecn::NotEct, Ecn::Ect0, Ecn::NotEct, Ecn::Ect0]);
    assert_eq!(count_marked(&codepoints), 10);
    assert_eq!(codepoints[20..], [Ecn::NotEct; 20]);
}

#[test]
fn marked_packets_that_are_lost_among_others_that_arrive_end_marking() {
    let mut ecn = EcnValidation::new(true);
    ecn.on_packet_acked(&packet(0, Ecn::NotEct));
    for millis in 1..=2 {
        ecn.on_packet_lost(&packet(millis, Ecn::Ect0));
        assert_eq!(ecn.find_dropped(), None, "two may be lost by chance");
    }
    ecn.on_packet_lost(&packet(3, Ecn::Ect0));
    assert_eq!(ecn.find_dropped(), Some(at(1)));
    assert_eq!(ecn.codepoint(Ecn::Ect0, false), Ecn::NotEct);
    assert!(ecn.explains_loss(&packet(4, Ecn::Ect0)), "still under way then");
    assert!(!ecn.explains_loss(&packet(4, Ecn::NotEct)));
    assert!(!ecn.explains_loss(&packet(0, Ecn::Ect0)));
}

#[test]
fn losses_of_others_ask_for_more_of_a_test() {
    let mut ecn = EcnValidation::new(true);
    ecn.on_packet_acked(&packet(0, Ecn::NotEct));
    for _ in 0..2 {
        ecn.on_packet_lost(&packet(1, Ecn::NotEct));
    }
    for _ in 0..4 {
        ecn.on_packet_lost(&packet(1, Ecn::Ect0));
        assert_eq!(ecn.find_dropped(), None);
    }
    assert_eq!(count_marked(&send(&mut ecn, 40)), 12, "two more than otherwise");
    ecn.on_packet_lost(&packet(1, Ecn::Ect0));
    assert_eq!(ecn.find_dropped(), Some(at(1)));
}

#[test]
fn marked_packets_that_arrive_show_that_the_others_were_lost_otherwise() {
    let mut ecn = EcnValidation::new(true);
    ecn.on_packet_acked(&packet(0, Ecn::NotEct));
    for millis in 1..=2 {
        ecn.on_packet_lost(&packet(millis, Ecn::Ect0));
    }
    ecn.on_packet_acked(&packet(3, Ecn::Ect0));
    ecn.on_packet_acked(&packet(4, Ecn::NotEct));
    ecn.on_packet_lost(&packet(5, Ecn::Ect0));
    assert_eq!(ecn.find_dropped(), None);
}

#[test]
fn a_flight_that_is_lost_before_anything_else_arrives_says_nothing_of_marks() {
    let mut ecn = capable();
    for millis in 1..=50 {
        ecn.on_packet_lost(&packet(millis, Ecn::Ect0));
    }
    ecn.on_timeout(at(90));
    ecn.on_packet_acked(&packet(100, Ecn::NotEct));
    ecn.on_progress();
    assert_eq!(ecn.find_dropped(), None, "the path may have been interrupted");
}

#[test]
fn a_path_that_comes_to_drop_marked_packets_is_found_out_and_since_when() {
    let mut ecn = capable();
    for millis in 1..=50 {
        ecn.on_packet_lost(&packet(millis, Ecn::Ect0));
    }
    ecn.on_timeout(at(90));
    assert_eq!(ecn.codepoint(Ecn::Ect0, false), Ecn::NotEct, "a probe leaves without");
    ecn.on_packet_acked(&packet(100, Ecn::NotEct));
    ecn.on_progress();
    let codepoints = send(&mut ecn, 20);
    assert_eq!(count_marked(&codepoints), 3, "{codepoints:?}");
    for _ in 0..3 {
        assert_eq!(ecn.find_dropped(), None);
        let test = packet(120, Ecn::Ect0);
        ecn.on_packet_lost(&test);
        assert!(ecn.explains_loss(&test), "what is lost in a test says nothing about congestion");
    }
    assert_eq!(ecn.find_dropped(), Some(at(1)));
}

#[test]
fn an_acknowledgement_that_comes_late_says_nothing_of_marks_now() {
    let mut ecn = capable();
    ecn.on_timeout(at(90));
    arrive(&mut ecn, 50);
    ecn.on_progress();
    assert_eq!(count_marked(&send(&mut ecn, 20)), 3);
    arrive(&mut ecn, 60);
    assert_eq!(ecn.codepoint(Ecn::Ect0, false), Ecn::NotEct);
    arrive(&mut ecn, 100);
    assert_eq!(ecn.codepoint(Ecn::Ect0, false), Ecn::Ect0);
}

#[test]
fn what_was_lost_before_others_arrived_was_not_dropped_for_its_mark() {
    let mut ecn = capable();
    ecn.on_packet_acked(&packet(20, Ecn::Ect0));
    for millis in [10, 30] {
        ecn.on_packet_lost(&packet(millis, Ecn::Ect0));
    }
    ecn.on_timeout(at(90));
    ecn.on_packet_acked(&packet(100, Ecn::NotEct));
    for _ in 0..3 {
        ecn.on_packet_lost(&packet(120, Ecn::Ect0));
    }
    assert_eq!(ecn.find_dropped(), Some(at(30)));
}

#[test]
fn an_interruption_does_not_end_marking() {
    let mut ecn = EcnValidation::new(true);
    for n in 1..=5 {
        arrive(&mut ecn, 10 * n);
        ecn.on_timeout(at(10 * n + 5));
        ecn.on_progress();
    }
    arrive(&mut ecn, 60);
    assert_eq!(ecn.codepoint(Ecn::Ect0, false), Ecn::Ect0);
}

#[test]
fn timeouts_before_a_mark_has_arrived_do_not_prolong_the_first_test() {
    let mut ecn = EcnValidation::new(true);
    let mut marked = 0;
    for _ in 0..20 {
        marked += count_marked(&send(&mut ecn, 4));
        ecn.on_timeout(at(0));
        ecn.on_progress();
    }
    assert!((1..=10).contains(&marked), "{marked}");
}

#[test]
fn acknowledgements_alone_leave_without_marks_once_the_peer_has_stopped_marking() {
    let mut ecn = capable();
    // A test of the peer that was without an answer, and a peer that never marks.
    for codepoint in [Ecn::NotEct].into_iter().chain([Ecn::Ect1; 10]).chain([Ecn::NotEct; 10]) {
        ecn.on_received(codepoint);
        assert_eq!(ecn.codepoint(Ecn::Ect0, true), Ecn::Ect0);
    }
    for codepoint in [Ecn::Ect1; 11] {
        ecn.on_received(codepoint);
        assert_eq!(ecn.codepoint(Ecn::Ect0, true), Ecn::Ect0);
    }
    ecn.on_received(Ecn::NotEct);
    assert_eq!(ecn.codepoint(Ecn::Ect0, true), Ecn::NotEct, "marks of the peer may be dropped");
    assert_eq!(ecn.codepoint(Ecn::Ect0, false), Ecn::Ect0, "of other packets the loss is told");
    ecn.on_received(Ecn::Ect1);
    assert_eq!(ecn.codepoint(Ecn::Ect0, true), Ecn::Ect0);
}

#[test]
fn the_controller_chooses_the_mark_and_may_choose_none() {
    let ecn = capable();
    assert_eq!(ecn.codepoint(Ecn::Ect1, false), Ecn::Ect1);
    assert_eq!(ecn.codepoint(Ecn::NotEct, false), Ecn::NotEct);
    assert_eq!(ecn.codepoint(Ecn::Ce, false), Ecn::NotEct, "congestion is for routers to mark");
    assert_eq!(EcnValidation::new(false).codepoint(Ecn::Ect1, false), Ecn::NotEct);
}

#[test]
fn a_path_that_lies_is_not_trusted() {
    let mut lying = capable();
    lying.on_packet_lost(&packet(1, Ecn::Ect0));
    lying.on_feedback(EcnFeedback::Invalid);
    assert_eq!(lying.codepoint(Ecn::Ect0, false), Ecn::NotEct);
    assert_eq!(lying.on_feedback(EcnFeedback::Valid { ce: 3, validated: 1 }), 0);
    assert!(!lying.explains_loss(&packet(2, Ecn::Ect0)), "it loses as others do");
    lying.on_timeout(at(4));
    lying.on_progress();
    assert_eq!(lying.codepoint(Ecn::Ect0, false), Ecn::NotEct);
}

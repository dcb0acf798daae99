use std::net::{IpAddr, Ipv4Addr};

use super::super::{BbrConfig, CongestionControl, NewRenoConfig, SavedPath};
use super::*;

const SIZE: u16 = 1_200;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

struct Sender {
    congestion: CongestionState,
    rtt: Rtt,
    next: u64,
}

impl Sender {
    fn new() -> Self {
        Self::with(&CongestionControl::NewReno(NewRenoConfig::default()))
    }

    fn with(control: &CongestionControl) -> Self {
        let mut rtt = Rtt::default();
        rtt.update(at(0), Duration::from_millis(50), Duration::ZERO, None);
        Self { congestion: CongestionState::new(at(0), control, SIZE, &rtt), rtt, next: 0 }
    }

    fn send(&mut self, now: Instant) -> PacketInFlight {
        let snapshot = self.congestion.on_sent(now, self.next, SIZE);
        self.next += 1;
        PacketInFlight { bytes: u64::from(SIZE), sent_time: now, snapshot, mtu_probe: false }
    }

    fn acknowledge(&mut self, now: Instant, packets: &[PacketInFlight]) {
        for packet in packets {
            self.congestion.packet_acked(packet);
        }
        self.congestion.end_ack(now, Some(Duration::from_millis(50)), [Duration::ZERO; 2], 0, &self.rtt);
    }

    fn lose(&mut self, now: Instant, packets: &[PacketInFlight]) {
        for packet in packets {
            self.congestion.packet_lost(now, packet);
        }
        self.congestion.end_loss(now, false, &self.rtt);
    }
}

#[test]
fn every_fate_takes_a_packet_out_of_flight() {
    let mut sender = Sender::new();
    let packets: Vec<_> = (0..3).map(|i| sender.send(at(i))).collect();
    assert_eq!(sender.congestion.bytes_in_flight(), 3_600);
    assert_eq!(sender.congestion.window_left(), 8_400);
    sender.acknowledge(at(50), &packets[..1]);
    sender.lose(at(60), &packets[1..2]);
    sender.congestion.packet_discarded(&packets[2]);
    assert_eq!(sender.congestion.bytes_in_flight(), 0);
    assert_eq!(sender.congestion.totals(), (1_200, 1_200), "what was discarded had neither fate");
}

#[test]
fn a_full_window_grows_and_an_idle_one_does_not() {
    let mut sender = Sender::new();
    let packets: Vec<_> = (0..10).map(|_| sender.send(at(0))).collect();
    sender.congestion.end_round(at(0), true, &sender.rtt);
    assert!(!sender.congestion.app_limited, "the window is full");
    sender.acknowledge(at(50), &packets);
    assert_eq!(sender.congestion.controller().window(), 24_000);

    let packets: Vec<_> = (0..5).map(|_| sender.send(at(60))).collect();
    sender.congestion.end_round(at(0), true, &sender.rtt);
    assert!(sender.congestion.app_limited);
    sender.acknowledge(at(110), &packets);
    assert_eq!(sender.congestion.controller().window(), 24_000, "a quarter of it was used");
}

#[test]
fn half_a_window_is_enough_in_slow_start() {
    let mut sender = Sender::new();
    let packets: Vec<_> = (0..5).map(|_| sender.send(at(0))).collect();
    sender.congestion.end_round(at(0), true, &sender.rtt);
    sender.acknowledge(at(50), &packets);
    assert_eq!(sender.congestion.controller().window(), 18_000);
}

#[test]
fn a_sender_held_by_the_pacer_is_not_limited_by_the_application() {
    let mut sender = Sender::new();
    let packets = [sender.send(at(0))];
    sender.congestion.end_round(at(0), false, &sender.rtt);
    sender.acknowledge(at(50), &packets);
    assert_eq!(sender.congestion.controller().window(), 13_200);
}

#[test]
fn the_loss_of_an_mtu_probe_is_no_congestion() {
    let mut sender = Sender::new();
    let probe = PacketInFlight { mtu_probe: true, ..sender.send(at(0)) };
    sender.lose(at(60), std::slice::from_ref(&probe));
    assert_eq!(sender.congestion.controller().window(), 12_000);
    assert_eq!(sender.congestion.bytes_in_flight(), 0);
    let packet = sender.send(at(70));
    sender.lose(at(130), &[packet]);
    assert_eq!(sender.congestion.controller().window(), 6_000);
}

#[test]
fn spurious_losses_give_the_window_back() {
    let mut sender = Sender::new();
    let packets: Vec<_> = (0..2).map(|_| sender.send(at(0))).collect();
    sender.lose(at(60), &packets);
    assert_eq!(sender.congestion.controller().window(), 6_000);
    for packet in &packets {
        sender.congestion.on_spurious(at(70), packet, &sender.rtt);
    }
    assert_eq!(sender.congestion.controller().window(), 12_000);
}

#[test]
fn a_mark_slows_down_once_per_round_trip() {
    let mut sender = Sender::new();
    let packets: Vec<_> = (0..4).map(|i| sender.send(at(i))).collect();
    sender.acknowledge(at(50), &packets[..2]);
    let window = sender.congestion.controller().window();
    sender.congestion.on_ce(at(50), 1, &sender.rtt);
    assert_eq!(sender.congestion.controller().window(), window / 2);
    sender.acknowledge(at(51), &packets[2..]);
    sender.congestion.on_ce(at(51), 1, &sender.rtt);
    assert_eq!(sender.congestion.controller().window(), window / 2);
}

#[test]
fn the_pacer_follows_the_window() {
    let mut sender = Sender::new();
    assert_eq!(sender.congestion.pacing_rate(), 300_000, "12,000 bytes in 50 ms, and a quarter more");
    let packets: Vec<_> = (0..10).map(|_| sender.send(at(0))).collect();
    assert_eq!(sender.congestion.pacing_budget(at(0)), 0);
    assert_eq!(sender.congestion.pacing_time(at(0), 1_200), at(4));
    sender.acknowledge(at(50), &packets);
    assert_eq!(sender.congestion.pacing_rate(), 600_000);
}

#[test]
fn only_a_sender_without_anything_in_flight_saves_up_a_train() {
    let mut sender = Sender::new();
    let packets: Vec<_> = (0..10).map(|_| sender.send(at(0))).collect();
    // The end of slow start.
    sender.lose(at(60), &packets[..1]);
    sender.acknowledge(at(61), &packets[1..]);
    let packets: Vec<_> = (0..6).map(|_| sender.send(at(61))).collect();
    assert!(sender.congestion.pacing_budget(at(61)) < 1_200, "nothing more may leave at once");
    sender.acknowledge(at(100), &packets[1..]);
    assert_eq!(sender.congestion.pacing_budget(at(1_000)), 2_400, "one is in flight");
    // The sender hears of it, and has nothing to send for a second.
    sender.acknowledge(at(1_000), &packets[..1]);
    assert_eq!(sender.congestion.pacing_budget(at(2_000)), 12_000);
}

#[test]
fn after_a_loss_no_more_leaves_than_arrives() {
    let mut sender = Sender::new();
    let packets: Vec<_> = (0..10).map(|_| sender.send(at(0))).collect();
    sender.acknowledge(at(50), &packets[9..]);
    sender.lose(at(50), &packets[..6]);
    // Three are under way, and half of the window has room for more than one beside them.
    assert_eq!((sender.congestion.bytes_in_flight(), sender.congestion.window_left()), (3_600, 1_200));
    let resent = sender.send(at(51));
    assert_eq!(sender.congestion.window_left(), 0);
    sender.acknowledge(at(52), &packets[6..7]);
    sender.lose(at(52), &[]);
    assert_eq!(sender.congestion.window_left(), 1_200);
    // A round trip later the window decides.
    sender.acknowledge(at(101), &[resent]);
    sender.lose(at(101), &[]);
    assert!(sender.congestion.window_left() > 2_400, "{}", sender.congestion.window_left());
}

#[test]
fn a_flight_that_is_lost_as_a_whole_does_not_stop_the_sender() {
    let mut sender = Sender::new();
    let packets: Vec<_> = (0..10).map(|_| sender.send(at(0))).collect();
    sender.lose(at(100), &packets);
    sender.send(at(100));
    assert!(sender.congestion.window_left() >= u64::from(SIZE), "two packets are under way at least");
    sender.send(at(100));
    assert_eq!(sender.congestion.window_left(), 0, "nothing has arrived");
}

/// RFC 9959 §3.4: a sender retreats if it determines that there is congestion.
#[test]
fn a_loss_after_a_jump_is_a_reason_to_retreat_unless_the_controller_takes_it_for_chance() {
    let new_reno = CongestionControl::NewReno(NewRenoConfig::default());
    let bbr = CongestionControl::Bbr(BbrConfig::default());
    for (control, state) in [(new_reno, "safe retreat"), (bbr, "unvalidated")] {
        let mut sender = Sender::with(&control);
        sender.congestion.resume(SavedPath {
            remote: IpAddr::V4(Ipv4Addr::LOCALHOST),
            local: None,
            window: 1_000_000,
            full: true,
            rtt: Duration::from_millis(50),
            lifetime: Duration::from_secs(60),
        });
        let first = [(); 2].map(|()| sender.send(at(0)));
        sender.acknowledge(at(50), &first);
        let mut packets = Vec::new();
        while sender.congestion.window_left() >= u64::from(SIZE) {
            packets.push(sender.send(at(50)));
        }
        assert!(sender.congestion.end_round(at(50), false, &sender.rtt), "the window grows at once");
        assert_eq!(sender.congestion.resume_state(), Some("unvalidated"));
        packets.extend((50..60).map(|time| sender.send(at(time))));
        sender.lose(at(90), &packets[..1]);
        assert_eq!(
            sender.congestion.resume_state(),
            Some(state),
            "{}",
            sender.congestion.controller().name()
        );
    }
}

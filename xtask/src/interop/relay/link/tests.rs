use super::*;

const DATAGRAM: [u8; 1250] = [7; 1250];
const MS: Duration = Duration::from_millis(1);

#[test]
fn the_default_link_lets_datagrams_pass_at_once() {
    let now = Instant::now();
    let mut queue = Queue::new(Link::default());
    queue.push(now, &DATAGRAM);
    assert_eq!(queue.next_due(), Some(now));
    assert_eq!(queue.pop_due(now).as_deref(), Some(&DATAGRAM[..]));
    assert_eq!(queue.pop_due(now), None);
}

#[test]
fn delay_and_rate_add_up() {
    let now = Instant::now();
    let rate = Rate { bit_per_s: 10_000_000, queue_datagrams: 25 };
    let mut queue = Queue::new(Link { delay: 15 * MS, rate: Some(rate), ..Link::default() });
    // 1250 bytes take 1 ms at 10 Mbit/s; the second waits for the first.
    queue.push(now, &DATAGRAM);
    queue.push(now, &DATAGRAM);
    assert_eq!(queue.pop_due(now + 15 * MS), None);
    assert!(queue.pop_due(now + 16 * MS).is_some());
    assert_eq!(queue.next_due(), Some(now + 17 * MS));
    // After a pause the bottleneck is free again.
    queue.push(now + 100 * MS, &DATAGRAM);
    assert!(queue.pop_due(now + 17 * MS).is_some());
    assert_eq!(queue.next_due(), Some(now + 116 * MS));
}

#[test]
fn a_full_queue_loses_what_comes_next() {
    let now = Instant::now();
    let rate = Rate { bit_per_s: 10_000_000, queue_datagrams: 3 };
    let mut queue = Queue::new(Link { delay: 50 * MS, rate: Some(rate), ..Link::default() });
    for _ in 0..5 {
        queue.push(now, &DATAGRAM);
    }
    assert_eq!(queue.in_flight.len(), 3);
    // Two have left the bottleneck by now and are merely under way.
    queue.push(now + 2 * MS, &DATAGRAM);
    queue.push(now + 2 * MS, &DATAGRAM);
    queue.push(now + 2 * MS, &DATAGRAM);
    assert_eq!(queue.in_flight.len(), 5);
}

#[test]
fn listed_datagrams_are_lost() {
    let now = Instant::now();
    let mut queue = Queue::new(Link { drop: Some(2..=7), ..Link::default() });
    for number in 1..=9 {
        queue.push(now, &[number]);
    }
    let passed: Vec<u8> = std::iter::from_fn(|| queue.pop_due(now)).flatten().collect();
    assert_eq!(passed, [1, 8, 9]);
}

#[test]
fn losses_never_exceed_the_longest_burst() {
    let now = Instant::now();
    let loss = Loss { probability: 0.9, burst_max: 3, seed: 1 };
    let mut queue = Queue::new(Link { loss: Some(loss), ..Link::default() });
    let mut passed = Vec::new();
    for number in 0..1000_u32 {
        queue.push(now, &[]);
        if queue.pop_due(now).is_some() {
            passed.push(number);
        }
    }
    assert!(passed.windows(2).all(|pair| pair[1] - pair[0] <= 4));
    assert!(passed.len() < 500, "{} of 1000 passed", passed.len());
}

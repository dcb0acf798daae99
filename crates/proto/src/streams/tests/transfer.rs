//! Random transfers over a network that loses, delays and reorders: every byte arrives once and in order,
//! limits are obeyed, and nothing is left behind.

use fulmar_base::{RangeSet, Rng};
use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
struct Scenario {
    seed: u64,
    /// Streams that each end opens, of each direction.
    streams: u64,
    /// The largest stream, in bytes.
    len_max: u64,
    /// In percent, of packets and of acknowledgements.
    loss: u64,
    /// How many packets may be under way.
    reorder: u64,
    packet: usize,
    window: u64,
    concurrent: u64,
    send_window: u64,
    ordered: bool,
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let sizes = (0u64..12, 1u64..30_000, 0u64..40, 1u64..40, 30usize..1_500);
    let limits = (100u64..50_000, 1u64..8, 100u64..60_000, any::<bool>());
    (any::<u64>(), sizes, limits).prop_map(
        |(seed, (streams, len_max, loss, reorder, packet), (window, concurrent, send_window, ordered))| {
            Scenario {
                seed,
                streams,
                len_max,
                loss,
                reorder,
                packet,
                window,
                concurrent,
                send_window,
                ordered,
            }
        },
    )
}

/// What an application has to do with one stream.
struct Task {
    id: StreamId,
    /// Bytes to write; `None` when it is finished.
    left: Option<u64>,
    written: u64,
}

/// The application at one end.
struct App {
    end: End,
    to_open: PerDir<u64>,
    sending: Vec<Task>,
    receiving: Vec<StreamId>,
    /// What was read of each stream, by offset.
    read: std::collections::BTreeMap<StreamId, RangeSet>,
    /// The streams whose last chunk has told that it was the last.
    told: Vec<StreamId>,
    /// The streams that were read to the end.
    ended: Vec<StreamId>,
    finished: Vec<StreamId>,
}

fn byte(id: StreamId, offset: u64) -> u8 {
    (offset * 7 + id.as_u64() * 13) as u8
}

impl App {
    fn new(end: End, streams: u64) -> Self {
        Self {
            end,
            to_open: PerDir { bi: streams, uni: streams },
            sending: vec![],
            receiving: vec![],
            read: Default::default(),
            told: vec![],
            ended: vec![],
            finished: vec![],
        }
    }

    /// Opens, accepts, writes and reads, a little of each.
    fn act(&mut self, rng: &mut Rng, scenario: &Scenario) {
        for event in self.end.events() {
            if let StreamEvent::Finished(id) = event {
                self.finished.push(id);
            }
        }
        for dir in [Dir::Bi, Dir::Uni] {
            if self.to_open[dir] > 0
                && let Some(id) = self.end.streams.open(dir)
            {
                self.to_open[dir] -= 1;
                self.start(id, rng, scenario);
            }
            if let Some(id) = self.end.streams.accept(dir) {
                self.start(id, rng, scenario);
            }
        }
        for index in 0..self.sending.len() {
            self.write(index, rng);
        }
        self.sending.retain(|task| task.left.is_some());
        for id in self.receiving.clone() {
            if rng.chance(0.5) {
                self.read(id, rng, scenario.ordered);
            }
        }
    }

    fn start(&mut self, id: StreamId, rng: &mut Rng, scenario: &Scenario) {
        let local = id.initiator() == self.end.streams.side;
        if local || id.dir() == Dir::Bi {
            self.sending.push(Task { id, left: Some(rng.below(scenario.len_max)), written: 0 });
            let priority = Priority::new(rng.below(8) as u8, rng.chance(0.5));
            self.end.streams.send(id).set_priority(priority).unwrap();
        }
        if !local || id.dir() == Dir::Bi {
            self.receiving.push(id);
        }
    }

    fn write(&mut self, index: usize, rng: &mut Rng) {
        let Task { id, left, written } = &mut self.sending[index];
        let Some(rest) = left else { return };
        let len = (*rest).min(rng.below(5_000));
        let data: Vec<u8> = (*written..*written + len).map(|offset| byte(*id, offset)).collect();
        let mut handle = self.end.streams.send(*id);
        if len == *rest && rng.chance(0.5) {
            let mut data = Bytes::from(data);
            let taken = handle.finish_with(&mut data).or_else(|error| match error {
                WriteError::Blocked => Ok::<_, WriteError>(0),
                other => Err(other),
            });
            *written += taken.unwrap() as u64;
            *left = (!data.is_empty()).then_some(data.len() as u64);
            return;
        }
        let result = if rng.chance(0.5) { handle.write(&data) } else { handle.write_chunk(&mut data.into()) };
        match result {
            Ok(taken) => {
                *written += taken as u64;
                *rest -= taken as u64;
            }
            Err(error) => assert_eq!(error, WriteError::Blocked),
        }
        if *rest == 0 && rng.chance(0.5) {
            self.end.streams.send(*id).finish().unwrap();
            *left = None;
        }
    }

    fn read(&mut self, id: StreamId, rng: &mut Rng, ordered: bool) {
        let read = self.read.entry(id).or_default();
        match self.end.streams.recv(id).read(1 + rng.below(5_000) as usize, ordered) {
            Ok(Some(Chunk { offset, bytes, fin })) => {
                assert!(!self.told.contains(&id), "{id:?}: data after its end was told");
                if fin {
                    self.told.push(id);
                }
                let end = offset + bytes.len() as u64;
                assert!(
                    bytes.iter().copied().eq((offset..end).map(|offset| byte(id, offset))),
                    "{id:?} {offset}"
                );
                assert!(!ordered || offset == read.max().map_or(0, |max| max + 1), "order of {id:?}");
                assert!((offset..end).all(|offset| !read.contains(offset)), "{id:?} twice at {offset}");
                read.insert(offset..end);
            }
            Ok(None) => {
                self.receiving.retain(|&receiving| receiving != id);
                self.ended.push(id);
            }
            Err(error) => {
                assert_eq!(error, ReadError::Blocked);
                assert!(!self.told.contains(&id), "{id:?}: there is nothing to wait for");
            }
        }
    }

    /// Whether everything was written and read: on its own streams, on bidirectional ones of the peer, and, to
    /// read, on unidirectional ones of the peer.
    fn is_done(&self, scenario: &Scenario) -> bool {
        let all = 3 * scenario.streams;
        self.ended.len() as u64 == all && self.finished.len() as u64 == all
    }
}

/// Sends one packet, or settles the fate of one that is under way.
fn step(from: &mut App, to: &mut App, under_way: &mut Vec<Packet>, rng: &mut Rng, scenario: &Scenario) {
    if (under_way.len() as u64) < scenario.reorder && rng.chance(0.6) {
        under_way.extend(from.end.packet(scenario.packet));
        return;
    }
    if under_way.is_empty() {
        return;
    }
    let packet = under_way.swap_remove(rng.below(under_way.len() as u64) as usize);
    if rng.below(100) < scenario.loss {
        from.end.lost(&packet);
        return;
    }
    to.end.receive(&packet).unwrap();
    match rng.below(200) {
        // The acknowledgement is lost, or it comes after the packet was taken for lost, or after a probe.
        fate if fate < scenario.loss => from.end.lost(&packet),
        fate if fate < 2 * scenario.loss => {
            from.end.lost(&packet);
            if rng.chance(0.5) {
                under_way.extend(from.end.packet(scenario.packet));
            }
            from.end.acked(&packet);
        }
        fate if fate % 7 == 0 => {
            packet.tokens.iter().for_each(|token| from.end.streams.on_probe(token));
            under_way.extend(from.end.packet(scenario.packet));
            from.end.acked(&packet);
        }
        _ => from.end.acked(&packet),
    }
}

fn run(scenario: &Scenario) {
    let mut rng = Rng::from_u64(scenario.seed);
    let config = StreamsConfig {
        max_concurrent_bidi: scenario.concurrent,
        max_concurrent_uni: scenario.concurrent,
        stream_receive_window: scenario.window,
        stream_receive_window_max: scenario.window * 4,
        receive_window: scenario.window * 3 / 2,
        receive_window_max: scenario.window * 6,
        send_window: scenario.send_window,
        reset_stream_at: true,
    };
    let (client, server) = pair(&config, &config);
    let mut client = App::new(client, scenario.streams);
    let mut server = App::new(server, scenario.streams);
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let mut steps = 0u64;
    loop {
        client.act(&mut rng, scenario);
        server.act(&mut rng, scenario);
        for _ in 0..8 {
            step(&mut client, &mut server, &mut up, &mut rng, scenario);
            step(&mut server, &mut client, &mut down, &mut rng, scenario);
        }
        client.end.assert_counts();
        server.end.assert_counts();
        client.end.now += RTT / 20;
        server.end.now += RTT / 20;
        let quiet = up.is_empty() && down.is_empty();
        let idle = !client.end.streams.wants_to_send() && !server.end.streams.wants_to_send();
        if client.is_done(scenario) && server.is_done(scenario) && quiet && idle {
            break;
        }
        steps += 1;
        assert!(steps < 200_000, "no progress");
    }
    for (sender, receiver) in [(&client, &server), (&server, &client)] {
        for (id, read) in &receiver.read {
            assert!(read.len() <= 1 && read.min().is_none_or(|min| min == 0), "holes in {id:?}");
            let sent = sender.end.granted.sent.get(id).copied().unwrap_or(0);
            assert_eq!(read.max().map_or(0, |max| max + 1), sent, "{id:?}");
        }
    }
    client.end.assert_idle();
    server.end.assert_idle();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_byte_arrives_once_and_nothing_is_left(scenario in scenario()) {
        run(&scenario);
    }
}

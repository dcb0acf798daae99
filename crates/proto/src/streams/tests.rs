//! Two ends in memory: packets are byte buffers, and the tests decide which arrive.

use bytes::Bytes;
use fulmar_wire::{Dialect, Frame, VarInt, frames};

use super::*;
use crate::TransportError;
use crate::packet::{FrameWriter, SentFrames};

mod attacks;
mod control;
mod credit;
mod ends;
mod memory;
mod reset_at;
mod transfer;

const RTT: Duration = Duration::from_millis(50);

/// A packet on its way.
struct Packet {
    payload: Bytes,
    tokens: SentFrames,
}

/// One end, and what it knows of the limits that the other end has told it.
struct End {
    streams: Streams,
    granted: Granted,
    now: Instant,
}

/// The limits that have arrived, to check that they are obeyed.
#[derive(Default)]
struct Granted {
    initial: InitialLimits,
    max_data: u64,
    max_streams: [u64; 2],
    max_stream_data: std::collections::BTreeMap<StreamId, u64>,
    /// The end of what was sent on each stream.
    sent: std::collections::BTreeMap<StreamId, u64>,
}

impl Granted {
    fn learn(&mut self, frame: &Frame<'_>) {
        match frame {
            Frame::MaxData(frame) => self.max_data = self.max_data.max(frame.maximum.get()),
            Frame::MaxStreams(frame) => {
                let limit = &mut self.max_streams[usize::from(frame.dir == Dir::Uni)];
                *limit = frame.maximum.get().max(*limit);
            }
            Frame::MaxStreamData(frame) => {
                let limit = self.max_stream_data.entry(frame.id).or_default();
                *limit = frame.maximum.get().max(*limit);
            }
            _ => {}
        }
    }

    /// Checks a frame that `side` sends.
    fn check(&mut self, side: Side, frame: &Frame<'_>) {
        let (id, end) = match frame {
            Frame::Stream(frame) => (frame.id, frame.offset.get() + frame.data.len() as u64),
            Frame::ResetStream(frame) => (frame.id, frame.final_size.get()),
            Frame::ResetStreamAt(frame) => (frame.id, frame.final_size.get()),
            _ => return,
        };
        if id.initiator() == side {
            assert!(id.index() < self.max_streams[usize::from(id.dir() == Dir::Uni)], "{id:?}");
        }
        let told = self.max_stream_data.get(&id).copied().unwrap_or(0);
        assert!(end <= told.max(send_limit(side, &self.initial, id)), "stream flow control of {id:?}");
        let sent = self.sent.entry(id).or_default();
        *sent = end.max(*sent);
        assert!(self.sent.values().sum::<u64>() <= self.max_data, "connection flow control");
    }
}

impl End {
    fn new(side: Side, config: &StreamsConfig) -> Self {
        Self::with_memory(side, config, &EndpointMemory::new(32 << 20, 256 << 20, 64 << 20))
    }

    /// An end that shares its memory with others.
    /// An end whose path has room for everything.
    fn with_memory(side: Side, config: &StreamsConfig, memory: &EndpointMemory) -> Self {
        let mut streams = Streams::new(side, config, memory, &mut Rng::from_u64(1));
        streams.set_flight(u64::MAX);
        Self { streams, granted: Granted::default(), now: Instant::ZERO }
    }

    fn apply_limits(&mut self, limits: &InitialLimits) {
        self.streams.apply_peer_limits(limits);
        self.granted.initial = *limits;
        self.granted.max_data = limits.max_data;
        self.granted.max_streams = [limits.max_streams_bidi, limits.max_streams_uni];
    }

    /// The next packet of at most `size` bytes, if there is anything to send.
    fn packet(&mut self, size: usize) -> Option<Packet> {
        let wants = self.streams.wants_to_send();
        let mut buffer = vec![0; size];
        let mut out = FrameWriter::new(&mut buffer, Dialect::SinglePath);
        self.streams.write_control(&mut out);
        self.streams.write_data(&mut out);
        let payload = out.finish();
        assert_eq!(wants, payload.len > 0, "a wish to send is a packet, and no wish none");
        buffer.truncate(payload.len);
        for frame in frames(&buffer, Dialect::SinglePath) {
            self.granted.check(self.streams.side, &frame.unwrap());
        }
        wants.then(|| Packet { payload: buffer.into(), tokens: payload.frames })
    }

    fn receive(&mut self, packet: &Packet) -> Result<(), TransportError> {
        for frame in frames(&packet.payload, Dialect::SinglePath) {
            self.receive_frame(&frame.unwrap(), &packet.payload)?;
        }
        Ok(())
    }

    fn receive_frame(&mut self, frame: &Frame<'_>, payload: &Bytes) -> Result<(), TransportError> {
        self.granted.learn(frame);
        let cx = RecvContext { now: self.now, rtt: RTT, early: false };
        let streams = &mut self.streams;
        match frame {
            Frame::Stream(frame) => streams.on_stream(frame, payload, &cx)?,
            Frame::ResetStream(frame) => streams.on_reset_stream(frame)?,
            Frame::ResetStreamAt(frame) => streams.on_reset_stream_at(frame)?,
            Frame::StopSending(frame) => streams.on_stop_sending(frame)?,
            Frame::MaxData(frame) => streams.on_max_data(frame),
            Frame::MaxStreamData(frame) => streams.on_max_stream_data(frame)?,
            Frame::MaxStreams(frame) => streams.on_max_streams(frame),
            Frame::DataBlocked(frame) => streams.on_data_blocked(frame),
            Frame::StreamDataBlocked(frame) => streams.on_stream_data_blocked(frame)?,
            Frame::StreamsBlocked(frame) => streams.on_streams_blocked(frame),
            other => panic!("not a frame of streams: {other:?}"),
        }
        Ok(())
    }

    fn acked(&mut self, packet: &Packet) {
        packet.tokens.iter().for_each(|token| self.streams.on_acked(token));
    }

    fn lost(&mut self, packet: &Packet) {
        packet.tokens.iter().for_each(|token| self.streams.on_lost(token));
    }

    fn events(&mut self) -> Vec<StreamEvent> {
        std::iter::from_fn(|| self.streams.poll_event()).collect()
    }

    /// What is counted over all streams is the sum of what each has.
    fn assert_counts(&self) {
        let streams = &self.streams;
        let sum = |count: fn(&SendHalf) -> u64| streams.table.sending().map(count).sum::<u64>();
        assert_eq!((streams.unsent, streams.lost_bytes), (sum(SendHalf::unsent), sum(SendHalf::lost_bytes)));
    }

    /// Nothing is left of any stream.
    fn assert_idle(&mut self) {
        let streams = &mut self.streams;
        assert_eq!(streams.count(), 0, "{:?}", streams.table);
        assert_eq!((streams.send_buffered(), streams.waiting()), (0, 0));
        assert!(!streams.wants_to_send());
        assert_eq!((streams.lost.len(), streams.fresh.len(), streams.control.len()), (0, 0, 0));
        assert_eq!(streams.window.unconsumed(), 0);
    }
}

fn code(value: u32) -> VarInt {
    VarInt::from_u32(value)
}

fn default_pair() -> (End, End) {
    pair(&StreamsConfig::default(), &StreamsConfig::default())
}

/// A client and a server that know each other's limits.
fn pair(client_config: &StreamsConfig, server_config: &StreamsConfig) -> (End, End) {
    let mut client = End::new(Side::Client, client_config);
    let mut server = End::new(Side::Server, server_config);
    client.apply_limits(&server_config.initial_limits());
    server.apply_limits(&client_config.initial_limits());
    (client, server)
}

/// Delivers and acknowledges everything that `from` has to send.
fn flush(from: &mut End, to: &mut End) {
    while let Some(packet) = from.packet(1_200) {
        to.receive(&packet).unwrap();
        from.acked(&packet);
    }
}

/// Delivers and acknowledges everything that either end has to send.
fn settle(a: &mut End, b: &mut End) {
    while a.streams.wants_to_send() || b.streams.wants_to_send() {
        flush(a, b);
        flush(b, a);
    }
}

/// Reads everything that is there, and tells how it ended.
fn read_all(end: &mut End, id: StreamId) -> (Vec<u8>, Result<(), ReadError>) {
    let mut data = Vec::new();
    loop {
        match end.streams.recv(id).read(usize::MAX, true) {
            Ok(Some(chunk)) => data.extend_from_slice(&chunk.bytes),
            Ok(None) => return (data, Ok(())),
            Err(error) => return (data, Err(error)),
        }
    }
}

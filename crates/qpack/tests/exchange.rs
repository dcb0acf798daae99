//! An encoder against a decoder, over streams that are late and out of order: whatever happens, fields arrive as they were.

use std::collections::VecDeque;

use bytes::Bytes;
use fulmar_qpack::{Decoded, Decoder, DecoderConfig, Encoder, EncoderConfig, Field, FieldRef, PeerSettings};
use proptest::prelude::*;

/// What happens next.
#[derive(Debug, Clone)]
enum Op {
    /// A section is sent on a stream of its own, or on the one before.
    Send { fields: Vec<Field>, on_same_stream: bool },
    /// So many bytes of the encoder stream arrive.
    EncoderStream(usize),
    /// The section at this place in the queue arrives, if none of its stream is before it.
    Section(usize),
    /// So many bytes of the decoder stream arrive.
    DecoderStream(usize),
    /// The receiver gives up the stream of the section at this place.
    Cancel(usize),
    /// The encoder stream takes so many bytes for now.
    Room(usize),
}

fn field() -> impl Strategy<Value = Field> {
    let name = prop_oneof![
        Just(":path".to_owned()),
        Just("cookie".to_owned()),
        Just("user-agent".to_owned()),
        Just("x-a".to_owned()),
        Just("x-b".to_owned()),
        "[a-z-]{0,12}",
    ];
    let value = prop_oneof![
        3 => (0..12_u8).prop_map(|n| format!("value of many bytes that comes again {n}").into_bytes()),
        1 => proptest::collection::vec(any::<u8>(), 0..60),
        1 => (0..3000_usize).prop_map(|len| vec![b'l'; len]),
    ];
    (name, value, proptest::bool::weighted(0.1)).prop_map(|(name, value, sensitive)| Field {
        name: name.into(),
        value: value.into(),
        sensitive,
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (proptest::collection::vec(field(), 0..12), proptest::bool::weighted(0.2))
            .prop_map(|(fields, on_same_stream)| Op::Send { fields, on_same_stream }),
        4 => (0..3000_usize).prop_map(Op::EncoderStream),
        4 => (0..6_usize).prop_map(Op::Section),
        3 => (0..20_usize).prop_map(Op::DecoderStream),
        1 => (0..6_usize).prop_map(Op::Cancel),
        1 => prop_oneof![Just(0), Just(100), Just(usize::MAX)].prop_map(Op::Room),
    ]
}

struct Exchange {
    encoder: Encoder,
    decoder: Decoder,
    encoder_stream: VecDeque<u8>,
    decoder_stream: VecDeque<u8>,
    /// On their way: streams, sections, and what they stand for.
    sections: VecDeque<(u64, Bytes, Vec<Field>)>,
    /// What blocked streams stand for.
    blocked: Vec<(u64, Vec<Field>)>,
    stream_id: u64,
    blocked_max: usize,
}

impl Exchange {
    fn new(capacity: usize, blocked_max: usize) -> Self {
        let limits = DecoderConfig {
            max_table_capacity: capacity,
            blocked_streams: blocked_max,
            field_section_size_max: usize::MAX,
            blocked_bytes_max: usize::MAX,
            ..DecoderConfig::default()
        };
        let mut encoder = Encoder::new(EncoderConfig::default());
        let settings =
            PeerSettings { max_table_capacity: capacity as u64, blocked_streams: blocked_max as u64 };
        encoder.on_settings(settings).unwrap();
        Self {
            encoder,
            decoder: Decoder::new(limits),
            encoder_stream: VecDeque::new(),
            decoder_stream: VecDeque::new(),
            sections: VecDeque::new(),
            blocked: Vec::new(),
            stream_id: 0,
            blocked_max,
        }
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Send { fields, on_same_stream } => self.send(fields, on_same_stream),
            Op::EncoderStream(len) => {
                let len = len.min(self.encoder_stream.len());
                let bytes: Vec<u8> = self.encoder_stream.drain(..len).collect();
                self.decoder.on_encoder_stream(&bytes).unwrap();
                self.take_unblocked();
            }
            Op::Section(at) => self.deliver(at),
            Op::DecoderStream(len) => {
                self.collect();
                let len = len.min(self.decoder_stream.len());
                let bytes: Vec<u8> = self.decoder_stream.drain(..len).collect();
                self.encoder.on_decoder_stream(&bytes).unwrap();
            }
            Op::Cancel(at) => self.cancel(at),
            Op::Room(room) => self.encoder.set_encoder_stream_room(room),
        }
        assert!(self.encoder.streams_at_risk() <= self.blocked_max);
    }

    fn send(&mut self, fields: Vec<Field>, on_same_stream: bool) {
        if !on_same_stream {
            self.stream_id += 4;
        }
        let (mut section, mut instructions) = (Vec::new(), Vec::new());
        let refs = fields.iter().map(FieldRef::from);
        self.encoder.encode(self.stream_id, refs, &mut section, &mut instructions);
        self.encoder_stream.extend(instructions);
        self.sections.push_back((self.stream_id, Bytes::from(section), fields));
    }

    fn deliver(&mut self, at: usize) {
        let Some((stream_id, ..)) = self.sections.get(at) else { return };
        let is_first = !self.sections.iter().take(at).any(|section| section.0 == *stream_id);
        if !is_first || self.blocked.iter().any(|blocked| blocked.0 == *stream_id) {
            return;
        }
        let (stream_id, section, fields) = self.sections.remove(at).unwrap();
        match self.decoder.decode(stream_id, section).unwrap() {
            Decoded::Fields(decoded) => check(&fields, &decoded),
            Decoded::Blocked => self.blocked.push((stream_id, fields)),
            Decoded::Refused(excess) => panic!("refused: {excess:?}"),
        }
    }

    fn take_unblocked(&mut self) {
        while let Some((stream_id, decoded)) = self.decoder.unblocked().unwrap() {
            let at = self.blocked.iter().position(|blocked| blocked.0 == stream_id).unwrap();
            let Decoded::Fields(decoded) = decoded else { panic!("{decoded:?}") };
            check(&self.blocked.remove(at).1, &decoded);
        }
    }

    fn cancel(&mut self, at: usize) {
        let Some((stream_id, ..)) = self.sections.get(at).cloned() else { return };
        self.sections.retain(|section| section.0 != stream_id);
        self.blocked.retain(|blocked| blocked.0 != stream_id);
        self.decoder.cancel(stream_id).unwrap();
        // No section follows on a stream that was given up.
        self.stream_id += 4;
    }

    fn collect(&mut self) {
        let mut told = Vec::new();
        self.decoder.take_decoder_stream(&mut told);
        self.decoder_stream.extend(told);
    }

    /// Everything arrives.
    fn finish(mut self) {
        self.run(Op::EncoderStream(usize::MAX));
        while !self.sections.is_empty() {
            self.deliver(0);
        }
        assert!(self.blocked.is_empty(), "{} streams stay blocked", self.blocked.len());
        self.run(Op::DecoderStream(usize::MAX));
        assert_eq!(self.encoder.streams_at_risk(), 0);
        // With all acknowledged, what is sent next arrives as well.
        self.send(vec![Field::new("user-agent", "value of many bytes that comes again 1")], false);
        self.run(Op::EncoderStream(usize::MAX));
        self.deliver(0);
        assert!(self.sections.is_empty() && self.blocked.is_empty());
    }
}

/// Fields are the same, and none that was sensitive may be indexed by whoever gets it.
fn check(sent: &[Field], received: &[Field]) {
    assert_eq!(sent.len(), received.len());
    for (sent, received) in sent.iter().zip(received) {
        assert_eq!((&sent.name, &sent.value), (&received.name, &received.value));
        assert!(received.sensitive || !sent.sensitive);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn fields_arrive_as_they_were_sent(
        capacity in prop_oneof![Just(0), Just(100), Just(256), Just(512), Just(4096), 0..4096_usize],
        blocked in prop_oneof![Just(0), Just(1), Just(100)],
        ops in proptest::collection::vec(op(), 0..120),
    ) {
        let mut exchange = Exchange::new(capacity, blocked);
        for op in ops {
            exchange.run(op);
        }
        exchange.finish();
    }
}

#[test]
fn a_field_that_comes_again_takes_a_byte() {
    for blocked in [0, 100] {
        let mut exchange = Exchange::new(4096, blocked);
        let fields =
            vec![Field::new("user-agent", "a long name of a program that is sent with each request")];
        for _ in 0..4 {
            exchange.send(fields.clone(), false);
            exchange.run(Op::EncoderStream(usize::MAX));
            exchange.run(Op::Section(0));
            exchange.run(Op::DecoderStream(usize::MAX));
        }
        exchange.send(fields, false);
        assert_eq!(exchange.sections[0].1.len(), 3, "with {blocked} blocked streams");
        assert!(exchange.encoder_stream.is_empty());
    }
}

#[test]
fn sensitive_fields_are_literals_for_ever() {
    let sensitive = [
        Field::new("authorization", "Basic dXNlcjpwYXNzd29yZA=="),
        Field::new("proxy-authorization", "Basic dXNlcjpwYXNzd29yZA=="),
        Field::new("cookie", "short=1"),
        Field::new("x-token", "0123456789012345678901234567890").sensitive(),
        Field::new(":method", "GET").sensitive(),
    ];
    let mut exchange = Exchange::new(4096, 100);
    for _ in 0..10 {
        exchange.send(sensitive.to_vec(), false);
        assert!(exchange.encoder_stream.is_empty());
        let section = exchange.sections.pop_front().unwrap().1;
        let Decoded::Fields(fields) = exchange.decoder.decode(0, section).unwrap() else { panic!("blocked") };
        assert!(fields.iter().all(|field| field.sensitive));
    }
}

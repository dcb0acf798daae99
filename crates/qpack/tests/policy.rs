//! What the encoder puts into the table, seen from outside.

use bytes::Bytes;
use fulmar_qpack::{Decoded, Decoder, DecoderConfig, Encoder, EncoderConfig, Field, FieldRef, PeerSettings};

/// An encoder and a decoder between which everything arrives at once, in order.
struct Pair {
    encoder: Encoder,
    decoder: Decoder,
    stream_id: u64,
}

impl Pair {
    fn new(capacity: usize, blocked_streams: usize) -> Self {
        let mut encoder = Encoder::new(EncoderConfig::default());
        let settings =
            PeerSettings { max_table_capacity: capacity as u64, blocked_streams: blocked_streams as u64 };
        encoder.on_settings(settings).unwrap();
        let config =
            DecoderConfig { max_table_capacity: capacity, blocked_streams, ..DecoderConfig::default() };
        Self { encoder, decoder: Decoder::new(config), stream_id: 0 }
    }

    /// Sends a section, and returns how long it was and what went over the encoder stream.
    fn send(&mut self, fields: &[Field]) -> (usize, usize) {
        let (mut section, mut instructions) = (Vec::new(), Vec::new());
        self.stream_id += 4;
        self.encoder.encode(
            self.stream_id,
            fields.iter().map(FieldRef::from),
            &mut section,
            &mut instructions,
        );
        self.decoder.on_encoder_stream(&instructions).unwrap();
        let lens = (section.len(), instructions.len());
        let decoded = self.decoder.decode(self.stream_id, Bytes::from(section)).unwrap();
        assert_eq!(decoded, Decoded::Fields(fields.to_vec()));
        lens
    }

    fn acknowledge(&mut self) {
        let mut told = Vec::new();
        self.decoder.take_decoder_stream(&mut told);
        self.encoder.on_decoder_stream(&told).unwrap();
    }
}

fn agent() -> Field {
    Field::new("user-agent", "a program with a name that is worth an entry of the table")
}

fn other(n: usize) -> Field {
    Field::new("x-other", format!("a value that comes three times and then no more: number {n}"))
}

#[test]
fn without_settings_the_static_table_alone_is_used() {
    let mut encoder = Encoder::new(EncoderConfig::default());
    let (mut section, mut instructions) = (Vec::new(), Vec::new());
    encoder.encode(0, [FieldRef::new(":method", "GET")], &mut section, &mut instructions);
    assert_eq!((section, instructions), (vec![0, 0, 0xd1], vec![]));
}

#[test]
fn a_peer_that_is_not_to_be_blocked_gets_one_entry_until_it_acknowledges() {
    let mut pair = Pair::new(4096, 0);
    for n in 0..5 {
        pair.send(&[agent(), Field::new("accept", "one kind of thing and another one"), other(n)]);
        assert_eq!(pair.encoder.inserted(), 1);
    }
    pair.acknowledge();
    pair.send(&[agent(), Field::new("accept", "one kind of thing and another one"), other(9)]);
    assert!(pair.encoder.inserted() > 1);
}

#[test]
fn what_comes_with_each_section_outlives_what_does_not() {
    for blocked_streams in [0, 100] {
        let mut pair = Pair::new(1024, blocked_streams);
        let mut literals = 0;
        for n in 0..300 {
            let (section, _) = pair.send(&[agent(), other(n / 3)]);
            // Another one is at most a literal of about fifty bytes; with the first as a literal it would be a hundred.
            literals += usize::from(section > 60);
            pair.acknowledge();
        }
        // The table holds nine entries of the others, of which a hundred came by.
        assert!(pair.encoder.inserted() > 9, "{} entries", pair.encoder.inserted());
        assert!(literals <= 2, "{literals} literals with {blocked_streams} blocked streams");
    }
}

#[test]
fn what_never_comes_again_is_not_inserted() {
    let mut pair = Pair::new(4096, 100);
    for n in 0..100 {
        pair.send(&[Field::new("etag", format!("\"{n}-0123456789abcdef\""))]);
        pair.acknowledge();
    }
    assert!(pair.encoder.inserted() <= 10, "{} entries", pair.encoder.inserted());
}

#[test]
fn a_name_with_changing_values_is_referred_to() {
    let mut pair = Pair::new(4096, 100);
    let section = |n: usize| [Field::new("x-a-name-of-many-bytes-request-id", format!("{n:08}"))];
    let (first, _) = pair.send(&section(0));
    for n in 1..30 {
        pair.send(&section(n));
        pair.acknowledge();
    }
    let (last, instructions) = pair.send(&section(30));
    assert!(last < first.max(20) && instructions == 0, "{first} {last} {instructions}");
}

#[test]
fn an_instruction_that_does_not_fit_is_not_written() {
    let mut pair = Pair::new(4096, 100);
    for room in 0..40 {
        pair.encoder.set_encoder_stream_room(room);
        let (_, instructions) = pair.send(&[agent()]);
        assert!(instructions <= room);
    }
    assert_eq!(pair.encoder.inserted(), 0);
    pair.encoder.set_encoder_stream_room(200);
    pair.send(&[agent()]);
    assert_eq!(pair.encoder.inserted(), 1);
    assert_eq!(pair.send(&[agent()]), (3, 0));
}

#[test]
fn a_table_smaller_than_an_entry_is_not_used() {
    let mut pair = Pair::new(31, 100);
    for _ in 0..3 {
        assert_eq!(pair.send(&[agent()]).1, 0);
    }
}

/// Requests as a browser makes them: most fields are those of the request before, some return now and then, some never do.
fn request(n: usize) -> Vec<Field> {
    let mut fields = vec![
        Field::new(":method", "GET"),
        Field::new(":scheme", "https"),
        Field::new(":authority", "www.example.com"),
        Field::new(":path", format!("/pages/{}/{n}", n % 3)),
        agent(),
        Field::new(
            "accept",
            if n.is_multiple_of(4) { "text/html,application/xhtml+xml" } else { "image/webp" },
        ),
        Field::new("x-request-number", format!("{}", n * 7_919)),
        Field::new("referer", format!("https://www.example.com/{}", n / 10)),
    ];
    if n.is_multiple_of(5) {
        fields.push(other(n / 15));
    }
    if n % 7 == 3 {
        fields.push(Field::new(format!("x-sometimes-{}", n % 2), "a value with a name that is rarely there"));
    }
    fields
}

#[test]
fn a_hundred_requests_take_no_more_bytes_than_they_did() {
    // Capacity, streams that may be blocked, how many sections go between acknowledgements, and the bytes of both streams.
    for (capacity, blocked_streams, every, most) in [
        (4_096, 100, 1, 3_216),
        (4_096, 100, 10, 3_216),
        (4_096, 0, 1, 4_031),
        (400, 100, 1, 5_707),
        (400, 100, 7, 5_919),
        (400, 0, 3, 6_417),
        (200, 3, 2, 8_679),
    ] {
        let mut pair = Pair::new(capacity, blocked_streams);
        let mut total = 0;
        for n in 0..100 {
            let (section, instructions) = pair.send(&request(n));
            total += section + instructions;
            if n.is_multiple_of(every) {
                pair.acknowledge();
            }
        }
        let settings = (capacity, blocked_streams, every);
        assert!(total <= most, "{total} bytes instead of {most} with {settings:?}");
    }
}

//! QPACK: a typical request and response, and the Huffman code by way of long values.

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fulmar_qpack::{Decoded, Decoder, DecoderConfig, Encoder, EncoderConfig, FieldRef, PeerSettings};

const REQUEST: [(&str, &str); 13] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "www.example.org"),
    (":path", "/articles/2026/11/a-title-of-several-words?page=2"),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("accept-language", "en-US,en;q=0.5"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("referer", "https://www.example.org/articles/2026/11/"),
    ("cookie", "session=0d6f9a61c7e94f5b8a0c2e55d1f7b3aa"),
    ("sec-fetch-mode", "navigate"),
    ("upgrade-insecure-requests", "1"),
    ("priority", "u=0, i"),
];

const RESPONSE: [(&str, &str); 9] = [
    (":status", "200"),
    ("server", "fulmar"),
    ("date", "Sun, 22 Nov 2026 20:21:47 GMT"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-length", "48213"),
    ("last-modified", "Sat, 21 Nov 2026 08:12:11 GMT"),
    ("etag", "\"6740a1fb-bc55\""),
    ("cache-control", "max-age=3600"),
    ("vary", "accept-encoding"),
];

/// An encoder and a decoder, which have exchanged the fields often enough to know them.
struct Pair {
    encoder: Encoder,
    decoder: Decoder,
    stream_id: u64,
}

impl Pair {
    fn new(capacity: usize, fields: &[(&str, &str)]) -> Self {
        let mut encoder = Encoder::new(EncoderConfig::default());
        let settings = PeerSettings { max_table_capacity: capacity as u64, blocked_streams: 100 };
        encoder.on_settings(settings).expect("the first settings");
        let config = DecoderConfig { max_table_capacity: capacity, ..DecoderConfig::default() };
        let mut pair = Self { encoder, decoder: Decoder::new(config), stream_id: 0 };
        for _ in 0..20 {
            let section = pair.encode(fields);
            pair.decode(section);
        }
        pair
    }

    fn encode(&mut self, fields: &[(&str, &str)]) -> Bytes {
        let (mut section, mut stream) = (Vec::with_capacity(256), Vec::new());
        self.stream_id += 4;
        let fields = fields.iter().map(|(name, value)| FieldRef::new(*name, *value));
        self.encoder.encode(self.stream_id, fields, &mut section, &mut stream);
        self.decoder.on_encoder_stream(&stream).expect("the encoder obeys");
        Bytes::from(section)
    }

    fn decode(&mut self, section: Bytes) -> usize {
        let decoded = self.decoder.decode(self.stream_id, section).expect("the encoder obeys");
        let mut told = Vec::new();
        self.decoder.take_decoder_stream(&mut told);
        self.encoder.on_decoder_stream(&told).expect("the decoder obeys");
        match decoded {
            Decoded::Fields(fields) => fields.len(),
            other => panic!("{other:?}"),
        }
    }
}

fn messages(c: &mut Criterion) {
    let mut group = c.benchmark_group("qpack");
    for (name, fields) in [("request", &REQUEST[..]), ("response", &RESPONSE[..])] {
        for capacity in [0, 4096] {
            let mut pair = Pair::new(capacity, fields);
            group.bench_function(format!("{name}, table of {capacity}, both ends"), |b| {
                b.iter(|| {
                    let section = pair.encode(fields);
                    pair.decode(section)
                });
            });
        }
        let mut pair = Pair::new(0, fields);
        group.bench_function(format!("{name}, encoded without a table"), |b| b.iter(|| pair.encode(fields)));
        let section = pair.encode(fields);
        group.bench_function(format!("{name}, decoded without a table"), |b| {
            b.iter(|| pair.decode(section.clone()));
        });
    }
    group.finish();
}

/// A value of 4096 bytes: nearly all the time goes into the Huffman code.
fn huffman(c: &mut Criterion) {
    let value: String = RESPONSE.iter().chain(&REQUEST).map(|(_, value)| *value).cycle().take(200).collect();
    let fields = [("x-long", &value[..4096])];
    let mut pair = Pair::new(0, &fields);
    let mut group = c.benchmark_group("huffman");
    group.throughput(Throughput::Bytes(4096));
    group.bench_function("encode", |b| b.iter(|| pair.encode(&fields)));
    let section = pair.encode(&fields);
    group.bench_function("decode", |b| b.iter(|| pair.decode(section.clone())));
    group.finish();
}

criterion_group!(benches, messages, huffman);
criterion_main!(benches);

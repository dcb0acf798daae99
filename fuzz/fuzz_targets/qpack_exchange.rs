//! Fields arrive as they were sent, whatever order the encoder stream, the sections and the decoder stream come in.
#![no_main]

use std::collections::VecDeque;

use bytes::Bytes;
use fulmar_qpack::{Decoded, Decoder, DecoderConfig, Encoder, EncoderConfig, Field, FieldRef, PeerSettings};
use libfuzzer_sys::fuzz_target;

/// A field of few names and values, so that they come again; a long one for each with the highest bit.
fn field(byte: u8) -> Field {
    const NAMES: [&str; 8] = [":path", "cookie", "user-agent", "x-a", "x-b", "accept", ":status", "etag"];
    let len = if byte & 0x80 == 0 { 24 } else { 900 };
    let value = vec![b'a' + (byte >> 3 & 0xf); len];
    Field::new(NAMES[usize::from(byte & 7)], value)
}

fuzz_target!(|input: (u16, bool, Vec<(u8, u8)>)| {
    let (capacity, may_block, ops) = input;
    let capacity = usize::from(capacity % 5000);
    let blocked_streams = if may_block { 3 } else { 0 };
    let limits = DecoderConfig {
        max_table_capacity: capacity,
        blocked_streams,
        field_section_size_max: usize::MAX,
        blocked_bytes_max: usize::MAX,
        ..DecoderConfig::default()
    };
    let mut decoder = Decoder::new(limits);
    let mut encoder = Encoder::new(EncoderConfig::default());
    let settings =
        PeerSettings { max_table_capacity: capacity as u64, blocked_streams: blocked_streams as u64 };
    encoder.on_settings(settings).expect("the first settings");
    let (mut stream, mut back) = (VecDeque::<u8>::new(), VecDeque::<u8>::new());
    let mut sections: VecDeque<(u64, Bytes, Vec<Field>)> = VecDeque::new();
    let mut blocked: Vec<(u64, Vec<Field>)> = Vec::new();
    let mut fields = Vec::new();
    for (n, (op, value)) in ops.into_iter().take(400).enumerate() {
        match op % 8 {
            0..=2 => fields.push(field(value)),
            3 => {
                let (mut section, mut instructions) = (Vec::new(), Vec::new());
                encoder.encode(n as u64, fields.iter().map(FieldRef::from), &mut section, &mut instructions);
                stream.extend(instructions);
                sections.push_back((n as u64, Bytes::from(section), std::mem::take(&mut fields)));
                assert!(encoder.streams_at_risk() <= blocked_streams);
            }
            4 => {
                let len = (usize::from(value) * 8).min(stream.len());
                decoder
                    .on_encoder_stream(&stream.drain(..len).collect::<Vec<_>>())
                    .expect("the encoder obeys");
            }
            5 => {
                let len = usize::from(value).min(sections.len().saturating_sub(1));
                if let Some((id, section, fields)) = sections.remove(len) {
                    match decoder.decode(id, section).expect("the encoder obeys") {
                        Decoded::Fields(decoded) => assert_eq!(decoded, fields),
                        Decoded::Blocked => blocked.push((id, fields)),
                        Decoded::Refused(excess) => assert!(fields.len() > 200, "{excess:?}"),
                    }
                }
            }
            6 => {
                let mut told = Vec::new();
                decoder.take_decoder_stream(&mut told);
                back.extend(told);
                let len = usize::from(value).min(back.len());
                encoder.on_decoder_stream(&back.drain(..len).collect::<Vec<_>>()).expect("the decoder obeys");
            }
            _ => {
                if let Some((id, ..)) = sections.pop_back() {
                    decoder.cancel(id).expect("few are cancelled");
                } else if let Some((id, _)) = blocked.pop() {
                    decoder.cancel(id).expect("few are cancelled");
                }
            }
        }
        while let Some((id, decoded)) = decoder.unblocked().expect("the encoder obeys") {
            let at = blocked.iter().position(|stream| stream.0 == id).expect("it was blocked");
            let (_, fields) = blocked.remove(at);
            assert!(decoded == Decoded::Fields(fields.clone()) || fields.len() > 200);
        }
    }
});

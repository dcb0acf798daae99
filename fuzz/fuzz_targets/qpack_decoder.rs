//! A QPACK decoder and an encoder survive any bytes on their streams, and name the stream that is to blame.
#![no_main]

use bytes::Bytes;
use fulmar_qpack::{
    Decoded, Decoder, DecoderConfig, Encoder, EncoderConfig, ErrorCode, FieldRef, PeerSettings,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Vec<(u8, Vec<u8>)>| {
    let config = DecoderConfig { blocked_streams: 4, ..DecoderConfig::default() };
    let mut decoder = Decoder::new(config.clone());
    let mut encoder = Encoder::new(EncoderConfig::default());
    encoder
        .on_settings(PeerSettings { max_table_capacity: 4096, blocked_streams: 4 })
        .expect("the first settings");
    // Room in the table, so that what follows can fill it.
    decoder.on_encoder_stream(&[0x3f, 0xe1, 0x1f]).expect("a capacity that is allowed");
    for (n, (kind, bytes)) in input.into_iter().take(64).enumerate() {
        let (result, code) = match kind % 4 {
            0 | 1 => (decoder.on_encoder_stream(&bytes), ErrorCode::EncoderStreamError),
            2 => {
                let decoded = decoder.decode(n as u64 * 4, Bytes::from(bytes));
                if let Ok(Decoded::Fields(fields)) = &decoded {
                    let size: usize = fields.iter().map(fulmar_qpack::Field::size).sum();
                    assert!(size <= config.field_section_size_max && fields.len() <= config.fields_max);
                }
                (decoded.map(drop), ErrorCode::DecompressionFailed)
            }
            _ => {
                let name = [b'x', kind];
                let (mut section, mut stream) = (Vec::new(), Vec::new());
                encoder.encode(n as u64 * 4, [FieldRef::new(&name, &bytes)], &mut section, &mut stream);
                (encoder.on_decoder_stream(&bytes), ErrorCode::DecoderStreamError)
            }
        };
        if let Err(error) = result {
            assert_eq!(error.code(), code, "{error}");
            return;
        }
        loop {
            match decoder.unblocked() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(error.code(), ErrorCode::DecompressionFailed, "{error}");
                    return;
                }
            }
        }
        assert!(decoder.blocked_streams() <= config.blocked_streams);
        decoder.take_decoder_stream(&mut Vec::new());
    }
});

//! What a peer must not do, and what it cannot make this end do.

use std::time::Instant;

use bytes::Bytes;
use fulmar_qpack::{
    DECODER_STREAM_WAITING_MAX, Decoded, Decoder, DecoderConfig, Encoder, EncoderConfig, Error, ErrorCode,
    Excess, FieldRef, PeerSettings,
};
use proptest::prelude::*;

fn decoder() -> Decoder {
    Decoder::new(DecoderConfig::default())
}

fn code<T>(result: Result<T, Error>) -> Option<ErrorCode> {
    result.err().map(|error| error.code())
}

fn decode(section: &[u8]) -> Option<ErrorCode> {
    code(decoder().decode(0, Bytes::copy_from_slice(section)))
}

/// A decoder with entries `a: ` with values of so many bytes, in a table of 4096.
fn decoder_with_entries(value_lens: &[usize]) -> Decoder {
    let mut decoder = decoder();
    decoder.on_encoder_stream(&[0x3f, 0xe1, 0x1f]).unwrap();
    for &len in value_lens {
        let mut insert = vec![0x41, b'a', 0x7f];
        let mut rest = len - 127;
        while rest >= 0x80 {
            insert.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        insert.push(rest as u8);
        insert.extend(vec![b'v'; len]);
        decoder.on_encoder_stream(&insert).unwrap();
    }
    decoder
}

#[test]
fn sections_that_cannot_be_decoded() {
    let broken: [&[u8]; 14] = [
        &[],
        &[0x00],
        &[0xff],
        // A Required Insert Count without a table, and one beyond what a table can have.
        &[0xff, 0x80, 0x7f, 0x00],
        // A Base below zero.
        &[0x00, 0x81],
        // An index of the static table that it does not have, also as a name.
        &[0x00, 0x00, 0xff, 0x24],
        &[0x00, 0x00, 0x5f, 0x54, 0x00],
        // The dynamic table is empty: a relative index, a post-Base index, and both as names.
        &[0x00, 0x00, 0x80],
        &[0x00, 0x00, 0x10],
        &[0x00, 0x00, 0x40, 0x00],
        &[0x00, 0x00, 0x00, 0x00],
        // A string that is cut short, and one that is not of the Huffman code.
        &[0x00, 0x00, 0x51, 0x05, b'/'],
        &[0x00, 0x00, 0x51, 0x81, 0xff],
        // An integer of too many bytes.
        &[0x00, 0x00, 0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
    ];
    for section in broken {
        assert_eq!(decode(section), Some(ErrorCode::DecompressionFailed), "{section:x?}");
    }
}

#[test]
fn references_beyond_the_required_insert_count() {
    let mut decoder = decoder_with_entries(&[200, 200]);
    // The count says one, the line names the second entry.
    let result = decoder.decode(0, Bytes::from_static(&[0x02, 0x01, 0x80]));
    assert_eq!(code(result), Some(ErrorCode::DecompressionFailed));
    assert!(decoder.decode(0, Bytes::from_static(&[0x03, 0x00, 0x80])).is_ok());
}

#[test]
fn instructions_of_an_encoder_that_break_the_rules() {
    let broken: [&[u8]; 8] = [
        // A capacity beyond the limit.
        &[0x3f, 0xe2, 0x1f],
        // An entry that is larger than the table, which has no capacity yet: also its strings.
        &[0xc0, 0x00],
        &[0x41, b'a', 0x00],
        &[0x3f, 0x01, 0xc1, 0x00],
        // Names and entries that are not there.
        &[0x3f, 0xe1, 0x1f, 0xff, 0x24, 0x00],
        &[0x3f, 0xe1, 0x1f, 0x80, 0x00],
        &[0x3f, 0xe1, 0x1f, 0x00],
        // A string that is not of the Huffman code.
        &[0x3f, 0xe1, 0x1f, 0xc0, 0x81, 0xff],
    ];
    for stream in broken {
        assert_eq!(
            code(decoder().on_encoder_stream(stream)),
            Some(ErrorCode::EncoderStreamError),
            "{stream:x?}"
        );
    }
}

#[test]
fn a_string_that_never_comes_is_not_waited_for() {
    let mut decoder = decoder_with_entries(&[]);
    // A value of 2^32 bytes is announced.
    let result = decoder.on_encoder_stream(&[0xc0, 0x7f, 0x81, 0xff, 0xff, 0xff, 0x0f]);
    assert_eq!(code(result), Some(ErrorCode::EncoderStreamError));
}

#[test]
fn more_blocked_streams_than_are_allowed() {
    let mut decoder = Decoder::new(DecoderConfig { blocked_streams: 2, ..DecoderConfig::default() });
    let section = Bytes::from_static(&[0x02, 0x00, 0x80]);
    assert_eq!(decoder.decode(0, section.clone()), Ok(Decoded::Blocked));
    assert_eq!(decoder.decode(4, section.clone()), Ok(Decoded::Blocked));
    assert_eq!(code(decoder.decode(8, section.clone())), Some(ErrorCode::DecompressionFailed));
    decoder.cancel(0).unwrap();
    assert_eq!(decoder.decode(8, section), Ok(Decoded::Blocked));
}

#[test]
fn what_waits_is_bounded_in_bytes() {
    let mut decoder = Decoder::new(DecoderConfig { blocked_bytes_max: 100, ..DecoderConfig::default() });
    let mut section = vec![0x02, 0x00];
    section.resize(60, 0x80);
    let section = Bytes::from(section);
    assert_eq!(decoder.decode(0, section.clone()), Ok(Decoded::Blocked));
    assert_eq!(decoder.decode(4, section.clone()), Ok(Decoded::Refused(Excess::BlockedBytes)));
    let mut told = Vec::new();
    decoder.take_decoder_stream(&mut told);
    assert_eq!(told, [0x44]);
    decoder.cancel(0).unwrap();
    assert_eq!(decoder.decode(8, section), Ok(Decoded::Blocked));
}

#[test]
fn references_of_a_byte_to_large_entries_cost_no_more_than_the_limit() {
    let mut decoder = decoder_with_entries(&[4000]);
    let mut section = vec![0x02, 0x00];
    section.resize(16 * 1024, 0x80);
    let section = Bytes::from(section);
    let start = now();
    for stream_id in 0..1000 {
        let decoded = decoder.decode(stream_id, section.clone());
        assert_eq!(decoded, Ok(Decoded::Refused(Excess::Size)));
        // The encoder may forget the section: it is not left to hold its entries.
        let mut told = Vec::new();
        decoder.take_decoder_stream(&mut told);
        assert!(!told.is_empty());
    }
    // 16 MB came that would have been 65 GB. A copy of what is allowed, and no more, would be 64 MB.
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

#[expect(clippy::disallowed_methods, reason = "the test measures that an attack costs no time")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn fields_without_bytes_are_counted() {
    let mut section = vec![0x00, 0x00];
    // Index 0 of the static table has no value.
    section.resize(2 + 513, 0xc0);
    let config = DecoderConfig { field_section_size_max: usize::MAX, ..DecoderConfig::default() };
    let decoded = Decoder::new(config).decode(0, Bytes::from(section.clone()));
    assert_eq!(decoded, Ok(Decoded::Refused(Excess::Fields)));
    section.truncate(2 + 512);
    let Ok(Decoded::Fields(fields)) = decoder().decode(0, Bytes::from(section)) else { panic!("refused") };
    assert_eq!(fields.len(), 512);
}

#[test]
fn cookies_in_crumbs_are_counted() {
    let mut section = vec![0x00, 0x00];
    for _ in 0..257 {
        section.extend([0x55, 0x03, b'a', b'=', b'b']);
    }
    assert_eq!(decoder().decode(0, Bytes::from(section)), Ok(Decoded::Refused(Excess::CookieCrumbs)));
}

#[test]
fn a_decoder_stream_that_is_not_read_is_bounded() {
    let mut decoder = decoder();
    let mut calls = 0;
    let error = loop {
        calls += 1;
        if let Err(error) = decoder.cancel(1 << 40) {
            break error;
        }
        assert!(calls < DECODER_STREAM_WAITING_MAX);
    };
    assert_eq!(error.code(), ErrorCode::ExcessiveLoad);
}

#[test]
fn instructions_of_a_decoder_that_break_the_rules() {
    let settings = PeerSettings { max_table_capacity: 4096, blocked_streams: 100 };
    let broken: [&[u8]; 4] = [
        // An increment of zero, one of what was not sent, a section that was not sent, an integer without an end.
        &[0x00],
        &[0x01],
        &[0x80],
        &[0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
    ];
    for stream in broken {
        let mut encoder = Encoder::new(EncoderConfig::default());
        let result = encoder.on_decoder_stream(stream);
        assert_eq!(code(result), Some(ErrorCode::DecoderStreamError), "before the settings: {stream:x?}");
        let mut encoder = Encoder::new(EncoderConfig::default());
        encoder.on_settings(settings).unwrap();
        assert_eq!(
            code(encoder.on_decoder_stream(stream)),
            Some(ErrorCode::DecoderStreamError),
            "{stream:x?}"
        );
    }
    // A stream may be cancelled that had no references.
    assert_eq!(Encoder::new(EncoderConfig::default()).on_decoder_stream(&[0x44]), Ok(()));
}

#[test]
fn a_section_is_acknowledged_once() {
    let mut encoder = Encoder::new(EncoderConfig::default());
    encoder.on_settings(PeerSettings { max_table_capacity: 4096, blocked_streams: 100 }).unwrap();
    let (mut section, mut stream) = (Vec::new(), Vec::new());
    let field = FieldRef::new("user-agent", "a program with a long name");
    encoder.encode(4, [field], &mut section, &mut stream);
    assert_eq!(encoder.inserted(), 1);
    assert_eq!(encoder.on_decoder_stream(&[0x84]), Ok(()));
    assert_eq!(code(encoder.on_decoder_stream(&[0x84])), Some(ErrorCode::DecoderStreamError));
}

#[test]
fn a_remembered_capacity_must_not_change() {
    let mut encoder = Encoder::new(EncoderConfig::default());
    let remembered = PeerSettings { max_table_capacity: 4096, blocked_streams: 0 };
    encoder.on_settings(remembered).unwrap();
    assert_eq!(encoder.on_settings(PeerSettings { blocked_streams: 7, ..remembered }), Ok(()));
    let changed = PeerSettings { max_table_capacity: 0, ..remembered };
    assert_eq!(code(encoder.on_settings(changed)), Some(ErrorCode::DecoderStreamError));
}

#[test]
fn a_peer_that_acknowledges_nothing_does_not_make_us_hold_more_and_more() {
    let mut encoder = Encoder::new(EncoderConfig::default());
    encoder.on_settings(PeerSettings { max_table_capacity: 4096, blocked_streams: u64::MAX }).unwrap();
    let fields = [FieldRef::new("user-agent", "a program with a long name")];
    let lens: Vec<usize> = (0..2000)
        .map(|n| {
            let (mut section, mut stream) = (Vec::new(), Vec::new());
            encoder.encode(n * 4, fields, &mut section, &mut stream);
            section.len()
        })
        .collect();
    // Sections with references end where as many are outstanding as may be.
    assert_eq!(lens[1], 3);
    assert!(lens[1999] > 10);
    assert!(encoder.streams_at_risk() <= 1024);
}

proptest! {
    #[test]
    fn any_bytes_are_an_error_or_not(stream: Vec<u8>, section: Vec<u8>, cut in 0..64usize) {
        let mut decoder = decoder_with_entries(&[200, 300]);
        let cut = cut.min(stream.len());
        let result = decoder.on_encoder_stream(&stream[..cut]).and_then(|()| decoder.on_encoder_stream(&stream[cut..]));
        if let Err(error) = result {
            prop_assert_eq!(error.code(), ErrorCode::EncoderStreamError);
        }
        if let Err(error) = decoder.decode(0, Bytes::from(section)) {
            prop_assert_eq!(error.code(), ErrorCode::DecompressionFailed);
        }
        let mut encoder = Encoder::new(EncoderConfig::default());
        if let Err(error) = encoder.on_decoder_stream(&stream) {
            prop_assert_eq!(error.code(), ErrorCode::DecoderStreamError);
        }
    }

    #[test]
    fn pieces_do_not_matter(cuts in proptest::collection::vec(1..20usize, 0..40)) {
        let mut whole = vec![0x3f, 0xe1, 0x1f];
        for n in 0..30_u8 {
            whole.extend([0xc0, 0x05, b'v', b'a', b'l', b'u', n]);
            whole.extend([0x43, b'a', b'b', n, 0x01, b'v', 0x00, 0x01]);
        }
        let mut pieces = decoder();
        let mut rest = &whole[..];
        for cut in cuts {
            let (piece, behind) = rest.split_at(cut.min(rest.len()));
            pieces.on_encoder_stream(piece).unwrap();
            rest = behind;
        }
        pieces.on_encoder_stream(rest).unwrap();
        let mut at_once = decoder();
        at_once.on_encoder_stream(&whole).unwrap();
        let section = Bytes::from_static(&[0x79, 0x00, 0x80, 0x81, 0x82, 0xb0]);
        prop_assert_eq!(pieces.decode(0, section.clone()), at_once.decode(0, section));
    }
}

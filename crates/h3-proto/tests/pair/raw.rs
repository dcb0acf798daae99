//! Bytes of HTTP/3 by hand.

use bytes::Bytes;
use fulmar_h3_proto::{Config, ErrorCode, Scope};
use fulmar_qpack::{Encoder, EncoderConfig, FieldRef};

use super::End;

pub(crate) fn varint(value: u64) -> Vec<u8> {
    match value {
        0..=0x3f => vec![value as u8],
        0x40..=0x3fff => (0x4000 | value as u16).to_be_bytes().to_vec(),
        0x4000..=0x3fff_ffff => (0x8000_0000 | value as u32).to_be_bytes().to_vec(),
        _ => (0xc << 60 | value).to_be_bytes().to_vec(),
    }
}

pub(crate) fn frame(ty: u64, payload: &[u8]) -> Vec<u8> {
    [&varint(ty)[..], &varint(payload.len() as u64), payload].concat()
}

pub(crate) fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    let fields: Vec<_> = fields.iter().map(|(name, value)| FieldRef::new(*name, *value)).collect();
    Encoder::new(EncoderConfig::default()).encode(0, fields.iter().copied(), &mut out, &mut Vec::new());
    out
}

pub(crate) fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(1, &section(fields))
}

pub(crate) const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "example.org"), (":path", "/")];

/// `GET` with other fields behind it.
pub(crate) fn get_with<'a>(fields: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    GET.iter().chain(fields).copied().collect()
}

/// A control stream with empty SETTINGS, and frames behind them.
pub(crate) fn control(frames: &[u8]) -> Vec<u8> {
    [&[0, 4, 0], frames].concat()
}

/// What a server says to bytes of a client.
pub(crate) fn server_says(config: Config, pieces: &[(u64, Vec<u8>, bool)]) -> Option<(Scope, ErrorCode)> {
    said(End::server(config), pieces)
}

/// What a client with a GET request on stream 0 says to bytes of a server.
pub(crate) fn client_says(config: Config, pieces: &[(u64, Vec<u8>, bool)]) -> Option<(Scope, ErrorCode)> {
    let mut end = End::client(config);
    end.h3.send_request(0, &super::get("/")).unwrap();
    said(end, pieces)
}

fn said(mut end: End, pieces: &[(u64, Vec<u8>, bool)]) -> Option<(Scope, ErrorCode)> {
    for (stream, bytes, is_last) in pieces {
        end.deliver((*stream, Bytes::copy_from_slice(bytes), *is_last));
    }
    end.errors.first().map(|error| (error.scope(), error.code()))
}

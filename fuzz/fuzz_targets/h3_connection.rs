//! Both ends of HTTP/3 survive any frames on any streams; what they keep and what they say stays within the rules.
#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_h3_proto::{Config, Connection, Critical, Event, Received, Role, Scope, SessionStreams};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Op {
    /// A frame on the stream of this number, whole or as bytes that are none.
    Frame {
        stream: u8,
        ty: u8,
        payload: Vec<u8>,
    },
    Bytes {
        stream: u8,
        bytes: Vec<u8>,
        is_last: bool,
    },
    /// A section of fields, as an encoder writes them that uses no table.
    Section {
        stream: u8,
        fields: Vec<(u8, Vec<u8>)>,
    },
    Reset(u8),
    Stop(u8),
    Datagram(Vec<u8>),
}

const NAMES: [&[u8]; 12] = [
    b":method",
    b":scheme",
    b":authority",
    b":path",
    b":status",
    b":protocol",
    b"host",
    b"cookie",
    b"content-length",
    b"te",
    b"x-field",
    b"priority",
];

fn varint(value: u64) -> Vec<u8> {
    if value < 64 { vec![value as u8] } else { (0x8000_0000 | value as u32).to_be_bytes().to_vec() }
}

fn frame(ty: u64, payload: &[u8]) -> Vec<u8> {
    [&varint(ty)[..], &varint(payload.len() as u64), payload].concat()
}

fn section(fields: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut out = vec![0, 0];
    for (name, value) in fields {
        let name = NAMES[usize::from(*name) % NAMES.len()];
        let value = &value[..value.len().min(100)];
        // Literals with literal names, without Huffman code.
        if name.len() < 7 {
            out.push(0x20 | name.len() as u8)
        } else {
            out.extend([0x27, name.len() as u8 - 7])
        }
        out.extend_from_slice(name);
        out.push(value.len() as u8);
        out.extend_from_slice(value);
    }
    out
}

struct End {
    h3: Connection,
    unread: BTreeMap<u64, (Vec<u8>, bool)>,
    /// Whether the head of a message has come, by stream.
    heads: BTreeMap<u64, bool>,
}

impl End {
    /// Returns whether the connection goes on.
    fn give(&mut self, stream: u64, bytes: &[u8], is_last: bool) -> bool {
        let is_own = (stream & 1 == 1) == (self.h3.role() == Role::Server);
        if !self.unread.contains_key(&stream)
            && !is_own
            && self
                .h3
                .accept(stream, false, Instant::from_millis(0))
                .is_err_and(|error| error.scope() == Scope::Connection)
        {
            return false;
        }
        let (unread, was_last) = self.unread.entry(stream).or_default();
        if *was_last {
            return true;
        }
        unread.extend_from_slice(bytes);
        *was_last = is_last;
        self.read(stream)
    }

    fn read(&mut self, stream: u64) -> bool {
        let Some((unread, is_last)) = self.unread.get_mut(&stream) else { return true };
        let mut bytes = Bytes::from(std::mem::take(unread));
        let is_last = *is_last;
        let goes_on = loop {
            match self.h3.receive(stream, &mut bytes, is_last) {
                Ok(Received::Event(event)) => Self::check(&mut self.heads, stream, &event),
                Ok(Received::More) => {
                    assert!(bytes.is_empty());
                    break true;
                }
                Ok(_) => break true,
                Err(error) => break error.scope() != Scope::Connection,
            }
        };
        self.unread.insert(stream, (bytes.to_vec(), is_last));
        goes_on
    }

    fn check(heads: &mut BTreeMap<u64, bool>, stream: u64, event: &Event) {
        match event {
            Event::Request(_) | Event::Response(_) => {
                assert!(heads.insert(stream, true).is_none(), "a message has one head");
            }
            Event::Data(data) => assert!(!data.is_empty() && heads.contains_key(&stream)),
            Event::Trailers(_) | Event::Finished => assert!(heads.contains_key(&stream)),
            _ => {}
        }
    }

    fn unblock(&mut self) -> bool {
        loop {
            match self.h3.poll_unblocked() {
                Ok(None) => return true,
                Ok(Some((stream, event))) => {
                    Self::check(&mut self.heads, stream, &event);
                    if !self.read(stream) {
                        return false;
                    }
                }
                Err(error) if error.scope() == Scope::Connection => return false,
                Err(_) => {}
            }
        }
    }
}

fuzz_target!(|input: (bool, Vec<Op>)| {
    let (is_server, ops) = input;
    let config = Arc::new(Config {
        useless_max: 100,
        h3_datagram: true,
        enable_connect_protocol: true,
        session_streams: SessionStreams { bidirectional: vec![0x3e], unidirectional: vec![0x3f] },
        ..Config::default()
    });
    let mut h3 = if is_server { Connection::server(config) } else { Connection::client(config, None) };
    if !is_server {
        let (parts, ()) = http::Request::get("https://a/").body(()).expect("a request").into_parts();
        for stream in [0, 4, 8] {
            h3.send_request(stream, &parts).expect("nothing stands against it");
        }
    }
    let mut end = End { h3, unread: BTreeMap::new(), heads: BTreeMap::new() };
    for op in ops.into_iter().take(100) {
        let goes_on = match op {
            Op::Frame { stream, ty, payload } => {
                end.give(u64::from(stream % 16), &frame(u64::from(ty), &payload), false)
            }
            Op::Bytes { stream, bytes, is_last } => end.give(u64::from(stream % 16), &bytes, is_last),
            Op::Section { stream, fields } => {
                end.give(u64::from(stream % 16), &frame(1, &section(&fields)), false)
            }
            Op::Reset(stream) => end.h3.on_reset(u64::from(stream % 16), Instant::from_millis(0)).is_ok(),
            Op::Stop(stream) => {
                end.h3.on_stop_sending(Some(u64::from(stream % 16)), Instant::from_millis(0)).is_ok()
            }
            Op::Datagram(datagram) => end.h3.receive_datagram(datagram.into()).is_ok(),
        };
        if !goes_on || !end.unblock() {
            return;
        }
        Critical::ALL.into_iter().for_each(|stream| drop(end.h3.take_output(stream)));
    }
});

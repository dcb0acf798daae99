//! Two ends that are joined in memory, and bytes that no well-behaved end would send.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod raw;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use fulmar_base::Instant;
use fulmar_h3_proto::{Config, Connection, Critical, Error, Event, Received, Role, Scope};

/// Bytes of a stream on their way, and whether they are the last.
pub(crate) type Piece = (u64, Bytes, bool);

/// One end, with what has come on its streams.
pub(crate) struct End {
    pub(crate) h3: Connection,
    pub(crate) now: Instant,
    pub(crate) events: Vec<(u64, Event)>,
    pub(crate) errors: Vec<Error>,
    /// Streams that sessions have claimed, with what came on them.
    pub(crate) claimed: BTreeMap<u64, Vec<u8>>,
    incoming: BTreeMap<u64, Incoming>,
    critical: BTreeMap<usize, u64>,
    next_uni: u64,
    out: VecDeque<Piece>,
}

#[derive(Default)]
struct Incoming {
    unread: BytesMut,
    is_last: bool,
    is_blocked: bool,
    is_over: bool,
}

impl End {
    pub(crate) fn new(h3: Connection) -> Self {
        let next_uni = if h3.role() == Role::Client { 2 } else { 3 };
        Self {
            h3,
            now: Instant::from_millis(1),
            events: Vec::new(),
            errors: Vec::new(),
            claimed: BTreeMap::new(),
            incoming: BTreeMap::new(),
            critical: BTreeMap::new(),
            next_uni,
            out: VecDeque::new(),
        }
    }

    pub(crate) fn server(config: Config) -> Self {
        Self::new(Connection::server(Arc::new(config)))
    }

    pub(crate) fn client(config: Config) -> Self {
        Self::new(Connection::client(Arc::new(config), None))
    }

    pub(crate) fn write(&mut self, stream: u64, bytes: impl Into<Bytes>, is_last: bool) {
        self.out.push_back((stream, bytes.into(), is_last));
    }

    /// Sends a whole request on a stream.
    pub(crate) fn request(&mut self, stream: u64) {
        let head = self.h3.send_request(stream, &get("/")).unwrap();
        self.h3.finish(stream).unwrap();
        self.write(stream, head, true);
    }

    pub(crate) fn respond(&mut self, stream: u64) {
        let head = self.h3.send_response(stream, &ok(), true).unwrap();
        self.h3.finish(stream).unwrap();
        self.write(stream, head, true);
    }

    pub(crate) fn open_uni(&mut self) -> u64 {
        self.next_uni += 4;
        self.next_uni - 4
    }

    /// What is on its way from here.
    pub(crate) fn sent(&mut self) -> Vec<Piece> {
        for (n, critical) in Critical::ALL.into_iter().enumerate() {
            let bytes = self.h3.take_output(critical);
            if bytes.is_empty() {
                continue;
            }
            let stream = match self.critical.get(&n) {
                Some(stream) => *stream,
                None => {
                    let stream = self.open_uni();
                    self.critical.insert(n, stream);
                    stream
                }
            };
            self.out.push_front((stream, bytes, false));
        }
        self.out.drain(..).collect()
    }

    /// Something arrives.
    pub(crate) fn deliver(&mut self, (stream, bytes, is_last): Piece) {
        let is_own = (stream & 1 == 1) == (self.h3.role() == Role::Server);
        if !self.incoming.contains_key(&stream)
            && !is_own
            && let Err(error) = self.h3.accept(stream, false, self.now)
        {
            self.fail(stream, error);
        }
        let incoming = self.incoming.entry(stream).or_default();
        incoming.unread.extend_from_slice(&bytes);
        incoming.is_last |= is_last;
        self.read(stream);
        if stream & 2 == 2 {
            self.unblock();
        }
    }

    /// Forgets what has come of requests.
    pub(crate) fn forget_streams(&mut self) {
        self.events.clear();
        self.incoming.retain(|stream, _| stream & 2 == 2);
    }

    fn read(&mut self, stream: u64) {
        loop {
            let Some(incoming) = self.incoming.get_mut(&stream) else { return };
            if incoming.is_blocked || incoming.is_over {
                return;
            }
            let mut bytes = incoming.unread.split().freeze();
            let is_last = incoming.is_last;
            let received = self.h3.receive(stream, &mut bytes, is_last);
            incoming.unread.extend_from_slice(&bytes);
            match received {
                Ok(Received::Event(event)) => self.events.push((stream, event)),
                Ok(Received::Blocked) => incoming.is_blocked = true,
                Ok(Received::More) => {
                    assert!(bytes.is_empty(), "all bytes are taken");
                    return;
                }
                Ok(Received::Claimed) => {
                    let unread = incoming.unread.split();
                    self.claimed.entry(stream).or_default().extend_from_slice(&unread);
                    return;
                }
                Ok(Received::Done) => incoming.is_over = true,
                Err(error) => self.fail(stream, error),
            }
        }
    }

    fn unblock(&mut self) {
        loop {
            match self.h3.poll_unblocked() {
                Ok(None) => return,
                Ok(Some((stream, event))) => {
                    self.events.push((stream, event));
                    self.incoming.entry(stream).or_default().is_blocked = false;
                    self.read(stream);
                }
                Err(error) => return self.fail(u64::MAX, error),
            }
        }
    }

    fn fail(&mut self, stream: u64, error: Error) {
        match error.scope() {
            Scope::Stream(failed) => self.incoming.entry(failed).or_default().is_over = true,
            Scope::Connection => self.incoming.entry(stream).or_default().is_over = true,
        }
        self.errors.push(error);
    }

    /// What has come on a stream, as short words.
    pub(crate) fn words(&self, stream: u64) -> Vec<String> {
        let events = self.events.iter().filter(|(of, _)| *of == stream);
        let mut words: Vec<String> = Vec::new();
        for (_, event) in events {
            let word = word(event);
            // How a body is split does not matter.
            match words.last_mut() {
                Some(last) if last.starts_with("data ") && word.starts_with("data ") => {
                    last.push_str(&word[5..])
                }
                _ => words.push(word),
            }
        }
        words
    }
}

pub(crate) fn word(event: &Event) -> String {
    let fields = |headers: &http::HeaderMap| {
        let mut text = String::new();
        for (name, value) in headers {
            text += &format!(" {name}={}", String::from_utf8_lossy(value.as_bytes()));
        }
        text
    };
    match event {
        Event::Request(head) => {
            format!("{} {}{}", head.parts.method, head.parts.uri, fields(&head.parts.headers))
        }
        Event::Informational(parts) | Event::Response(parts) => {
            format!("{}{}", parts.status.as_u16(), fields(&parts.headers))
        }
        Event::Data(data) => format!("data {}", String::from_utf8_lossy(data)),
        Event::Trailers(trailers) => format!("trailers{}", fields(trailers)),
        Event::Finished => "finished".to_owned(),
        other => format!("{other:?}"),
    }
}

/// A client and a server.
pub(crate) struct Pair {
    pub(crate) client: End,
    pub(crate) server: End,
}

impl Pair {
    pub(crate) fn new(client: Config, server: Config) -> Self {
        Self { client: End::client(client), server: End::server(server) }
    }

    /// A pair that knows each other's settings.
    pub(crate) fn joined(client: Config, server: Config) -> Self {
        let mut pair = Self::new(client, server);
        pair.run();
        pair.client.events.clear();
        pair.server.events.clear();
        pair
    }

    /// Delivers everything, until nothing is on its way.
    pub(crate) fn run(&mut self) {
        self.run_in_pieces(usize::MAX);
    }

    /// The same in pieces of so many bytes, in turns of the streams.
    pub(crate) fn run_in_pieces(&mut self, len: usize) {
        loop {
            let to_server = in_turns(self.client.sent(), len);
            let to_client = in_turns(self.server.sent(), len);
            if to_server.is_empty() && to_client.is_empty() {
                return;
            }
            to_server.into_iter().for_each(|piece| self.server.deliver(piece));
            to_client.into_iter().for_each(|piece| self.client.deliver(piece));
        }
    }

    pub(crate) fn assert_no_errors(&self) {
        assert_eq!((&self.client.errors[..], &self.server.errors[..]), (&[][..], &[][..]));
    }
}

/// Splits what was sent, and mixes the streams while each keeps its order.
pub(crate) fn in_turns(pieces: Vec<Piece>, len: usize) -> Vec<Piece> {
    let mut streams: BTreeMap<u64, VecDeque<Piece>> = BTreeMap::new();
    for (stream, mut bytes, is_last) in pieces {
        let queue = streams.entry(stream).or_default();
        while bytes.len() > len {
            queue.push_back((stream, bytes.split_to(len), false));
        }
        queue.push_back((stream, bytes, is_last));
    }
    let mut mixed = Vec::new();
    while !streams.is_empty() {
        streams.retain(|_, queue| {
            mixed.extend(queue.pop_front());
            !queue.is_empty()
        });
    }
    mixed
}

pub(crate) fn get(path: &str) -> http::request::Parts {
    http::Request::get(format!("https://example.org{path}")).body(()).unwrap().into_parts().0
}

pub(crate) fn ok() -> http::response::Parts {
    http::Response::new(()).into_parts().0
}

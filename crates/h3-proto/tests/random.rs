//! Random exchanges over streams that are late and split: whatever happens, messages arrive as they were.

mod pair;

use std::collections::VecDeque;

use fulmar_h3_proto::Config;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use pair::{End, Pair, Piece};
use proptest::prelude::*;

/// What a request is made of.
#[derive(Debug, Clone)]
struct Message {
    path: u8,
    fields: Vec<(u8, u8)>,
    body: Vec<Vec<u8>>,
    has_trailers: bool,
}

impl Message {
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.fields {
            let name = HeaderName::try_from(format!("x-field-{name}")).unwrap();
            let value = format!("a value that comes again and again {value}");
            headers.append(name, HeaderValue::try_from(value).unwrap());
        }
        headers
    }

    fn send(&self, client: &mut End, stream: u64) {
        let uri = format!("https://example.org/{}", self.path);
        let mut parts = Request::post(uri).body(()).unwrap().into_parts().0;
        parts.headers = self.headers();
        let head = client.h3.send_request(stream, &parts).unwrap();
        client.write(stream, head, false);
        for part in &self.body {
            let header = client.h3.send_data(stream, part.len() as u64).unwrap();
            client.write(stream, [header.as_ref(), part].concat(), false);
        }
        if self.has_trailers {
            let trailers = client.h3.send_trailers(stream, &self.headers()).unwrap();
            client.write(stream, trailers, false);
        }
        client.h3.finish(stream).unwrap();
        client.write(stream, "", true);
    }

    fn words(&self) -> Vec<String> {
        let mut fields = String::new();
        for (name, value) in &self.headers() {
            fields += &format!(" {name}={}", value.to_str().unwrap());
        }
        let mut words = vec![format!("POST https://example.org/{}{fields}", self.path)];
        let body = self.body.concat();
        if !body.is_empty() {
            words.push(format!("data {}", String::from_utf8(body).unwrap()));
        }
        if self.has_trailers {
            words.push(format!("trailers{fields}"));
        }
        words.push("finished".to_owned());
        words
    }
}

fn message() -> impl Strategy<Value = Message> {
    let part = proptest::collection::vec(b'a'..=b'z', 0..30);
    (
        0..4_u8,
        proptest::collection::vec((0..4_u8, 0..3_u8), 0..6),
        proptest::collection::vec(part, 0..4),
        any::<bool>(),
    )
        .prop_map(|(path, fields, body, has_trailers)| Message { path, fields, body, has_trailers })
}

/// Delivers pieces in any order in which each stream keeps its own, splitting them.
fn deliver(to: &mut End, on_the_way: &mut VecDeque<Piece>, choice: usize, len: usize) {
    let mut at = choice % on_the_way.len();
    let stream = on_the_way[at].0;
    at = on_the_way.iter().position(|(of, ..)| *of == stream).unwrap();
    let (_, bytes, is_last) = &mut on_the_way[at];
    if bytes.len() > len {
        let piece = (stream, bytes.split_to(len), false);
        return to.deliver(piece);
    }
    let piece = (stream, std::mem::take(bytes), *is_last);
    on_the_way.remove(at);
    to.deliver(piece);
}

proptest! {
    #[test]
    fn requests_arrive_as_they_were(
        messages in proptest::collection::vec(message(), 1..8),
        choices in proptest::collection::vec((any::<usize>(), 1..40_usize, any::<bool>()), 64),
    ) {
        let mut pair = Pair::joined(Config::default(), Config::default());
        let (mut to_server, mut to_client) = (VecDeque::new(), VecDeque::new());
        let mut choices = choices.iter().cycle();
        let mut waiting: VecDeque<_> = messages.iter().enumerate().collect();
        loop {
            let (choice, len, is_to_client) = *choices.next().unwrap();
            to_server.extend(pair.client.sent());
            to_client.extend(pair.server.sent());
            if is_to_client && !to_client.is_empty() {
                deliver(&mut pair.client, &mut to_client, choice, len);
            } else if choice % 5 == 0 && let Some((n, message)) = waiting.pop_front() {
                message.send(&mut pair.client, n as u64 * 4);
            } else if !to_server.is_empty() {
                deliver(&mut pair.server, &mut to_server, choice, len);
            } else if let Some((n, message)) = waiting.pop_front() {
                message.send(&mut pair.client, n as u64 * 4);
            } else if to_client.is_empty() {
                break;
            } else {
                deliver(&mut pair.client, &mut to_client, choice, len);
            }
        }
        pair.assert_no_errors();
        for (n, message) in messages.iter().enumerate() {
            prop_assert_eq!(pair.server.words(n as u64 * 4), message.words());
        }
    }

    #[test]
    fn any_bytes_end_in_errors_at_worst(
        pieces in proptest::collection::vec((0..6_u64, proptest::collection::vec(any::<u8>(), 0..40), any::<bool>()), 0..30),
    ) {
        for mut end in [End::server(Config::default()), End::client(Config::default())] {
            let _ = end.h3.send_request(0, &pair::get("/"));
            for (stream, bytes, is_last) in &pieces {
                end.deliver((*stream, bytes.clone().into(), *is_last));
            }
        }
    }
}

//! A NAT that gives a client another port in the middle of a connection, which the client does not see.

mod pair;

use std::time::Duration;

use fulmar_proto::Side;
use pair::Pair;

const MS: Duration = Duration::from_millis(1);

/// Where the NAT lets the client appear from then on.
const NEW: &str = "10.0.0.1:2000";

/// A client in the middle of a download, of which the server has sent a part, and of whose port a NAT makes another one. Of
/// what comes from the new port only those datagrams reach the server that `passes` lets through. Returns how long the rest
/// takes.
fn download_behind_a_nat(mut passes: impl FnMut(&[u8]) -> bool + 'static) -> Duration {
    let mut pair = Pair::connected();
    let id = pair.client.conn().streams().open(fulmar_proto::Dir::Bi).unwrap();
    pair.client.conn().streams().send(id).write(b"a request").unwrap();
    pair.client.conn().streams().send(id).finish().unwrap();
    let (data, mut written, mut read, mut moved) = (vec![7; 1_000_000], 0, 0, None);
    let mut passes = Some(move |payload: &[u8]| passes(payload));
    let done = pair.run_while_waiting(Duration::from_secs(20), |pair| {
        while pair.server.conn().streams().accept(fulmar_proto::Dir::Bi).is_some() {}
        while let Ok(more @ 1..) = pair.server.conn().streams().send(id).write(&data[written..]) {
            written += more;
        }
        while let Ok(Some(chunk)) = pair.client.conn().streams().recv(id).read(usize::MAX, true) {
            read += chunk.bytes.len();
        }
        if read > 300_000
            && let Some(mut passes) = passes.take()
        {
            moved = Some(pair.now);
            pair.client.addr = NEW.parse().unwrap();
            pair.client.wire =
                Box::new(move |flying| if passes(&flying.payload) { vec![flying] } else { Vec::new() });
        }
        read == data.len()
    });
    assert!(done, "{read} bytes arrived; {:?}, {:?}", pair.lost(Side::Client), pair.lost(Side::Server));
    pair.now - moved.expect("there was a part before")
}

#[test]
fn a_download_goes_on_at_a_server_that_follows_only_who_asks_for_an_answer() {
    // What only acknowledges is small, and so is a PING; the question after a silence is not.
    let mut is_followed = false;
    let time = download_behind_a_nat(move |payload| {
        is_followed |= payload.len() >= 100;
        is_followed
    });
    assert!(time < Duration::from_secs(2), "{time:?}");
}

#[test]
fn data_with_pauses_goes_on_behind_a_nat_though_the_client_sends_nothing() {
    let mut pair = Pair::connected();
    let id = pair.server.conn().streams().open(fulmar_proto::Dir::Uni).unwrap();
    let mut read = 0;
    for tick in 0..100 {
        if tick == 50 {
            pair.client.addr = NEW.parse().unwrap();
        }
        pair.server.conn().streams().send(id).write(&[7; 1_000]).unwrap();
        pair.run_for(30 * MS);
        while pair.client.conn().streams().accept(fulmar_proto::Dir::Uni).is_some() {}
        while let Ok(Some(chunk)) = pair.client.conn().streams().recv(id).read(usize::MAX, true) {
            read += chunk.bytes.len();
        }
    }
    assert_eq!(read, 100_000, "the client asks within a few pauses, and the rest follows");
}

/// A client behind a NAT that gives it another port in the middle of a response, and to which nothing comes through for a while then.
/// Returns how long after that it has the response.
fn response_after_an_outage(outage: Duration) -> Duration {
    let mut pair = Pair::connected();
    let id = pair.client.conn().streams().open(fulmar_proto::Dir::Bi).unwrap();
    pair.client.conn().streams().send(id).write(b"a request").unwrap();
    pair.client.conn().streams().send(id).finish().unwrap();
    pair.run_for(50 * MS);
    pair.server.conn().streams().accept(fulmar_proto::Dir::Bi).unwrap();
    pair.server.conn().streams().send(id).write(&[7; 1_000]).unwrap();
    pair.run_for(6 * MS);
    // The acknowledgement is the first that comes from the new port.
    pair.client.addr = NEW.parse().unwrap();
    let end = pair.now + outage;
    pair.server.wire = Box::new(move |flying| if flying.at >= end { vec![flying] } else { Vec::new() });
    pair.run_for(100 * MS);
    pair.server.conn().streams().send(id).write(&[7; 50_000]).unwrap();
    let mut read = 0;
    let done = pair.run_while_waiting(Duration::from_secs(100), |pair| {
        while let Ok(Some(chunk)) = pair.client.conn().streams().recv(id).read(usize::MAX, true) {
            read += chunk.bytes.len();
        }
        read == 51_000
    });
    assert!(done, "{outage:?}: {read} bytes; {:?}, {:?}", pair.lost(Side::Client), pair.lost(Side::Server));
    pair.now.saturating_since(end)
}

#[test]
fn a_response_goes_on_after_an_outage_as_long_as_the_connection_lives() {
    for tenths in 0..=250 {
        let time = response_after_an_outage(tenths * 100 * MS);
        // Probes are a sixteenth of the idle timeout apart, and the first that comes through may be the server's or the client's.
        assert!(time < Duration::from_secs(4), "{tenths}: {time:?}");
    }
}

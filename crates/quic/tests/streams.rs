//! Bytes in streams, and how many streams there are.

mod common;

use std::time::Duration;

use bytes::Bytes;
use common::{Pair, pattern, run, run_threaded, within};
use fulmar::{ClosedStream, Connection, Priority, ReadExactError, ReadToEndError, TransportConfig, VarInt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Sends back what comes on every stream.
async fn echo(connection: Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        tokio::spawn(async move {
            while let Some(chunk) = recv.read_chunk(usize::MAX, true).await.expect("an open stream") {
                send.write_chunk(chunk.bytes).await.expect("an open stream");
            }
            send.finish().expect("an open stream");
        });
    }
}

async fn echo_over_many_streams() {
    let pair = Pair::new().await;
    tokio::spawn(echo(pair.server.clone()));
    let tasks: Vec<_> = (0..300)
        .map(|index| {
            let client = pair.client.clone();
            tokio::spawn(async move {
                // More streams than the peer allows at once: opening waits.
                let (mut send, mut recv) = client.open_bi().await.expect("an open connection");
                let data = pattern(index * 37);
                send.write_all(&data).await.expect("an open stream");
                send.finish().expect("an open stream");
                assert_eq!(recv.read_to_end(1 << 20).await.expect("all of it"), data);
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
}

#[test]
fn many_streams_are_echoed() {
    run(echo_over_many_streams());
}

#[test]
fn many_streams_are_echoed_across_threads() {
    run_threaded(echo_over_many_streams());
}

/// Sends `data` on a new stream from one end while the other end checks it.
async fn transfer(from: Connection, to: Connection, data: &[u8]) {
    let send = async {
        let mut stream = from.open_uni().await.expect("an open connection");
        stream.write_all(data).await.expect("an open stream");
        stream.finish().expect("an open stream");
        assert_eq!(stream.stopped().await.expect("an open connection"), None);
        assert_eq!(stream.bytes_written(), data.len() as u64);
    };
    let receive = async {
        let mut stream = to.accept_uni().await.expect("an open connection");
        let mut at = 0;
        let mut chunks = vec![Bytes::new(); 64];
        while let Some(count) = stream.read_chunks(&mut chunks).await.expect("an open stream") {
            for chunk in &chunks[..count] {
                assert_eq!(chunk[..], data[at..at + chunk.len()]);
                at += chunk.len();
            }
        }
        assert_eq!(at, data.len());
    };
    tokio::join!(send, receive);
}

async fn both_directions_at_once() {
    let pair = Pair::new().await;
    let data = pattern(8 << 20);
    tokio::join!(
        transfer(pair.client.clone(), pair.server.clone(), &data),
        transfer(pair.server.clone(), pair.client.clone(), &data),
    );
    assert!(pair.client.stats().packets_sent > 1_000);
}

#[test]
fn a_big_transfer_goes_both_ways_at_once() {
    run(both_directions_at_once());
}

#[test]
fn a_big_transfer_goes_both_ways_across_threads() {
    run_threaded(both_directions_at_once());
}

#[test]
fn a_slow_reader_holds_the_writer_back() {
    run(async {
        const WINDOW: u64 = 64 << 10;
        let small = TransportConfig {
            stream_receive_window: WINDOW,
            stream_receive_window_max: WINDOW,
            ..TransportConfig::default()
        };
        let sending = TransportConfig { send_window: WINDOW, ..TransportConfig::default() };
        let pair = Pair::with(small, sending).await;
        let mut send = pair.client.open_uni().await.expect("an open connection");
        let data = pattern(1 << 20);
        let stuck = tokio::time::timeout(Duration::from_millis(300), send.write_all(&data)).await;
        assert!(stuck.is_err(), "nobody reads");
        let written = send.bytes_written();
        assert!((WINDOW..=4 * WINDOW).contains(&written), "{written} bytes were accepted");
        let write = async {
            send.write_all(&data[written as usize..]).await.expect("an open stream");
            send.finish().expect("an open stream");
        };
        let read = async {
            let mut recv = pair.server.accept_uni().await.expect("an open connection");
            recv.read_to_end(1 << 20).await.expect("all of it")
        };
        let ((), received) = tokio::join!(write, read);
        assert_eq!(received, data);
    });
}

#[test]
fn opening_waits_for_the_limit_or_answers_at_once() {
    run(async {
        let few = TransportConfig {
            max_concurrent_bidi_streams: 1,
            max_concurrent_uni_streams: 0,
            ..TransportConfig::default()
        };
        let pair = Pair::with(few, TransportConfig::default()).await;
        assert!(pair.client.try_open_uni().expect("an open connection").is_none());
        let (mut send, recv) = pair.client.try_open_bi().expect("an open connection").expect("the first");
        assert!(pair.client.try_open_bi().expect("an open connection").is_none());
        assert!(tokio::time::timeout(Duration::from_millis(100), pair.client.open_bi()).await.is_err());
        send.write_all(b"first").await.expect("an open stream");
        send.finish().expect("an open stream");
        let serve = async {
            let (mut send, mut recv) = pair.server.accept_bi().await.expect("an open connection");
            assert_eq!(recv.read_to_end(10).await.expect("five bytes"), b"first");
            send.finish().expect("an open stream");
        };
        let second = async {
            let mut recv = recv;
            assert_eq!(recv.read_to_end(10).await.expect("an end"), b"");
            pair.client.open_bi().await.expect("an open connection")
        };
        within(Duration::from_secs(5), async { tokio::join!(serve, second) }).await;
    });
}

#[test]
fn all_ways_of_reading_can_be_mixed() {
    run(async {
        let pair = Pair::new().await;
        let data = pattern(10_000);
        let mut send = pair.client.open_uni().await.expect("an open connection");
        let mut parts = [Bytes::copy_from_slice(&data[..3_000]), Bytes::copy_from_slice(&data[3_000..5_000])];
        send.write_chunks(&mut parts).await.expect("an open stream");
        assert!(parts.iter().all(Bytes::is_empty));
        AsyncWriteExt::write_all(&mut send, &data[5_000..]).await.expect("an open stream");
        AsyncWriteExt::shutdown(&mut send).await.expect("an open stream");

        let mut recv = pair.server.accept_uni().await.expect("an open connection");
        assert_eq!(recv.read_to_end(9_999).await, Err(ReadToEndError::TooLong(9_999)));
        let mut received = vec![0; 10];
        recv.read_exact(&mut received).await.expect("ten bytes");
        let chunk = recv.read_chunk(5, true).await.expect("an open stream").expect("more");
        assert_eq!((chunk.offset, chunk.bytes.len()), (10, 5));
        received.extend_from_slice(&chunk.bytes);
        let mut some = [0; 100];
        let count = recv.read(&mut some).await.expect("an open stream").expect("more");
        received.extend_from_slice(&some[..count]);
        let mut rest = vec![0; 20_000];
        let left = data.len() - received.len();
        assert_eq!(recv.read_exact(&mut rest).await, Err(ReadExactError::FinishedEarly(left)));
        AsyncReadExt::read_to_end(&mut recv, &mut received).await.expect("the rest");
        assert_eq!(received, data);
        assert_eq!(recv.read(&mut some).await, Ok(None));
        assert_eq!(recv.read_chunk(9, true).await, Ok(None));
        assert_eq!(recv.stop(VarInt::ZERO), Err(ClosedStream));
    });
}

#[test]
fn chunks_can_be_read_as_they_arrive() {
    run(async {
        let pair = Pair::new().await;
        let data = pattern(200_000);
        let mut send = pair.client.open_uni().await.expect("an open connection");
        send.write_all(&data).await.expect("an open stream");
        send.finish().expect("an open stream");
        let mut recv = pair.server.accept_uni().await.expect("an open connection");
        let mut received = vec![0; data.len()];
        let mut count = 0;
        while let Some(chunk) = recv.read_chunk(usize::MAX, false).await.expect("an open stream") {
            let offset = chunk.offset as usize;
            received[offset..offset + chunk.bytes.len()].copy_from_slice(&chunk.bytes);
            count += chunk.bytes.len();
        }
        assert_eq!(count, data.len());
        assert_eq!(received, data);
    });
}

#[test]
fn priorities_are_kept() {
    run(async {
        let pair = Pair::new().await;
        let send = pair.client.open_uni().await.expect("an open connection");
        assert_eq!(send.priority(), Ok(Priority::default()));
        send.set_priority(-3).expect("an open stream");
        assert_eq!(send.priority(), Ok(Priority::from(-3)));
        send.set_priority(Priority::new(1, false)).expect("an open stream");
        assert_eq!(send.priority(), Ok(Priority::new(1, false)));
    });
}

/// How many streams the client can open now.
fn open_all(client: &Connection) -> Vec<fulmar::SendStream> {
    std::iter::from_fn(|| client.try_open_uni().expect("an open connection")).collect()
}

#[test]
fn the_number_of_streams_can_be_changed_while_the_connection_lives() {
    run(async {
        let few = TransportConfig { max_concurrent_uni_streams: 2, ..TransportConfig::default() };
        let pair = Pair::with(few, TransportConfig::default()).await;
        let mut opened = open_all(&pair.client);
        assert_eq!(opened.len(), 2);
        pair.server.set_max_concurrent_uni_streams(5);
        opened.push(pair.client.open_uni().await.expect("more are allowed"));
        opened.extend(open_all(&pair.client));
        assert_eq!(opened.len(), 5);

        // One at a time from now on: the next may be opened when all five are over, and no sooner.
        pair.server.set_max_concurrent_uni_streams(1);
        for (index, mut stream) in opened.into_iter().enumerate() {
            assert!(pair.client.try_open_uni().expect("an open connection").is_none(), "{index} have ended");
            stream.finish().expect("an open stream");
            let mut received = pair.server.accept_uni().await.expect("an open connection");
            assert_eq!(received.read_to_end(1).await.expect("a finished stream"), b"");
            assert_eq!(stream.stopped().await.expect("an open connection"), None);
        }
        let _sixth = pair.client.open_uni().await.expect("one is allowed");
        assert!(pair.client.try_open_uni().expect("an open connection").is_none());
    });
}

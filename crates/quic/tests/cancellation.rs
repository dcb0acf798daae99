//! Futures that are dropped half-way lose nothing.

mod common;

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use common::{Endpoints, Pair, pattern, run};
use fulmar::{ClosedStream, RecvStream, SendStream, TransportConfig};

/// Polls a future a few times, yielding in between, then gives up on it.
async fn patience<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    for _ in 0..polls {
        let polled = std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
        if let Poll::Ready(output) = polled {
            return Some(output);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Small windows, so that both sides wait all the time.
fn narrow() -> TransportConfig {
    TransportConfig {
        stream_receive_window: 8_000,
        stream_receive_window_max: 8_000,
        receive_window: 8_000,
        receive_window_max: 8_000,
        send_window: 8_000,
        ..TransportConfig::default()
    }
}

async fn write_impatiently(mut send: SendStream, data: &[u8]) {
    let mut turn = 0;
    while (send.bytes_written() as usize) < data.len() {
        let at = send.bytes_written() as usize;
        let end = (at + 5_000).min(data.len());
        match turn % 4 {
            // Only the last bytes end the stream.
            3 if end < data.len() => drop(patience(turn % 5, send.ready()).await),
            3 => {
                let last = Bytes::copy_from_slice(&data[at..end]);
                if let Some(result) = patience(turn % 5, send.finish_with(last)).await {
                    result.expect("an open stream");
                    assert_eq!(send.finish(), Err(ClosedStream), "it is finished already");
                    return;
                }
            }
            0 => drop(patience(turn % 5, send.write_all(&data[at..end])).await),
            1 => drop(patience(turn % 5, send.write(&data[at..end])).await),
            _ => {
                let mut chunks = [Bytes::copy_from_slice(&data[at..end])];
                drop(patience(turn % 5, send.write_chunks(&mut chunks)).await);
                assert_eq!(send.bytes_written() as usize, end - chunks[0].len());
            }
        }
        turn += 1;
        tokio::task::yield_now().await;
    }
    send.finish().expect("an open stream");
}

async fn read_impatiently(mut recv: RecvStream) -> Vec<u8> {
    let mut received = Vec::new();
    let mut turn = 0;
    loop {
        turn += 1;
        let mut buffer = [0; 3_000];
        let polls = turn % 5;
        match turn % 4 {
            0 => match patience(polls, recv.read(&mut buffer)).await {
                Some(Ok(Some(count))) => received.extend_from_slice(&buffer[..count]),
                Some(Ok(None)) => return received,
                Some(Err(error)) => panic!("{error}"),
                None => {}
            },
            1 => {
                if let Some(Ok(())) = patience(polls, recv.read_exact(&mut buffer)).await {
                    received.extend_from_slice(&buffer);
                }
            }
            2 => {
                if let Some(Ok(Some(chunk))) = patience(polls, recv.read_chunk(700, true)).await {
                    assert_eq!(chunk.offset as usize, received.len());
                    received.extend_from_slice(&chunk.bytes);
                }
            }
            _ => {
                // It gathers everything that is there, and is given up on unless the stream is at its end.
                if let Some(Ok(rest)) = patience(polls, recv.read_to_end(1 << 20)).await {
                    received.extend_from_slice(&rest);
                    return received;
                }
            }
        }
        tokio::task::yield_now().await;
    }
}

#[test]
fn reads_and_writes_lose_no_byte() {
    run(async {
        let pair = Pair::with(narrow(), narrow()).await;
        let data = pattern(300_000);
        let send = pair.client.open_uni().await.expect("an open connection");
        let receive = async {
            let recv = pair.server.accept_uni().await.expect("an open connection");
            read_impatiently(recv).await
        };
        let ((), received) = tokio::join!(write_impatiently(send, &data), receive);
        assert!(received == data, "the bytes differ");
    });
}

#[test]
fn accepting_loses_no_stream_and_no_datagram() {
    run(async {
        let pair = Pair::new().await;
        for turn in 0..50 {
            let mut send = pair.client.open_uni().await.expect("an open connection");
            send.write_all(&[turn]).await.expect("an open stream");
            send.finish().expect("an open stream");
            pair.client.send_datagram(Bytes::copy_from_slice(&[turn])).expect("datagrams are on");
            let mut recv = loop {
                if let Some(recv) = patience(usize::from(1 + turn % 3), pair.server.accept_uni()).await {
                    break recv.expect("an open connection");
                }
                tokio::task::yield_now().await;
            };
            assert_eq!(recv.read_to_end(2).await.expect("one byte"), [turn]);
            let datagram = loop {
                if let Some(datagram) = patience(usize::from(1 + turn % 3), pair.server.read_datagram()).await
                {
                    break datagram.expect("an open connection");
                }
                tokio::task::yield_now().await;
            };
            assert_eq!(datagram[..], [turn]);
        }
    });
}

#[test]
fn accepting_loses_no_connection() {
    run(async {
        let Endpoints { server, client, addr } = Endpoints::new();
        for _ in 0..10 {
            let mut connecting = client.connect(addr, "localhost").expect("a valid address");
            let mut turn = 0;
            let incoming = loop {
                turn += 1;
                if let Some(incoming) = patience(turn % 3, server.accept()).await {
                    break incoming.expect("an open endpoint");
                }
                tokio::task::yield_now().await;
            };
            // The handshake goes on while its future is not polled, and the future can be given up on and taken up again.
            let accepted = incoming.accept().expect("a server");
            let connected = loop {
                if let Some(connected) = patience(turn % 3, &mut connecting).await {
                    break connected.expect("a handshake");
                }
                turn += 1;
                tokio::task::yield_now().await;
            };
            assert_eq!(connected.remote_address(), addr);
            accepted.await.expect("a handshake");
        }
    });
}

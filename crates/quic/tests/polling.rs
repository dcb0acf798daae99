//! The calls for hand-written futures and adapters, and the tasks that wait with them.

mod common;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use common::{Pair, pattern, run, run_threaded, within};
use fulmar::{Connection, RecvStream, SendStream, TransportConfig, VarInt, WriteError};

/// A server as adapters are built: one state that is polled, without an async block and without a box.
struct Echo {
    connection: Connection,
    streams: Vec<Exchange>,
    done: usize,
}

struct Exchange {
    send: SendStream,
    recv: RecvStream,
    /// What was read and not written, and whether it is the last.
    held: Option<(Bytes, bool)>,
}

impl Exchange {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.held {
                Some((data, true)) => {
                    ready!(self.send.poll_finish_with(cx, data)).expect("an open stream");
                    return Poll::Ready(());
                }
                Some((data, false)) if !data.is_empty() => {
                    ready!(self.send.poll_ready(cx)).expect("an open stream");
                    let written = self.send.poll_write_chunk(cx, data);
                    assert!(written.is_ready(), "there was room");
                }
                _ => {
                    let chunk = ready!(self.recv.poll_read_chunk(cx, 5_000, true)).expect("an open stream");
                    self.held = Some(chunk.map_or((Bytes::new(), true), |chunk| (chunk.bytes, chunk.fin)));
                }
            }
        }
    }
}

impl Echo {
    /// Ready when `count` streams were served.
    fn poll(&mut self, cx: &mut Context<'_>, count: usize) -> Poll<()> {
        while let Poll::Ready(streams) = self.connection.poll_accept_bi(cx) {
            let (send, recv) = streams.expect("an open connection");
            self.streams.push(Exchange { send, recv, held: None });
        }
        let before = self.streams.len();
        self.streams.retain_mut(|stream| stream.poll(cx).is_pending());
        self.done += before - self.streams.len();
        if self.done == count { Poll::Ready(()) } else { Poll::Pending }
    }
}

async fn ask(connection: Connection, data: Bytes) {
    let (mut send, mut recv) = connection.open_bi().await.expect("an open connection");
    let sending = async {
        send.finish_with(data.clone()).await.expect("an open stream");
        assert_eq!(send.bytes_written(), data.len() as u64);
        assert_eq!(send.write(b"x").await, Err(WriteError::ClosedStream));
    };
    let receiving = async { recv.read_to_end(1 << 20).await.expect("an answer") };
    let ((), received) = tokio::join!(sending, receiving);
    assert!(received == data, "the bytes differ");
}

#[test]
fn a_server_can_be_polled_without_futures() {
    run_threaded(async {
        let limits = TransportConfig {
            max_concurrent_bidi_streams: 3,
            stream_receive_window: 10_000,
            stream_receive_window_max: 10_000,
            send_window: 30_000,
            ..TransportConfig::default()
        };
        let pair = Pair::with(limits.clone(), limits).await;
        let mut echo = Echo { connection: pair.server.clone(), streams: Vec::new(), done: 0 };
        let clients: Vec<_> = [0, 1, 1_000, 100_000, 9_999, 10_000, 50_000, 20]
            .map(|len| tokio::spawn(ask(pair.client.clone(), pattern(len).into())))
            .into_iter()
            .collect();
        poll_fn(|cx| echo.poll(cx, 8)).await;
        for client in clients {
            client.await.expect("an answer");
        }
    });
}

#[test]
fn the_last_data_and_the_end_leave_in_one_frame_and_are_read_in_one_call() {
    run_threaded(async {
        let pair = Pair::new().await;
        let before = pair.client.stats().streams.frames_sent;
        for _ in 0..100 {
            let mut send = pair.client.open_uni().await.expect("an open connection");
            send.finish_with(Bytes::from_static(b"request")).await.expect("an open stream");
            let mut recv = pair.server.accept_uni().await.expect("an open connection");
            assert!(!recv.is_finished());
            let chunk = recv.read_chunk(100, true).await.expect("an open stream").expect("a chunk");
            assert_eq!((&chunk.bytes[..], chunk.offset, chunk.fin), (&b"request"[..], 0, true));
            assert!(recv.is_finished());
            assert_eq!(recv.read_chunk(100, true).await, Ok(None));
            assert_eq!(recv.stop(VarInt::ZERO), Err(fulmar::ClosedStream));
        }
        let stats = pair.client.stats();
        if stats.packets_lost == 0 && stats.pto_count == 0 {
            assert_eq!(stats.streams.frames_sent - before, 100);
        }
    });
}

#[test]
fn a_chunk_that_was_put_back_tells_the_end_too() {
    run(async {
        let pair = Pair::new().await;
        let mut send = pair.client.open_uni().await.expect("an open connection");
        send.finish_with(Bytes::from_static(b"0123456789")).await.expect("an open stream");
        let mut recv = pair.server.accept_uni().await.expect("an open connection");
        // All of it is taken from the core, and not delivered.
        assert!(recv.read_exact(&mut [0; 11]).await.is_err());
        assert!(!recv.is_finished());
        let chunk = recv.read_chunk(4, true).await.expect("an open stream").expect("a chunk");
        assert_eq!((&chunk.bytes[..], chunk.fin), (&b"0123"[..], false));
        let chunk = recv.read_chunk(100, true).await.expect("an open stream").expect("a chunk");
        assert_eq!((&chunk.bytes[..], chunk.fin), (&b"456789"[..], true));
        assert!(recv.is_finished());
    });
}

#[test]
fn everybody_who_waits_to_accept_is_served() {
    run_threaded(async {
        let pair = Pair::new().await;
        let tasks: Vec<_> = (0..20)
            .map(|index| {
                let mut connection = pair.server.clone();
                tokio::spawn(async move {
                    let recv = match index % 2 {
                        0 => connection.accept_uni().await,
                        _ => poll_fn(|cx| connection.poll_accept_uni(cx)).await,
                    };
                    recv.expect("an open connection").read_to_end(9).await.expect("a stream")
                })
            })
            .collect();
        // Others give up.
        for _ in 0..10 {
            let mut impatient = pair.server.clone();
            tokio::spawn(async move {
                let accept = poll_fn(|cx| impatient.poll_accept_bi(cx));
                assert!(tokio::time::timeout(Duration::from_millis(1), accept).await.is_err());
            });
        }
        for index in 0..20u8 {
            let mut send = pair.client.open_uni().await.expect("an open connection");
            send.finish_with(Bytes::copy_from_slice(&[index])).await.expect("an open stream");
        }
        let mut seen = Vec::new();
        for task in tasks {
            seen.extend(task.await.expect("a stream for each"));
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..20).collect::<Vec<_>>());
    });
}

/// Polls once.
async fn once<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    poll_fn(|cx| Poll::Ready(poll(cx))).await
}

#[test]
fn everybody_who_waits_to_open_is_served_although_others_give_up() {
    run_threaded(async {
        let few = TransportConfig { max_concurrent_uni_streams: 2, ..TransportConfig::default() };
        let pair = Pair::with(few, TransportConfig::default()).await;
        let server = pair.server.clone();
        tokio::spawn(async move {
            while let Ok(mut recv) = server.accept_uni().await {
                let _ = recv.read_to_end(9).await;
            }
        });
        let mut tasks = Vec::new();
        for index in 0..60 {
            let mut connection = pair.client.clone();
            tasks.push(tokio::spawn(async move {
                if index % 3 == 0 {
                    // It waits, and is dropped.
                    if once(|cx| connection.poll_open_uni(cx)).await.is_pending() {
                        tokio::task::yield_now().await;
                        return;
                    }
                }
                let mut send = match index % 2 {
                    0 => connection.open_uni().await,
                    _ => poll_fn(|cx| connection.poll_open_uni(cx)).await,
                }
                .expect("an open connection");
                send.finish_with(Bytes::from_static(b"x")).await.expect("an open stream");
            }));
        }
        for task in tasks {
            within(Duration::from_secs(10), task).await.expect("a stream for each");
        }
    });
}

#[test]
fn a_stream_that_is_polled_for_its_end_tells_it_to_all() {
    run(async {
        let pair = Pair::new().await;
        let mut send = pair.client.open_uni().await.expect("an open connection");
        send.write_all(b"all").await.expect("an open stream");
        assert!(once(|cx| send.poll_stopped(cx)).await.is_pending());
        let (first, second, given_up) = (send.stopped(), send.stopped(), send.stopped());
        {
            let mut given_up = pin!(given_up);
            assert!(once(|cx| given_up.as_mut().poll(cx)).await.is_pending());
        }
        let mut recv = pair.server.accept_uni().await.expect("an open connection");
        recv.stop(VarInt::from_u32(9)).expect("an open stream");
        let polled = poll_fn(|cx| send.poll_stopped(cx));
        let (polled, first, second) = tokio::join!(polled, first, second);
        let stopped = Ok(Some(VarInt::from_u32(9)));
        assert_eq!((&polled, &first, &second), (&stopped, &stopped, &stopped));
        // Also to those who ask later, when the handle is gone.
        let late = send.stopped();
        drop(send);
        assert_eq!(late.await, stopped);
    });
}

#[test]
fn a_reset_is_heard_of_before_what_comes_ahead_of_it_is_read() {
    run(async {
        let pair = Pair::new().await;
        let (mut send, _keep) = pair.client.open_bi().await.expect("an open connection");
        send.write_all(b"request").await.expect("an open stream");
        let (_answer, mut recv) = pair.server.accept_bi().await.expect("an open connection");
        assert!(once(|cx| recv.poll_received_reset(cx)).await.is_pending());
        send.reset(VarInt::from_u32(3)).expect("an open stream");
        assert_eq!(recv.received_reset().await, Ok(Some(VarInt::from_u32(3))));
        assert!(recv.read(&mut [0; 9]).await.is_err());
        assert_eq!(recv.received_reset().await, Ok(Some(VarInt::from_u32(3))));

        let mut send = pair.client.open_uni().await.expect("an open connection");
        send.write_all(b"request").await.expect("an open stream");
        let mut recv = pair.server.accept_uni().await.expect("an open connection");
        let (late, ()) = tokio::join!(recv.received_reset(), async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            send.finish().expect("an open stream");
        });
        assert_eq!(late, Ok(None), "everything has arrived");
        assert_eq!(recv.read_to_end(10).await.expect("a stream"), b"request");
    });
}

#[test]
fn what_comes_on_a_stream_wakes_nobody_who_waits_for_another() {
    run(async {
        let pair = Pair::new().await;
        let mut quiet = pair.client.open_uni().await.expect("an open connection");
        quiet.write_all(b"x").await.expect("an open stream");
        let mut idle = pair.server.accept_uni().await.expect("an open connection");
        idle.read_chunk(9, true).await.expect("an open stream").expect("a byte");
        let polls = Arc::new(AtomicUsize::new(0));
        let counter = polls.clone();
        let waiting = tokio::spawn(async move {
            poll_fn(|cx| {
                counter.fetch_add(1, Ordering::Relaxed);
                idle.poll_read_chunk(cx, 9, true)
            })
            .await
        });
        tokio::task::yield_now().await;
        for _ in 0..50 {
            let mut send = pair.client.open_uni().await.expect("an open connection");
            send.finish_with(Bytes::from_static(b"x")).await.expect("an open stream");
            let mut recv = pair.server.accept_uni().await.expect("an open connection");
            recv.read_to_end(9).await.expect("a stream");
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1, "it was polled once, to wait");
        quiet.finish().expect("an open stream");
        assert_eq!(waiting.await.expect("an end"), Ok(None));
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    });
}

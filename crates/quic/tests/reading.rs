//! When what was received is read: before more is received.

mod common;

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use common::{Pair, run, run_threaded, within};
use fulmar::RecvStream;

const LEN: usize = 20_000_000;

/// A few times of what one turn of the worker receives. With a reader that is polled once in 61 turns it is several megabytes.
const BACKLOG_MAX: usize = 1_000_000;

/// Reads all and returns the length, and the most that was there when the reader was polled.
async fn read_all(mut recv: RecvStream) -> (usize, usize) {
    let (mut len, mut backlog_max) = (0, 0);
    poll_fn(|cx| {
        let mut backlog = 0;
        let is_over = loop {
            match recv.poll_read_chunk(cx, usize::MAX, true) {
                Poll::Ready(chunk) => match chunk.expect("a connection that lives") {
                    Some(chunk) => backlog += chunk.bytes.len(),
                    None => break true,
                },
                Poll::Pending => break false,
            }
        };
        len += backlog;
        backlog_max = backlog_max.max(backlog);
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    (len, backlog_max)
}

/// Writes all from a task, and returns the reader's end.
async fn transfer() -> (Pair, RecvStream) {
    let pair = Pair::new().await;
    let mut send = pair.server.open_uni().await.expect("credit");
    tokio::spawn(async move {
        send.write_all(&vec![7; LEN]).await.expect("a reader");
        send.finish().expect("an open stream");
        let _ = send.stopped().await;
    });
    let recv = pair.client.accept_uni().await.expect("a stream");
    (pair, recv)
}

#[test]
fn a_reader_in_the_future_of_block_on_reads_before_more_is_received() {
    run(async {
        let (_pair, recv) = transfer().await;
        let (len, backlog) = read_all(recv).await;
        assert_eq!(len, LEN);
        assert!(backlog < BACKLOG_MAX, "{backlog} bytes waited");
    });
}

#[test]
fn a_reader_in_a_task_reads_before_more_is_received() {
    run(async {
        let (_pair, recv) = transfer().await;
        let (len, backlog) = tokio::spawn(read_all(recv)).await.expect("no panic");
        assert_eq!(len, LEN);
        assert!(backlog < BACKLOG_MAX, "{backlog} bytes waited");
    });
}

#[test]
fn a_reader_on_several_threads_reads_all() {
    run_threaded(async {
        let (_pair, recv) = transfer().await;
        assert_eq!(read_all(recv).await.0, LEN);
    });
}

#[test]
fn a_reader_that_is_woken_and_does_not_come_holds_up_no_other() {
    run_threaded(async {
        let (pair, mut absent) = transfer().await;
        // From its first byte on it is let lie, with a waker that nobody hears.
        let mut nobody = Context::from_waker(Waker::noop());
        let mut read = 0;
        while let Poll::Ready(chunk) = absent.poll_read_chunk(&mut nobody, usize::MAX, true) {
            read += chunk.expect("a connection that lives").expect("more").bytes.len();
        }
        let mut send = pair.server.open_uni().await.expect("credit");
        tokio::spawn(async move {
            for _ in 0..100 {
                send.write_all(&[8; 10_000]).await.expect("a reader");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            send.finish().expect("an open stream");
            let _ = send.stopped().await;
        });
        let recv = pair.client.accept_uni().await.expect("a stream");
        let (len, _) = within(Duration::from_secs(10), read_all(recv)).await;
        assert_eq!(len, 1_000_000);
        // What lies there is not lost.
        let (len, _) = within(Duration::from_secs(10), read_all(absent)).await;
        assert_eq!(read + len, LEN);
    });
}

//! How streams end: with their last byte, with a reset, because the peer wants no more, or with their connection.

mod common;

use std::time::Duration;

use bytes::Bytes;
use common::{Pair, pattern, run, within};
use fulmar::{
    ClosedStream, ReadError, ReadToEndError, ResetAtError, StoppedError, TransportConfig, VarInt, WriteError,
};

#[test]
fn a_reset_reaches_the_reader() {
    run(async {
        let pair = Pair::new().await;
        let mut send = pair.client.open_uni().await.expect("an open connection");
        send.write_all(b"half").await.expect("an open stream");
        let mut recv = pair.server.accept_uni().await.expect("an open connection");
        let mut half = [0; 4];
        recv.read_exact(&mut half).await.expect("four bytes");
        send.reset(VarInt::from_u32(42)).expect("an open stream");
        assert_eq!(recv.read(&mut half).await, Err(ReadError::Reset(VarInt::from_u32(42))));
        assert_eq!(recv.read_to_end(9).await, Err(ReadError::Reset(VarInt::from_u32(42)).into()));
        assert_eq!(send.write(b"more").await, Err(WriteError::ClosedStream));
        assert_eq!(send.finish(), Err(ClosedStream));
    });
}

#[test]
fn a_stop_reaches_the_writer() {
    run(async {
        let pair = Pair::new().await;
        let mut send = pair.client.open_uni().await.expect("an open connection");
        send.write_all(b"unwanted").await.expect("an open stream");
        let mut recv = pair.server.accept_uni().await.expect("an open connection");
        recv.stop(VarInt::from_u32(7)).expect("an open stream");
        assert_eq!(recv.stop(VarInt::from_u32(7)), Err(ClosedStream));
        assert_eq!(recv.read(&mut [0]).await, Err(ReadError::ClosedStream));
        assert_eq!(send.stopped().await.expect("an open connection"), Some(VarInt::from_u32(7)));
        assert_eq!(send.write(b"more").await, Err(WriteError::Stopped(VarInt::from_u32(7))));
    });
}

#[test]
fn a_blocked_writer_is_stopped() {
    run(async {
        let pair = Pair::new().await;
        let mut send = pair.client.open_uni().await.expect("an open connection");
        let endless = async {
            let data = pattern(1 << 20);
            loop {
                if let Err(error) = send.write_all(&data).await {
                    return error;
                }
            }
        };
        let stop = async {
            let mut recv = pair.server.accept_uni().await.expect("an open connection");
            tokio::time::sleep(Duration::from_millis(200)).await;
            recv.stop(VarInt::from_u32(9)).expect("an open stream");
        };
        let (error, ()) = tokio::join!(endless, stop);
        assert_eq!(error, WriteError::Stopped(VarInt::from_u32(9)));
    });
}

#[test]
fn dropping_a_sender_finishes_and_dropping_a_receiver_stops() {
    run(async {
        let pair = Pair::new().await;
        let mut send = pair.client.open_uni().await.expect("an open connection");
        send.write_all(b"complete").await.expect("an open stream");
        let fate = send.stopped();
        drop(send);
        let mut recv = pair.server.accept_uni().await.expect("an open connection");
        assert_eq!(recv.read_to_end(100).await.expect("an end"), b"complete");
        assert_eq!(fate.await.expect("an open connection"), None);

        let mut send = pair.client.open_uni().await.expect("an open connection");
        send.write_all(b"unread").await.expect("an open stream");
        drop(pair.server.accept_uni().await.expect("an open connection"));
        assert_eq!(send.stopped().await.expect("an open connection"), Some(VarInt::ZERO));
    });
}

#[test]
fn streams_end_with_their_connection() {
    run(async {
        let pair = Pair::new().await;
        let (mut send, mut recv) = pair.client.open_bi().await.expect("an open connection");
        send.write_all(b"hello").await.expect("an open stream");
        let (_send, mut remote) = pair.server.accept_bi().await.expect("an open connection");
        let fate = send.stopped();
        pair.server.close(VarInt::from_u32(1), b"bye");
        let lost = pair.client.closed().await;
        assert_eq!(recv.read(&mut [0]).await, Err(ReadError::ConnectionLost(lost.clone())));
        assert_eq!(send.write(b"more").await, Err(WriteError::ConnectionLost(lost.clone())));
        assert_eq!(fate.await, Err(StoppedError::ConnectionLost(lost)));
        // What had arrived may still be read, or the stream ends with the connection; it never hangs.
        let _ = remote.read(&mut [0; 5]).await;
    });
}

#[test]
fn a_stream_that_is_reset_at_an_offset_is_read_up_to_it() {
    run(async {
        let pair = Pair::new().await;
        let mut send = pair.client.open_uni().await.expect("an open connection");
        send.write_all(&[7; 5_000]).await.expect("an open stream");
        send.reset_at(VarInt::from_u32(3), 2_000).expect("the peer knows such resets");
        assert!(matches!(send.write(b"x").await, Err(WriteError::ClosedStream)));
        let mut recv = pair.server.accept_uni().await.expect("an open connection");
        let mut beginning = [0; 2_000];
        recv.read_exact(&mut beginning).await.expect("it was promised");
        assert_eq!(recv.read(&mut [0; 10]).await, Err(ReadError::Reset(VarInt::from_u32(3))));
        assert_eq!(send.stopped().await.expect("an open connection"), None);
        assert_eq!(send.reset(VarInt::ZERO), Err(ClosedStream));
    });
}

#[test]
fn a_reset_that_leaves_nothing_of_a_stream_ends_it() {
    run(async {
        let pair = Pair::new().await;
        for (written, promise) in [(0, u64::MAX), (5, 0)] {
            let mut send = pair.client.open_uni().await.expect("an open connection");
            send.write_all(&[7; 5][..written]).await.expect("an open stream");
            let before = tokio::spawn(send.stopped());
            tokio::task::yield_now().await;
            send.reset_at(VarInt::from_u32(3), promise).expect("the peer knows such resets");
            assert_eq!(before.await.expect("no panic"), Err(StoppedError::Reset));
            assert_eq!(send.stopped().await, Err(StoppedError::Reset));
            let mut recv = pair.server.accept_uni().await.expect("an open connection");
            let error = loop {
                match recv.read(&mut [0; 10]).await {
                    Ok(read) => assert!(read.is_some()),
                    Err(error) => break error,
                }
            };
            assert_eq!(error, ReadError::Reset(VarInt::from_u32(3)));
        }
        let mut send = pair.client.open_uni().await.expect("an open connection");
        send.write_all(b"finished").await.expect("an open stream");
        send.finish().expect("an open stream");
        let mut delivered = std::pin::pin!(pair.client.delivered());
        std::future::poll_fn(|cx| {
            assert!(delivered.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        send.reset_at(VarInt::from_u32(3), 0).expect("it is not delivered");
        delivered.await.expect("an open connection");
    });
}

#[test]
fn a_peer_without_partial_resets_is_sent_none() {
    run(async {
        let without = TransportConfig { reset_stream_at: false, ..TransportConfig::default() };
        let pair = Pair::with(without, TransportConfig::default()).await;
        let mut send = pair.client.open_uni().await.expect("an open connection");
        send.write_all(b"whole").await.expect("an open stream");
        assert_eq!(send.reset_at(VarInt::from_u32(3), 2), Err(ResetAtError::UnsupportedByPeer));
        send.finish().expect("it is still open");
        let mut recv = pair.server.accept_uni().await.expect("an open connection");
        assert_eq!(recv.read_to_end(10).await.expect("it is whole"), b"whole");
    });
}

#[test]
fn who_waits_for_the_end_of_a_stream_that_is_reset_here_is_told() {
    run(async {
        let pair = Pair::new().await;
        for by_dropping in [false, true] {
            let mut send = pair.client.open_uni().await.expect("an open connection");
            send.write_all(b"the beginning").await.expect("an open stream");
            send.set_drop_code(Some(VarInt::from_u32(9)));
            let before = tokio::spawn(send.stopped());
            tokio::task::yield_now().await;
            if by_dropping {
                drop(send);
            } else {
                send.reset(VarInt::from_u32(9)).expect("an open stream");
                assert_eq!(send.stopped().await, Err(StoppedError::Reset));
            }
            let before = within(Duration::from_secs(5), before).await.expect("no panic");
            assert_eq!(before, Err(StoppedError::Reset));
            let mut recv = pair.server.accept_uni().await.expect("an open connection");
            let error = recv.read_to_end(100).await.expect_err("a reset");
            assert_eq!(error, ReadToEndError::Read(ReadError::Reset(VarInt::from_u32(9))));
        }
    });
}

#[test]
fn a_reset_after_the_delivery_changes_nothing() {
    run(async {
        let pair = Pair::new().await;
        let mut send = pair.client.open_uni().await.expect("an open connection");
        send.finish_with(Bytes::from_static(b"all")).await.expect("an open stream");
        let mut recv = pair.server.accept_uni().await.expect("an open connection");
        assert_eq!(recv.read_to_end(9).await.expect("a finished stream"), b"all");
        assert_eq!(send.stopped().await, Ok(None));
        assert_eq!(send.reset(VarInt::ZERO), Err(ClosedStream));
        assert_eq!(send.stopped().await, Ok(None));
    });
}

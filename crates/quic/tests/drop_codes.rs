//! What the peer is told of streams and connections that are dropped.

mod common;

use std::time::Duration;

use bytes::Bytes;
use common::{Pair, run, within};
use fulmar::{ConnectionError, DropCodes, ReadError, ReadToEndError, VarInt};

fn code(value: u32) -> VarInt {
    VarInt::from_u32(value)
}

fn codes() -> DropCodes {
    DropCodes { reset_stream: Some(code(11)), stop_sending: code(12), connection_close: code(13) }
}

#[test]
fn dropped_streams_are_finished_and_stopped_with_code_0_by_default() {
    run(async {
        let pair = Pair::new().await;
        let (mut send, recv) = pair.client.open_bi().await.expect("an open connection");
        send.write_all(b"part").await.expect("an open stream");
        drop((send, recv));
        let (answer, mut request) = pair.server.accept_bi().await.expect("an open connection");
        assert_eq!(request.read_to_end(9).await.expect("a finished stream"), b"part");
        assert_eq!(answer.stopped().await, Ok(Some(VarInt::ZERO)));
    });
}

#[test]
fn dropped_streams_tell_the_codes_of_their_connection() {
    run(async {
        let pair = Pair::new().await;
        pair.client.set_drop_codes(codes());
        let (mut send, recv) = pair.client.open_bi().await.expect("an open connection");
        send.write_all(b"part").await.expect("an open stream");
        drop((send, recv));
        let (answer, mut request) = pair.server.accept_bi().await.expect("an open connection");
        let reset = request.read_to_end(9).await;
        assert_eq!(reset, Err(ReadToEndError::Read(ReadError::Reset(code(11)))));
        assert_eq!(answer.stopped().await, Ok(Some(code(12))));
    });
}

#[test]
fn a_stream_can_have_codes_of_its_own() {
    run(async {
        let pair = Pair::new().await;
        pair.client.set_drop_codes(codes());
        let (mut send, mut recv) = pair.client.open_bi().await.expect("an open connection");
        send.set_drop_code(Some(code(21)));
        recv.set_drop_code(code(22));
        drop((send, recv));
        let (answer, mut request) = pair.server.accept_bi().await.expect("an open connection");
        assert_eq!(request.read(&mut [0; 9]).await, Err(ReadError::Reset(code(21))));
        assert_eq!(answer.stopped().await, Ok(Some(code(22))));

        let mut send = pair.client.open_uni().await.expect("an open connection");
        send.set_drop_code(None);
        send.write_all(b"all").await.expect("an open stream");
        drop(send);
        let mut recv = pair.server.accept_uni().await.expect("an open connection");
        assert_eq!(recv.read_to_end(9).await.expect("a finished stream"), b"all");
    });
}

#[test]
fn streams_that_have_ended_tell_nothing_when_they_are_dropped() {
    run(async {
        let pair = Pair::new().await;
        for connection in [&pair.client, &pair.server] {
            connection.set_drop_codes(codes());
        }
        let (mut send, mut recv) = pair.client.open_bi().await.expect("an open connection");
        send.finish_with(Bytes::from_static(b"request")).await.expect("an open stream");
        let (mut answer, mut request) = pair.server.accept_bi().await.expect("an open connection");
        assert_eq!(request.read_to_end(9).await.expect("a request"), b"request");
        drop(request);
        assert_eq!(send.stopped().await, Ok(None));
        answer.finish_with(Bytes::from_static(b"answer")).await.expect("an open stream");
        assert!(recv.read_chunk(9, true).await.expect("an answer").expect("a chunk").fin);
        drop(recv);
        assert_eq!(answer.stopped().await, Ok(None));
    });
}

#[test]
fn a_dropped_connection_tells_its_code() {
    run(async {
        let pair = Pair::new().await;
        pair.client.set_drop_codes(codes());
        drop(pair.client);
        let expected = ConnectionError::ApplicationClosed { code: code(13), reason: Bytes::new() };
        assert_eq!(within(Duration::from_secs(5), pair.server.closed()).await, expected);
    });
}

#[test]
fn a_weak_reference_keeps_no_connection() {
    run(async {
        let Pair { server, client, endpoints: _endpoints } = Pair::new().await;
        let weak = client.downgrade();
        let again = weak.upgrade().expect("there is a handle");
        assert_eq!(again.stable_id(), client.stable_id());
        drop(client);
        assert!(
            again.close_reason().is_none(),
            "a handle that came from a weak reference is one like the others"
        );
        let stream = again.open_uni().await.expect("an open connection");
        drop(again);
        let held_by_stream = weak.upgrade().expect("streams are handles, too");
        drop((held_by_stream, stream));
        assert!(weak.upgrade().is_none(), "the last handle has closed the connection");
        assert!(matches!(server.closed().await, ConnectionError::ApplicationClosed { .. }));
        assert!(weak.clone().upgrade().is_none());
    });
}

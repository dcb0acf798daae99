//! Servers that stop, and their clients.

mod common;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use common::{Identity, soon, start};
use fulmar::{Connection, ConnectionError, Endpoint, RecvStream, SendStream, TransportConfig};
use fulmar_h3::Error;
use http::{Method, Request, StatusCode};
use http_body_util::Empty;
use tokio::sync::oneshot;

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" })).route("/slow", get(slow).post(slow))
}

async fn slow() -> &'static str {
    tokio::time::sleep(Duration::from_secs(2)).await;
    "done"
}

#[tokio::test]
async fn a_server_that_is_dropped_closes_its_connections() {
    let identity = Identity::new();
    let serving = identity.serve(hello());
    let client = identity.client();
    assert_eq!(common::get(&client, &serving.uri("/")).await.unwrap(), "hello");
    let slow = tokio::spawn({
        // Not one that can be made again over another connection.
        let request = Request::post(serving.uri("/slow")).body(Empty::<Bytes>::new()).unwrap();
        let client = client.clone();
        async move { client.request(request).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    // As where it is served beside a signal, in `select!`.
    serving.task.abort();
    let error = soon(slow).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Connection(_)), "{error:?}");
}

#[tokio::test]
async fn clients_are_refused_while_a_server_comes_to_its_end() {
    let identity = Identity::new();
    let serving = identity.serve(hello());
    let slow = tokio::spawn({
        let (client, uri) = (identity.client(), serving.uri("/slow"));
        async move { common::get(&client, &uri).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    serving.server.shutdown();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let error = soon(common::get(&identity.client(), &serving.uri("/"))).await.unwrap_err();
    let is_refused = matches!(&error, Error::Connection(ConnectionError::ConnectionClosed { .. }));
    assert!(is_refused && error.to_string().contains("CONNECTION_REFUSED"), "{error:?}");
    assert_eq!(slow.await.unwrap().unwrap(), "done");
    soon(serving.task).await.unwrap();
}

#[tokio::test]
async fn an_idle_client_is_told_which_request_was_the_last_one() {
    let identity = Identity::new();
    let serving = identity.serve(hello());
    let quic = identity.connect(&serving, Arc::default()).await;
    let mut own = quic.open_uni().await.unwrap();
    own.write_all(&[0, 4, 0]).await.unwrap();
    let (mut send, mut recv) = quic.open_bi().await.unwrap();
    // GET https://a/.
    send.finish_with(Bytes::from_static(&[1, 8, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'])).await.unwrap();
    while soon(recv.read_chunk(usize::MAX, true)).await.unwrap().is_some() {}
    // The server shall know that the response has arrived.
    tokio::time::sleep(Duration::from_millis(100)).await;
    serving.server.shutdown();
    let mut control = Vec::new();
    while control.first() != Some(&0) {
        let mut stream = soon(quic.accept_uni()).await.unwrap();
        control.clear();
        while let Ok(Some(chunk)) = soon(stream.read_chunk(usize::MAX, true)).await {
            control.extend_from_slice(&chunk.bytes);
        }
    }
    // GOAWAY with the largest ID, and with the first one that was not there (RFC 9114 §5.2).
    let told = [7, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfc, 7, 1, 4];
    assert!(control.ends_with(&told), "{control:?}");
}

/// A server that does to the first request of a client what `first` says, and answers those of its next connection.
async fn second_time_lucky<F: Future<Output = ()>>(
    endpoint: Endpoint,
    first: impl FnOnce(Connection, SendStream, RecvStream) -> F,
) {
    let connection = common::next_client(&endpoint).await;
    let (send, recv) = common::next_request(&connection).await;
    let lucky = async {
        let connection = common::next_client(&endpoint).await;
        let (send, _recv) = common::next_request(&connection).await;
        common::answer(send).await;
        connection.closed().await;
    };
    tokio::join!(first(connection, send, recv), lucky);
}

fn request(method: Method, endpoint: &Endpoint) -> Request<Empty<Bytes>> {
    let uri = common::uri(endpoint.local_addr().unwrap(), "/");
    Request::builder().method(method).uri(uri).body(Empty::new()).unwrap()
}

#[tokio::test]
async fn a_request_that_a_server_has_not_worked_on_is_made_again() {
    let identity = Identity::new();
    let client = identity.client();
    // GOAWAY, and nothing more; a reset with H3_REQUEST_REJECTED.
    for is_reset in [false, true] {
        let endpoint = identity.endpoint();
        let request = request(Method::POST, &endpoint);
        let server = second_time_lucky(endpoint, async |connection, mut send, recv| {
            let _control = common::go_away(&connection, if is_reset { 4 } else { 0 }).await;
            if is_reset {
                // The two have no order among each other.
                tokio::time::sleep(Duration::from_millis(50)).await;
                send.reset(common::code(0x10b)).unwrap();
            }
            connection.closed().await;
            drop(recv);
        });
        let asked = async {
            let response = soon(client.request(request)).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            client.close().await;
        };
        tokio::join!(server, asked);
    }
}

#[tokio::test]
async fn a_request_that_waits_for_a_stream_is_made_elsewhere_when_the_server_goes_away() {
    let identity = Identity::new();
    let client = identity.client();
    let transport = TransportConfig { max_concurrent_bidi_streams: 1, ..Default::default() };
    let endpoint = identity.endpoint_with(transport);
    let ask = || {
        let (client, request) = (client.clone(), request(Method::GET, &endpoint));
        tokio::spawn(async move { client.request(request).await })
    };
    let asked = [ask(), ask()];
    let connection = common::next_client(&endpoint).await;
    let (send, _recv) = common::next_request(&connection).await;
    // The ID of the other one would still be taken.
    let _control = common::go_away(&connection, 8).await;
    let other_connection = common::next_client(&endpoint).await;
    let (other_send, _other_recv) = common::next_request(&other_connection).await;
    common::answer(send).await;
    common::answer(other_send).await;
    for asked in asked {
        assert_eq!(soon(asked).await.unwrap().unwrap().status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn a_request_is_made_again_after_its_connection_if_that_does_no_harm() {
    let identity = Identity::new();
    let client = identity.client();
    let endpoint = identity.endpoint();
    let get = request(Method::GET, &endpoint);
    let close = async |connection: Connection, _send, _recv| connection.close(common::code(0x100), b"");
    let server = second_time_lucky(endpoint, close);
    let asked = async {
        assert_eq!(soon(client.request(get)).await.unwrap().status(), StatusCode::OK);
        client.close().await;
    };
    tokio::join!(server, asked);

    // Nobody knows whether it was worked on.
    let endpoint = identity.endpoint();
    let post = request(Method::POST, &endpoint);
    let server = async {
        let connection = common::next_client(&endpoint).await;
        let _request = common::next_request(&connection).await;
        connection.close(common::code(0x100), b"");
    };
    let (result, ()) = tokio::join!(soon(client.request(post)), server);
    assert!(
        matches!(result, Err(Error::Connection(ConnectionError::ApplicationClosed { .. }))),
        "{result:?}"
    );
}

/// A section of QPACK that refers to the first entry of the dynamic table, in a HEADERS frame.
const REFERS: [u8; 5] = [1, 3, 2, 0, 0x80];
/// What the encoder stream says of it: its type, the capacity of the table, and the entry `a: b`.
const ENTRY: [u8; 8] = [2, 0x3f, 0xe1, 0x1f, 0x41, b'a', 1, b'b'];

#[tokio::test]
async fn a_head_that_waits_for_the_table_ends_with_its_connection() {
    let identity = Identity::new();
    let client = identity.client();
    let endpoint = identity.endpoint();
    let get = request(Method::GET, &endpoint);
    let server = async {
        let connection = common::next_client(&endpoint).await;
        let (mut send, _recv) = common::next_request(&connection).await;
        send.finish_with(Bytes::from_static(&REFERS)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        connection.close(common::code(0x101), b"");
    };
    let (result, ()) = tokio::join!(soon(client.request(get)), server);
    assert!(matches!(result, Err(Error::Connection(_))), "{result:?}");
}

#[tokio::test]
async fn trailers_are_there_after_the_connection_if_they_had_come() {
    let identity = Identity::new();
    for is_whole in [false, true] {
        let client = identity.client();
        let endpoint = identity.endpoint();
        let get = request(Method::GET, &endpoint);
        let (close, is_closing) = oneshot::channel();
        let server = async {
            let connection = common::next_client(&endpoint).await;
            let (mut send, _recv) = common::next_request(&connection).await;
            let response = [&[1, 3, 0, 0, 0xd9, 0, 1, b'x'][..], &REFERS].concat();
            send.finish_with(response.into()).await.unwrap();
            is_closing.await.unwrap();
            let mut encoder = connection.open_uni().await.unwrap();
            if is_whole {
                encoder.write_all(&ENTRY).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            connection.close(common::code(0x101), b"");
        };
        let asked = async {
            let mut body = soon(client.request(get)).await.unwrap().into_body();
            assert_eq!(soon(body.data()).await.unwrap(), Some(Bytes::from_static(b"x")));
            close.send(()).unwrap();
            // Until it is known here that the connection is over.
            tokio::time::sleep(Duration::from_millis(300)).await;
            let end = soon(body.data()).await;
            if is_whole {
                assert_eq!(end.unwrap(), None);
                assert_eq!(body.trailers().unwrap()["a"], "b");
            } else {
                assert!(matches!(end, Err(Error::Connection(_))), "{end:?}");
            }
        };
        tokio::join!(server, asked);
    }
}

#[tokio::test]
async fn a_server_shuts_down_when_its_requests_are_answered() {
    let (begun, has_begun) = oneshot::channel();
    let begun = Arc::new(std::sync::Mutex::new(Some(begun)));
    let app = Router::new().route(
        "/",
        get(move || async move {
            begun.lock().unwrap().take().unwrap().send(()).unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
            "done"
        }),
    );
    let running = start(app);
    let (client, uri) = (running.client.clone(), running.uri("/"));
    let request = tokio::spawn(async move { common::get(&client, &uri).await.unwrap() });
    has_begun.await.unwrap();
    running.server.shutdown();
    assert_eq!(request.await.unwrap(), "done");
    tokio::time::timeout(Duration::from_secs(5), running.serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_client_closes_a_connection_that_takes_no_more_requests_after_its_last_response() {
    let release = Arc::new(tokio::sync::Notify::new());
    let app = Router::new().route(
        "/",
        get({
            let release = Arc::clone(&release);
            move || async move {
                release.notified().await;
                "hello"
            }
        }),
    );
    let running = start(app);
    let endpoint = running.client_endpoint.clone();
    let quic = endpoint.connect(running.address, "127.0.0.1").unwrap().await.unwrap();
    let connection = fulmar_h3::ClientConnection::new(quic, Arc::default());
    let request = || Request::get(running.uri("/")).body(Empty::<Bytes>::new()).unwrap();
    let response = tokio::spawn({
        let (connection, request) = (connection.clone(), request());
        async move { connection.request(request).await }
    });
    // The request has to be there before the server stops.
    tokio::time::sleep(Duration::from_millis(50)).await;
    running.server.shutdown();
    while connection.is_open() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(connection.quic().close_reason(), None, "a response is to come");
    release.notify_one();
    let response = response.await.unwrap().unwrap();
    assert_eq!(common::text(response).await.unwrap(), "hello");
    let reason = tokio::time::timeout(Duration::from_secs(5), connection.quic().closed()).await.unwrap();
    assert_eq!(reason, ConnectionError::LocallyClosed, "the server waits longer");
    running.serving.await.unwrap();
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_idle_clients() {
    let running = start(Router::new().route("/", get(|| async { "hello" })));
    assert_eq!(common::get(&running.client, &running.uri("/")).await.unwrap(), "hello");
    // Until its response is known to have arrived the connection is not idle.
    tokio::time::sleep(Duration::from_millis(100)).await;
    running.server.shutdown();
    tokio::time::timeout(Duration::from_millis(500), running.serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_that_stops_waits_until_responses_have_arrived() {
    const LEN: usize = 8 << 20;
    let app = Router::new().route("/", get(|| async { vec![7; LEN] }));
    let running = start(app);
    let mut body = running.client.get(running.uri("/")).await.unwrap().into_body();
    let mut len = body.data().await.unwrap().unwrap().len();
    running.server.shutdown();
    // Longer than a connection stays open after its last response has arrived.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    while let Some(data) = body.data().await.unwrap() {
        len += data.len();
    }
    assert_eq!(len, LEN);
    drop(body);
    tokio::time::timeout(Duration::from_secs(5), running.serving).await.unwrap().unwrap();
}

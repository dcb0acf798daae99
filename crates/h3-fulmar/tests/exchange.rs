//! The HTTP/3 of the crate `h3` over Fulmar, with itself and with the HTTP/3 of Fulmar at the other end.

use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use fulmar::{Endpoint, tls};
use h3::error::{Code, StreamError};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;

/// More than the windows of a stream, so that both ends wait for each other.
const LARGE: usize = 20 << 20;

/// An endpoint that serves HTTP/3, and one whose connections trust it.
fn endpoints() -> (Endpoint, Endpoint, SocketAddr) {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let cert = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut roots = RootCertStore::empty();
    roots.add(cert.clone()).unwrap();
    let tls = tls::server_config(vec![cert], key.into(), &[b"h3"]).unwrap();
    let server = Endpoint::server(tls, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = server.local_addr().unwrap();
    let client = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into()).unwrap();
    client.set_default_client_config(tls::client_config(roots, &[b"h3"]).unwrap());
    (server, client, address)
}

type Requests = h3::client::SendRequest<h3_fulmar::OpenStreams, Bytes>;
type Answering = h3::server::RequestStream<h3_fulmar::BidiStream<Bytes>, Bytes>;

/// A client of the crate `h3`. The connection is over when `Requests` is dropped.
async fn connect(client: &Endpoint, address: SocketAddr) -> Requests {
    let quic = client.connect(address, "127.0.0.1").unwrap().await.unwrap();
    let (mut driver, requests) = h3::client::new(h3_fulmar::Connection::new(quic)).await.unwrap();
    tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
    requests
}

/// Serves each connection with the crate `h3`.
fn serve(server: Endpoint) {
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            tokio::spawn(async move {
                let quic = h3_fulmar::Connection::new(incoming.await.unwrap());
                let mut connection = h3::server::Connection::new(quic).await.unwrap();
                while let Ok(Some(resolver)) = connection.accept().await {
                    tokio::spawn(async move {
                        let (request, stream) = resolver.resolve_request().await.unwrap();
                        let _ = answer(request, stream).await;
                    });
                }
            });
        }
    });
}

async fn answer(request: Request<()>, mut stream: Answering) -> Result<(), StreamError> {
    match request.uri().path() {
        "/echo" => {
            stream.send_response(Response::new(())).await?;
            while let Some(mut data) = stream.recv_data().await? {
                stream.send_data(data.copy_to_bytes(data.remaining())).await?;
            }
            let mut trailers = stream.recv_trailers().await?.unwrap_or_default();
            trailers.insert("answered", HeaderValue::from_static("yes"));
            stream.send_trailers(trailers).await?;
            stream.finish().await
        }
        // It gives up after a part of what it has promised to nobody.
        "/part" => {
            stream.send_response(Response::new(())).await?;
            stream.send_data(Bytes::from_static(b"a part")).await
        }
        // It wants none of the request.
        "/stop" => {
            stream.stop_sending(Code::H3_NO_ERROR);
            stream.send_response(Response::new(())).await?;
            stream.finish().await
        }
        // It does not read for a while, and says what came then.
        "/late" => {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let mut received = BytesMut::new();
            while let Some(data) = stream.recv_data().await? {
                received.extend_from_slice(data.chunk());
            }
            let trailers = stream.recv_trailers().await?.unwrap_or_default();
            let is_whole = received == numbered(LARGE) && trailers.contains_key("asked");
            let status = if is_whole { StatusCode::OK } else { StatusCode::BAD_REQUEST };
            stream.send_response(Response::builder().status(status).body(()).unwrap()).await?;
            stream.finish().await
        }
        _ => {
            stream.send_response(Response::builder().status(404).body(()).unwrap()).await?;
            stream.finish().await
        }
    }
}

fn numbered(len: usize) -> Bytes {
    (0..len).map(|index| (index % 251) as u8).collect()
}

/// Sends a body to `/echo` while what comes back is read, and returns that with its trailers.
async fn echo(requests: &mut Requests, sent: &Bytes) -> (BytesMut, Option<HeaderMap>) {
    let request = Request::post("https://127.0.0.1/echo").body(()).unwrap();
    let (mut send, mut recv) = requests.send_request(request).await.unwrap().split();
    let sent = sent.clone();
    let upload = tokio::spawn(async move {
        for part in sent.chunks(100_000) {
            send.send_data(sent.slice_ref(part)).await.unwrap();
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("asked", HeaderValue::from_static("too"));
        send.send_trailers(trailers).await.unwrap();
        send.finish().await.unwrap();
    });
    assert_eq!(recv.recv_response().await.unwrap().status(), StatusCode::OK);
    let mut received = BytesMut::new();
    while let Some(data) = recv.recv_data().await.unwrap() {
        received.extend_from_slice(data.chunk());
    }
    upload.await.unwrap();
    (received, recv.recv_trailers().await.unwrap())
}

#[tokio::test]
async fn h3_serves_and_fetches_over_fulmar_both_ways_at_once() {
    let (server, client, address) = endpoints();
    serve(server);
    let mut requests = connect(&client, address).await;
    let sent = numbered(LARGE);
    let (received, trailers) = echo(&mut requests, &sent).await;
    assert!(received == sent, "{} bytes of {} came back", received.len(), sent.len());
    let trailers = trailers.expect("trailers");
    assert_eq!((trailers["asked"].as_bytes(), trailers["answered"].as_bytes()), (&b"too"[..], &b"yes"[..]));
}

#[tokio::test]
async fn a_stream_that_is_dropped_is_not_taken_for_a_whole_one() {
    let (server, client, address) = endpoints();
    serve(server);
    let mut requests = connect(&client, address).await;
    let mut stream =
        requests.send_request(Request::get("https://127.0.0.1/part").body(()).unwrap()).await.unwrap();
    stream.finish().await.unwrap();
    // The reset may overtake what came before it.
    let error = async {
        stream.recv_response().await?;
        while stream.recv_data().await?.is_some() {}
        Ok::<(), StreamError>(())
    };
    let error = error.await.expect_err("only a part was sent");
    assert!(
        matches!(error, StreamError::RemoteTerminate { code, .. } if code == Code::H3_REQUEST_CANCELLED),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_request_that_its_server_stops_takes_no_other_one_along() {
    let (server, client, address) = endpoints();
    serve(server);
    let mut requests = connect(&client, address).await;
    let request = Request::post("https://127.0.0.1/stop").body(()).unwrap();
    let mut stream = requests.send_request(request).await.unwrap();
    let sent = numbered(100_000);
    let error = loop {
        if let Err(error) = stream.send_data(sent.clone()).await {
            break error;
        }
    };
    assert!(
        matches!(error, StreamError::RemoteTerminate { code, .. } if code == Code::H3_NO_ERROR),
        "{error:?}"
    );
    // Whoever does not look at the error goes on.
    let error = stream.send_data(sent.clone()).await.expect_err("nothing more is taken");
    assert!(!matches!(error, StreamError::ConnectionError { .. }), "{error:?}");
    let _ = stream.finish().await;
    assert_eq!(stream.recv_response().await.unwrap().status(), StatusCode::OK);
    let (received, _) = echo(&mut requests, &sent).await;
    assert!(received == sent);
}

#[tokio::test]
async fn writes_that_are_given_up_leave_their_frames_whole() {
    let (server, client, address) = endpoints();
    serve(server);
    let mut requests = connect(&client, address).await;
    let request = Request::post("https://127.0.0.1/late").body(()).unwrap();
    let mut stream = requests.send_request(request).await.unwrap();
    let sent = numbered(LARGE);
    for part in [sent.slice(..LARGE - 1000), sent.slice(LARGE - 1000..)] {
        let given_up = tokio::time::timeout(Duration::from_millis(50), stream.send_data(part)).await;
        given_up.expect_err("nobody reads yet");
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("asked", HeaderValue::from_static("too"));
    stream.send_trailers(trailers).await.unwrap();
    stream.finish().await.unwrap();
    assert_eq!(stream.recv_response().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn h3_learns_that_the_connection_is_over_and_why() {
    let (server, client, address) = endpoints();
    tokio::spawn(async move {
        let quic = server.accept().await.unwrap().await.unwrap();
        let _ = quic.accept_bi().await;
        quic.close(0x107u32.into(), b"");
        server.wait_idle().await;
    });
    let mut requests = connect(&client, address).await;
    let mut stream =
        requests.send_request(Request::get("https://127.0.0.1/").body(()).unwrap()).await.unwrap();
    stream.finish().await.unwrap();
    let error = stream.recv_response().await.expect_err("it was closed");
    assert!(error.to_string().contains("H3_EXCESSIVE_LOAD"), "{error}");
}

#[tokio::test]
async fn the_client_of_fulmar_fetches_from_a_server_of_h3() {
    let (server, client, address) = endpoints();
    serve(server);
    let client = fulmar_h3::Client::new(client);
    let sent = numbered(LARGE / 10);
    let uri = format!("https://{address}");
    let request = Request::post(format!("{uri}/echo")).body(Full::new(sent.clone())).unwrap();
    let response = client.request(request).await.unwrap();
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().expect("trailers")["answered"], "yes");
    assert!(body.to_bytes() == sent);
    assert_eq!(client.get(format!("{uri}/none")).await.unwrap().status(), StatusCode::NOT_FOUND);
    client.close().await;
}

#[tokio::test]
async fn a_client_of_h3_fetches_from_the_server_of_fulmar() {
    let (server, client, address) = endpoints();
    let app = axum::Router::new()
        .route("/echo", axum::routing::post(|body: axum::body::Body| async move { body }))
        .route("/wait", axum::routing::get(std::future::pending::<()>));
    tokio::spawn(async move { fulmar_h3::Server::new(server).serve(app).await });
    let mut requests = connect(&client, address).await;

    // One that is given up does not disturb the next.
    let mut waiting =
        requests.send_request(Request::get("https://127.0.0.1/wait").body(()).unwrap()).await.unwrap();
    waiting.finish().await.unwrap();
    let answer = tokio::time::timeout(Duration::from_millis(50), waiting.recv_response()).await;
    answer.expect_err("nobody answers");
    drop(waiting);

    let sent = numbered(LARGE);
    let (received, trailers) = echo(&mut requests, &sent).await;
    assert!(received == sent, "{} bytes of {} came back", received.len(), sent.len());
    assert_eq!(trailers.expect("trailers")["asked"], "too");
}

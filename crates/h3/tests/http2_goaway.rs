//! Servers of HTTP/2 that take some requests on a connection and no more (GOAWAY), as nginx does after `keepalive_requests`.

mod common;
mod origin;

use std::net::Ipv4Addr;

use fulmar_h3::Client;
use http::{Request, Version};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use origin::*;

/// The types of the frames that matter, and NO_ERROR and REFUSED_STREAM (RFC 9113 §6, §7).
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const NO_ERROR: u8 = 0;
const REFUSED_STREAM: u8 = 7;

/// How many requests are served on a connection.
const SERVED: usize = 3;

/// How a server leaves out the other requests.
#[derive(Debug, Clone, Copy)]
enum LeftOut {
    ByGoAway,
    ByReset,
}

async fn write<S: AsyncWrite + Unpin>(stream: &mut S, ty: u8, flags: u8, id: u32, payload: &[u8]) {
    let mut frame = vec![0, 0, payload.len() as u8, ty, flags];
    frame.extend(id.to_be_bytes());
    frame.extend(payload);
    let _ = stream.write_all(&frame).await;
}

/// Serves a connection frame by frame, without a body, until the client closes it.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, how: LeftOut) {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.unwrap();
    write(&mut stream, SETTINGS, 0, 0, &[]).await;
    let mut served = 0;
    let mut header = [0; 9];
    while stream.read_exact(&mut header).await.is_ok() {
        let [len @ .., ty, flags] = *header.first_chunk::<5>().unwrap();
        let len = usize::from(len[0]) << 16 | usize::from(len[1]) << 8 | usize::from(len[2]);
        let id = u32::from_be_bytes(*header.last_chunk().unwrap());
        let mut payload = vec![0; len];
        stream.read_exact(&mut payload).await.unwrap();
        match ty {
            SETTINGS if flags == 0 => write(&mut stream, SETTINGS, 1, 0, &[]).await,
            HEADERS if served < SERVED => {
                served += 1;
                // Status 200, END_STREAM and END_HEADERS.
                write(&mut stream, HEADERS, 5, id, &[0x88]).await;
            }
            HEADERS => match how {
                LeftOut::ByGoAway => {
                    let mut payload = (2 * SERVED as u32 - 1).to_be_bytes().to_vec();
                    payload.extend([0, 0, 0, NO_ERROR]);
                    write(&mut stream, GOAWAY, 0, 0, &payload).await;
                }
                LeftOut::ByReset => write(&mut stream, RST_STREAM, 0, id, &[0, 0, 0, REFUSED_STREAM]).await,
            },
            _ => {}
        }
    }
}

#[tokio::test]
async fn requests_that_a_server_leaves_out_are_made_again() {
    for how in [LeftOut::ByGoAway, LeftOut::ByReset] {
        let identity = Identity::new();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = port(&listener);
        identity.accept_tcp(listener, HTTP2, move |stream| serve(stream, how));
        let client = Client::with_roots(identity.roots()).unwrap();
        let mut requests = JoinSet::new();
        for number in 0..30 {
            let client = client.clone();
            requests.spawn(async move {
                let method = if number % 2 == 0 { "GET" } else { "POST" };
                let request = Request::builder().method(method).uri(uri(port, "/"));
                let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
                client.request(request).await
            });
        }
        for response in common::soon(requests.join_all()).await {
            assert_eq!(response.unwrap().version(), Version::HTTP_2, "{how:?}");
        }
    }
}

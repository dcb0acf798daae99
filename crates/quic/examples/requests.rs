//! Small requests on one connection over loopback, a number of them at a time: what a stream costs.
//!
//! ```sh
//! cargo build --release -p fulmar --example requests
//! valgrind --tool=callgrind target/release/examples/requests 2000          # one after the other
//! valgrind --tool=callgrind target/release/examples/requests 10000 100     # 100 at a time
//! ```
//!
//! What a request costs in the steady state is the difference of two runs, divided by that of their counts.

use std::error::Error;
use std::net::Ipv4Addr;

use bytes::Bytes;
use fulmar::{Connection, Endpoint, RecvStream, SendStream, VarInt, tls};
use tokio::task::JoinSet;

/// Bytes of a request, and of its answer.
const SIZE: usize = 1024;

/// Answers every request with as many bytes, each in a task of its own.
async fn serve(connection: Connection) {
    while let Ok((send, recv)) = connection.accept_bi().await {
        tokio::spawn(answer(send, recv));
    }
}

async fn answer(mut send: SendStream, mut recv: RecvStream) {
    while let Ok(Some(chunk)) = recv.read_chunk(usize::MAX, true).await {
        let written =
            if chunk.fin { send.finish_with(chunk.bytes).await } else { send.write_chunk(chunk.bytes).await };
        if written.is_err() {
            return;
        }
    }
}

/// Sends requests one after the other.
async fn ask(connection: Connection, count: u32) -> Result<(), Box<dyn Error + Send + Sync>> {
    let request = Bytes::from(vec![7; SIZE]);
    for _ in 0..count {
        let (mut send, mut recv) = connection.open_bi().await?;
        send.finish_with(request.clone()).await?;
        let mut received = 0;
        while let Some(chunk) = recv.read_chunk(usize::MAX, true).await? {
            received += chunk.bytes.len();
        }
        assert_eq!(received, request.len());
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut args = std::env::args().skip(1);
    let count: u32 = args.next().map_or(Ok(2_000), |count| count.parse())?;
    let concurrent: u32 = args.next().map_or(Ok(1), |concurrent| concurrent.parse())?;
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let cert = made.cert.der().clone();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(cert.clone())?;
    let config = tls::server_config(vec![cert], key.into(), &[b"requests"])?;
    let server = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into())?;
    let addr = server.local_addr()?;
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            tokio::spawn(async move {
                if let Ok(connection) = incoming.await {
                    serve(connection).await;
                }
            });
        }
    });

    let client = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    client.set_default_client_config(tls::client_config(roots, &[b"requests"])?);
    let connection = client.connect(addr, "localhost")?.await?;
    let mut clients = JoinSet::new();
    for _ in 0..concurrent {
        clients.spawn(ask(connection.clone(), count / concurrent));
    }
    while let Some(done) = clients.join_next().await {
        done??;
    }
    connection.close(VarInt::ZERO, b"done");
    client.wait_idle().await;
    Ok(())
}

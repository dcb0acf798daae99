//! Small requests, one after the other, on one connection over loopback: what a stream costs.
//!
//! ```sh
//! cargo build --release -p fulmar --example requests
//! valgrind --tool=callgrind target/release/examples/requests 2000
//! ```

use std::error::Error;
use std::net::Ipv4Addr;

use bytes::Bytes;
use fulmar::{Connection, Endpoint, VarInt, tls};

/// Answers every request with as many bytes.
async fn answer(connection: Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        while let Ok(Some(chunk)) = recv.read_chunk(usize::MAX, true).await {
            let written = if chunk.fin {
                send.finish_with(chunk.bytes).await
            } else {
                send.write_chunk(chunk.bytes).await
            };
            if written.is_err() {
                return;
            }
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let count: u32 = std::env::args().nth(1).map_or(Ok(2_000), |count| count.parse())?;
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
            answer(incoming.await?).await;
        }
        Ok::<_, fulmar::AcceptError>(())
    });

    let client = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    client.set_default_client_config(tls::client_config(roots, &[b"requests"])?);
    let connection = client.connect(addr, "localhost")?.await?;
    let request = Bytes::from(vec![7; 200]);
    for _ in 0..count {
        let (mut send, mut recv) = connection.open_bi().await?;
        send.finish_with(request.clone()).await?;
        let mut received = 0;
        while let Some(chunk) = recv.read_chunk(usize::MAX, true).await? {
            received += chunk.bytes.len();
        }
        assert_eq!(received, request.len());
    }
    connection.close(VarInt::ZERO, b"done");
    client.wait_idle().await;
    Ok(())
}

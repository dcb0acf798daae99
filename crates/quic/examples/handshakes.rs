//! Handshakes over loopback, one after the other: what a connection costs at both ends together.
//!
//! ```sh
//! cargo build --release -p fulmar --example handshakes
//! valgrind --tool=callgrind target/release/examples/handshakes 200           # full ones
//! valgrind --tool=callgrind target/release/examples/handshakes 200 resumed   # all but the first resume a session
//! ```

use std::error::Error;
use std::net::Ipv4Addr;
use std::time::Duration;

use fulmar::{Endpoint, SessionStore, VarInt, tls};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let count: u32 = args.next().map_or(Ok(200), |count| count.parse())?;
    let resumed = args.next().is_some_and(|kind| kind == "resumed");
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let cert = made.cert.der().clone();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(cert.clone())?;
    let server = Endpoint::server(
        tls::server_config(vec![cert], key.into(), &[b"handshakes"])?,
        (Ipv4Addr::LOCALHOST, 0).into(),
    )?;
    let addr = server.local_addr()?;
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            tokio::spawn(async move {
                if let Ok(connection) = incoming.await {
                    connection.closed().await;
                }
            });
        }
    });

    let mut config = tls::client_config(roots, &[b"handshakes"])?;
    if resumed {
        config = config.with_sessions(SessionStore::new(8));
    }
    let client = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    client.set_default_client_config(config);
    for _ in 0..count {
        let connection = client.connect(addr, "localhost")?.await?;
        // Until the tickets have come, too.
        tokio::time::sleep(Duration::from_millis(2)).await;
        connection.close(VarInt::ZERO, b"done");
    }
    client.wait_idle().await;
    Ok(())
}

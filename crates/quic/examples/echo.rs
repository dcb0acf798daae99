//! An echo server and a client in one program: `cargo run -p fulmar --example echo`.

use std::error::Error;
use std::net::Ipv4Addr;

use fulmar::{Connection, Endpoint, VarInt, tls};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;

/// The name of the protocol, which both sides must know (ALPN).
const ALPN: &[&[u8]] = &[b"echo"];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let cert = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut roots = RootCertStore::empty();
    roots.add(cert.clone())?;

    let server =
        Endpoint::server(tls::server_config(vec![cert], key.into(), ALPN)?, (Ipv4Addr::LOCALHOST, 0).into())?;
    let addr = server.local_addr()?;
    println!("the server listens on {addr}");
    tokio::spawn(serve(server));

    let client = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    client.set_default_client_config(tls::client_config(roots, ALPN)?);
    let connection = client.connect(addr, "localhost")?.await?;
    for text in ["hello", "is anybody there?", "goodbye"] {
        println!("sent {text:?}, received {:?}", ask(&connection, text).await?);
    }
    println!("the round trip takes {:?}", connection.rtt());
    connection.close(VarInt::ZERO, b"done");
    client.wait_idle().await;
    Ok(())
}

/// Accepts connections and answers each stream with what it carries.
async fn serve(endpoint: Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else { return };
            while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                tokio::spawn(async move { tokio::io::copy(&mut recv, &mut send).await });
            }
        });
    }
}

/// Sends `text` on a stream of its own and waits for the answer.
async fn ask(connection: &Connection, text: &str) -> Result<String, Box<dyn Error>> {
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(text.as_bytes()).await?;
    send.finish()?;
    Ok(String::from_utf8(recv.read_to_end(1_024).await?)?)
}

//! Datagrams that come back, and streams that both ends reset but for their beginning: a server and a client. The strangers of
//! `interop/` speak the same protocol, which `interop/README.md` describes, so that `cargo xtask interop` can mix them.
//!
//! ```sh
//! cargo run -p fulmar --example extensions server 127.0.0.1:4433 cert.pem key.pem
//! cargo run -p fulmar --example extensions client datagrams 127.0.0.1:4433 authority.pem
//! cargo run -p fulmar --example extensions client reset-at 127.0.0.1:4433 authority.pem
//! ```

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use fulmar::{Connection, Endpoint, ReadError, RecvStream, SendStream, VarInt, tls};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::time::timeout;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const ALPN: &[&[u8]] = &[b"extensions"];
/// How many datagrams a client sends before it reads those that come back, and how often.
const ROUND: u8 = 10;
const ROUNDS: u8 = 20;
/// How long a client waits for a datagram.
const PATIENCE: Duration = Duration::from_secs(5);
/// What each end of a stream writes, in bytes, and how much of it must arrive in spite of the reset.
const WRITTEN: usize = 500_000;
const RELIABLE: usize = 100_000;
/// The codes with which the ends reset.
const CLIENT_CODE: VarInt = VarInt::from_u32(7);
const SERVER_CODE: VarInt = VarInt::from_u32(9);
const VERDICT_MAX: usize = 1_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["server", address, chain, key] => serve(address.parse()?, chain, key).await,
        ["client", case, address, authority] => {
            let address: SocketAddr = address.parse()?;
            let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_file(authority)?)?;
            endpoint.set_default_client_config(tls::client_config(roots, ALPN)?);
            let connection = endpoint.connect(address, &address.ip().to_string())?.await?;
            match case {
                "datagrams" => echo_datagrams(&connection).await?,
                "reset-at" => reset_and_be_reset(&connection).await?,
                _ => return Err(format!("there is no case {case}").into()),
            }
            connection.close(VarInt::ZERO, b"");
            endpoint.wait_idle().await;
            Ok(())
        }
        _ => Err("usage: extensions server ADDR CHAIN KEY | client datagrams|reset-at ADDR AUTHORITY".into()),
    }
}

async fn serve(address: SocketAddr, chain: &str, key: &str) -> Result<()> {
    let chain = CertificateDer::pem_file_iter(chain)?.collect::<std::result::Result<_, _>>()?;
    let config = tls::server_config(chain, PrivateKeyDer::from_pem_file(key)?, ALPN)?;
    let endpoint = Endpoint::server(config, address)?;
    println!("listening on {}", endpoint.local_addr()?);
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let end = match incoming.await {
                Ok(connection) => serve_connection(connection).await,
                Err(error) => Err(error.into()),
            };
            if let Err(error) = end {
                println!("connection ended: {error}");
            }
        });
    }
    Ok(())
}

/// Sends each datagram back, and answers each stream, until the connection ends.
async fn serve_connection(connection: Connection) -> Result<()> {
    loop {
        tokio::select! {
            datagram = connection.read_datagram() => connection.send_datagram(datagram?)?,
            stream = connection.accept_bi() => {
                let (send, recv) = stream?;
                tokio::spawn(answer(connection.clone(), send, recv));
            }
        }
    }
}

/// Plays the server's part of the case `reset-at` and tells the client, over another stream, what it saw.
async fn answer(connection: Connection, mut send: SendStream, mut recv: RecvStream) -> Result<()> {
    let (sent, received) =
        tokio::join!(write_and_reset(&mut send, SERVER_CODE), read_until_reset(&mut recv, CLIENT_CODE));
    let verdict = match sent.and(received) {
        Ok(()) => "ok".to_owned(),
        Err(error) => error.to_string(),
    };
    let mut send = connection.open_uni().await?;
    send.write_all(verdict.as_bytes()).await?;
    send.finish()?;
    Ok(())
}

async fn echo_datagrams(connection: &Connection) -> Result<()> {
    for round in 0..ROUNDS {
        for number in 0..ROUND {
            connection.send_datagram(datagram(round * ROUND + number))?;
        }
        for _ in 0..ROUND {
            let back = timeout(PATIENCE, connection.read_datagram()).await;
            let back = back.map_err(|_| format!("a datagram of round {round} does not come back"))??;
            let number = *back.first().ok_or("an empty datagram comes back")?;
            if number / ROUND != round || back != datagram(number) {
                return Err(format!("datagram {number} is damaged, or not of round {round}").into());
            }
        }
    }
    Ok(())
}

/// Between 1 and 1,127 bytes, of which the first is the number.
fn datagram(number: u8) -> Bytes {
    let len = 1 + usize::from(number) * 89 % 1_127;
    (0..len).map(|at| number.wrapping_add(at as u8)).collect()
}

async fn reset_and_be_reset(connection: &Connection) -> Result<()> {
    let (mut send, mut recv) = connection.open_bi().await?;
    let (sent, received) =
        tokio::join!(write_and_reset(&mut send, CLIENT_CODE), read_until_reset(&mut recv, SERVER_CODE));
    sent.and(received)?;
    let verdict = connection.accept_uni().await?.read_to_end(VERDICT_MAX).await?;
    match &verdict[..] {
        b"ok" => Ok(()),
        complaint => Err(format!("the server says: {}", String::from_utf8_lossy(complaint)).into()),
    }
}

/// Writes at once what the stream takes, and resets it but for its beginning.
async fn write_and_reset(send: &mut SendStream, code: VarInt) -> Result<()> {
    let bytes: Vec<u8> = (0..WRITTEN).map(pattern).collect();
    send.write_all(&bytes[..RELIABLE]).await?;
    send.write(&bytes[RELIABLE..]).await?;
    Ok(send.reset_at(code, RELIABLE as u64)?)
}

/// Reads what the peer wrote: its reliable beginning for certain, and never all of it.
async fn read_until_reset(recv: &mut RecvStream, code: VarInt) -> Result<()> {
    let mut buffer = vec![0; 64 << 10];
    let mut received = 0;
    let end = loop {
        match recv.read(&mut buffer).await {
            Ok(Some(len)) => {
                if !buffer[..len].iter().enumerate().all(|(at, byte)| *byte == pattern(received + at)) {
                    return Err(format!("damaged after {received} bytes").into());
                }
                received += len;
            }
            Ok(None) => return Err("the stream ended without a reset".into()),
            Err(error) => break error,
        }
    };
    println!("{received} bytes received, then: {end}");
    if end != ReadError::Reset(code) || !(RELIABLE..WRITTEN).contains(&received) {
        return Err(format!("{received} bytes came before: {end}").into());
    }
    Ok(())
}

/// The byte at this place of a stream.
fn pattern(at: usize) -> u8 {
    (at % 251) as u8
}

//! Datagrams that come back: what quinn knows of the extensions that the cases are about. `interop/README.md` describes the
//! protocol.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use clap::Subcommand;
use quinn::{Connection, Endpoint};
use tokio::time::timeout;

use crate::client;
use crate::report::Report;
use crate::tls::{self, Trust};

const ALPN: &[u8] = b"extensions";
/// How many datagrams a client sends before it reads those that come back, and how often.
const ROUND: u8 = 10;
const ROUNDS: u8 = 20;
/// How long a client waits for a datagram.
const PATIENCE: Duration = Duration::from_secs(5);
const IDLE: Duration = Duration::from_secs(30);

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Send every datagram back.
    Server { address: SocketAddr, chain: PathBuf, key: PathBuf },
    /// Send datagrams and read them back.
    Client { case: String, address: SocketAddr, authority: PathBuf },
}

pub(crate) async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Server { address, chain, key } => {
            let report = Report::new("server");
            let config = tls::server_config(&chain, &key, ALPN, tls::transport(IDLE)?, report)?;
            let endpoint = Endpoint::server(config, address)?;
            println!("listening on {}", endpoint.local_addr()?);
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(async move {
                    if let Err(error) = echo_all(incoming).await {
                        println!("connection ended: {error:#}");
                    }
                });
            }
            Ok(())
        }
        Command::Client { case, address, authority } => {
            ensure!(case == "datagrams", "quinn does not know the case {case}");
            let config =
                tls::client_config(Trust::Authority(&authority), false, ALPN, tls::transport(IDLE)?)?;
            let (endpoint, connection) = client::connect(&address.to_string(), config).await?;
            echo_datagrams(&connection).await?;
            client::close(&endpoint, &connection).await;
            Ok(())
        }
    }
}

async fn echo_all(incoming: quinn::Incoming) -> anyhow::Result<()> {
    let connection = incoming.await?;
    loop {
        connection.send_datagram(connection.read_datagram().await?)?;
    }
}

async fn echo_datagrams(connection: &Connection) -> anyhow::Result<()> {
    for round in 0..ROUNDS {
        for number in 0..ROUND {
            connection.send_datagram(datagram(round * ROUND + number))?;
        }
        for _ in 0..ROUND {
            let back = timeout(PATIENCE, connection.read_datagram()).await;
            let back = back.with_context(|| format!("a datagram of round {round} does not come back"))??;
            let number = *back.first().context("an empty datagram comes back")?;
            if number / ROUND != round || back != datagram(number) {
                bail!("datagram {number} is damaged, or not of round {round}");
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

//! What a connection costs in memory, at either end.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::requests::read_answer;
use super::{Figures, Meter};
use crate::failure::{Failure, Result};
use crate::options::Load;
use crate::process::kilobytes_of;
use crate::protocol::{Question, Reader};
use crate::stack::{Connection, Dialer, Sender};

/// Handshakes under way at a time.
const CONCURRENT: u64 = 16;
/// Connections that are made before the first look: what an endpoint holds once is no part of the figure.
const WARM_UP: u64 = 64;
/// How long late acknowledgements and timers of handshakes may take.
const SETTLE: Duration = Duration::from_secs(2);

pub(super) async fn run<D: Dialer>(dialer: D, load: &Load, server: u32) -> Result<Figures> {
    let mut held = connect(&dialer, load, WARM_UP).await?;
    sleep(SETTLE).await;
    let before = resident(server)?;
    let meter = Meter::start(server);
    held.extend(connect(&dialer, load, load.connections).await?);
    sleep(SETTLE).await;
    let mut figures = meter.stop(load.connections);
    let after = resident(server)?;
    let each = |before: u64, after: u64| (after as f64 - before as f64) * 1_024.0 / load.connections as f64;
    figures.client_bytes = Some(each(before.0, after.0));
    figures.server_bytes = Some(each(before.1, after.1));
    drop(held);
    Ok(figures)
}

/// Kilobytes of this process and of the server.
fn resident(server: u32) -> Result<(u64, u64)> {
    let of = |pid| kilobytes_of(pid, "VmRSS").ok_or(Failure::Unsupported("the system does not tell memory"));
    Ok((of(std::process::id())?, of(server)?))
}

type Held<C> = (C, Option<(<C as Connection>::Sender, Reader<<C as Connection>::Receiver>)>);

async fn connect<D: Dialer>(dialer: &D, load: &Load, count: u64) -> Result<Vec<Held<D::Connection>>> {
    let mut tasks = JoinSet::new();
    for worker in 0..CONCURRENT {
        let (dialer, load) = (dialer.clone(), load.clone());
        tasks.spawn(async move {
            let mut held = Vec::new();
            for _ in (worker..count).step_by(CONCURRENT as usize) {
                held.push(hold(&dialer, &load).await?);
            }
            Ok::<_, Failure>(held)
        });
    }
    let mut all = Vec::new();
    while let Some(result) = tasks.join_next().await {
        all.extend(result.map_err(Failure::at("a task"))??);
    }
    Ok(all)
}

/// A connection, and if it is to be an active one, a stream on which an answer came and another may be asked for.
async fn hold<D: Dialer>(dialer: &D, load: &Load) -> Result<Held<D::Connection>> {
    let connection = dialer.dial().await?;
    if !load.active {
        return Ok((connection, None));
    }
    let (mut sender, receiver) = connection.open().await?;
    sender.write(Question::Download(load.size).encode()).await?;
    let mut reader = Reader::new(receiver);
    read_answer(&mut reader, load.size).await?;
    Ok((connection, Some((sender, reader))))
}

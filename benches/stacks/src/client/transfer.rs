//! Downloads and uploads, on one stream or divided among many.

use tokio::task::JoinSet;

use super::{Figures, Meter};
use crate::digest::Digest;
use crate::failure::{Failure, Result};
use crate::options::{Load, Workload};
use crate::protocol::{Content, Question, Reader};
use crate::stack::{Connection, Dialer, Sender};

/// What is transferred before anything is measured: windows have grown, and the pages of buffers are there.
const WARM_UP: u64 = 50_000_000;

pub(super) async fn run(dialer: impl Dialer, load: &Load, server: u32) -> Result<Figures> {
    let connection = dialer.dial().await?;
    if load.streams == 1 && !load.in_tasks {
        let (mut sender, receiver) = connection.open().await?;
        let mut reader = Reader::new(receiver);
        transfer(load.workload, &mut sender, &mut reader, WARM_UP.min(load.size)).await?;
        let meter = Meter::start(server);
        transfer(load.workload, &mut sender, &mut reader, load.size).await?;
        let figures = meter.stop(load.size);
        connection.close();
        return Ok(figures);
    }
    // Many streams are always read in tasks.
    in_tasks(&connection, load, WARM_UP.min(load.size)).await?;
    let meter = Meter::start(server);
    let amount = in_tasks(&connection, load, load.size).await?;
    let figures = meter.stop(amount);
    connection.close();
    Ok(figures)
}

async fn in_tasks<C: Connection>(connection: &C, load: &Load, size: u64) -> Result<u64> {
    let mut tasks = JoinSet::new();
    let each = size / load.streams;
    for _ in 0..load.streams {
        let (connection, workload) = (connection.clone(), load.workload);
        tasks.spawn(async move {
            let (mut sender, receiver) = connection.open().await?;
            let result = transfer(workload, &mut sender, &mut Reader::new(receiver), each).await;
            sender.finish().await?;
            result
        });
    }
    while let Some(result) = tasks.join_next().await {
        result.map_err(Failure::at("a task"))??;
    }
    Ok(each * load.streams)
}

async fn transfer<S: Sender, R: crate::stack::Receiver>(
    workload: Workload,
    sender: &mut S,
    reader: &mut Reader<R>,
    size: u64,
) -> Result<()> {
    let mut digest = Digest::default();
    if workload == Workload::Upload {
        sender.write(Question::Upload(size).encode()).await?;
        Content::default().write(sender, size, &mut digest).await?;
    } else {
        sender.write(Question::Download(size).encode()).await?;
        reader.digested(size, &mut digest).await?;
    }
    if digest.len() != size || digest.value() != reader.number().await? {
        return Err(Failure::Damaged("a transfer"));
    }
    Ok(())
}

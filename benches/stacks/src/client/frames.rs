//! Tiny frames on many streams of one connection, as a server of tokens sends them.

use tokio::task::JoinSet;

use super::{Figures, Latencies, Latency, Meter};
use crate::digest::Digest;
use crate::failure::{Failure, Result};
use crate::options::Load;
use crate::process::now_ns;
use crate::protocol::{Question, Reader};
use crate::server::{FRAME_HEADER_LEN, FRAME_INTERVAL};
use crate::stack::{Connection, Dialer, Sender};

pub(super) async fn run(dialer: impl Dialer, load: &Load, server: u32) -> Result<Figures> {
    if load.size <= FRAME_HEADER_LEN {
        return Err(Failure::Unsupported("frames have more than eight bytes"));
    }
    let connection = dialer.dial().await?;
    let each = load.milliseconds / FRAME_INTERVAL.as_millis() as u64;
    let mut streams = Vec::new();
    for _ in 0..load.streams {
        streams.push(connection.open().await?);
    }
    let meter = Meter::start(server);
    let mut tasks = JoinSet::new();
    for (mut sender, receiver) in streams {
        let size = load.size;
        tasks.spawn(async move {
            sender.write(Question::Frames { count: each, size }.encode()).await?;
            sender.finish().await?;
            read_frames(Reader::new(receiver), each, size).await
        });
    }
    let mut all = Latencies::new();
    while let Some(result) = tasks.join_next().await {
        all.extend(result.map_err(Failure::at("a task"))??);
    }
    let mut figures = meter.stop(all.len() as u64);
    figures.latency_us = Latency::of(all);
    connection.close();
    Ok(figures)
}

/// The latency of a frame is counted from the time at which it was due.
async fn read_frames<R: crate::stack::Receiver>(
    mut reader: Reader<R>,
    count: u64,
    size: u64,
) -> Result<Latencies> {
    let (mut latencies, mut digest) = (Latencies::new(), Digest::default());
    for _ in 0..count {
        let due = reader.number().await?;
        digest.update(&due.to_be_bytes());
        reader.digested(size - FRAME_HEADER_LEN, &mut digest).await?;
        latencies.push(now_ns().saturating_sub(due));
    }
    if digest.value() == reader.number().await? { Ok(latencies) } else { Err(Failure::Damaged("a frame")) }
}

//! Small questions and answers, several at once on each of several connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::task::JoinSet;

use super::{Figures, Latencies, Latency, Meter};
use crate::digest::Digest;
use crate::failure::{Failure, Result};
use crate::options::Load;
use crate::protocol::{Question, Reader};
use crate::stack::{Connection, Dialer, Receiver, Sender, Stack};

/// Of the measured requests, the share that is made before.
const WARM_UP: u64 = 10;

pub(super) async fn run<S: Stack>(dialer: S::Dialer, load: &Load, server: u32) -> Result<Figures> {
    let mut connections = Vec::new();
    for _ in 0..load.connections {
        connections.push(dialer.dial().await?);
    }
    if S::REUSES_STREAM && load.concurrent > 1 {
        return Err(Failure::Unsupported("one question at a time in a connection"));
    }
    let mut workers = Vec::new();
    for connection in &connections {
        for _ in 0..load.concurrent {
            let stream = if S::REUSES_STREAM {
                let (sender, receiver) = connection.open().await?;
                Some((sender, Reader::new(receiver)))
            } else {
                None
            };
            workers.push(Worker { connection: connection.clone(), stream, size: load.size });
        }
    }
    (workers, _) = work(workers, load.count / WARM_UP).await?;
    let meter = Meter::start(server);
    let (_, latencies) = work(workers, load.count).await?;
    let mut figures = meter.stop(latencies.len() as u64);
    figures.latency_us = Latency::of(latencies);
    connections.iter().for_each(Connection::close);
    Ok(figures)
}

/// Whoever asks one question after the other.
struct Worker<C: Connection> {
    connection: C,
    /// Where a connection has one stream alone.
    stream: Option<(C::Sender, Reader<C::Receiver>)>,
    size: u64,
}

impl<C: Connection> Worker<C> {
    async fn ask(&mut self) -> Result<()> {
        if let Some((sender, reader)) = &mut self.stream {
            sender.write(Question::Download(self.size).encode()).await?;
            return read_answer(reader, self.size).await;
        }
        request(&self.connection, self.size).await
    }
}

/// One question on a stream of its own.
pub(super) async fn request<C: Connection>(connection: &C, size: u64) -> Result<()> {
    let (mut sender, receiver) = connection.open().await?;
    sender.write(Question::Download(size).encode()).await?;
    sender.finish().await?;
    let mut reader = Reader::new(receiver);
    read_answer(&mut reader, size).await?;
    match reader.question().await? {
        None => Ok(()),
        Some(_) => Err(Failure::Damaged("an answer that is too long")),
    }
}

pub(super) async fn read_answer<R: Receiver>(reader: &mut Reader<R>, size: u64) -> Result<()> {
    let mut digest = Digest::default();
    reader.digested(size, &mut digest).await?;
    if digest.value() == reader.number().await? { Ok(()) } else { Err(Failure::Damaged("an answer")) }
}

/// All workers together ask `count` questions.
async fn work<C: Connection>(workers: Vec<Worker<C>>, count: u64) -> Result<(Vec<Worker<C>>, Latencies)> {
    let left = Arc::new(AtomicU64::new(count));
    let mut tasks = JoinSet::new();
    for mut worker in workers {
        let left = left.clone();
        tasks.spawn(async move {
            let mut latencies = Latencies::new();
            let one_less = |left: u64| left.checked_sub(1);
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
                let start = Instant::now();
                worker.ask().await?;
                latencies.push(start.elapsed().as_nanos() as u64);
            }
            Ok::<_, Failure>((worker, latencies))
        });
    }
    let (mut workers, mut all) = (Vec::new(), Latencies::new());
    while let Some(result) = tasks.join_next().await {
        let (worker, latencies) = result.map_err(Failure::at("a task"))??;
        workers.push(worker);
        all.extend(latencies);
    }
    Ok((workers, all))
}

//! Handshakes: full ones, resumed ones, and questions in the first flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::requests::request;
use super::{Figures, Latencies, Latency, Meter};
use crate::failure::{Failure, Result};
use crate::options::{Handshake, Load};
use crate::stack::{Connection, Dialer};
use crate::tls::certificates_checked;

/// Handshakes that are made before anything is measured, per one under way: they bring the first tickets, too.
const WARM_UP: u64 = 4;
/// How long tickets may take to come after an answer.
const TICKETS: Duration = Duration::from_millis(100);

pub(super) async fn run<D: Dialer>(dialer: D, load: &Load, server: u32) -> Result<Figures> {
    let warm_up = match load.handshake {
        Handshake::Full => Handshake::Full,
        Handshake::Answered | Handshake::Resumed | Handshake::Early => Handshake::Answered,
    };
    work(&dialer, warm_up, load.concurrent, WARM_UP * load.concurrent).await?;
    sleep(TICKETS).await;
    let checked = certificates_checked();
    let meter = Meter::start(server);
    let latencies = work(&dialer, load.handshake, load.concurrent, load.count).await?;
    let mut figures = meter.stop(latencies.len() as u64);
    figures.latency_us = Latency::of(latencies);
    let full = certificates_checked() - checked;
    if load.handshake == Handshake::Resumed && full == figures.amount {
        return Err(Failure::Unsupported("it resumes no session"));
    }
    figures.full_handshakes = Some(full);
    Ok(figures)
}

async fn work<D: Dialer>(dialer: &D, kind: Handshake, concurrent: u64, count: u64) -> Result<Latencies> {
    let left = Arc::new(AtomicU64::new(count));
    let mut tasks = JoinSet::new();
    for _ in 0..concurrent {
        let (dialer, left) = (dialer.clone(), left.clone());
        tasks.spawn(async move {
            let mut latencies = Latencies::new();
            let one_less = |left: u64| left.checked_sub(1);
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
                let start = Instant::now();
                once(&dialer, kind).await?;
                latencies.push(start.elapsed().as_nanos() as u64);
            }
            Ok::<_, Failure>(latencies)
        });
    }
    let mut all = Latencies::new();
    while let Some(result) = tasks.join_next().await {
        all.extend(result.map_err(Failure::at("a task"))??);
    }
    Ok(all)
}

async fn once(dialer: &impl Dialer, kind: Handshake) -> Result<()> {
    let connection = match kind {
        Handshake::Early => dialer.dial_early().await?,
        Handshake::Full | Handshake::Answered | Handshake::Resumed => dialer.dial().await?,
    };
    if kind != Handshake::Full {
        request(&connection, 0).await?;
    }
    if kind == Handshake::Early {
        // Tickets for others come after the handshake, and the first answer came before its end.
        request(&connection, 0).await?;
    }
    connection.close();
    Ok(())
}

//! Handshakes: many connections, each opened and closed.

use std::sync::Arc;

use serde::Serialize;

use super::latency::Percentiles;
use super::load::Load;
use crate::clock::process_cpu;
use crate::duration::Span;
use crate::failure::Failure;
use crate::net::{CLOSE_DONE, Dialer};
use crate::report::Output;

/// What the handshakes came to.
#[derive(Debug, Serialize)]
struct Report {
    kind: &'static str,
    handshakes_per_s: f64,
    handshakes: u64,
    concurrent: u32,
    duration_s: f64,
    /// From the first packet to the connection that can be used.
    latency_us: Percentiles,
    cpu_s_client: Option<f64>,
    cpu_s_server: Option<f64>,
}

/// Makes full handshakes and prints the figures.
pub(super) async fn run(dialer: Dialer, load: Load, output: Output) -> Result<(), Failure> {
    let dialer = Arc::new(dialer);
    let concurrent = load.concurrent;
    let done = load.run({
        let dialer = dialer.clone();
        move || open_and_close(dialer.clone())
    });
    let done = done.await?;
    let report = Report {
        kind: "handshakes",
        handshakes_per_s: done.per_second(),
        handshakes: done.latencies.count(),
        concurrent,
        duration_s: done.duration.as_secs_f64(),
        latency_us: done.latencies.percentiles(),
        cpu_s_client: process_cpu().map(|cpu| cpu.as_secs_f64()),
        cpu_s_server: None,
    };
    output.print(&report, || {
        let Report { handshakes, handshakes_per_s, latency_us, .. } = &report;
        let duration = Span(done.duration);
        format!("{handshakes} handshakes in {duration}: {handshakes_per_s:.0} per second\n  latency     {latency_us}")
    });
    dialer.farewell().await;
    Ok(())
}

async fn open_and_close(dialer: Arc<Dialer>) -> Result<(), Failure> {
    dialer.dial().await?.close(CLOSE_DONE, b"");
    Ok(())
}

//! Requests: many small streams on one connection.

use fulmar::Connection;
use serde::Serialize;

use super::client::Dialed;
use super::latency::Percentiles;
use super::load::Load;
use super::{drain, read_failure, write_failure};
use crate::clock::process_cpu;
use crate::duration::Span;
use crate::failure::Failure;
use crate::report::{self, Output};

/// What the requests came to.
#[derive(Debug, Serialize)]
struct Report {
    kind: &'static str,
    requests_per_s: f64,
    requests: u64,
    concurrent: u32,
    response_size: u64,
    duration_s: f64,
    handshake_ms: f64,
    /// From opening the stream to the end of the response.
    latency_us: Percentiles,
    cpu_s_client: Option<f64>,
    cpu_s_server: Option<f64>,
}

/// Makes requests and prints the figures. A response of another size than asked for is a failure.
pub(super) async fn run(
    dialed: &Dialed<'_>,
    load: Load,
    response_size: u64,
    output: Output,
) -> Result<(), Failure> {
    let (connection, peer) = (dialed.connection.clone(), dialed.peer.to_owned());
    let concurrent = load.concurrent;
    let done = load.run(move || request(connection.clone(), peer.clone(), response_size)).await?;
    let report = Report {
        kind: "requests",
        requests_per_s: done.per_second(),
        requests: done.latencies.count(),
        concurrent,
        response_size,
        duration_s: done.duration.as_secs_f64(),
        handshake_ms: report::millis(dialed.handshake),
        latency_us: done.latencies.percentiles(),
        cpu_s_client: process_cpu().map(|cpu| cpu.as_secs_f64()),
        cpu_s_server: None,
    };
    output.print(&report, || {
        let Report { requests, requests_per_s, latency_us, .. } = &report;
        let duration = Span(done.duration);
        format!(
            "{requests} requests in {duration}: {requests_per_s:.0} per second\n  latency     {latency_us}"
        )
    });
    Ok(())
}

async fn request(connection: Connection, peer: String, response_size: u64) -> Result<(), Failure> {
    let (mut send, mut recv) = connection.open_bi().await.map_err(Failure::connection(&peer))?;
    let request = response_size.to_be_bytes();
    send.write_all(&request).await.map_err(|error| write_failure(&peer, error))?;
    let _ = send.finish();
    let mut bytes = 0;
    drain(&mut recv, |more| bytes += more).await.map_err(|error| read_failure(&peer, error))?;
    if bytes == response_size {
        return Ok(());
    }
    let why = format!("a response of {bytes} bytes came instead of one of {response_size}");
    Err(Failure::Request { what: peer, why })
}

//! The end that asks and measures: a file per kind of workload.

mod datagrams;
mod frames;
mod handshakes;
mod memory;
mod requests;
mod transfer;

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::failure::Result;
use crate::options::{ClientOptions, Workload};
use crate::process::{cpu_of, kilobytes_of, own_cpu};
use crate::stack::Stack;

/// What a workload came to; printed as a line of JSON.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Figures {
    /// How long the measured part took, without warm-up.
    pub(crate) seconds: f64,
    /// Bytes of transfers; requests, frames, handshakes, datagrams or connections.
    pub(crate) amount: u64,
    pub(crate) client_cpu_s: f64,
    pub(crate) server_cpu_s: Option<f64>,
    pub(crate) client_peak_kb: Option<u64>,
    pub(crate) server_peak_kb: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency_us: Option<Latency>,
    /// Of the handshakes, how many showed the server's certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) full_handshakes: Option<u64>,
    /// Datagrams that were sent and did not arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lost: Option<u64>,
    /// Memory of each connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_bytes: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Latency {
    p50: f64,
    p99: f64,
    max: f64,
}

/// Runs one workload.
pub(crate) async fn run<S: Stack>(options: &ClientOptions) -> Result<Figures> {
    let dialer = S::dialer(&options.transport, options.server)?;
    let (load, pid) = (&options.load, options.server_pid);
    let mut figures = match load.workload {
        Workload::Download | Workload::Upload => transfer::run(dialer, load, pid).await,
        Workload::Requests => requests::run::<S>(dialer, load, pid).await,
        Workload::Frames => frames::run(dialer, load, pid).await,
        Workload::Handshakes => handshakes::run(dialer, load, pid).await,
        Workload::Datagrams => datagrams::run(dialer, load, pid).await,
        Workload::Memory => memory::run(dialer, load, pid).await,
    }?;
    figures.client_peak_kb = kilobytes_of(std::process::id(), "VmHWM");
    figures.server_peak_kb = kilobytes_of(pid, "VmHWM");
    Ok(figures)
}

/// Time and CPU since it was started.
pub(crate) struct Meter {
    server: u32,
    started: Instant,
    client_cpu: Duration,
    server_cpu: Option<Duration>,
}

impl Meter {
    pub(crate) fn start(server: u32) -> Self {
        Self { server, server_cpu: cpu_of(server), client_cpu: own_cpu(), started: Instant::now() }
    }

    pub(crate) fn stop(self, amount: u64) -> Figures {
        let seconds = self.started.elapsed().as_secs_f64();
        let client_cpu_s = own_cpu().saturating_sub(self.client_cpu).as_secs_f64();
        let server_cpu = self.server_cpu.zip(cpu_of(self.server));
        let server_cpu_s = server_cpu.map(|(before, after)| after.saturating_sub(before).as_secs_f64());
        Figures { seconds, amount, client_cpu_s, server_cpu_s, ..Figures::default() }
    }
}

/// Latencies in nanoseconds. A histogram for each of thousands of streams would be larger, and felt by the caches.
pub(crate) type Latencies = Vec<u64>;

impl Latency {
    /// `None` if nothing was measured.
    pub(crate) fn of(mut latencies: Latencies) -> Option<Self> {
        latencies.sort_unstable();
        let last = latencies.len().checked_sub(1)?;
        let at = |percent: usize| latencies[last * percent / 100] as f64 / 1e3;
        Some(Self { p50: at(50), p99: at(99), max: at(100) })
    }
}

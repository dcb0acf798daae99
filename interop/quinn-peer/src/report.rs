//! The line of JSON that each role prints at its end.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use quinn::ConnectionError;
use rustls::CipherSuite;
use serde::Serialize;

/// The most reasons in one report.
const ENDED_MAX: usize = 100;

/// What a role did so far; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    started: Instant,
    figures: Arc<Mutex<Figures>>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Figures {
    role: &'static str,
    handshakes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    cipher_suite: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    offered_suites: Vec<String>,
    bytes: u64,
    seconds: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ended: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Report {
    pub(crate) fn new(role: &'static str) -> Self {
        let figures = Figures { role, ..Figures::default() };
        Self { started: Instant::now(), figures: Arc::new(Mutex::new(figures)) }
    }

    pub(crate) fn handshake_done(&self) {
        let mut figures = self.figures();
        figures.handshakes += 1;
        // quinn is configured for version 1 alone, see `tls`.
        figures.version = Some("v1");
        // quinn does not tell the negotiated suite; an offer of one leaves no choice.
        if let [only] = &figures.offered_suites[..] {
            figures.cipher_suite = Some(only.clone());
        }
    }

    /// Notes the cipher suites of TLS 1.3 that a ClientHello offers.
    pub(crate) fn offered(&self, suites: &[CipherSuite]) {
        // TLS 1.3 suites are 0x13xx, older ones and GREASE are of no interest here.
        let offered = suites.iter().filter(|suite| u16::from(**suite) >> 8 == 0x13).map(name);
        self.figures().offered_suites = offered.collect();
    }

    pub(crate) fn transferred(&self, bytes: u64) {
        self.figures().bytes += bytes;
    }

    /// Notes why a connection ended and gives the reason in words that all peers share.
    pub(crate) fn ended(&self, error: &ConnectionError) -> String {
        let reason = end_reason(error);
        let mut figures = self.figures();
        if figures.ended.len() < ENDED_MAX {
            figures.ended.push(reason.clone());
        }
        reason
    }

    pub(crate) fn print(&self, error: Option<&anyhow::Error>) {
        let mut figures = self.figures().clone();
        figures.seconds = self.started.elapsed().as_secs_f64();
        figures.error = error.map(|error| format!("{error:#}"));
        match serde_json::to_string(&figures) {
            Ok(line) => println!("{line}"),
            Err(error) => eprintln!("error: {error}"),
        }
    }

    fn figures(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The name of the IANA registry; rustls prefixes those of TLS 1.3 with the version.
fn name(suite: &CipherSuite) -> String {
    format!("{suite:?}").replace("TLS13_", "TLS_")
}

/// Names the end of a connection; the two ends that the interop cases look for have fixed words.
fn end_reason(error: &ConnectionError) -> String {
    match error {
        ConnectionError::TimedOut => "idle timeout".to_owned(),
        ConnectionError::Reset => "stateless reset".to_owned(),
        other => other.to_string(),
    }
}

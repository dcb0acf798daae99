//! What is printed: results on standard output, complaints on standard error.

use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;

use crate::clock::process_cpu;
use crate::failure::Failure;
use crate::net::{FecFigures, Figures, PathFigures};
use crate::progress::Stderr;

/// The two streams of the program and how to write on them.
///
/// Whoever reads may have gone (`fulmar get .. | head`): that is not our failure, so what cannot be written then is dropped. What else
/// keeps it from being written, as a full disk does, is told once and makes the program fail at its end, see [`has_lost_output`]; a
/// server goes on until then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    verbose: bool,
}

impl Output {
    /// `json`: objects instead of text. `verbose`: connections are told about on standard error.
    pub(crate) fn new(json: bool, verbose: bool) -> Self {
        Self { json, verbose }
    }

    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Whether progress bars may be drawn, if standard error is a terminal.
    pub(crate) fn wants_bars(self) -> bool {
        !self.json
    }

    /// Prints `object` with `--json`, else the lines of `text`.
    pub(crate) fn print<T: Serialize>(self, object: &T, text: impl FnOnce() -> String) {
        write_out(&(self.line(object, text) + "\n"));
    }

    /// The same of many objects, written at once; `text` appends what stands for one.
    pub(crate) fn print_all<T: Serialize>(
        self,
        objects: impl Iterator<Item = T>,
        mut text: impl FnMut(&T, &mut String),
    ) {
        let mut lines = String::new();
        for object in objects {
            if self.json {
                lines.push_str(&self.line(&object, String::new));
            } else {
                text(&object, &mut lines);
            }
            lines.push('\n');
        }
        write_out(&lines);
    }

    fn line<T: Serialize>(self, object: &T, text: impl FnOnce() -> String) -> String {
        if self.json {
            serde_json::to_string(object).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
        } else {
            text()
        }
    }

    /// Tells of something that is no failure, in one sentence.
    pub(crate) fn note(self, sentence: &str) {
        let _ = Stderr.write_all(format!("fulmar: {sentence}\n").as_bytes());
    }

    /// With `-v`, tells of what goes on, in lines of their own.
    pub(crate) fn narrate(self, lines: impl FnOnce() -> String) {
        if self.verbose {
            let lines: String = lines().lines().map(|line| format!("* {line}\n")).collect();
            let _ = Stderr.write_all(lines.as_bytes());
        }
    }

    /// Tells of a failure in one sentence and, with `--json`, in an object on standard output as well.
    pub(crate) fn complain(self, failure: &Failure) {
        self.complain_of(failure, None);
    }

    /// The same of a failure that concerns one file.
    pub(crate) fn complain_of(self, failure: &Failure, url: Option<String>) {
        if !failure.is_told() {
            self.note(&failure.to_string());
        }
        self.print_failure(failure, url);
    }

    /// With `--json`, prints the object of a failure of which the sentence was told.
    pub(crate) fn print_failure(self, failure: &Failure, url: Option<String>) {
        if self.json && failure.is_object() {
            self.print(&Failed { kind: "failure", url, error: failure.to_string() }, String::new);
        }
    }
}

/// Set once something could not be written to standard output that somebody may have waited for.
static HAS_LOST: AtomicBool = AtomicBool::new(false);

/// Whether something that was to go to standard output is lost. That was told.
pub(crate) fn has_lost_output() -> bool {
    HAS_LOST.load(Ordering::Relaxed)
}

/// Writes lines to standard output, or tells why that cannot be done.
fn write_out(lines: &str) {
    let written = write_results(&mut io::stdout().lock(), lines);
    if let Err(failure) = written
        && !HAS_LOST.swap(true, Ordering::Relaxed)
    {
        let _ = Stderr.write_all(format!("fulmar: {failure}\n").as_bytes());
    }
}

/// Writes to standard output, and tells whether somebody still reads. Whoever reads may have gone; everything else that keeps results from
/// being written is a failure.
pub(crate) fn write_results(stdout: &mut dyn Write, text: &str) -> Result<bool, Failure> {
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::StandardOutput(error)),
    }
}

/// A failure, for `--json`.
#[derive(Debug, Serialize)]
struct Failed {
    kind: &'static str,
    /// The file that it concerns, if it is not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The sentence of standard error.
    error: String,
}

/// Where a server listens and by what it is known.
#[derive(Debug, Serialize)]
pub(crate) struct Listening {
    /// Always `listening`.
    kind: &'static str,
    pub(crate) listening: SocketAddr,
    pub(crate) fingerprint: String,
}

impl Listening {
    pub(crate) fn new(listening: SocketAddr, fingerprint: String) -> Self {
        Self { kind: "listening", listening, fingerprint }
    }

    pub(crate) fn text(&self) -> String {
        format!("listening on {}\nfingerprint {}", self.listening, self.fingerprint)
    }
}

/// How it was made sure that what was asked for has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verified {
    /// The checksum of all bytes is that of the sender.
    Crc32,
    /// As many bytes came as were asked for.
    Length,
}

/// One transfer of bytes. What is not known is null.
#[derive(Debug, Serialize)]
pub(crate) struct Transfer {
    /// `demo`, `download`, `upload` or `get`.
    pub(crate) kind: &'static str,
    pub(crate) gbit_per_s: f64,
    /// Bytes of content that arrived.
    pub(crate) bytes: u64,
    /// From the end of the handshake, which has a figure of its own.
    pub(crate) duration_s: f64,
    pub(crate) handshake_ms: f64,
    pub(crate) rtt_min_us: u64,
    /// Packets sent and lost, as the sender of the content counts them where it is in this process, else as the
    /// client does.
    pub(crate) packets_sent: u64,
    pub(crate) packets_lost: u64,
    /// By the name that TLS has for it.
    pub(crate) cipher_suite: Option<&'static str>,
    pub(crate) cpu_s_client: Option<f64>,
    pub(crate) cpu_s_server: Option<f64>,
    /// What was compared, if something was: all bytes or the length. It is left out where there is nothing to compare with: when
    /// a time limit has ended the transfer, and for files, whose length HTTP/0.9 does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verified: Option<Verified>,
    /// What forward erasure correction did, if both ends have it: at the sender where that is in this process, else at the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fec: Option<FecFigures>,
    /// Each path at the end, if both ends have multipath.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<PathFigures>,
}

impl Transfer {
    /// What a client knows of `bytes` that took `duration`.
    pub(crate) fn of(
        kind: &'static str,
        (bytes, duration): (u64, Duration),
        handshake: Duration,
        figures: &Figures,
        verified: Option<Verified>,
    ) -> Self {
        Self {
            kind,
            gbit_per_s: gbit_per_s(bytes, duration),
            bytes,
            duration_s: duration.as_secs_f64(),
            handshake_ms: millis(handshake),
            rtt_min_us: micros(figures.rtt_min),
            packets_sent: figures.packets_sent,
            packets_lost: figures.packets_lost,
            cipher_suite: figures.cipher_suite,
            cpu_s_client: process_cpu().map(|cpu| cpu.as_secs_f64()),
            cpu_s_server: None,
            verified,
            fec: figures.fec,
            paths: Vec::new(),
        }
    }
}

/// A count and its noun: `1 file`, `2 files`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Bits per second in units of 10^9.
pub(crate) fn gbit_per_s(bytes: u64, duration: Duration) -> f64 {
    if duration.is_zero() { 0.0 } else { bytes as f64 * 8.0 / 1e9 / duration.as_secs_f64() }
}

/// Processor seconds per 10^9 bytes.
pub(crate) fn cpu_s_per_gb(cpu: Duration, bytes: u64) -> f64 {
    cpu.as_secs_f64() / (bytes.max(1) as f64 / 1e9)
}

/// `duration` in milliseconds.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// `duration` in whole microseconds.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_in_decimal_units() {
        assert_eq!(gbit_per_s(1_000_000_000, Duration::from_secs(4)), 2.0);
        assert_eq!(gbit_per_s(5, Duration::ZERO), 0.0);
        assert_eq!(cpu_s_per_gb(Duration::from_millis(500), 2_000_000_000), 0.25);
    }

    #[test]
    fn an_unknown_figure_is_null() {
        let listening = Listening::new(([127, 0, 0, 1], 4433).into(), "sha256:00".to_owned());
        let json = serde_json::to_string(&listening).expect("serialises");
        assert_eq!(json, r#"{"kind":"listening","listening":"127.0.0.1:4433","fingerprint":"sha256:00"}"#);
        let transfer = Transfer {
            kind: "demo",
            gbit_per_s: 1.0,
            bytes: 1,
            duration_s: 1.0,
            handshake_ms: 1.0,
            rtt_min_us: 1,
            packets_sent: 1,
            packets_lost: 0,
            cipher_suite: None,
            cpu_s_client: None,
            cpu_s_server: Some(0.5),
            fec: None,
            paths: Vec::new(),
            verified: None,
        };
        let json = serde_json::to_value(&transfer).expect("serialises");
        assert!(json["cpu_s_client"].is_null());
        assert_eq!(json["cpu_s_server"], 0.5);
        assert!(json.get("verified").is_none(), "nothing was verified");
    }
}

//! What `-v` tells of a connection.

use std::time::Duration;

use fulmar::{Connection, EarlyData, Version};

use super::Figures;
use crate::args::TrustArgs;
use crate::duration::Span;
use crate::report::Output;
use crate::tls::{Contents, Fingerprint};

/// Tells of the connections to one server, if it is wanted.
#[derive(Debug, Clone)]
pub(super) struct Narrator {
    pub(super) output: Output,
    /// `host:port`.
    pub(super) peer: String,
    /// The version in which connections begin.
    pub(super) first_version: Version,
    pub(super) trust: TrustArgs,
}

impl Narrator {
    /// Tells of a connection whose handshake took `handshake`.
    pub(super) fn connected(&self, connection: &Connection, handshake: Duration) {
        self.output.narrate(|| self.about(connection, handshake));
    }

    /// Tells of a connection that will be closed.
    pub(super) fn closing(&self, connection: &Connection) {
        self.output.narrate(|| closing(connection));
    }

    fn about(&self, connection: &Connection, handshake: Duration) -> String {
        let Self { peer, first_version, trust, .. } = self;
        let stats = connection.stats();
        let remote = connection.remote_address();
        let mut lines = vec![format!("connected to {peer} at {remote} in {}", Span(handshake))];
        let begun = if stats.version == *first_version {
            String::new()
        } else {
            format!(", begun in {first_version}")
        };
        let retried = if stats.retried { ", after a Retry" } else { "" };
        lines.push(format!("QUIC {}{begun}{retried}", stats.version));
        let unknown = || "unknown".to_owned();
        let protocol = connection.alpn().map_or_else(unknown, |alpn| printable(&alpn));
        lines.push(format!(
            "TLS 1.3, {}, key exchange {}, {}, ALPN {protocol}",
            Figures::of(connection).cipher_suite.unwrap_or("unknown"),
            stats.key_exchange.unwrap_or_else(unknown),
            if stats.resumed { "resumed session" } else { "full handshake" },
        ));
        lines.extend(early_data(connection));
        lines.extend(certificate(connection, trust));
        lines.join("\n")
    }
}

fn closing(connection: &Connection) -> String {
    let stats = connection.stats();
    let Figures { rtt, rtt_min, packets_sent, packets_lost, .. } = Figures::of(connection);
    format!(
        "closing: round trip {}, {} at least; {packets_sent} packets sent, {packets_lost} lost, {} received; {} bytes sent, {} received",
        Span(rtt),
        Span(rtt_min),
        stats.packets_received,
        stats.bytes_sent,
        stats.bytes_received,
    )
}

fn early_data(connection: &Connection) -> Option<String> {
    let what = match connection.early_data() {
        EarlyData::Unused => return None,
        EarlyData::Offered => "offered",
        EarlyData::Accepted => "accepted",
        EarlyData::Rejected => "rejected and sent again",
    };
    Some(format!("early data (0-RTT) {what}"))
}

fn certificate(connection: &Connection, trust: &TrustArgs) -> Option<String> {
    let chain = connection.peer_certificates()?;
    let certificate = chain.first()?;
    let verdict = match trust {
        TrustArgs { insecure: true, .. } => "taken unseen (--insecure)".to_owned(),
        TrustArgs { pin: Some(_), .. } => "the pinned one (--pin)".to_owned(),
        TrustArgs { ca: Some(file), .. } => format!("trusted by {}", file.display()),
        _ => "trusted by the system".to_owned(),
    };
    let mut lines = vec![format!("certificate: {verdict}")];
    if let Some(Contents { subject, issuer, not_before, not_after, .. }) = Contents::of(certificate) {
        lines.push(format!("  subject      {subject}"));
        lines.push(format!("  issuer       {issuer}"));
        lines.push(format!("  valid        from {not_before} to {not_after}"));
    }
    lines.push(format!("  fingerprint  {}", Fingerprint::of(certificate)));
    Some(lines.join("\n"))
}

/// Text of a peer, which steers no terminal.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).escape_debug().to_string()
}

//! What `-v` tells of a connection.

use std::time::Duration;

use fulmar::{Connection, ConnectionStats, EarlyData, Version};
use rustls::pki_types::CertificateDer;

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
        self.output.narrate(|| closing(&connection.stats()));
    }

    fn about(&self, connection: &Connection, handshake: Duration) -> String {
        let Self { peer, first_version, trust, .. } = self;
        let remote = connection.remote_address();
        let protocol = connection.alpn().map_or_else(unknown, |alpn| printable(&alpn));
        let mut lines = vec![format!("connected to {peer} at {remote} in {}", Span(handshake))];
        lines.push(quic_and_tls(&connection.stats(), *first_version, &protocol));
        lines.extend(early_data(connection));
        let chain = connection.peer_certificates();
        lines.extend(chain.iter().flatten().next().map(|first| certificate(first, trust)));
        lines.join("\n")
    }
}

/// The versions and the cryptography of a connection that was to begin in `first_version`.
pub(crate) fn quic_and_tls(stats: &ConnectionStats, first_version: Version, protocol: &str) -> String {
    let begun =
        if stats.version == first_version { String::new() } else { format!(", begun in {first_version}") };
    let retried = if stats.retried { ", after a Retry" } else { "" };
    format!(
        "QUIC {}{begun}{retried}\nTLS 1.3, {}, key exchange {}, {}, ALPN {protocol}",
        stats.version,
        Figures::from(stats).cipher_suite.unwrap_or("unknown"),
        stats.key_exchange.clone().unwrap_or_else(unknown),
        if stats.resumed { "resumed session" } else { "full handshake" },
    )
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// The figures of a connection at its end.
pub(crate) fn closing(stats: &ConnectionStats) -> String {
    let Figures { rtt, rtt_min, packets_sent, packets_lost, .. } = Figures::from(stats);
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

/// What the certificate of a server says, and why it is trusted.
pub(crate) fn certificate(certificate: &CertificateDer<'_>, trust: &TrustArgs) -> String {
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
    lines.join("\n")
}

/// Text of a peer, which steers no terminal.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).escape_debug().to_string()
}

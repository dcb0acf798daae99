//! What a certificate says, for the checks that are made here.

use rustls::pki_types::{CertificateDer, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// The parts of a certificate that are looked at.
#[derive(Debug, Clone)]
pub(super) struct Contents {
    /// Seconds of Unix time.
    not_before: i64,
    not_after: i64,
    /// Whether a server may use it: it says so, or does not restrict its use.
    pub(super) is_for_servers: bool,
}

impl Contents {
    /// Reads a certificate. Nothing is checked but its form; `None` if that is wrong.
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, read) = X509Certificate::from_der(certificate).ok()?;
        let usage = read.extended_key_usage().ok()?;
        Some(Self {
            not_before: read.validity().not_before.timestamp(),
            not_after: read.validity().not_after.timestamp(),
            is_for_servers: usage.is_none_or(|usage| usage.value.any || usage.value.server_auth),
        })
    }

    pub(super) fn is_too_early(&self, now: UnixTime) -> bool {
        seconds(now) < self.not_before
    }

    pub(super) fn is_too_late(&self, now: UnixTime) -> bool {
        seconds(now) > self.not_after
    }
}

fn seconds(time: UnixTime) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

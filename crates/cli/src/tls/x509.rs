//! What a certificate says, for the checks that are made here and for people.

use std::fmt;

use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// The parts of a certificate that are looked at.
#[derive(Debug, Clone)]
pub(crate) struct Contents {
    pub(crate) subject: String,
    pub(crate) issuer: String,
    pub(crate) not_before: Moment,
    pub(crate) not_after: Moment,
    /// Whether a server may use it: it says so, or does not restrict its use.
    pub(super) is_for_servers: bool,
}

/// A second, and how the certificate writes it.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    unix_seconds: i64,
    text: String,
}

impl Contents {
    /// Reads a certificate. Nothing is checked but its form; `None` if that is wrong.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, read) = X509Certificate::from_der(certificate).ok()?;
        let usage = read.extended_key_usage().ok()?;
        let validity = read.validity();
        let moment = |time: x509_parser::time::ASN1Time| Moment {
            unix_seconds: time.timestamp(),
            text: time.to_string(),
        };
        Some(Self {
            subject: printable(&read.subject().to_string()),
            issuer: printable(&read.issuer().to_string()),
            not_before: moment(validity.not_before),
            not_after: moment(validity.not_after),
            is_for_servers: usage.is_none_or(|usage| usage.value.any || usage.value.server_auth),
        })
    }

    pub(super) fn is_too_early(&self, now: UnixTime) -> bool {
        seconds(now) < self.not_before.unix_seconds
    }

    pub(super) fn is_too_late(&self, now: UnixTime) -> bool {
        seconds(now) > self.not_after.unix_seconds
    }
}

/// The key of a certificate of any version; `None` if its form is wrong.
pub(super) fn public_key(certificate: &CertificateDer<'_>) -> Option<SubjectPublicKeyInfoDer<'static>> {
    let (_, read) = X509Certificate::from_der(certificate).ok()?;
    Some(SubjectPublicKeyInfoDer::from(read.public_key().raw.to_vec()))
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn seconds(time: UnixTime) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

/// Names come from whoever made the certificate: nothing of them steers the terminal.
fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

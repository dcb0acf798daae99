//! Why TLS refused, in words for people and as a transport error for the peer.

use rustls::{AlertDescription, CertificateError, PeerIncompatible, PeerMisbehaved};

use fulmar_wire::TransportErrorCode;

use crate::TransportError;

/// Why the TLS handshake failed on this side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The chain of certificates does not lead to a trusted root.
    #[error("the peer's certificate is not issued by a trusted authority")]
    UnknownIssuer,
    /// The certificate is for other names.
    #[error("the peer's certificate is not valid for {expected}; it is for {}", names(presented))]
    WrongName {
        /// The name that was asked for.
        expected: String,
        /// The names in the certificate.
        presented: Vec<String>,
    },
    /// The certificate was valid earlier.
    #[error("the peer's certificate has expired")]
    Expired,
    /// The certificate will be valid later.
    #[error("the peer's certificate is not valid yet")]
    NotValidYet,
    /// The certificate was revoked.
    #[error("the peer's certificate has been revoked")]
    Revoked,
    /// The certificate was refused for another reason, or by a verifier of the application.
    #[error("the peer's certificate is not acceptable: {0}")]
    BadCertificate(String),
    /// The peer has no certificate and one is required.
    #[error("the peer presented no certificate")]
    NoCertificate,
    /// The two sides have no application protocol in common (RFC 7301).
    #[error("the peer speaks none of the offered application protocols")]
    NoApplicationProtocol,
    /// The two sides have no cipher suite, key exchange or signature scheme in common.
    #[error("the peer supports none of the offered TLS parameters: {0}")]
    NothingInCommon(String),
    /// The peer's TLS does not know that it runs over QUIC (RFC 9001 §8.2).
    #[error("the peer sent no QUIC transport parameters")]
    NoTransportParameters,
    /// Anything else, in the words of the TLS library.
    #[error("{0}")]
    Other(String),
}

impl From<&rustls::Error> for TlsError {
    fn from(error: &rustls::Error) -> Self {
        use rustls::Error;
        match error {
            Error::InvalidCertificate(reason) => reason.into(),
            Error::NoCertificatesPresented => Self::NoCertificate,
            Error::NoApplicationProtocol => Self::NoApplicationProtocol,
            Error::PeerIncompatible(reason) => incompatible(reason),
            Error::PeerMisbehaved(PeerMisbehaved::MissingQuicTransportParameters) => {
                Self::NoTransportParameters
            }
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<&CertificateError> for TlsError {
    fn from(error: &CertificateError) -> Self {
        match error {
            CertificateError::UnknownIssuer => Self::UnknownIssuer,
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotValidYet,
            CertificateError::Revoked => Self::Revoked,
            CertificateError::NotValidForNameContext { expected, presented } => Self::WrongName {
                expected: expected.to_str().into_owned(),
                presented: presented.iter().map(|name| plain_name(name)).collect(),
            },
            other => Self::BadCertificate(why_bad(other)),
        }
    }
}

/// What is wrong with a certificate, where the words of rustls are those of its source.
fn why_bad(error: &CertificateError) -> String {
    match error {
        CertificateError::BadEncoding => "it is not encoded as it should be",
        CertificateError::BadSignature => "it is not signed by the key of its issuer",
        CertificateError::UnhandledCriticalExtension => "it has a critical extension that is not known here",
        CertificateError::UnsupportedSignatureAlgorithmContext { .. } => {
            "it is signed by an algorithm that is not supported"
        }
        CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "it is signed by an algorithm that does not fit the key of its issuer"
        }
        other => return other.to_string(),
    }
    .to_owned()
}

fn incompatible(reason: &PeerIncompatible) -> TlsError {
    TlsError::NothingInCommon(format!("{reason:?}"))
}

/// The name inside of what rustls prints: `DnsName("example.org")`.
fn plain_name(printed: &str) -> String {
    printed.split('"').nth(1).unwrap_or(printed).to_owned()
}

fn names(presented: &[String]) -> String {
    if presented.is_empty() { "no name at all".to_owned() } else { presented.join(", ") }
}

/// What the peer is told about `error`: the alert that TLS would send, as a CRYPTO_ERROR (RFC 9001 §4.8).
pub(super) fn transport_error(
    error: &rustls::Error,
    words: &TlsError,
    alert: Option<AlertDescription>,
) -> TransportError {
    // RFC 9001 §4.1.3: a message may not straddle a change of keys.
    if matches!(error, rustls::Error::PeerMisbehaved(PeerMisbehaved::KeyEpochWithPendingFragment)) {
        return TransportError::protocol_violation("handshake data beyond a change of keys");
    }
    let alert = alert.unwrap_or(AlertDescription::InternalError);
    TransportError::new(TransportErrorCode::crypto(alert.into()), words.to_string())
}

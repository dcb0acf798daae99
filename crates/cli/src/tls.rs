//! Certificates: who we are as a server, and whom we trust as a client.

mod identity;
mod kept;
mod verify;
mod x509;

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use fulmar::{CipherSuite, aws_lc_without_quic_keys, restrict_suites};
use rustls::RootCertStore;
use rustls::client::Resumption;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::args::{Cipher, TrustArgs};
use crate::failure::Failure;

pub(crate) use self::identity::Identity;
pub(crate) use self::verify::Refusal;
pub(crate) use self::x509::Contents;

/// The SHA-256 digest of a certificate's DER encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    /// Takes the form that is printed, without regard to case, and also bare digits or pairs separated by colons,
    /// as other tools print them.
    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.trim().to_ascii_lowercase();
        let digits = lower.strip_prefix("sha256:").unwrap_or(&lower).replace(':', "");
        parse_hex32(&digits)
            .map(Self)
            .ok_or_else(|| "a fingerprint is sha256: and 64 hexadecimal digits".to_owned())
    }
}

/// The 32 bytes that 64 hexadecimal digits stand for.
pub(crate) fn parse_hex32(digits: &str) -> Option<[u8; 32]> {
    let digits = digits.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let value = |digit: u8| char::from(digit).to_digit(16);
        *byte = (value(pair[0])? << 4 | value(pair[1])?) as u8;
    }
    Some(bytes)
}

/// The TLS of a server that speaks these protocols, the preferred one first.
pub(crate) fn server_config(
    identity: &Identity,
    protocols: &[&str],
) -> Result<Arc<rustls::ServerConfig>, Failure> {
    let mut config = rustls::ServerConfig::builder_with_provider(provider(None))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|builder| {
            builder.with_no_client_auth().with_single_cert(identity.chain.clone(), identity.key.clone_key())
        })
        .map_err(|error| Failure::Tls(format!("the certificate and its key cannot be used: {error}")))?;
    // Both ends can do them all: the one of them that is fastest here.
    config.ignore_client_order = true;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    config.key_log = Arc::new(rustls::KeyLogFile::new());
    Ok(Arc::new(config))
}

/// The TLS of a client that speaks `protocol` only and takes the certificates that `trust` allows. Why one was
/// refused can be read from the `Refusal`.
///
/// Sessions are not resumed: each handshake is a full one, which is what `perf` measures.
pub(crate) fn client_config(
    trust: &TrustArgs,
    cipher: Option<Cipher>,
    protocol: &str,
) -> Result<(Arc<rustls::ClientConfig>, Refusal), Failure> {
    let provider = provider(cipher);
    let refusal = Refusal::default();
    let (verifier, given) = verifier(trust, &provider)?;
    let verifier = verify::Recording::new(verifier, given, refusal.clone());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| Failure::Tls(format!("TLS cannot be set up: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    config.key_log = Arc::new(rustls::KeyLogFile::new());
    config.resumption = Resumption::disabled();
    Ok((Arc::new(config), refusal))
}

/// The TLS of a client of the web, for QUIC and for TCP: its ALPN protocols are set later.
pub(crate) fn web_config(
    trust: &TrustArgs,
    cipher: Option<Cipher>,
) -> Result<(rustls::ClientConfig, Refusal), Failure> {
    let provider = match cipher {
        Some(_) => provider(cipher),
        None => Arc::new(with_tls12(&provider(None))),
    };
    let refusal = Refusal::default();
    let (verifier, given) = verifier(trust, &provider)?;
    let verifier = verify::Recording::new(verifier, given, refusal.clone());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| Failure::Tls(format!("TLS cannot be set up: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.key_log = Arc::new(rustls::KeyLogFile::new());
    Ok((config, refusal))
}

/// The same with the suites of TLS 1.2, which some servers have over TCP.
fn with_tls12(provider: &CryptoProvider) -> CryptoProvider {
    let all = rustls::crypto::aws_lc_rs::default_provider().cipher_suites;
    let tls12 = all.into_iter().filter(|suite| suite.tls13().is_none());
    let cipher_suites = provider.cipher_suites.iter().copied().chain(tls12).collect();
    CryptoProvider { cipher_suites, ..provider.clone() }
}

/// Who judges the server's certificate, and the certificates that count as given themselves.
fn verifier(
    trust: &TrustArgs,
    provider: &Arc<CryptoProvider>,
) -> Result<(Arc<dyn ServerCertVerifier>, Vec<CertificateDer<'static>>), Failure> {
    if trust.insecure {
        return Ok((Arc::new(verify::Unvouched::anyone(provider)), Vec::new()));
    }
    if let Some(pin) = trust.pin {
        return Ok((Arc::new(verify::Unvouched::pinned(pin, provider)), Vec::new()));
    }
    let Some(file) = &trust.ca else { return Ok((Arc::new(of_the_system(provider)?), Vec::new())) };
    let (roots, given) = roots_from(file)?;
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    let verifier = verifier
        .map_err(|error| Failure::Tls(format!("the trusted certificates cannot be used: {error}")))?;
    Ok((verifier, given))
}

/// The judge that the system has, or its certificates where it has none.
fn of_the_system(provider: &Arc<CryptoProvider>) -> Result<rustls_platform_verifier::Verifier, Failure> {
    rustls_platform_verifier::Verifier::new(provider.clone()).map_err(|error| {
        Failure::Tls(format!(
            "this system's trusted certificates cannot be used ({error}): name some with --ca, or the server's with --pin"
        ))
    })
}

/// The certificates in a file, as authorities and as they are.
fn roots_from(file: &Path) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), Failure> {
    let unusable =
        |why: String| Failure::Tls(format!("no certificates can be read from {}: {why}", file.display()));
    let (mut roots, mut given) = (RootCertStore::empty(), Vec::new());
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unusable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate.clone()).map_err(|error| unusable(error.to_string()))?;
        given.push(certificate);
    }
    if given.is_empty() { Err(unusable("it holds none".to_owned())) } else { Ok((roots, given)) }
}

/// The cryptography, with all cipher suites, the fastest first, or one.
fn provider(cipher: Option<Cipher>) -> Arc<CryptoProvider> {
    let provider = aws_lc_without_quic_keys();
    let only = match cipher {
        None => return Arc::new(restrict_suites(&provider, &CipherSuite::fastest_first())),
        Some(Cipher::Aes128) => CipherSuite::Aes128Gcm,
        Some(Cipher::Aes256) => CipherSuite::Aes256Gcm,
        Some(Cipher::Chacha20) => CipherSuite::ChaCha20Poly1305,
    };
    Arc::new(restrict_suites(&provider, &[only]))
}

#[cfg(test)]
mod tests;

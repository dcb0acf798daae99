//! Configurations from certificates and keys, for those who need no more of rustls than that.

use std::io;
use std::sync::Arc;

use fulmar_proto::{CipherSuite, ClientConfig, ServerConfig, aws_lc_without_quic_keys, restrict_suites};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A server's configuration from its certificate chain (its own certificate first), the key, and the application protocols
/// it speaks (ALPN), the preferred one first. QUIC connections without a common protocol fail (RFC 9001 §8.1).
///
/// The server chooses the cipher suite, by [`CipherSuite::fastest_first`] unless the program has installed cryptography of its own.
///
/// # Errors
/// If the key does not fit the certificate.
pub fn server_config(
    cert_chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    alpn: &[&[u8]],
) -> Result<ServerConfig, rustls::Error> {
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(cert_chain, key)?;
    tls.ignore_client_order = true;
    tls.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(ServerConfig::new(Arc::new(tls)))
}

/// A client's configuration from the certificates it trusts and the application protocols it speaks (ALPN).
///
/// # Errors
/// If the cryptography at hand cannot do TLS 1.3.
pub fn client_config(roots: RootCertStore, alpn: &[&[u8]]) -> Result<ClientConfig, rustls::Error> {
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(ClientConfig::new(Arc::new(tls)))
}

/// The cryptography of the handshake: the process's default, if the program installed one, or aws-lc with the fastest cipher
/// suite first.
fn provider() -> Arc<CryptoProvider> {
    CryptoProvider::get_default().cloned().unwrap_or_else(|| {
        Arc::new(restrict_suites(&aws_lc_without_quic_keys(), &CipherSuite::fastest_first()))
    })
}

/// Random bytes that nobody can guess, from the operating system by way of the cryptographic library.
pub(crate) fn random_bytes() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    match provider().secure_random.fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(io::Error::other("the operating system gives no random numbers")),
    }
}

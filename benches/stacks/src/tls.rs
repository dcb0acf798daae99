//! TLS configurations that are alike for all stacks: TLS 1.3, X25519, one cipher suite, a counted check of the certificate.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CipherSuite, DigitallySignedStruct, NamedGroup, SignatureScheme};

use crate::failure::{Failure, Result};
use crate::options::{Cipher, Transport};

pub(crate) const ALPN: &[u8] = b"bench";
pub(crate) const SERVER_NAME: &str = "localhost";

/// How often certificates were checked: as often as handshakes were full ones.
static CHECKED: AtomicU64 = AtomicU64::new(0);

pub(crate) fn certificates_checked() -> u64 {
    CHECKED.load(Ordering::Relaxed)
}

/// Of a provider, what the benchmark wants.
fn restricted(mut provider: CryptoProvider, cipher: Cipher) -> Arc<CryptoProvider> {
    let data = match cipher {
        Cipher::Aes128 => CipherSuite::TLS13_AES_128_GCM_SHA256,
        Cipher::Chacha20 => CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    };
    // AES-128 stays at the end of the list, as Initial packets are protected with it.
    let initial = CipherSuite::TLS13_AES_128_GCM_SHA256;
    provider.cipher_suites.retain(|suite| suite.suite() == data || suite.suite() == initial);
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != data);
    provider.kx_groups.retain(|group| group.name() == NamedGroup::X25519);
    Arc::new(provider)
}

pub(crate) fn server(provider: CryptoProvider, transport: &Transport) -> Result<rustls::ServerConfig> {
    let key = PrivateKeyDer::from_pem_file(&transport.key).map_err(Failure::at("the private key"))?;
    let mut config = rustls::ServerConfig::builder_with_provider(restricted(provider, transport.cipher))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain(&transport.cert)?, key)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.max_early_data_size = u32::MAX;
    config.session_storage = rustls::server::ServerSessionMemoryCache::new(4_096);
    Ok(config)
}

pub(crate) fn client(provider: CryptoProvider, transport: &Transport) -> Result<rustls::ClientConfig> {
    let provider = restricted(provider, transport.cipher);
    let mut roots = rustls::RootCertStore::empty();
    for certificate in chain(&transport.cert)? {
        roots.add(certificate)?;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(Failure::at("the certificate"))?;
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Counting(verifier)))
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.enable_early_data = true;
    Ok(config)
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let pem = fs::read(path)?;
    CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().map_err(Failure::at("the certificate"))
}

/// Checks certificates as rustls does, and counts.
#[derive(Debug)]
struct Counting(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for Counting {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        CHECKED.fetch_add(1, Ordering::Relaxed);
        self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

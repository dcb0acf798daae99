//! TLS and transport configurations for quinn.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, ServerConfig, TransportConfig};
use rustls::CipherSuite;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::report::Report;

/// What a client trusts.
pub(crate) enum Trust<'a> {
    Anything,
    Authority(&'a Path),
}

pub(crate) fn client_config(
    trust: Trust<'_>,
    chacha20_only: bool,
    alpn: &[u8],
    transport: TransportConfig,
) -> anyhow::Result<ClientConfig> {
    let mut provider = ring::default_provider();
    let initial_suite = ring::cipher_suite::TLS13_AES_128_GCM_SHA256
        .tls13()
        .and_then(|suite| suite.quic_suite())
        .context("the provider has no suite for Initial packets")?;
    if chacha20_only {
        provider.cipher_suites.retain(|s| s.suite() == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    }
    let provider = Arc::new(provider);
    let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?;
    let mut tls = match trust {
        Trust::Anything => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(
                provider.signature_verification_algorithms,
            )))
            .with_no_client_auth(),
        Trust::Authority(file) => builder.with_root_certificates(roots(file)?).with_no_client_auth(),
    };
    tls.alpn_protocols = vec![alpn.to_vec()];
    tls.key_log = Arc::new(rustls::KeyLogFile::new());
    tls.enable_early_data = true;
    let crypto = QuicClientConfig::with_initial(Arc::new(tls), initial_suite)?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.version(VERSION_1).transport_config(Arc::new(transport));
    Ok(config)
}

pub(crate) fn server_config(
    cert: &Path,
    key: &Path,
    alpn: &[u8],
    transport: TransportConfig,
    report: Report,
) -> anyhow::Result<ServerConfig> {
    let provider = Arc::new(ring::default_provider());
    let chain = certificates(cert)?;
    let key =
        PrivateKeyDer::from_pem_file(key).with_context(|| format!("no private key in {}", key.display()))?;
    let resolver = Recorder { key: Arc::new(CertifiedKey::from_der(chain, key, &provider)?), report };
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    tls.alpn_protocols = vec![alpn.to_vec()];
    tls.key_log = Arc::new(rustls::KeyLogFile::new());
    // QUIC knows no other value than this and none (RFC 9001 §4.6.1).
    tls.max_early_data_size = u32::MAX;
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// quinn's defaults with the idle timeout asked for.
pub(crate) fn transport(idle: Duration) -> anyhow::Result<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(idle.try_into().map_err(|error| anyhow!("idle timeout: {error}"))?));
    #[cfg(feature = "qlog")]
    transport.qlog_stream(qlog_stream()?);
    Ok(transport)
}

/// A file for the events of all connections, in the directory that the environment names, if it does.
#[cfg(feature = "qlog")]
fn qlog_stream() -> anyhow::Result<Option<quinn::QlogStream>> {
    let Some(dir) = std::env::var_os("QLOGDIR") else { return Ok(None) };
    let file = Path::new(&dir).join(format!("quinn-{}.sqlog", std::process::id()));
    let file = std::fs::File::create(&file).with_context(|| format!("no {}", file.display()))?;
    let mut config = quinn::QlogConfig::default();
    config.writer(Box::new(file)).title(Some("fulmar-peer-quinn".to_owned()));
    Ok(config.into_stream())
}

/// The only version spoken, RFC 9000 §15.
const VERSION_1: u32 = 1;

fn certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_file_iter(file)
        .and_then(|certificates| certificates.collect())
        .with_context(|| format!("no certificates in {}", file.display()))
}

fn roots(file: &Path) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

/// Hands out one certificate and notes what the client offered.
#[derive(Debug)]
struct Recorder {
    key: Arc<CertifiedKey>,
    report: Report,
}

impl ResolvesServerCert for Recorder {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.report.offered(hello.cipher_suites());
        Some(self.key.clone())
    }
}

/// Accepts any certificate, but still wants the handshake signed with its key.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("QUIC needs TLS 1.3".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

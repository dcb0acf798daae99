//! Certificates and TLS configurations.

use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::ALPN;

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A self-signed certificate that `adjust` may change before it is signed.
pub fn certificate_for(names: &[&str], adjust: impl FnOnce(&mut rcgen::CertificateParams)) -> Identity {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = rcgen::CertificateParams::new(names).unwrap();
    adjust(&mut params);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    (vec![certificate.der().clone()], PrivatePkcs8KeyDer::from(key.serialize_der()).into())
}

thread_local! {
    static IDENTITY: Identity = certificate_for(&["localhost"], |_| {});
}

/// The certificate that both configurations use unless a test says otherwise.
pub fn certificate() -> Identity {
    IDENTITY.with(|(chain, key)| (chain.clone(), key.clone_key()))
}

/// The same with so many bytes of further certificates that a server's first flight takes many datagrams.
pub fn large_chain(bytes: usize) -> Identity {
    let (mut chain, key) = certificate();
    let names: Vec<String> = (0..80).map(|n| format!("host-{n}.a-rather-long-name.example.org")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (padding, _) = certificate_for(&names, |_| {});
    while chain.iter().map(|certificate| certificate.len()).sum::<usize>() < bytes {
        chain.extend_from_slice(&padding);
    }
    (chain, key)
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

pub fn server_tls() -> rustls::ServerConfig {
    server_tls_with(certificate())
}

pub fn server_tls_with((chain, key): Identity) -> rustls::ServerConfig {
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config
}

pub fn client_tls() -> rustls::ClientConfig {
    client_tls_that_trusts(&certificate().0[0])
}

pub fn client_tls_that_trusts(root: &CertificateDer<'static>) -> rustls::ClientConfig {
    client_tls_with(provider(), root)
}

/// Without the keys of ML-KEM the ClientHello has room in a packet.
pub fn client_tls_of_one_packet() -> rustls::ClientConfig {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.kx_groups.retain(|group| group.name() == rustls::NamedGroup::X25519);
    client_tls_with(Arc::new(provider), &certificate().0[0])
}

pub fn client_tls_with(
    provider: Arc<rustls::crypto::CryptoProvider>,
    root: &CertificateDer<'static>,
) -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config
}

//! TLS that is the same byte for byte in each run with the same seed.
//!
//! The handshake itself is rustls with the algorithms of aws-lc-rs; what is replaced is where chance and time
//! come from. Random bytes and X25519 keys are drawn from a generator of this thread that [`seed`] sets, the
//! time stands still, the certificate is fixed, and its Ed25519 signatures have no random part and one size
//! (RFC 8032 §5.1.6). Session resumption is off.
//!
//! The private key is published with the source code. Nothing here protects anything outside of a simulation.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use fulmar_base::Rng;
use rustls::client::Resumption;
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup,
    aws_lc_rs,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{
    CipherSuite, ClientConfig, Error, NamedGroup, PeerMisbehaved, ProtocolVersion, RootCertStore,
    ServerConfig,
};
use x25519_dalek::{PublicKey, StaticSecret};

/// The name that the certificate of the lab's servers is valid for, besides `localhost`.
pub const SERVER_NAME: &str = "lab.invalid";

/// A self-signed Ed25519 certificate in DER, valid from 1975 to 4096.
const CERTIFICATE: &[u8] = include_bytes!("../certs/lab.cert.der");
/// Its key: PKCS #8 in DER.
const PRIVATE_KEY: &[u8] = include_bytes!("../certs/lab.key.der");

/// The time of day in the lab: 1 January 2026, UTC, for the whole of a run.
const SECONDS_SINCE_EPOCH: u64 = 1_767_225_600;

thread_local! {
    /// rustls asks for randomness through statics, which cannot know the run they work for. A run stays on
    /// its thread, so this is the next best.
    static RANDOM: RefCell<Rng> = RefCell::new(Rng::from_u64(0));
}

/// Sets the generator that all TLS of this thread draws from, at the beginning of a run.
pub fn seed(seed: u64) {
    RANDOM.set(Rng::from_u64(seed));
}

/// TLS 1.3 of rustls and aws-lc-rs, with the lab's randomness and X25519 as the only group.
pub fn provider() -> CryptoProvider {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|suite| suite.tls13().is_some_and(|suite| suite.quic.is_some()));
    CryptoProvider { secure_random: &LabRandom, kx_groups: vec![&X25519], ..provider }
}

/// The provider with one cipher suite only; `None` if it is not a suite of TLS 1.3.
pub fn provider_with_suite(suite: CipherSuite) -> Option<CryptoProvider> {
    let mut provider = provider();
    provider.cipher_suites.retain(|candidate| candidate.suite() == suite);
    (!provider.cipher_suites.is_empty()).then_some(provider)
}

/// The certificate that a client of the lab trusts.
pub fn roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(CERTIFICATE)).expect("the embedded certificate is well-formed");
    roots
}

/// A server with the lab's certificate that speaks `alpn`, in its order of preference.
pub fn server_config(alpn: &[&[u8]]) -> ServerConfig {
    server_config_with(provider(), alpn)
}

/// Like [`server_config`], with a provider made from [`provider`].
pub fn server_config_with(provider: CryptoProvider, alpn: &[&[u8]]) -> ServerConfig {
    let mut config = ServerConfig::builder_with_details(Arc::new(provider), Arc::new(FixedTime))
        .with_protocol_versions(&[&TLS13])
        .expect("the provider has suites of TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from(CERTIFICATE)],
            PrivatePkcs8KeyDer::from(PRIVATE_KEY).into(),
        )
        .expect("the embedded key belongs to the embedded certificate");
    config.alpn_protocols = owned(alpn);
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config
}

/// A client that trusts the lab's certificate and offers `alpn`.
pub fn client_config(alpn: &[&[u8]]) -> ClientConfig {
    client_config_with(provider(), alpn)
}

/// Like [`client_config`], with a provider made from [`provider`].
pub fn client_config_with(provider: CryptoProvider, alpn: &[&[u8]]) -> ClientConfig {
    let mut config = ClientConfig::builder_with_details(Arc::new(provider), Arc::new(FixedTime))
        .with_protocol_versions(&[&TLS13])
        .expect("the provider has suites of TLS 1.3")
        .with_root_certificates(roots())
        .with_no_client_auth();
    config.alpn_protocols = owned(alpn);
    config.resumption = Resumption::disabled();
    config
}

fn owned(alpn: &[&[u8]]) -> Vec<Vec<u8>> {
    alpn.iter().map(|protocol| protocol.to_vec()).collect()
}

/// Random bytes from this thread's generator.
#[derive(Debug)]
struct LabRandom;

impl SecureRandom for LabRandom {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), GetRandomFailed> {
        RANDOM.with_borrow_mut(|rng| rng.fill(buffer));
        Ok(())
    }
}

/// The time stands still.
#[derive(Debug)]
struct FixedTime;

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(SECONDS_SINCE_EPOCH)))
    }
}

/// X25519 (RFC 7748) with keys from this thread's generator; that of aws-lc-rs takes them from the operating
/// system.
#[derive(Debug)]
struct X25519;

impl SupportedKxGroup for X25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let secret = StaticSecret::from(RANDOM.with_borrow_mut(|rng| rng.bytes::<32>()));
        let public = PublicKey::from(&secret);
        Ok(Box::new(X25519Exchange { secret, public }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

struct X25519Exchange {
    secret: StaticSecret,
    public: PublicKey,
}

impl ActiveKeyExchange for X25519Exchange {
    fn complete(self: Box<Self>, peer_public: &[u8]) -> Result<SharedSecret, Error> {
        let refused = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);
        let Ok(peer_public) = <[u8; 32]>::try_from(peer_public) else { return Err(refused) };
        let shared = self.secret.diffie_hellman(&PublicKey::from(peer_public));
        // RFC 8446 §7.4.2: an all-zero result must abort the handshake.
        if shared.was_contributory() {
            Ok(SharedSecret::from(shared.as_bytes().as_slice()))
        } else {
            Err(refused)
        }
    }

    fn pub_key(&self) -> &[u8] {
        self.public.as_bytes()
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

#[cfg(test)]
mod tests;

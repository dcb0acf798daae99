//! Who a server is: a certificate chain and its key.

use std::path::Path;

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::args::IdentityArgs;
use crate::failure::Failure;
use crate::tls::Fingerprint;

/// The names a self-signed certificate is good for.
const SELF_SIGNED_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A certificate chain, the server's own certificate first, and the key of that.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl Identity {
    /// What the command line asks for.
    pub(crate) fn from_args(args: &IdentityArgs) -> Result<Self, Failure> {
        match (&args.cert, &args.key) {
            (Some(cert), Some(key)) => Self::from_files(cert, key),
            _ => Self::self_signed(),
        }
    }

    /// A new ECDSA P-256 key and a certificate for this machine that nobody vouches for.
    pub(crate) fn self_signed() -> Result<Self, Failure> {
        let make = || {
            let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
            let mut params = CertificateParams::new(SELF_SIGNED_NAMES.map(str::to_owned))?;
            params.distinguished_name.push(DnType::CommonName, "fulmar self-signed");
            let certificate = params.self_signed(&key)?;
            Ok((certificate, key))
        };
        let (certificate, key) = make()
            .map_err(|error: rcgen::Error| Failure::Tls(format!("no certificate can be made: {error}")))?;
        Ok(Self {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        })
    }

    fn from_files(cert: &Path, key: &Path) -> Result<Self, Failure> {
        let unusable = |file: &Path, error| {
            Failure::Tls(format!("cannot read {}: {}", file.display(), in_words(&error)))
        };
        let chain: Vec<_> = CertificateDer::pem_file_iter(cert)
            .and_then(Iterator::collect)
            .map_err(|error| unusable(cert, error))?;
        if chain.is_empty() {
            return Err(Failure::Tls(format!("{} holds no certificate", cert.display())));
        }
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, error))?;
        Ok(Self { chain, key })
    }

    /// By what a client can know the server without a certificate authority.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.chain[0])
    }
}

fn in_words(error: &rustls::pki_types::pem::Error) -> String {
    match error {
        rustls::pki_types::pem::Error::Io(error) => error.to_string(),
        rustls::pki_types::pem::Error::NoItemsFound => "it holds nothing of the kind".to_owned(),
        error => error.to_string(),
    }
}

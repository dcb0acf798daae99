//! Who a server is: a certificate chain and its key.

use std::path::{Path, PathBuf};

use rcgen::{Certificate, CertificateParams, DnType, KeyPair};
use ring::rand::SecureRandom;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

use crate::args::IdentityArgs;
use crate::failure::Failure;
use crate::report::Output;
use crate::tls::kept::KeptFiles;
use crate::tls::{Fingerprint, provider};

/// The names a self-signed certificate is good for.
const SELF_SIGNED_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A certificate chain, the server's own certificate first, and the key of that.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    /// From which the keys of stateless resets are derived, if it is known again after a restart.
    pub(crate) reset_secret: Option<[u8; 32]>,
}

impl Identity {
    /// What the command line asks for. What cannot be kept is told, and is good for this time only.
    ///
    /// # Errors
    /// If the files of a certificate cannot be used.
    pub(crate) fn from_args(args: &IdentityArgs, output: Output) -> Result<Self, Failure> {
        let kept = KeptFiles::open(args.identity.as_deref());
        let mut identity = match (&args.cert, &args.key) {
            (Some(cert), Some(key)) => Self::from_files(cert, key)?,
            _ => {
                match kept.clone().and_then(|kept| Self::kept(&kept)) {
                    Ok(identity) => identity,
                    Err(why) => {
                        output.note(&format!("the certificate is not kept, so its fingerprint is good for this time only: {why}"));
                        Self::self_signed()?
                    }
                }
            }
        };
        match kept.and_then(|kept| kept.reset_secret(random_bytes)) {
            Ok(secret) => identity.reset_secret = Some(secret),
            // Without a certificate of the user it was told above, and nobody else has asked for it.
            Err(why) if args.cert.is_some() && args.identity.is_some() => {
                output.note(&format!("the secret of stateless resets is not kept: {why}"));
            }
            Err(_) => {}
        }
        Ok(identity)
    }

    /// A new ECDSA P-256 key and a certificate for this machine that nobody vouches for.
    pub(crate) fn self_signed() -> Result<Self, Failure> {
        let made = new_key().and_then(|key| Ok((certificate_of(&key)?, key)));
        let (certificate, key) = made.map_err(Failure::Tls)?;
        Ok(Self::of(certificate.der().clone(), &key))
    }

    /// The same, but the one that was made at an earlier time.
    fn kept(files: &KeptFiles) -> Result<Self, String> {
        let unusable = |path: PathBuf| {
            move |why: String| format!("{} cannot be used: {why} (remove it for a new one)", path.display())
        };
        let pem = files.key(|| Ok(new_key()?.serialize_pem()))?;
        let key = KeyPair::from_pem(&pem).map_err(|error| unusable(files.key_path())(error.to_string()))?;
        let pem = files.certificate(|| Ok(certificate_of(&key)?.pem()))?;
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| unusable(files.certificate_path())(in_words(&error)))?;
        let identity = Self::of(certificate, &key);
        // One of the two files may have been lost, and made anew.
        match identity.check() {
            Err(_) => Err(unusable(files.certificate_path())("it is not for the key beside it".to_owned())),
            Ok(()) => Ok(identity),
        }
    }

    fn of(certificate: CertificateDer<'static>, key: &KeyPair) -> Self {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Self { chain: vec![certificate], key, reset_secret: None }
    }

    /// A certificate chain and its key, PEM.
    pub(crate) fn from_files(cert: &Path, key: &Path) -> Result<Self, Failure> {
        let unusable =
            |file: &Path, why: String| Failure::Tls(format!("cannot use {}: {why}", file.display()));
        let chain: Vec<_> = CertificateDer::pem_file_iter(cert)
            .and_then(Iterator::collect)
            .map_err(|error| unusable(cert, in_words(&error)))?;
        if chain.is_empty() {
            return Err(unusable(cert, "it holds no certificate".to_owned()));
        }
        let private = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| unusable(key, encrypted(key).unwrap_or_else(|| in_words(&error))))?;
        let identity = Self { chain, key: private, reset_secret: None };
        match identity.check() {
            Err(rustls::Error::InconsistentKeys(_)) => Err(unusable(
                cert,
                format!(
                    "its first certificate, which must be that of the server, is not for the key in {}",
                    key.display()
                ),
            )),
            Err(error) => {
                Err(Failure::Tls(format!("cannot use {} with {}: {error}", cert.display(), key.display())))
            }
            Ok(()) => Ok(identity),
        }
    }

    /// Whether the key is usable, and that of the certificate.
    fn check(&self) -> Result<(), rustls::Error> {
        CertifiedKey::from_der(self.chain.clone(), self.key.clone_key(), &provider(None)).map(drop)
    }

    /// By what a client can know the server without a certificate authority.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.chain[0])
    }
}

fn new_key() -> Result<KeyPair, String> {
    KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)
        .map_err(|error| format!("no key can be made: {error}"))
}

fn certificate_of(key: &KeyPair) -> Result<Certificate, String> {
    let make = || {
        let mut params = CertificateParams::new(SELF_SIGNED_NAMES.map(str::to_owned))?;
        params.distinguished_name.push(DnType::CommonName, "fulmar self-signed");
        params.self_signed(key)
    };
    make().map_err(|error| format!("no certificate can be made: {error}"))
}

fn random_bytes() -> Result<[u8; 32], String> {
    let mut bytes = [0; 32];
    let filled = ring::rand::SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| "the operating system gives no random numbers".to_owned()).map(|()| bytes)
}

/// What to do with a key that only a passphrase opens, if that is what the file holds.
fn encrypted(key: &Path) -> Option<String> {
    let text = std::fs::read_to_string(key).ok()?;
    let is_encrypted =
        text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED");
    is_encrypted
        .then(|| "the key is encrypted (`openssl pkey -in FILE -out PLAIN` writes it without)".to_owned())
}

fn in_words(error: &rustls::pki_types::pem::Error) -> String {
    match error {
        rustls::pki_types::pem::Error::Io(error) => error.to_string(),
        rustls::pki_types::pem::Error::NoItemsFound => "it holds nothing of the kind".to_owned(),
        error => error.to_string(),
    }
}

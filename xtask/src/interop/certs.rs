//! Certificates for the cases, made anew for each run.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, CustomExtension, DnType, IsCa,
    KeyPair, PublicKeyData,
};

use crate::Result;

/// The names and addresses that the servers of the cases have.
const NAMES: [&str; 6] = ["localhost", "127.0.0.1", "::1", "server4", "server6", "server46"];
/// Length of the long chain, as the amplification case of the interop runner has it.
pub(crate) const LONG_CHAIN_LEN: usize = 9;
/// What a certificate of the long chain carries as ballast, so that the chain exceeds [`LONG_CHAIN_BYTES_MIN`].
const BALLAST_BYTES: usize = 600;
/// The encoded long chain is larger than this: more than twice what three full client Initials allow.
pub(crate) const LONG_CHAIN_BYTES_MIN: usize = 7500;
/// An enterprise number that nobody has; what a verifier does not know and is not critical, it ignores.
const BALLAST_OID: [u64; 9] = [1, 3, 6, 1, 4, 1, 99_999, 1, 1];

/// What a server shows: certificate chain and private key, as PEM files.
pub(crate) struct Identity {
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
    /// The public key of the first certificate (SubjectPublicKeyInfo, DER).
    pub(crate) public_key: Vec<u8>,
}

/// All certificates of a run.
pub(crate) struct Certificates {
    /// What clients trust.
    pub(crate) authority: PathBuf,
    /// One certificate, signed by the authority.
    pub(crate) short: Identity,
    /// [`LONG_CHAIN_LEN`] certificates, the last of them signed by the authority.
    pub(crate) long: Identity,
}

impl Certificates {
    /// Makes all keys and certificates and writes them to `dir`.
    pub(crate) fn create(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir)?;
        let authority =
            CertifiedIssuer::self_signed(authority_params("authority", 0)?, KeyPair::generate()?)?;
        let authority_file = dir.join("authority.pem");
        fs::write(&authority_file, authority.pem())?;

        let key = KeyPair::generate()?;
        let leaf = leaf_params(0)?.signed_by(&key, &authority)?;
        let short = write_identity(dir, "short", &leaf.pem(), &key)?;

        let key = KeyPair::generate()?;
        let chain = long_chain(&authority, &key)?;
        let chain: String = chain.iter().map(Certificate::pem).collect();
        let long = write_identity(dir, "long", &chain, &key)?;
        Ok(Self { authority: authority_file, short, long })
    }
}

/// A leaf for `key` and the intermediates up to, but not including, `authority`, leaf first.
fn long_chain(authority: &CertifiedIssuer<'static, KeyPair>, key: &KeyPair) -> Result<Vec<Certificate>> {
    let mut chain = Vec::with_capacity(LONG_CHAIN_LEN);
    let mut issuer: Option<CertifiedIssuer<'static, KeyPair>> = None;
    for depth in 1..LONG_CHAIN_LEN {
        let params = authority_params(&format!("intermediate {depth}"), BALLAST_BYTES)?;
        let above = issuer.as_ref().unwrap_or(authority);
        let intermediate = CertifiedIssuer::signed_by(params, KeyPair::generate()?, above)?;
        chain.push(Certificate::clone(intermediate.as_ref()));
        issuer = Some(intermediate);
    }
    chain.push(leaf_params(BALLAST_BYTES)?.signed_by(key, issuer.as_ref().unwrap_or(authority))?);
    chain.reverse();
    Ok(chain)
}

fn leaf_params(ballast_bytes: usize) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(NAMES.map(str::to_owned))?;
    params.distinguished_name.push(DnType::CommonName, "localhost");
    add_ballast(&mut params, ballast_bytes);
    Ok(params)
}

fn authority_params(name: &str, ballast_bytes: usize) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.distinguished_name.push(DnType::CommonName, format!("Fulmar interop {name}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    add_ballast(&mut params, ballast_bytes);
    Ok(params)
}

fn add_ballast(params: &mut CertificateParams, bytes: usize) {
    if bytes > 0 {
        params.custom_extensions.push(CustomExtension::from_oid_content(&BALLAST_OID, octet_string(bytes)));
    }
}

/// A DER OCTET STRING of `len` bytes, with the long form of the length.
fn octet_string(len: usize) -> Vec<u8> {
    let [high, low] = u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes();
    let mut der = vec![0x04, 0x82, high, low];
    der.resize(4 + len, 0x5a);
    der
}

fn write_identity(dir: &Path, name: &str, chain: &str, key: &KeyPair) -> Result<Identity> {
    let identity = Identity {
        chain: dir.join(format!("{name}.pem")),
        key: dir.join(format!("{name}.key")),
        public_key: key.subject_public_key_info(),
    };
    fs::write(&identity.chain, chain)?;
    fs::write(&identity.key, key.serialize_pem())?;
    Ok(identity)
}

#[cfg(test)]
mod tests;

//! Certificates and ciphers: who a server is, whom a client trusts.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::tls::Fingerprint;

/// How a server proves who it is.
#[derive(Debug, Args)]
#[command(next_help_heading = "Identity of the server")]
pub(crate) struct IdentityArgs {
    /// The certificate chain, PEM. Without it a self-signed certificate for localhost is made and kept
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,

    /// The private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,

    /// Where the self-signed certificate, its key and the secret of stateless resets are kept from one start to the next,
    /// so that a pinned fingerprint holds and clients of a server that was killed learn of it when it is back
    /// [default: $XDG_STATE_HOME/fulmar or ~/.local/state/fulmar]
    #[arg(long, value_name = "DIR")]
    pub(crate) identity: Option<PathBuf>,
}

/// Which certificates a client takes. Without an option: those the system trusts.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Trust and TLS")]
#[group(multiple = false)]
pub(crate) struct TrustArgs {
    /// Take any certificate: the connection is encrypted, but not proven to reach the right server
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,

    /// Trust the certificates in this file, PEM, instead of the system's: authorities, or that of the server itself
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,

    /// Take the one certificate with this SHA-256 fingerprint, as `fulmar serve` prints it
    #[arg(long, value_name = "FINGERPRINT")]
    pub(crate) pin: Option<Fingerprint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cipher {
    /// TLS_AES_128_GCM_SHA256
    Aes128,
    /// TLS_AES_256_GCM_SHA384
    Aes256,
    /// TLS_CHACHA20_POLY1305_SHA256
    Chacha20,
}

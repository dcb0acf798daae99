//! rustls providers with fewer cipher suites.

use rustls::crypto::CryptoProvider;

use super::aead::CipherSuite;

/// A copy of `provider` that offers only `suites`, in this order of preference.
///
/// A suite that `provider` does not have is left out; if none is left, building a configuration from the
/// result fails with rustls' own error.
pub fn restrict_suites(provider: &CryptoProvider, suites: &[CipherSuite]) -> CryptoProvider {
    let find = |wanted: &CipherSuite| {
        let offered = provider.cipher_suites.iter();
        offered.copied().find(|suite| CipherSuite::from_rustls(suite.suite()) == Some(*wanted))
    };
    CryptoProvider { cipher_suites: suites.iter().filter_map(find).collect(), ..provider.clone() }
}

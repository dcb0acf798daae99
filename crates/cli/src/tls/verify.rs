//! The ways to judge the certificate of a server, and a note of why one was refused.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};

use crate::tls::Fingerprint;
use crate::tls::x509::{Contents, public_key};

/// What became of the certificate of a server: why it was refused, if it was. The connection itself only knows that TLS failed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusal(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    certificate: Option<CertificateDer<'static>>,
    reason: Option<String>,
}

impl Refusal {
    /// The reason, in words.
    pub(crate) fn reason(&self) -> Option<String> {
        self.noted().reason.clone()
    }

    /// The certificate that was judged last.
    pub(crate) fn certificate(&self) -> Option<CertificateDer<'static>> {
        self.noted().certificate.clone()
    }

    fn note(&self, reason: String) {
        self.noted().reason = Some(reason);
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Judges like another verifier, takes a certificate that was itself given as trusted where that one has no rule for it or knows
/// nobody who vouches for it, and notes its refusals.
///
/// A certificate of `openssl req -x509` is of this kind: it vouches for itself and says that it is an authority (CA:TRUE), which
/// the certificate of a server must not be by the common rules; so is the server's own without that of its authority. Whoever
/// names exactly this one trusts it nevertheless; its name, its time and its purpose count as always.
#[derive(Debug)]
pub(crate) struct Recording {
    inner: Arc<dyn ServerCertVerifier>,
    given: Vec<CertificateDer<'static>>,
    refusal: Refusal,
}

impl Recording {
    pub(crate) fn new(
        inner: Arc<dyn ServerCertVerifier>,
        given: Vec<CertificateDer<'static>>,
        refusal: Refusal,
    ) -> Self {
        Self { inner, given, refusal }
    }

    fn record<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.inspect_err(|error| self.refusal.note(in_words(error)))
    }
}

impl ServerCertVerifier for Recording {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.refusal.noted().certificate = Some(end_entity.clone().into_owned());
        let verdict =
            self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        self.record(match verdict {
            // rustls has a name for each of the common faults, and `Other` for what is none of them.
            // A signature is wrong where the issuer has the same name: then it was checked by the certificate's own key.
            Err(Error::InvalidCertificate(
                CertificateError::Other(_) | CertificateError::UnknownIssuer | CertificateError::BadSignature,
            )) if self.given.contains(end_entity) => verify_itself(end_entity, server_name, now),
            verdict => verdict,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.record(self.inner.verify_tls12_signature(message, cert, dss))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.record(self.inner.verify_tls13_signature(message, cert, dss))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// What is left to check of a certificate that needs nobody to vouch for it.
fn verify_itself(
    certificate: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, Error> {
    let contents = Contents::of(certificate).ok_or(CertificateError::BadEncoding)?;
    if contents.is_too_early(now) {
        return Err(CertificateError::NotValidYet.into());
    }
    if contents.is_too_late(now) {
        return Err(CertificateError::Expired.into());
    }
    if !contents.is_for_servers {
        return Err(CertificateError::InvalidPurpose.into());
    }
    verify_server_name(&ParsedCertificate::try_from(certificate)?, server_name)?;
    Ok(ServerCertVerified::assertion())
}

/// Judges without certificate authorities: takes the one certificate with a given fingerprint, or any.
///
/// The signature of the handshake is checked in both cases: it proves that the server has the key of its
/// certificate, without which that is just a copy of somebody's.
#[derive(Debug)]
pub(crate) struct Unvouched {
    pin: Option<Fingerprint>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Unvouched {
    /// Takes the certificate with this fingerprint, whatever it says.
    pub(crate) fn pinned(pin: Fingerprint, provider: &CryptoProvider) -> Self {
        Self { pin: Some(pin), algorithms: provider.signature_verification_algorithms }
    }

    /// Takes any certificate.
    pub(crate) fn anyone(provider: &CryptoProvider) -> Self {
        Self { pin: None, algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for Unvouched {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = Fingerprint::of(end_entity);
        match self.pin {
            Some(pin) if pin != found => {
                Err(Error::General(format!("its fingerprint is {found}, not the pinned one")))
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // The key is all that counts of it: the certificate may be of a form that has no names to be checked.
        let key = public_key(cert).ok_or(CertificateError::BadEncoding)?;
        verify_tls13_signature_with_raw_key(message, &key, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// The reason of a refusal, for the user.
fn in_words(error: &Error) -> String {
    match error {
        Error::General(reason) => reason.clone(),
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "nobody trusted vouches for it (--ca names an authority to trust, --pin a certificate)".to_owned()
        }
        Error::InvalidCertificate(CertificateError::InvalidPurpose) => {
            "its purpose is not that of a server (extended key usage)".to_owned()
        }
        // rustls has no name for this fault, only what it says of it.
        Error::InvalidCertificate(CertificateError::Other(OtherError(why)))
            if why.to_string() == "UnsupportedCertVersion" =>
        {
            "it is of X.509 version 1, which names no server (--pin takes it by its fingerprint)".to_owned()
        }
        Error::InvalidCertificate(CertificateError::Other(OtherError(why)))
            if why.to_string() == "CaUsedAsEndEntity" =>
        {
            "it is that of an authority and not of a server (--ca with this certificate or --pin take it)"
                .to_owned()
        }
        Error::InvalidCertificate(CertificateError::BadSignature) => "its signature is wrong".to_owned(),
        Error::InvalidCertificate(error) => error.to_string(),
        error => error.to_string(),
    }
}

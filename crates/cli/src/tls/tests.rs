use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, ServerName, UnixTime};

use super::*;

const DIGITS: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn trust(pin: Option<Fingerprint>, ca: Option<std::path::PathBuf>) -> TrustArgs {
    TrustArgs { insecure: false, ca, pin }
}

fn judge(trust: &TrustArgs, identity: &Identity, name: &'static str) -> Result<(), String> {
    let refusal = Refusal::default();
    let (verifier, given) = verifier(trust, &provider(None)).expect("a verifier");
    let verifier = verify::Recording::new(verifier, given, refusal.clone());
    let name = ServerName::try_from(name).expect("a name");
    let verdict = verifier.verify_server_cert(&identity.chain[0], &[], &name, &[], UnixTime::now());
    match verdict {
        Ok(_) => Ok(()),
        Err(_) => Err(refusal.reason().expect("a refusal has a reason")),
    }
}

#[test]
fn a_fingerprint_is_the_sha256_of_the_certificate() {
    // The digest of "test", as `printf test | sha256sum` gives it.
    let fingerprint = Fingerprint::of(&CertificateDer::from(b"test".to_vec()));
    assert_eq!(fingerprint.to_string(), format!("sha256:{DIGITS}"));
}

#[test]
fn fingerprints_are_read_in_all_usual_forms() {
    let fingerprint: Fingerprint = format!("sha256:{DIGITS}").parse().expect("the printed form");
    assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
    assert_eq!(DIGITS.to_uppercase().parse(), Ok(fingerprint));
    let pairs: Vec<&str> = (0..32).map(|index| &DIGITS[2 * index..2 * index + 2]).collect();
    assert_eq!(format!("SHA256:{}", pairs.join(":")).parse(), Ok(fingerprint));
}

#[test]
fn what_is_no_fingerprint_is_refused() {
    let long = format!("{DIGITS}00");
    let foreign = DIGITS.replace('9', "ä");
    for text in ["", "sha256:", &DIGITS[2..], &long, &foreign, &DIGITS.replace('f', "g")] {
        assert!(text.parse::<Fingerprint>().is_err(), "{text}");
    }
}

#[test]
fn only_the_pinned_certificate_is_taken() {
    let (ours, other) = (Identity::self_signed().expect("one"), Identity::self_signed().expect("another"));
    let trust = trust(Some(ours.fingerprint()), None);
    assert_eq!(judge(&trust, &ours, "localhost"), Ok(()));
    let why = judge(&trust, &other, "localhost").expect_err("another certificate");
    assert!(why.contains(&other.fingerprint().to_string()), "{why}");
}

#[test]
fn a_self_signed_certificate_is_good_for_this_machine_if_trusted() {
    let identity = Identity::self_signed().expect("an identity");
    let mut roots = RootCertStore::empty();
    roots.add(identity.chain[0].clone()).expect("a root");
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider(None))
        .build()
        .expect("a verifier");
    for (name, good) in [("localhost", true), ("127.0.0.1", true), ("::1", true), ("example.org", false)] {
        let name = ServerName::try_from(name).expect("a name");
        let verdict = verifier.verify_server_cert(&identity.chain[0], &[], &name, &[], UnixTime::now());
        assert_eq!(verdict.is_ok(), good, "{name:?}: {verdict:?}");
    }
}

/// A certificate as `openssl req -x509` makes it: self-signed, for a server, and an authority.
fn authority_for_localhost(change: impl Fn(&mut CertificateParams)) -> rcgen::CertifiedKey<KeyPair> {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    change(&mut params);
    let signing_key = KeyPair::generate().expect("a key");
    rcgen::CertifiedKey { cert: params.self_signed(&signing_key).expect("a certificate"), signing_key }
}

#[test]
fn a_self_signed_authority_that_was_given_may_be_the_server_itself() {
    let dir = crate::test_dir::TestDir::new("tls-authority");
    let file = dir.path().join("ca.pem");
    let check = |given: &rcgen::CertifiedKey<KeyPair>, shown: &rcgen::CertifiedKey<KeyPair>, name| {
        std::fs::write(&file, given.cert.pem()).expect("written");
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(shown.signing_key.serialize_der());
        let identity =
            Identity { chain: vec![shown.cert.der().clone()], key: key.into(), reset_secret: None };
        judge(&trust(None, Some(file.clone())), &identity, name)
    };
    let ours = authority_for_localhost(|_| {});
    assert_eq!(check(&ours, &ours, "localhost"), Ok(()));
    let wrong_name = check(&ours, &ours, "example.org").expect_err("another name");
    assert!(wrong_name.contains("example.org"), "{wrong_name}");
    let other = authority_for_localhost(|_| {});
    let not_given =
        check(&other, &ours, "localhost").expect_err("another certificate of the same names was given");
    assert!(not_given.contains("authority") && not_given.contains("--pin"), "{not_given}");
    let (past, future) = (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(4000, 1, 1));
    let expired = authority_for_localhost(|params| params.not_after = past);
    let early = authority_for_localhost(|params| params.not_before = future);
    let for_clients = authority_for_localhost(|params| {
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    });
    for (certificate, why) in [(expired, "expired"), (early, "not valid yet"), (for_clients, "purpose")] {
        let refusal = check(&certificate, &certificate, "localhost").expect_err(why);
        assert!(refusal.contains(why), "{why}: {refusal}");
    }
}

/// As `openssl x509 -req -signkey` makes it: of X.509 version 1, which has no extensions and so no names of servers.
const VERSION_1: &str = "\
-----BEGIN CERTIFICATE-----
MIIBJTCBywIUWxKxVZrCq8xzCFbGuEo02LswIGQwCgYIKoZIzj0EAwIwFDESMBAG
A1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMjIxMDEwNVoYDzIxMjYxMDI5MjEwMTA1
WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAQPpHYIEwPcZbxmPzu34KWiDONGXM+SMrtNxcaoxE4wCIimnzeJ5c1W5v0ZOlMD
M+xVRbf9FYU2fAesdqjFxl32MAoGCCqGSM49BAMCA0kAMEYCIQDDS6N/mPX7FdLB
msZpfygk4NLieoOGut6rVxhvT6koMwIhAP+lB1b/YnLRmIhSNJ8KZZvMgOgSVmgW
/6YObwTA1N1G
-----END CERTIFICATE-----
";
const KEY_OF_VERSION_1: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgnurLW0gUT2wMZBQU
lMS9BXLw1bwAKogrNfSDMndBNTihRANCAAQPpHYIEwPcZbxmPzu34KWiDONGXM+S
MrtNxcaoxE4wCIimnzeJ5c1W5v0ZOlMDM+xVRbf9FYU2fAesdqjFxl32
-----END PRIVATE KEY-----
";

/// Lets a client that trusts like this meet a server with a certificate of version 1, over no network.
fn meet_version_1(trust: &TrustArgs) -> Result<(), String> {
    let certificate = CertificateDer::from_pem_slice(VERSION_1.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(KEY_OF_VERSION_1.as_bytes()).expect("a key");
    let key = provider(None).key_provider.load_private_key(key).expect("a usable key");
    let certified = rustls::sign::CertifiedKey::new(vec![certificate], key);
    let server = rustls::ServerConfig::builder_with_provider(provider(None))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(certified)));
    let mut server = rustls::ServerConnection::new(Arc::new(server)).expect("a server");
    let (client, refusal) = client_config(trust, None, "hq-interop").expect("a configuration");
    let name = ServerName::try_from("localhost").expect("a name");
    let mut client = rustls::ClientConnection::new(client, name).expect("a client");
    while client.is_handshaking() {
        let mut flight = Vec::new();
        client.write_tls(&mut flight).expect("in memory");
        server.read_tls(&mut flight.as_slice()).expect("in memory");
        server.process_new_packets().expect("a client that agrees");
        let mut answer = Vec::new();
        server.write_tls(&mut answer).expect("in memory");
        client.read_tls(&mut answer.as_slice()).expect("in memory");
        client.process_new_packets().map_err(|_| refusal.reason().expect("a refusal has a reason"))?;
    }
    Ok(())
}

#[test]
fn an_old_certificate_is_taken_if_its_names_do_not_count() {
    let pin = Fingerprint::of(&CertificateDer::from_pem_slice(VERSION_1.as_bytes()).expect("a certificate"));
    assert_eq!(meet_version_1(&trust(Some(pin), None)), Ok(()));
    assert_eq!(meet_version_1(&TrustArgs { insecure: true, ..trust(None, None) }), Ok(()));
    let dir = crate::test_dir::TestDir::new("tls-version-1");
    let file = dir.path().join("ca.pem");
    std::fs::write(&file, VERSION_1).expect("written");
    let why = meet_version_1(&trust(None, Some(file))).expect_err("it has no name of a server");
    assert!(why.contains("version 1") && why.contains("--pin"), "{why}");
}

#[test]
fn a_missing_ca_file_is_one_sentence() {
    let trust = trust(None, Some("/nonexistent/ca.pem".into()));
    let failure = client_config(&trust, None, "hq-interop").expect_err("no such file");
    let sentence = failure.to_string();
    assert!(sentence.contains("/nonexistent/ca.pem") && !sentence.contains('\n'), "{sentence}");
}

#[test]
fn a_single_cipher_suite_can_be_offered() {
    let suites = provider(Some(Cipher::Chacha20)).cipher_suites.clone();
    assert_eq!(suites.len(), 1);
    assert_eq!(suites[0].suite(), rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    assert!(provider(None).cipher_suites.len() >= 3);
}

//! By what clients know a server, also after a restart.

use std::fs;
use std::process::Stdio;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::run::{Server, finish, fulmar};
use crate::test_dir::TestDir;

#[test]
fn a_pin_holds_over_restarts_of_the_server() {
    let (www, out, kept) = (TestDir::new("pin-www"), TestDir::new("pin-out"), TestDir::new("pin-identity"));
    fs::write(www.path().join("a"), "a file").expect("a file");
    let kept_in = kept.path().to_str().expect("a path");
    let first = Server::serve(www.path(), &["--identity", kept_in]);
    let pin = first.fingerprint.clone();
    first.crash();
    let second = Server::serve(www.path(), &["--identity", kept_in]);
    let out_dir = out.path().to_str().expect("a path");
    finish(fulmar(&["get", "--hq", "-q", "--pin", &pin, "-o", out_dir, &second.url("/a")])).succeeded();
    assert_eq!(kept.names(), ["cert.pem", "key.pem", "reset.key"]);
    // The certificate can be trusted by its file as well.
    let url = format!("https://localhost:{}/a", second.address.port());
    let cert = kept.path().join("cert.pem");
    finish(fulmar(&["get", "--hq", "-q", "--ca", cert.to_str().expect("a path"), "-o", out_dir, &url]))
        .succeeded();
}

#[test]
fn the_identity_is_in_the_state_directory_of_the_user() {
    let (www, state) = (TestDir::new("state-www"), TestDir::new("state-dir"));
    let start = || {
        let mut command = fulmar(&["serve", www.path().to_str().expect("a path"), "--json"]);
        command.env("XDG_STATE_HOME", state.path());
        Server::start(command).fingerprint.clone()
    };
    assert_eq!(start(), start());
    let home = TestDir::new("state-home");
    let mut command = fulmar(&["perf", "server", "--json"]);
    command.env_remove("XDG_STATE_HOME").env("HOME", home.path());
    drop(Server::start(command));
    assert!(home.path().join(".local/state/fulmar/key.pem").is_file());
}

#[test]
fn a_server_that_can_keep_nothing_says_so_and_runs() {
    let (www, out) = (TestDir::new("unkept-www"), TestDir::new("unkept-out"));
    fs::write(www.path().join("a"), "a file").expect("a file");
    let told = out.path().join("stderr");
    let blocked = www.path().join("a/state");
    let mut command = fulmar(&["serve", www.path().to_str().expect("a path"), "--json"]);
    command.args(["--identity", blocked.to_str().expect("a path")]);
    command.stderr(Stdio::from(fs::File::create(&told).expect("a file")));
    let server = Server::start(command);
    let out_dir = out.path().to_str().expect("a path");
    finish(fulmar(&["get", "--hq", "-q", "--pin", &server.fingerprint, "-o", out_dir, &server.url("/a")]))
        .succeeded();
    let told = fs::read_to_string(told).expect("a sentence");
    assert!(told.starts_with("fulmar: the certificate is not kept") && told.lines().count() == 1, "{told}");
}

/// The key of a server, its certificate, and that of the authority which has signed it.
struct Signed {
    dir: TestDir,
}

impl Signed {
    fn new(name: &str) -> Self {
        let dir = TestDir::new(name);
        let (ca_key, key) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
        let mut params = CertificateParams::new([]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = params.self_signed(&ca_key).expect("a certificate");
        let issuer = Issuer::new(params, ca_key);
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
        let cert = params.signed_by(&key, &issuer).expect("a certificate");
        for (file, pem) in [("ca.pem", ca.pem()), ("cert.pem", cert.pem()), ("key.pem", key.serialize_pem())]
        {
            fs::write(dir.path().join(file), pem).expect("a file");
        }
        fs::write(dir.path().join("wrong.pem"), ca.pem() + &cert.pem()).expect("a file");
        fs::write(dir.path().join("a"), "a file").expect("a file");
        Self { dir }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().expect("a path").to_owned()
    }
}

#[test]
fn a_server_is_trusted_by_its_authority_or_its_own_certificate() {
    let ours = Signed::new("signed");
    let (cert, key) = (ours.path("cert.pem"), ours.path("key.pem"));
    let server = Server::serve(ours.dir.path(), &["--cert", &cert, "--key", &key]);
    let get = |ca: &str, url: &str| finish(fulmar(&["get", "-q", "--ca", ca, "-o", "-", url]));
    for ca in ["ca.pem", "cert.pem"] {
        assert_eq!(get(&ours.path(ca), &server.url("/a")).succeeded().stdout(), "a file");
    }
    let another = Signed::new("signed-another");
    for stranger in ["ca.pem", "cert.pem"] {
        let refused = get(&another.path(stranger), &server.url("/a")).stderr();
        assert!(
            refused.contains("was refused: its signature is wrong"),
            "an authority of the same name: {refused}"
        );
    }
    let renamed = format!("https://localhost:{}/a", server.address.port());
    let refused = get(&ours.path("cert.pem"), &renamed).stderr();
    assert!(refused.contains("localhost") && !refused.contains("vouches"), "{refused}");
}

#[test]
fn a_certificate_and_a_key_that_do_not_fit_are_named() {
    let (ours, another) = (Signed::new("misfit"), Signed::new("misfit-another"));
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    fs::write(ours.dir.path().join("encrypted.pem"), encrypted).expect("a file");
    let told = |cert: &str, key: &str| {
        let www = ours.dir.path().to_str().expect("a path");
        finish(fulmar(&["serve", www, "--listen", "127.0.0.1:0", "--cert", cert, "--key", key]))
    };
    let (cert, key) = (ours.path("cert.pem"), ours.path("key.pem"));
    for (cert, key, words) in [
        (&cert, &another.path("key.pem"), "is not for the key in"),
        (&ours.path("wrong.pem"), &key, "its first certificate, which must be that of the server"),
        (&key, &key, "it holds no certificate"),
        (&cert, &cert, "it holds nothing of the kind"),
        (&cert, &ours.path("encrypted.pem"), "the key is encrypted"),
    ] {
        told(cert, key).failed(1, &[words]);
    }
}

#[test]
fn a_kept_certificate_without_its_key_is_told() {
    let (www, kept) = (TestDir::new("keyless-www"), TestDir::new("keyless-identity"));
    let start = |told: Stdio| {
        let mut command = fulmar(&["serve", www.path().to_str().expect("a path"), "--json"]);
        command.args(["--identity", kept.path().to_str().expect("a path")]).stderr(told);
        Server::start(command).fingerprint.clone()
    };
    let first = start(Stdio::inherit());
    fs::remove_file(kept.path().join("key.pem")).expect("it was kept");
    let stderr = www.path().join("stderr");
    let second = start(Stdio::from(fs::File::create(&stderr).expect("a file")));
    assert_ne!(first, second, "without its key the old certificate proves nothing");
    let told = fs::read_to_string(stderr).expect("a sentence");
    assert!(told.contains("cert.pem cannot be used: it is not for the key beside it"), "{told}");
}

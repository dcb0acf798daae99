//! A server of HTTP/1.1 that answers as no good server does.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::run::fulmar;
use crate::test_dir::TestDir;

/// What is sent, as it is.
pub(crate) struct Answer {
    pub(crate) bytes: Vec<u8>,
    /// Whether the connection ends with it.
    pub(crate) ends: bool,
}

impl Answer {
    pub(crate) fn whole(text: &str) -> Self {
        Self { bytes: text.as_bytes().to_vec(), ends: false }
    }

    /// The same, and then the connection is over.
    pub(crate) fn cut(text: &str) -> Self {
        Self { ends: true, ..Self::whole(text) }
    }
}

/// Such a server, which lives as long as the tests.
pub(crate) struct Odd {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    peers: Arc<Mutex<Vec<IpAddr>>>,
}

impl Odd {
    /// `answer` is given the head of each request.
    pub(crate) fn start(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .expect("a server");
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let (tls, answer) = (Arc::new(tls), Arc::new(answer));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let peers = Arc::<Mutex<Vec<IpAddr>>>::default();
        let (told, seen) = (heads.clone(), peers.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                seen.lock().expect("no panic").extend(stream.peer_addr().map(|peer| peer.ip()));
                let (tls, answer, told) = (tls.clone(), answer.clone(), told.clone());
                std::thread::spawn(move || {
                    let session = ServerConnection::new(tls).expect("a session");
                    serve(StreamOwned::new(session, stream), &*answer, &told)
                });
            }
        });
        Self { address, heads, peers }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// `get` to a directory.
    pub(crate) fn get(&self, out: &TestDir, arguments: &[&str], path: &str) -> Command {
        let mut command = fulmar(&["get", "--insecure", "-q", "-o", out.path().to_str().expect("a path")]);
        command.args(arguments).arg(self.url(path));
        command
    }

    /// From where connections have come.
    pub(crate) fn peers(&self) -> Vec<IpAddr> {
        self.peers.lock().expect("no panic").clone()
    }

    /// The heads of the requests that have come.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic").clone()
    }
}

/// Answers requests without a body until one end has enough.
fn serve(
    mut stream: StreamOwned<ServerConnection, TcpStream>,
    answer: &(impl Fn(&str) -> Answer + ?Sized),
    told: &Mutex<Vec<String>>,
) {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            match stream.read(&mut byte) {
                Ok(1) => head.push(byte[0]),
                _ => return,
            }
        }
        let head = String::from_utf8(head).expect("text");
        told.lock().expect("no panic").push(head.clone());
        let Answer { bytes, ends } = answer(&head);
        if stream.write_all(&bytes).and_then(|()| stream.flush()).is_err() {
            return;
        }
        if ends {
            stream.conn.send_close_notify();
            let _ = stream.flush();
            return;
        }
    }
}

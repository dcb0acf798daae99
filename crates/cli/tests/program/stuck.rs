//! Servers that answer, but send nothing more of what they were asked for.

use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use fulmar::{Connection, Endpoint, tls};
use rustls::pki_types::PrivatePkcs8KeyDer;

use crate::run::{content, finish, fulmar};
use crate::test_dir::TestDir;

const LEN: usize = 1_000_000;

/// Starts a server that sends a tenth of each file and no more over the first `stuck` connections, all over the others; its address
/// and the number of connections that it has had.
fn start(stuck: usize) -> (SocketAddr, Arc<AtomicUsize>) {
    let (tell, told) = mpsc::channel();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let made =
                rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
            let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
            let config = tls::server_config(vec![made.cert.der().clone()], key.into(), &[b"hq-interop"]);
            let address = SocketAddr::from(([127, 0, 0, 1], 0));
            let server = Endpoint::server(config.expect("a configuration"), address).expect("a socket");
            tell.send(server.local_addr().expect("an address")).expect("the test waits");
            while let Some(incoming) = server.accept().await {
                let len = if counter.fetch_add(1, Ordering::Relaxed) < stuck { LEN / 10 } else { LEN };
                tokio::spawn(async move { serve(incoming.await.expect("a handshake"), len).await });
            }
        });
    });
    (told.recv().expect("a server"), count)
}

/// Answers each request with the beginning of the file.
async fn serve(connection: Connection, len: usize) {
    let mut open = Vec::new();
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        let _ = recv.read_to_end(1_000).await;
        let _ = send.write_all(&content(LEN, 1)[..len]).await;
        if len == LEN {
            let _ = send.finish();
        }
        open.push(send);
    }
}

#[test]
fn what_a_connection_does_not_bring_is_fetched_over_another_one() {
    let (server, connections) = start(1);
    let out = TestDir::new("stuck");
    let urls = ["a", "b"].map(|name| format!("https://{server}/{name}"));
    let mut get = fulmar(&["get", "--hq", "--insecure", "-o", out.path().to_str().expect("a path")]);
    get.args(&urls);
    let finished = finish(get);
    assert_eq!(connections.load(Ordering::Relaxed), 2, "{}", finished.stderr());
    assert!(finished.stderr().contains("another connection"), "{}", finished.stderr());
    for name in ["a", "b"] {
        assert_eq!(fs::read(out.path().join(name)).expect("the file"), content(LEN, 1));
    }
    assert_eq!(out.names().len(), 2, "nothing is left of the first attempt: {:?}", out.names());
}

//! An axum app over HTTP/3: `cargo run -p fulmar-h3 --example server`.
//!
//! The certificate is made up on the spot; its authority is written to `fulmar-h3.pem` in the directory for temporary files, for
//! the example `client`.

use std::error::Error;
use std::net::Ipv4Addr;

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post};
use fulmar::{Endpoint, tls};
use fulmar_h3::{ALPN, Server};
use rustls::pki_types::PrivatePkcs8KeyDer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    std::fs::write(std::env::temp_dir().join("fulmar-h3.pem"), made.cert.pem())?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let tls = tls::server_config(vec![made.cert.der().clone()], key.into(), &[ALPN])?;
    let endpoint = Endpoint::server(tls, (Ipv4Addr::LOCALHOST, 4433).into())?;
    println!("https://localhost:{}/", endpoint.local_addr()?.port());

    let app = Router::new()
        .route("/", get(|| async { "hello by HTTP/3\n" }))
        .route("/hello/{name}", get(|Path(name): Path<String>| async move { format!("hello, {name}\n") }))
        .route("/echo", post(|body: axum::body::Body| async move { body }));
    Server::new(endpoint).serve(app).await;
    Ok(())
}

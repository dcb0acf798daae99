//! Gets a URI by HTTP/3: `cargo run -p fulmar-h3 --example client https://localhost:4433/`, with the example `server` running.

use std::error::Error;
use std::io::Write;

use fulmar_h3::Client;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let uri = std::env::args().nth(1).unwrap_or_else(|| "https://localhost:4433/".to_owned());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(std::env::temp_dir().join("fulmar-h3.pem"))?)?;

    let client = Client::with_roots(roots)?;
    let mut response = client.get(uri).await?;
    println!("{} {:#?}", response.status(), response.headers());
    while let Some(data) = response.body_mut().data().await? {
        std::io::stdout().write_all(&data)?;
    }
    client.close().await;
    Ok(())
}

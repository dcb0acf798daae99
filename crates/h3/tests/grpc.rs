//! gRPC as `tonic` has it, over HTTP/3.

use std::net::Ipv4Addr;

use fulmar::{Endpoint, tls};
use fulmar_h3::{ALPN, Client, Server};
use http::Uri;
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tonic::Code;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::server::{HealthReporter, health_reporter};

/// The service of tonic that tells which services are there, and a client of it.
async fn start() -> (HealthReporter, HealthClient<Client>) {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let cert = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut roots = RootCertStore::empty();
    roots.add(cert.clone()).unwrap();
    let tls = tls::server_config(vec![cert], key.into(), &[ALPN]).unwrap();
    let endpoint = Endpoint::server(tls, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let origin: Uri = format!("https://{}", endpoint.local_addr().unwrap()).parse().unwrap();

    let (reporter, health) = health_reporter();
    let app = Routes::new(health).into_axum_router();
    tokio::spawn(async move { Server::new(endpoint).serve(app).await });
    let client = Client::builder().roots(roots).http3_only(true).build().unwrap();
    (reporter, HealthClient::with_origin(client, origin))
}

fn about(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

#[tokio::test]
async fn a_call_has_an_answer_or_a_status() {
    let (reporter, mut client) = start().await;
    reporter.set_service_status("greeter", ServingStatus::Serving).await;
    let answer = client.check(about("greeter")).await.unwrap().into_inner();
    assert_eq!(answer.status, ServingStatus::Serving as i32);
    let error = client.check(about("nobody")).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
}

#[tokio::test]
async fn a_stream_of_answers_comes_as_they_are_made() {
    let (reporter, mut client) = start().await;
    reporter.set_service_status("greeter", ServingStatus::Serving).await;
    let mut answers = client.watch(about("greeter")).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().expect("an answer");
    assert_eq!(answer.status, ServingStatus::Serving as i32);
    for status in [ServingStatus::NotServing, ServingStatus::Serving] {
        reporter.set_service_status("greeter", status).await;
        let answer = answers.message().await.unwrap().expect("an answer");
        assert_eq!(answer.status, status as i32);
    }
}

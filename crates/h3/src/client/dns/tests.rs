use std::future::pending;
use std::net::Ipv4Addr;

use tokio::time::{Instant, sleep};

use super::*;

fn at(last: u8) -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, last), 443).into()
}

fn http3_at(last: u8) -> Vec<Located> {
    vec![Located { addresses: vec![at(last)], at_own: None, has_http3: true, has_tcp: true }]
}

fn no_address() -> Result<Vec<SocketAddr>, Error> {
    Err(Error::Resolve(std::io::ErrorKind::NotFound.into()))
}

/// The value after so many milliseconds.
async fn after<T>(millis: u64, value: T) -> T {
    sleep(Duration::from_millis(millis)).await;
    value
}

async fn timed<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let start = Instant::now();
    (future.await, start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_name_server_that_is_silent_puts_a_request_off_by_a_moment() {
    let (found, took) = timed(join(after(30, Ok(vec![at(1)])), pending())).await;
    assert_eq!(found.unwrap().quic, [at(1)]);
    assert_eq!(took, Duration::from_millis(80));
}

#[tokio::test(start_paused = true)]
async fn records_that_come_a_little_later_count() {
    let (found, took) = timed(join(after(30, Ok(vec![at(1)])), after(70, http3_at(9)))).await;
    assert_eq!(found.unwrap().quic, [at(9), at(1)]);
    assert_eq!(took, Duration::from_millis(70));
}

#[tokio::test(start_paused = true)]
async fn records_with_addresses_do_not_wait_for_others_for_long() {
    let (found, took) = timed(join(pending(), after(20, http3_at(9)))).await;
    assert_eq!(found.unwrap().quic, [at(9)]);
    assert_eq!(took, Duration::from_millis(70));
}

#[tokio::test(start_paused = true)]
async fn without_records_nothing_is_waited_for_but_the_addresses() {
    let (found, took) = timed(join(after(400, Ok(vec![at(1)])), after(5, Vec::new()))).await;
    assert_eq!(found.unwrap(), Found { quic: vec![at(1)], tcp: vec![at(1)] });
    assert_eq!(took, Duration::from_millis(400));
}

#[tokio::test(start_paused = true)]
async fn a_name_without_addresses_may_have_a_record_that_leads_to_some() {
    let (found, took) = timed(join(after(10, no_address()), after(600, http3_at(9)))).await;
    assert_eq!(found.unwrap().tcp, [at(9)]);
    assert_eq!(took, Duration::from_millis(600));
    let (found, took) = timed(join(after(10, no_address()), pending())).await;
    assert!(matches!(found, Err(Error::Resolve(_))));
    assert_eq!(took, Duration::from_millis(1_010));
}

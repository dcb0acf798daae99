use std::net::{IpAddr, Ipv4Addr};

use fulmar_base::Instant;
use rustls::NamedGroup;
use rustls::client::ClientSessionStore;
use rustls::pki_types::ServerName;

use super::*;
use crate::congestion::SAVED_PATH_LIFETIME;

fn key(name: &str) -> ServerKey {
    ServerKey { name: name.to_owned(), port: 443 }
}

fn view(store: &Arc<SessionStore>, name: &str) -> Arc<SessionView> {
    let epoch = Duration::from_secs(1_700_000_000);
    SessionView::new(store.clone(), key(name), epoch, Version::V1)
}

fn path() -> SavedPath {
    SavedPath {
        remote: IpAddr::V4(Ipv4Addr::LOCALHOST),
        local: None,
        window: 1_000_000,
        full: true,
        rtt: Duration::from_millis(600),
        lifetime: SAVED_PATH_LIFETIME,
    }
}

#[test]
fn a_path_is_remembered_for_one_connection_as_long_as_it_is_good() {
    let store = SessionStore::new(10);
    let at = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
    view(&store, "a").keep_path(at(100), path());
    assert_eq!(view(&store, "b").take_path(at(100)), None);
    let taken = view(&store, "a").take_path(at(700)).unwrap();
    assert_eq!(taken, path().aged(Duration::from_secs(600)).unwrap());
    assert_eq!(view(&store, "a").take_path(at(700)), None);
    view(&store, "a").keep_path(at(100), path());
    assert_eq!(view(&store, "a").take_path(at(100) + SAVED_PATH_LIFETIME), None);
}

#[test]
fn a_round_trip_time_alone_does_not_displace_what_a_path_carries() {
    let store = SessionStore::new(10);
    let view = view(&store, "a");
    let at = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
    let rtt_alone = SavedPath { window: 0, full: false, ..path() };
    view.keep_path(at(100), rtt_alone.clone());
    view.keep_path(at(100), path());
    view.keep_path(at(100), rtt_alone.clone());
    assert_eq!(view.take_path(at(100)).unwrap().window, path().window);

    // What it carried an hour ago is of no use, and later figures of it are better.
    view.keep_path(at(100), path());
    view.keep_path(at(100) + SAVED_PATH_LIFETIME, rtt_alone.clone());
    assert_eq!(view.take_path(at(100) + SAVED_PATH_LIFETIME), Some(rtt_alone));
    view.keep_path(at(100), path());
    view.keep_path(at(200), SavedPath { window: 5, ..path() });
    assert_eq!(view.take_path(at(200)).unwrap().window, 5);
}

#[test]
fn a_token_is_used_once_the_newest_first_and_only_with_its_version() {
    let store = SessionStore::new(10);
    let view = view(&store, "a");
    assert_eq!(view.take_token(), None);
    for token in 0..6_u8 {
        view.add_token(&[token; 20]);
        view.add_token(&[token; 20]);
    }
    view.add_token(&[9; TOKEN_LEN_MAX + 1]);
    view.set_version(Version::V2);
    assert_eq!(view.take_token(), None);
    view.set_version(Version::V1);
    let taken: Vec<u8> = std::iter::from_fn(|| view.take_token()).map(|token| token[0]).collect();
    assert_eq!(taken, [5, 4, 3, 2], "four are kept");
}

#[test]
fn the_least_recently_used_server_is_forgotten_first() {
    let store = SessionStore::new(3);
    for name in ["a", "b", "c", "a", "d"] {
        view(&store, name).add_token(name.as_bytes());
    }
    assert_eq!(store.len(), 3);
    let known = |name: &str| view(&store, name).take_token().is_some();
    assert_eq!(["a", "b", "c", "d"].map(known), [true, false, true, true]);
}

#[test]
fn what_outlives_the_process_is_read_as_it_was_written() {
    let store = SessionStore::new(10);
    view(&store, "a").add_token(b"token");
    view(&store, "b").keep_path(Instant::ZERO, path());
    let bytes = store.to_bytes();
    let read = SessionStore::new(10);
    read.add_bytes(&bytes).unwrap();
    assert_eq!(read.to_bytes(), bytes);
    assert_eq!(view(&read, "a").take_token().unwrap(), b"token");
    assert_eq!(view(&read, "b").take_path(Instant::ZERO).unwrap(), path());
    for len in 0..bytes.len() {
        // Cut between two servers it is a smaller store.
        let _ = SessionStore::new(10).add_bytes(&bytes[..len]);
    }
    assert_eq!(SessionStore::new(1).add_bytes(b"fulmar"), Err(SessionFileError::NotAStore));
    assert_eq!(SessionStore::new(1).add_bytes(&bytes[..bytes.len() - 1]), Err(SessionFileError::Damaged));
}

#[test]
fn a_server_without_a_ticket_has_no_session() {
    let store = SessionStore::new(10);
    assert!(!store.has_session("a", 443));
    view(&store, "a").keep_path(Instant::ZERO, path());
    assert!(!store.has_session("a", 443), "what is known of its path is none");
}

#[test]
fn the_key_exchange_that_a_server_took_is_remembered_for_it_alone() {
    let store = SessionStore::new(10);
    let name: ServerName<'static> = "a".try_into().unwrap();
    view(&store, "a").set_kx_hint(name.clone(), NamedGroup::X25519);
    assert_eq!(view(&store, "a").kx_hint(&name), Some(NamedGroup::X25519));
    assert_eq!(view(&store, "b").kx_hint(&name), None);
}

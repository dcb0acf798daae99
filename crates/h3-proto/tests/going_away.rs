//! Going away (RFC 9114 §5.2).

mod pair;

use fulmar_h3_proto::{Config, ErrorCode, Event, Scope, SendError};
use pair::raw::{GET, client_says, control, frame};
use pair::{End, Pair, get};

#[test]
fn a_server_shuts_down_without_losing_a_request() {
    let mut pair = Pair::joined(Config::default(), Config::default());
    pair.client.request(0);
    pair.server.h3.start_shutdown().unwrap();
    // A request that is on its way when the server begins is still taken.
    pair.run();
    assert_eq!(pair.server.words(0), ["GET https://example.org/", "finished"]);
    pair.server.h3.finish_shutdown().unwrap();
    let late = frame(1, &pair::raw::section(&GET));
    pair.server.deliver((4, late.into(), true));
    let rejected = pair.server.errors.pop().unwrap();
    assert_eq!((rejected.scope(), rejected.code()), (Scope::Stream(4), ErrorCode::RequestRejected));
    assert!(!pair.server.h3.is_idle());
    pair.server.respond(0);
    pair.run();
    assert!(pair.server.h3.is_idle());
    let said = pair.client.events.iter().filter_map(|(_, event)| match event {
        Event::GoAway(id) => Some(*id),
        _ => None,
    });
    assert_eq!(said.collect::<Vec<_>>(), [(1 << 62) - 4, 4]);
    assert_eq!(pair.client.h3.send_request(4, &get("/")), Err(SendError::GoingAway));
    pair.assert_no_errors();
}

#[test]
fn a_client_that_goes_away_makes_no_requests() {
    let mut pair = Pair::joined(Config::default(), Config::default());
    pair.client.h3.finish_shutdown().unwrap();
    assert_eq!(pair.client.h3.send_request(0, &get("/")), Err(SendError::GoingAway));
    pair.run();
    pair.assert_no_errors();
    assert!(matches!(pair.server.events[..], [(_, Event::GoAway(0))]));
}

#[test]
fn goaway_names_a_request_and_does_not_grow() {
    let id = Some((Scope::Connection, ErrorCode::IdError));
    assert_eq!(client_says(Config::default(), &[(3, control(&frame(7, &[1])), false)]), id);
    let grows = [frame(7, &[4]), frame(7, &[8])].concat();
    assert_eq!(client_says(Config::default(), &[(3, control(&grows), false)]), id);
    let sinks = [frame(7, &[8]), frame(7, &[4])].concat();
    assert_eq!(client_says(Config::default(), &[(3, control(&sinks), false)]), None);
}

#[test]
fn no_request_begins_after_goaway() {
    let mut client = End::client(Config::default());
    client.deliver((3, control(&frame(7, &[8])).into(), false));
    assert!(matches!(client.events[..], [(_, Event::Settings(_)), (_, Event::GoAway(8))]));
    assert_eq!(client.h3.send_request(0, &get("/")), Err(SendError::GoingAway));
}

use fulmar_wire::AddressDiscovery::{Both, Provide, Receive};
use fulmar_wire::{Dialect, frames};

use super::*;

const REMOTE: &str = "192.0.2.7:4321";

fn remote() -> SocketAddr {
    REMOTE.parse().unwrap()
}

fn extension() -> AddressDiscovery {
    AddressDiscovery::new(Instant::ZERO, Some(Both), Some(Both)).unwrap()
}

/// What is written about a tuple in use.
fn written(extension: &mut AddressDiscovery, observation: &mut Observation) -> Vec<ObservedAddress> {
    let mut payload = [0; 100];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    extension.write((PathId::ZERO, remote()), observation, &mut out);
    let len = out.finish().len;
    let told = |frame| match frame {
        Ok(Frame::ObservedAddress(frame)) => frame,
        other => panic!("{other:?}"),
    };
    frames(&payload[..len], Dialect::SinglePath).map(told).collect()
}

#[test]
fn who_tells_whom_follows_from_both_announcements() {
    let tells = |local, peer| {
        let extension = AddressDiscovery::new(Instant::ZERO, local, peer);
        extension.is_some_and(|extension| extension.wants_to_send(&Observation::default()))
    };
    for (local, peer, expected) in [
        (Some(Provide), Some(Receive), true),
        (Some(Provide), Some(Both), true),
        (Some(Both), Some(Both), true),
        (Some(Both), Some(Provide), false),
        (Some(Receive), Some(Both), false),
        (Some(Provide), Some(Provide), false),
        (Some(Both), None, false),
        (None, Some(Both), false),
    ] {
        assert_eq!(tells(local, peer), expected, "{local:?}, {peer:?}");
    }
}

#[test]
fn an_observation_is_repeated_under_its_number_until_it_is_acknowledged() {
    let (mut extension, mut observation) = (extension(), Observation::default());
    let first = written(&mut extension, &mut observation);
    assert_eq!(first, [ObservedAddress::new(VarInt::ZERO, remote())]);
    assert!(written(&mut extension, &mut observation).is_empty());
    observation.on_delivery(7, false);
    assert!(!extension.wants_to_send(&observation), "another one was lost");
    observation.on_delivery(0, false);
    assert_eq!(written(&mut extension, &mut observation), first);
    observation.on_delivery(0, true);
    observation.on_delivery(0, false);
    assert!(!extension.wants_to_send(&observation));
    let other = written(&mut extension, &mut Observation::default());
    assert_eq!(other[0].sequence, VarInt::from_u32(1), "another tuple, another number");
}

#[test]
fn observations_are_limited_to_one_in_a_second() {
    let mut extension = extension();
    let made = |extension: &mut AddressDiscovery, millis: u64| {
        extension.refill(Instant::from_millis(millis));
        (0..100).filter(|_| !written(extension, &mut Observation::default()).is_empty()).count()
    };
    assert_eq!(made(&mut extension, 0), BURST as usize);
    assert_eq!(made(&mut extension, 900), 0);
    assert_eq!(made(&mut extension, 1_100), 1);
    assert_eq!(made(&mut extension, 3_050), 2);
    assert_eq!(made(&mut extension, 1_000_000), BURST as usize);
    // What was told once may be told again whatever the limit says.
    let mut known = Observation { sequence: Some(3), ..Observation::default() };
    assert_eq!(written(&mut extension, &mut known).len(), 1);
}

#[test]
fn the_newest_observation_of_a_tuple_counts() {
    let extension = extension();
    let mut observation = Observation::default();
    let tell = |observation: &mut Observation, sequence: u32, port: u16| {
        let frame = ObservedAddress { sequence: sequence.into(), ip: [192, 0, 2, 1].into(), port };
        extension.on_frame(&frame, observation).unwrap().map(|address| address.port())
    };
    assert_eq!(tell(&mut observation, 3, 30), Some(30));
    assert_eq!(tell(&mut observation, 2, 20), None);
    assert_eq!(tell(&mut observation, 3, 31), None);
    assert_eq!(tell(&mut observation, 4, 30), None, "that is no news");
    assert_eq!(tell(&mut observation, 5, 50), Some(50));
    assert_eq!(observation.observed().map(|address| address.port()), Some(50));
}

#[test]
fn who_has_not_asked_is_not_told() {
    let extension = AddressDiscovery::new(Instant::ZERO, Some(Provide), Some(Both)).unwrap();
    let frame = ObservedAddress::new(VarInt::ZERO, remote());
    let error = extension.on_frame(&frame, &mut Observation::default()).unwrap_err();
    assert_eq!(error.code, fulmar_wire::TransportErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn mapped_addresses_are_told_as_what_they_are() {
    let mapped: SocketAddr = "[::ffff:192.0.2.7]:4321".parse().unwrap();
    assert_eq!(ObservedAddress::new(VarInt::ZERO, mapped).address(), remote());
}

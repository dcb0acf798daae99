//! Handshake messages that are damaged, cut, repeated, left out or exchanged on their way: no handshake comes of them, and
//! what a session tells of them is an alert or a violation.

use super::*;

type Flight = Vec<(Level, Vec<u8>)>;

thread_local! {
    static CONFIGS: (ClientConfig, ServerConfig) = {
        let identity = identity(|_| {});
        (client_config(&identity, provider()), server_config(&identity))
    };
}

fn sessions() -> (Session, Session) {
    CONFIGS.with(|(of_client, of_server)| (client(of_client, Version::V1), server(of_server, Version::V1)))
}

/// The messages of a flight, each with its level.
fn messages(flight: Flight) -> Flight {
    let mut messages = Vec::new();
    for (level, bytes) in flight {
        let mut rest = &bytes[..];
        while let [_, a, b, c, ..] = *rest {
            let (message, behind) = rest.split_at(4 + u32::from_be_bytes([0, a, b, c]) as usize);
            messages.push((level, message.to_vec()));
            rest = behind;
        }
        assert!(rest.is_empty(), "whole messages");
    }
    messages
}

/// Lets a session read a flight, and gives its answer.
fn answer(session: &mut Session, flight_to: &Flight) -> Result<Flight, TransportError> {
    let mut output = Output::default();
    let mut answer = Vec::new();
    for (level, bytes) in flight_to {
        session.read_handshake(*level, bytes)?;
        answer.extend(flight(session, &mut output));
    }
    Ok(messages(answer))
}

/// Spoils the first message of a client, or the answer of the server, and sees to it that no handshake comes of it.
/// Returns whether one of the sessions has seen it already.
fn spoil(of_server: bool, change: impl FnOnce(&mut Flight)) -> bool {
    let (mut client, mut server) = sessions();
    let mut hello = messages(flight(&mut client, &mut Output::default()));
    let result = if of_server {
        let mut flight = answer(&mut server, &hello).expect("an honest client");
        change(&mut flight);
        answer(&mut client, &flight)
    } else {
        change(&mut hello);
        answer(&mut server, &hello).and_then(|flight| answer(&mut client, &flight))
    };
    if let Err(error) = &result {
        // RFC 9001 §4.1.3: what comes at another level than its own is no matter of TLS.
        let is_alert = error.code == TransportErrorCode::crypto(error.code.0 as u8);
        assert!(is_alert || error.code == TransportErrorCode::PROTOCOL_VIOLATION, "{error:?}");
    }
    assert!(client.is_handshaking(), "a handshake came of a flight that was changed on its way");
    result.is_err()
}

fn lengths_of_messages(of_server: bool) -> Vec<usize> {
    let mut lengths = Vec::new();
    spoil(of_server, |flight| {
        lengths = flight.iter().map(|(_, bytes)| bytes.len()).collect();
        flight.clear();
    });
    lengths
}

#[test]
fn each_byte_damaged() {
    for of_server in [false, true] {
        let mut noticed = 0;
        let mut tried = 0;
        for (message, len) in lengths_of_messages(of_server).into_iter().enumerate() {
            // Key shares of a kilobyte are all alike.
            let dense = (0..len.min(300)).chain((300..len).step_by(13));
            for (at, change) in dense.flat_map(|at| [(at, 0x01), (at, 0xff)]) {
                noticed += usize::from(spoil(of_server, |flight| {
                    // Signatures are not all of one length.
                    let bytes = &mut flight[message].1;
                    let at = at.min(bytes.len() - 1);
                    bytes[at] ^= change;
                }));
                tried += 1;
            }
        }
        assert!(noticed > tried / 2, "{noticed} of {tried}");
    }
}

#[test]
fn each_message_cut_and_its_length_made_to_fit() {
    for of_server in [false, true] {
        for (message, len) in lengths_of_messages(of_server).into_iter().enumerate() {
            for kept in (4..len.min(200)).chain((200..len).step_by(37)) {
                spoil(of_server, |flight| {
                    let kept = kept.min(flight[message].1.len() - 1);
                    flight[message].1.truncate(kept);
                    let length = ((kept - 4) as u32).to_be_bytes();
                    flight[message].1[1..4].copy_from_slice(&length[1..]);
                });
            }
        }
    }
}

#[test]
fn messages_left_out_or_exchanged() {
    let count = lengths_of_messages(true).len();
    assert_eq!(count, 5, "ServerHello, EncryptedExtensions, Certificate, CertificateVerify, Finished");
    for first in 0..count {
        spoil(true, |flight| drop(flight.remove(first)));
        for second in 0..count {
            if first != second {
                spoil(true, |flight| {
                    let (a, b) = (flight[first].1.clone(), flight[second].1.clone());
                    (flight[first].1, flight[second].1) = (b, a);
                });
            }
        }
    }
}

#[test]
fn messages_repeated_at_each_place() {
    for of_server in [false, true] {
        let count = lengths_of_messages(of_server).len();
        for message in 0..count {
            for place in 0..count {
                // The last one ends the handshake: what is said again behind it is not of the flight.
                if of_server && (message, place) == (count - 1, count - 1) {
                    continue;
                }
                spoil(of_server, |flight| {
                    let (level, bytes) = (flight[place].0, flight[message].1.clone());
                    for _ in 0..100 {
                        flight.insert(place, (level, bytes.clone()));
                    }
                    if message == place {
                        flight.truncate(place + 100);
                        flight.push((level, bytes));
                    }
                });
            }
        }
    }
}

#[test]
fn every_type_of_message_at_every_place() {
    let count = lengths_of_messages(true).len();
    for kind in 0..=u8::MAX {
        for place in 0..count {
            for body in [0, 1, 40] {
                spoil(true, |flight| {
                    let message = [vec![kind, 0, 0, body], vec![0; usize::from(body)]].concat();
                    flight[place].1 = message;
                });
            }
        }
        spoil(false, |flight| flight.insert(0, (Level::Initial, vec![kind, 0, 0, 0])));
    }
}

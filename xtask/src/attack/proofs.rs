//! Tokens, tickets and early data that were taken from somebody, damaged, or used before: none of them may count.

mod replays;
mod tickets;
mod tokens;

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use fulmar_base::Rng;
use fulmar_proto::SessionStore;

pub(super) use self::replays::Replays;
pub(super) use self::tickets::Tickets;
pub(super) use self::tokens::{TokenKind, Tokens};
use super::client::{Client, Profile, receive_from, send_to, wait_readable};
use super::packets::{Answer, Hello};
use crate::Result;

/// How long an answer is waited for.
const ANSWER_PATIENCE: Duration = Duration::from_secs(2);
/// How long a client stays to be given tickets and tokens.
const GIFT_PATIENCE: Duration = Duration::from_millis(20);

/// Sends the first packet of a client and gives what the server says.
fn ask(socket: &UdpSocket, server: SocketAddr, datagrams: &[Vec<u8>], dst: &[u8]) -> Result<Option<Answer>> {
    let mut buffer = [0; 2048];
    while receive_from(socket, &mut buffer)?.is_some() {}
    for datagram in datagrams {
        send_to(socket, datagram, server)?;
    }
    let deadline = Instant::now() + ANSWER_PATIENCE;
    while let Some(left) = deadline.checked_duration_since(Instant::now()) {
        wait_readable(socket, left)?;
        while let Some((len, _)) = receive_from(socket, &mut buffer)? {
            match Answer::read(&buffer[..len], dst) {
                // Acknowledgements and what comes behind the first packet tell nothing.
                Answer::Other => {}
                answer => return Ok(Some(answer)),
            }
        }
    }
    Ok(None)
}

/// The bytes with one bit turned.
fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

/// What a client says first to a server that it has a ticket of.
fn second_visit(profile: &Profile, server: SocketAddr, rng: &mut Rng) -> Result<Hello> {
    let profile = acquainted(profile, server, rng)?;
    let flight = Client::new(&profile, server, rng)?.take_flight();
    Ok(Hello::of(&flight).ok_or("the first flight of a client cannot be read")?)
}

/// Clients that have been there.
fn acquainted(profile: &Profile, server: SocketAddr, rng: &mut Rng) -> Result<Profile> {
    let profile = profile.clone().with_sessions(SessionStore::new(1));
    let mut client = Client::dial(&profile, server, rng)?;
    client.confirm()?;
    client.wait_until(GIFT_PATIENCE, |_| false)?;
    client.close()?;
    Ok(profile)
}

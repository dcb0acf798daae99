//! Early data that is sent again.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fulmar_base::Rng;

use super::{acquainted, ask};
use crate::Result;
use crate::attack::Attacker;
use crate::attack::client::{Client, Profile, any_socket, send_to};
use crate::attack::packets::{Answer, Hello};

/// How long a server remembers a connection that was closed, at most: three probe timeouts of one that has measured nothing.
const DRAIN_TIME: Duration = Duration::from_secs(2);
/// Flights that are recorded before the first of them is replayed.
const FLIGHTS: usize = 20;
/// How often each of them is replayed.
const REPLAYS: usize = 3;

/// First flights with a request in early data. Each is sent once, and replayed when its connection is forgotten: from the same
/// address and from others. The log of the server tells how often the application was given the request.
pub(in crate::attack) struct Replays {
    profile: Profile,
    server: SocketAddr,
    rng: Rng,
    log: PathBuf,
    flights: Vec<Flight>,
    sent: usize,
    replayed: u64,
    findings: Vec<String>,
}

struct Flight {
    datagrams: Vec<Vec<u8>>,
    hello: Hello,
    dst: [u8; 8],
    socket: UdpSocket,
    sent_at: Instant,
    replays: usize,
}

impl Replays {
    pub(in crate::attack) fn new(profile: &Profile, server: SocketAddr, log: PathBuf, rng: Rng) -> Self {
        Self {
            profile: profile.clone(),
            server,
            rng,
            log,
            flights: Vec::new(),
            sent: 0,
            replayed: 0,
            findings: Vec::new(),
        }
    }

    /// Records the flight of a client that has been there, and sends it.
    fn send_first(&mut self) -> Result<Flight> {
        let name = format!("early-{:06}", self.sent);
        self.sent += 1;
        let profile = acquainted(&self.profile, self.server, &mut self.rng)?.with_early_data();
        let mut client = Client::new(&profile, self.server, &mut self.rng)?;
        client.ask(format!("GET /{name}\r\n").as_bytes(), true)?.ok_or("no early data can be sent")?;
        let datagrams = client.take_flight();
        let hello = Hello::of(&datagrams).ok_or("the first flight of a client cannot be read")?;
        let dst =
            *datagrams[0].get(6..).and_then(|rest| rest.first_chunk()).ok_or("the flight is too short")?;
        let socket = any_socket(&mut self.rng)?;
        let flight = Flight { datagrams, hello, dst, socket, sent_at: Instant::now(), replays: 0 };
        self.send(&flight, &flight.socket, true)?;
        Ok(flight)
    }

    fn send(&mut self, flight: &Flight, socket: &UdpSocket, is_first: bool) -> Result<()> {
        let answer = ask(socket, self.server, &flight.datagrams, &flight.dst)?;
        // The server shall forget the connection before the flight is replayed.
        send_to(socket, &flight.hello.goodbye(&flight.dst), self.server)?;
        if answer != Some(Answer::GoesOn { resumed: is_first }) {
            let what = if is_first { "a flight" } else { "a replayed flight" };
            self.findings.push(format!("{what} was answered by {answer:?}"));
        }
        Ok(())
    }
}

impl Attacker for Replays {
    fn strike(&mut self) -> Result<bool> {
        if self.flights.len() < FLIGHTS {
            let flight = self.send_first()?;
            self.flights.push(flight);
            return Ok(true);
        }
        let is_due = |flight: &Flight| flight.sent_at.elapsed() > DRAIN_TIME;
        let Some(place) = self.flights.iter().position(is_due) else { return Ok(false) };
        let mut flight = self.flights.remove(place);
        let stranger = any_socket(&mut self.rng)?;
        let socket = if flight.replays == 0 { &flight.socket } else { &stranger };
        self.send(&flight, socket, false)?;
        self.replayed += 1;
        flight.replays += 1;
        flight.sent_at = Instant::now();
        if flight.replays < REPLAYS {
            self.flights.push(flight);
        }
        Ok(true)
    }

    fn finish(&mut self) -> Result<Vec<String>> {
        while self.replayed == 0 {
            std::thread::sleep(DRAIN_TIME / 10);
            self.strike()?;
        }
        std::thread::sleep(DRAIN_TIME / 10);
        let log = fs::read_to_string(&self.log)?;
        for number in 0..self.sent {
            let name = format!("early-{number:06}");
            let request = format!("\"GET /{name} ");
            match log.lines().filter(|line| line.contains(&request)).count() {
                1 => {}
                count => self.findings.push(format!("{name} was given to the application {count} times")),
            }
        }
        self.findings.truncate(5);
        Ok(std::mem::take(&mut self.findings))
    }

    fn remark(&self) -> String {
        format!("{} requests in early data, {} replays refused", self.sent, self.replayed)
    }
}

//! Tokens, tickets and early data that were taken from somebody, damaged, or used before: none of them may count.

use std::collections::VecDeque;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fulmar_base::Rng;
use fulmar_proto::SessionStore;

use super::Attacker;
use super::client::{Client, Profile, any_socket, receive_from, send_to, socket_at, wait_readable};
use super::packets::{Answer, Hello};
use crate::Result;

/// How long an answer is waited for.
const ANSWER_PATIENCE: Duration = Duration::from_secs(2);
/// How long a client stays to be given tickets and tokens.
const GIFT_PATIENCE: Duration = Duration::from_millis(20);
/// How long a server remembers a connection that was closed, at most: three probe timeouts of one that has measured nothing.
const DRAIN_TIME: Duration = Duration::from_secs(2);
/// Flights that are recorded before the first of them is replayed.
const FLIGHTS: usize = 20;
/// How often each of them is replayed.
const REPLAYS: usize = 3;

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

/// Which tokens are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// Of a Retry, for one port of one host and one connection ID.
    Retry,
    /// Of an earlier connection, for one host and one use.
    Earlier,
}

/// Tokens that are damaged in each bit, cut at each byte, shown from another port, from another host, for another connection and twice. The
/// server asks for one of everybody, so that its answer tells whether it took it.
pub(super) struct Tokens {
    kind: TokenKind,
    profile: Profile,
    server: SocketAddr,
    rng: Rng,
    hello: Hello,
    genuine: Option<Genuine>,
    /// Which of the trials is next.
    trial: usize,
    refused: u64,
    accepted: u64,
    findings: Vec<String>,
}

/// A token as it was given away, and to whom.
struct Genuine {
    token: Vec<u8>,
    /// Where its client would send it.
    dst: [u8; 8],
    socket: UdpSocket,
    host: Ipv4Addr,
}

impl Tokens {
    pub(super) fn new(kind: TokenKind, profile: &Profile, server: SocketAddr, mut rng: Rng) -> Result<Self> {
        let flight = Client::new(profile, server, &mut rng)?.take_flight();
        let hello = Hello::of(&flight).ok_or("the first flight of a client cannot be read")?;
        Ok(Self {
            kind,
            profile: profile.clone(),
            server,
            rng,
            hello,
            genuine: None,
            trial: 0,
            refused: 0,
            accepted: 0,
            findings: Vec::new(),
        })
    }

    fn obtain(&mut self) -> Result<Genuine> {
        let [a, b] = self.rng.bytes();
        let host = Ipv4Addr::new(127, 2, a, b.clamp(1, 254));
        let socket = socket_at(host)?;
        match self.kind {
            TokenKind::Retry => {
                let dst: [u8; 8] = self.rng.bytes();
                let answer = ask(&socket, self.server, &[self.hello.datagram(&dst, &[])], &dst)?;
                let Some(Answer::Retry { dst, token }) = answer else {
                    return Err(format!("a client was answered by {answer:?} and no Retry").into());
                };
                let dst = dst.try_into().map_err(|_| "a connection ID has another length")?;
                Ok(Genuine { token, dst, socket, host })
            }
            TokenKind::Earlier => {
                let profile = self.profile.clone().with_sessions(SessionStore::new(1));
                let mut client = Client::over(socket_at(host)?, &profile, self.server, &mut self.rng)?;
                client.shake_hands()?;
                client.confirm()?;
                client.wait_until(GIFT_PATIENCE, |_| false)?;
                client.close()?;
                let flight = Client::new(&profile, self.server, &mut self.rng)?.take_flight();
                let token = Hello::of(&flight).map(|hello| hello.token).filter(|token| !token.is_empty());
                let token = token.ok_or("a client was given no token")?;
                Ok(Genuine { token, dst: self.rng.bytes(), socket, host })
            }
        }
    }

    /// Shows a token and notes whether what becomes of it is right.
    fn show(
        &mut self,
        what: &str,
        socket: &UdpSocket,
        dst: [u8; 8],
        token: &[u8],
        is_good: bool,
    ) -> Result<()> {
        let answer = ask(socket, self.server, &[self.hello.datagram(&dst, token)], &dst)?;
        let is_accepted = matches!(answer, Some(Answer::GoesOn { .. }));
        if is_accepted {
            send_to(socket, &self.hello.goodbye(&dst), self.server)?;
        }
        match is_accepted {
            true => self.accepted += 1,
            false => self.refused += 1,
        }
        if is_accepted != is_good || answer.is_none() {
            self.findings.push(format!("{what} was answered by {answer:?}"));
        }
        Ok(())
    }

    fn try_one(&mut self, genuine: &Genuine) -> Result<bool> {
        let Genuine { token, dst, socket, host } = genuine;
        let (bits, len) = (8 * token.len(), token.len());
        // A Retry's token is for one connection ID; the other kind is for any.
        let fresh: [u8; 8] = if self.kind == TokenKind::Retry { *dst } else { self.rng.bytes() };
        match self.trial {
            bit if bit < bits => {
                self.show(&format!("bit {bit} turned"), socket, fresh, &flipped(token, bit), false)?;
            }
            trial if trial < bits + len => {
                let cut = &token[..trial - bits];
                self.show(&format!("{} bytes of it", cut.len()), socket, fresh, cut, false)?;
            }
            trial if trial == bits + len => {
                let stranger = any_socket(&mut self.rng)?;
                self.show("a token from another host", &stranger, fresh, token, false)?;
            }
            trial if trial == bits + len + 1 && self.kind == TokenKind::Retry => {
                let neighbour = socket_at(*host)?;
                self.show("a token from another port", &neighbour, fresh, token, false)?;
                let other = self.rng.bytes();
                self.show("a token for another connection", socket, other, token, false)?;
            }
            _ => {
                self.show("the token as it was given", socket, fresh, token, true)?;
                if self.kind == TokenKind::Earlier {
                    let again = self.rng.bytes();
                    self.show("a token that was used", socket, again, token, false)?;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Attacker for Tokens {
    fn strike(&mut self) -> Result<bool> {
        let genuine = match self.genuine.take() {
            Some(genuine) => genuine,
            None => self.obtain()?,
        };
        let is_over = self.try_one(&genuine)?;
        self.trial = if is_over { 0 } else { self.trial + 1 };
        self.genuine = Some(genuine).filter(|_| !is_over);
        Ok(true)
    }

    fn finish(&mut self) -> Result<Vec<String>> {
        if self.accepted == 0 {
            self.findings.push("no token was shown as it was given".to_owned());
        }
        self.findings.truncate(5);
        Ok(std::mem::take(&mut self.findings))
    }

    fn remark(&self) -> String {
        format!("{} shown tokens refused, {} genuine ones accepted", self.refused, self.accepted)
    }
}

/// Tickets whose answers are waited for at the same time.
const SHOWN_MAX: usize = 1_000;

/// Sealed tickets with a bit turned, then as they were given. The damaged ones do not wait for one another.
pub(super) struct Tickets {
    profile: Profile,
    server: SocketAddr,
    rng: Rng,
    hello: Option<Hello>,
    bit: usize,
    shown: VecDeque<Shown>,
    refused: u64,
    accepted: u64,
    /// Where the server was too busy to answer.
    unanswered: u64,
    findings: Vec<String>,
}

/// A damaged ticket that was shown.
struct Shown {
    socket: UdpSocket,
    dst: [u8; 8],
    hello: Hello,
    bit: usize,
    since: Instant,
}

impl Tickets {
    pub(super) fn new(profile: &Profile, server: SocketAddr, rng: Rng) -> Self {
        Self {
            profile: profile.clone(),
            server,
            rng,
            hello: None,
            bit: 0,
            shown: VecDeque::new(),
            refused: 0,
            accepted: 0,
            unanswered: 0,
            findings: Vec::new(),
        }
    }

    /// Shows a ticket as it was given, and waits for what the server makes of it.
    fn show_genuine(&mut self, hello: &Hello) -> Result<()> {
        let (socket, dst) = (any_socket(&mut self.rng)?, self.rng.bytes::<8>());
        let answer = ask(&socket, self.server, &[hello.datagram(&dst, &[])], &dst)?;
        send_to(&socket, &hello.goodbye(&dst), self.server)?;
        match answer {
            Some(Answer::GoesOn { resumed: true }) => self.accepted += 1,
            None => self.unanswered += 1,
            answer => self.findings.push(format!("a ticket as it was given was answered by {answer:?}")),
        }
        Ok(())
    }

    fn show_damaged(&mut self, hello: &Hello, bit: usize) -> Result<()> {
        let ticket = hello.ticket().ok_or("a client shows no ticket")?;
        let mut damaged = hello.clone();
        damaged.message[ticket.clone()].copy_from_slice(&flipped(&hello.message[ticket], bit));
        let (socket, dst) = (any_socket(&mut self.rng)?, self.rng.bytes::<8>());
        send_to(&socket, &damaged.datagram(&dst, &[]), self.server)?;
        self.shown.push_back(Shown { socket, dst, hello: damaged, bit, since: Instant::now() });
        Ok(())
    }

    /// Takes the answers that have come; they come in the order of the questions.
    fn collect(&mut self) -> Result<()> {
        let mut buffer = [0; 2048];
        while let Some(oldest) = self.shown.front() {
            let answer = match receive_from(&oldest.socket, &mut buffer)? {
                Some((len, _)) => Some(Answer::read(&buffer[..len], &oldest.dst)),
                None if oldest.since.elapsed() < ANSWER_PATIENCE => return Ok(()),
                None => None,
            };
            match answer {
                // Acknowledgements and what comes behind the first packet tell nothing.
                Some(Answer::Other) => continue,
                Some(Answer::GoesOn { resumed: false } | Answer::Closed(_)) => self.refused += 1,
                None => self.unanswered += 1,
                Some(answer) => {
                    let bit = oldest.bit;
                    self.findings.push(format!("a ticket with bit {bit} turned was answered by {answer:?}"));
                }
            }
            send_to(&oldest.socket, &oldest.hello.goodbye(&oldest.dst), self.server)?;
            self.shown.pop_front();
        }
        Ok(())
    }
}

impl Attacker for Tickets {
    fn strike(&mut self) -> Result<bool> {
        if self.shown.len() == SHOWN_MAX {
            return Ok(false);
        }
        let hello = match self.hello.take() {
            Some(hello) => hello,
            None => second_visit(&self.profile, self.server, &mut self.rng)?,
        };
        let bits = 8 * hello.ticket().ok_or("a client shows no ticket")?.len();
        self.show_damaged(&hello, self.bit)?;
        self.bit = (self.bit + 1) % bits;
        self.hello = Some(hello);
        Ok(true)
    }

    fn tend(&mut self) -> Result<()> {
        self.collect()
    }

    fn finish(&mut self) -> Result<Vec<String>> {
        while !self.shown.is_empty() {
            self.collect()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        // Whatever became of the others, the ticket itself must be good.
        let hello = match self.hello.take() {
            Some(hello) => hello,
            None => second_visit(&self.profile, self.server, &mut self.rng)?,
        };
        self.show_genuine(&hello)?;
        if self.accepted == 0 {
            self.findings.push("the ticket as it was given was not accepted".to_owned());
        }
        if self.refused == 0 {
            self.findings.push("no damaged ticket was refused".to_owned());
        }
        self.findings.truncate(5);
        Ok(std::mem::take(&mut self.findings))
    }

    fn remark(&self) -> String {
        let Self { refused, accepted, unanswered, .. } = self;
        format!(
            "{refused} damaged tickets refused, {unanswered} unanswered, {accepted} genuine ones accepted"
        )
    }
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

/// First flights with a request in early data. Each is sent once, and replayed when its connection is forgotten: from the same
/// address and from others. The log of the server tells how often the application was given the request.
pub(super) struct Replays {
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
    pub(super) fn new(profile: &Profile, server: SocketAddr, log: PathBuf, rng: Rng) -> Self {
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

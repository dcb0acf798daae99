//! Clients with real connections that misbehave: by what they do not do, or do too often.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fulmar_base::Rng;
use fulmar_proto::StreamId;

use super::Attacker;
use super::client::{Client, Profile};
use crate::Result;

/// How often some of the clients that hold on are looked after, and after how many times each of them was.
const CARE_INTERVAL: Duration = Duration::from_millis(50);
const CARE_ROUNDS: usize = 20;
/// Streams of each client that holds on.
const STREAMS: usize = 4;
/// How long a client that stalls is served before it does.
const APPETITE: Duration = Duration::from_millis(60);
/// What a slow reader takes at a time.
const SIP_BYTES: usize = 1;
/// What a slow reader lets the server send on each stream.
const SLOW_WINDOW: u64 = 64 << 10;
/// Streams that are opened and reset at a time.
const RESETS_AT_A_TIME: u64 = 10;

/// How clients misbehave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// They ask for a great deal, take of it for a moment, and then neither read nor acknowledge anything.
    Stalled,
    /// They ask for a great deal and read a byte now and then.
    SlowReaders,
    /// They never end their requests, of which they send a byte now and then.
    Loris,
}

/// More and more clients that hold on to what they have.
pub(super) struct Crowd {
    manner: Manner,
    profile: Profile,
    server: SocketAddr,
    rng: Rng,
    request: Vec<u8>,
    members: Vec<(Client, Vec<StreamId>)>,
    members_max: usize,
    cared: Instant,
    round: usize,
    ended: usize,
}

impl Crowd {
    /// Clients that make this request, at most so many.
    pub(super) fn new(
        manner: Manner,
        profile: &Profile,
        server: SocketAddr,
        request: &[u8],
        members_max: usize,
        rng: Rng,
    ) -> Self {
        let profile = match manner {
            Manner::Stalled => profile.clone().with_window(1 << 40, 1 << 40),
            Manner::SlowReaders => profile.clone().with_window(SLOW_WINDOW, STREAMS as u64 * SLOW_WINDOW),
            Manner::Loris => profile.clone(),
        };
        Self {
            manner,
            profile,
            server,
            rng,
            request: request.to_vec(),
            members: Vec::new(),
            members_max,
            cared: Instant::now(),
            round: 0,
            ended: 0,
        }
    }

    /// A client that takes everything for a moment. What it has asked for goes on, but it hears nothing of it any more.
    fn stall(&self, client: &mut Client, ids: &[StreamId]) -> Result<()> {
        let end = Instant::now() + APPETITE;
        while Instant::now() < end {
            client.step(Duration::from_millis(1))?;
            for id in ids {
                client.drain(*id, usize::MAX)?;
            }
        }
        Ok(())
    }

    /// Keeps the connections alive with as little as possible.
    fn care(&mut self) -> Result<()> {
        self.round = (self.round + 1) % CARE_ROUNDS;
        for (client, ids) in self.members.iter_mut().skip(self.round).step_by(CARE_ROUNDS) {
            if client.lost().is_some() {
                continue;
            }
            for id in ids {
                match self.manner {
                    Manner::Stalled => {}
                    Manner::SlowReaders => drop(client.drain(*id, SIP_BYTES)?),
                    Manner::Loris => client.say_more(*id, b"x"),
                }
            }
            client.step(Duration::ZERO)?;
        }
        Ok(())
    }
}

impl Attacker for Crowd {
    fn strike(&mut self) -> Result<bool> {
        if self.members.len() == self.members_max {
            return Ok(false);
        }
        let mut client = Client::dial(&self.profile, self.server, &mut self.rng)?;
        client.confirm()?;
        let mut ids = Vec::new();
        for _ in 0..STREAMS {
            // A request that never ends has its first byte alone.
            let is_all = self.manner != Manner::Loris;
            let request = if is_all { &self.request[..] } else { &self.request[..1] };
            ids.extend(client.ask(request, is_all)?);
        }
        client.step(Duration::ZERO)?;
        if self.manner == Manner::Stalled {
            self.stall(&mut client, &ids)?;
        }
        self.members.push((client, ids));
        Ok(true)
    }

    fn tend(&mut self) -> Result<()> {
        if self.manner == Manner::Stalled || self.cared.elapsed() < CARE_INTERVAL {
            return Ok(());
        }
        self.cared = Instant::now();
        self.care()
    }

    fn finish(&mut self) -> Result<Vec<String>> {
        self.ended = self.members.iter().filter(|(client, _)| client.lost().is_some()).count();
        Ok(Vec::new())
    }

    fn remark(&self) -> String {
        format!("{} clients hold on, with {STREAMS} streams each", self.members.len() - self.ended)
    }
}

/// A client that opens streams and resets them at once.
pub(super) struct Resets {
    profile: Profile,
    server: SocketAddr,
    rng: Rng,
    request: Vec<u8>,
    client: Client,
    streams: u64,
    /// Connections that the server has closed for it.
    closed: u64,
}

impl Resets {
    pub(super) fn new(profile: &Profile, server: SocketAddr, request: &[u8], mut rng: Rng) -> Result<Self> {
        let client = Client::dial(profile, server, &mut rng)?;
        let (profile, request) = (profile.clone(), request.to_vec());
        Ok(Self { profile, server, rng, request, client, streams: 0, closed: 0 })
    }
}

impl Attacker for Resets {
    fn strike(&mut self) -> Result<bool> {
        if self.client.lost().is_some() {
            self.closed += 1;
            self.client = Client::dial(&self.profile, self.server, &mut self.rng)?;
        }
        let end = self.streams + RESETS_AT_A_TIME;
        while self.streams < end && self.client.lost().is_none() {
            let Some(id) = self.client.ask(&self.request, true)? else {
                self.client.step(Duration::from_millis(1))?;
                continue;
            };
            // The request is on its way when it is given up.
            self.client.step(Duration::ZERO)?;
            self.client.abandon(id);
            self.streams += 1;
        }
        self.client.step(Duration::ZERO)?;
        Ok(true)
    }

    fn remark(&self) -> String {
        format!("{} streams opened and reset, {} connections closed for it", self.streams, self.closed)
    }
}

/// Complete handshakes, one after the other.
pub(super) struct Handshakes {
    profile: Profile,
    server: SocketAddr,
    rng: Rng,
}

impl Handshakes {
    pub(super) fn new(profile: &Profile, server: SocketAddr, rng: Rng) -> Self {
        Self { profile: profile.clone(), server, rng }
    }
}

impl Attacker for Handshakes {
    fn strike(&mut self) -> Result<bool> {
        let mut client = Client::dial(&self.profile, self.server, &mut self.rng)?;
        client.confirm()?;
        client.close()?;
        Ok(true)
    }
}

//! Tickets that were damaged.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use fulmar_base::Rng;

use super::{ANSWER_PATIENCE, ask, flipped, second_visit};
use crate::Result;
use crate::attack::Attacker;
use crate::attack::client::{Profile, any_socket, receive_from, send_to};
use crate::attack::packets::{Answer, Hello};

/// Tickets whose answers are waited for at the same time.
const SHOWN_MAX: usize = 1_000;

/// Sealed tickets with a bit turned, then as they were given. The damaged ones do not wait for one another.
pub(in crate::attack) struct Tickets {
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
    pub(in crate::attack) fn new(profile: &Profile, server: SocketAddr, rng: Rng) -> Self {
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

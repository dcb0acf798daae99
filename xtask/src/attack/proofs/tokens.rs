//! Tokens that were taken from somebody, damaged, or used before.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use fulmar_base::Rng;
use fulmar_proto::SessionStore;

use super::{GIFT_PATIENCE, ask, flipped};
use crate::Result;
use crate::attack::Attacker;
use crate::attack::client::{Client, Profile, any_socket, send_to, socket_at};
use crate::attack::packets::{Answer, Hello};

/// Which tokens are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::attack) enum TokenKind {
    /// Of a Retry, for one port of one host and one connection ID.
    Retry,
    /// Of an earlier connection, for one host and one use.
    Earlier,
}

/// Tokens that are damaged in each bit, cut at each byte, shown from another port, from another host, for another connection and twice. The
/// server asks for one of everybody, so that its answer tells whether it took it.
pub(in crate::attack) struct Tokens {
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
    pub(in crate::attack) fn new(
        kind: TokenKind,
        profile: &Profile,
        server: SocketAddr,
        mut rng: Rng,
    ) -> Result<Self> {
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

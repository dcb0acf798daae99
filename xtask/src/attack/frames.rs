//! Frames that no client sends, in packets with the right keys: what is illegal must end the connection with the right error, and
//! what is legal but too much must not.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use fulmar_base::Rng;
use fulmar_proto::TransportErrorCode;
use fulmar_wire::{
    CloseCode, ConnectionClose, ConnectionId, Dialect, Frame, ProtectedKind, VarInt, frames, read_packet,
};

use super::Attacker;
use super::client::{Client, PATIENCE, Profile, Secrets, receive_from, send_to, wait_readable};
use super::packets::{crypto, encode, one_rtt};
use crate::Result;
use crate::interop::PacketKeys;

/// The numbers of packets that are made by hand: above all of the client that has made the handshake.
const FIRST_NUMBER: u64 = 1 << 16;
/// The length of connection IDs of this project's servers and clients.
const CID_LEN: usize = 8;
/// The bytes of a payload.
const PAYLOAD_BYTES: usize = 1_150;
/// After how many datagrams the server is asked whether it is still there.
const CHECK_INTERVAL: u64 = 1_000;

/// A connection whose client was replaced by somebody who writes its packets by hand.
struct Puppet {
    socket: UdpSocket,
    server: SocketAddr,
    dst: ConnectionId,
    ours: PacketKeys,
    theirs: PacketKeys,
    number: u64,
}

impl Puppet {
    fn new(profile: &Profile, server: SocketAddr, rng: &mut Rng) -> Result<Self> {
        let secrets = Arc::new(Secrets::default());
        let mut client = Client::dial(&profile.clone().with_secrets(secrets.clone()), server, rng)?;
        client.confirm()?;
        client.ping()?;
        let (socket, last) = client.into_parts();
        let dst = last.get(1..=CID_LEN).filter(|_| last[0] & 0x80 == 0);
        let dst = dst.and_then(ConnectionId::new).ok_or("the client has sent no 1-RTT packet")?;
        let [ours, theirs] = secrets
            .last()
            .map(|secret| PacketKeys::from_secret(fulmar_wire::Version::V1, &secret).into_iter().next());
        let (ours, theirs) = ours.zip(theirs).ok_or("the client has told no secrets")?;
        Ok(Self { socket, server, dst, ours, theirs, number: FIRST_NUMBER })
    }

    fn send(&mut self, payload: &[u8]) -> Result<()> {
        self.number += 1;
        send_to(&self.socket, &one_rtt(&self.ours, self.dst, self.number, payload), self.server)
    }

    /// Waits for the error with which the server closes, or, if that is enough, for any word of it.
    fn listen(&mut self, is_word_enough: bool) -> Result<Heard> {
        let deadline = Instant::now() + PATIENCE;
        let mut buffer = [0; 2048];
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            wait_readable(&self.socket, left)?;
            while let Some((len, _)) = receive_from(&self.socket, &mut buffer)? {
                let Some(payload) = self.open(&buffer[..len]) else { continue };
                if let Some(code) = closing_code(&payload) {
                    return Ok(Heard::Closed(code));
                }
                if is_word_enough {
                    return Ok(Heard::Something);
                }
            }
        }
        Ok(Heard::Nothing)
    }

    /// Throws away what has come so far.
    fn forget(&mut self) -> Result<()> {
        let mut buffer = [0; 2048];
        while receive_from(&self.socket, &mut buffer)?.is_some() {}
        Ok(())
    }

    fn open(&self, datagram: &[u8]) -> Option<Vec<u8>> {
        let packet = read_packet(datagram, CID_LEN).ok()?;
        let ProtectedKind::OneRtt { pn_offset } = packet.kind else { return None };
        Some(self.theirs.open_packet(datagram, pn_offset)?.payload)
    }
}

/// What a server had to say.
enum Heard {
    Closed(TransportErrorCode),
    Something,
    Nothing,
}

fn closing_code(payload: &[u8]) -> Option<TransportErrorCode> {
    frames(payload, Dialect::SinglePath).map_while(Result::ok).find_map(|frame| match frame {
        Frame::ConnectionClose(ConnectionClose { code: CloseCode::Transport { code, .. }, .. }) => Some(code),
        Frame::ConnectionClose(_) => Some(TransportErrorCode::APPLICATION_ERROR),
        _ => None,
    })
}

/// Payloads that are illegal, and the error that each deserves (RFC 9000).
fn violations() -> Vec<(&'static str, Vec<Vec<u8>>, TransportErrorCode)> {
    use TransportErrorCode as Code;
    let one = |bytes: &[u8]| vec![bytes.to_vec()];
    let pieces = |from: u64| (from..from + 200).flat_map(|n| crypto((1 << 12) + 2 * n, b"x")).collect();
    let new_cid = |n: u8| {
        let mut frame = vec![0x18, n, 0, 8];
        frame.extend([n; 24]);
        frame
    };
    vec![
        ("CRYPTO far ahead", vec![crypto(1 << 20, b"x")], Code::CRYPTO_BUFFER_EXCEEDED),
        ("CRYPTO in pieces", vec![pieces(0), pieces(200)], Code::CRYPTO_BUFFER_EXCEEDED),
        ("no frames", one(&[]), Code::PROTOCOL_VIOLATION),
        ("an unknown frame", one(&[0x21, 0, 0, 0]), Code::FRAME_ENCODING_ERROR),
        ("HANDSHAKE_DONE of a client", one(&[0x1e]), Code::PROTOCOL_VIOLATION),
        ("NEW_TOKEN of a client", one(&[0x07, 1, 9]), Code::PROTOCOL_VIOLATION),
        // Numbers that were never sent.
        ("ACK of the future", one(&[0x02, 0x80, 0x10, 0, 0, 0, 0, 0]), Code::PROTOCOL_VIOLATION),
        ("STREAM beyond the limit", one(&[0x0e, 0, 0xbf, 0xff, 0xff, 0xff, 1, 9]), Code::FLOW_CONTROL_ERROR),
        ("too many streams", one(&[0x08, 0xbf, 0xff, 0xff, 0xfc, 9]), Code::STREAM_LIMIT_ERROR),
        (
            "MAX_STREAMS beyond 2^60",
            one(&[0x12, 0xff, 255, 255, 255, 255, 255, 255, 255]),
            Code::FRAME_ENCODING_ERROR,
        ),
        ("STOP_SENDING of nothing", one(&[0x05, 3, 0]), Code::STREAM_STATE_ERROR),
        ("RETIRE_CONNECTION_ID of none", one(&[0x19, 0x7f, 0xff]), Code::PROTOCOL_VIOLATION),
        ("connection IDs without end", (20..60).map(new_cid).collect(), Code::CONNECTION_ID_LIMIT_ERROR),
    ]
}

/// One illegal thing after the other, each on a connection of its own.
pub(super) struct Violations {
    profile: Profile,
    server: SocketAddr,
    rng: Rng,
    turn: usize,
    right: u64,
    findings: Vec<String>,
}

impl Violations {
    pub(super) fn new(profile: &Profile, server: SocketAddr, rng: Rng) -> Self {
        Self { profile: profile.clone(), server, rng, turn: 0, right: 0, findings: Vec::new() }
    }
}

impl Attacker for Violations {
    fn strike(&mut self) -> Result<bool> {
        let all = violations();
        let (name, payloads, deserved) = &all[self.turn % all.len()];
        self.turn += 1;
        let mut puppet = Puppet::new(&self.profile, self.server, &mut self.rng)?;
        for payload in payloads {
            puppet.send(payload)?;
        }
        match puppet.listen(false)? {
            Heard::Closed(code) if code == *deserved => self.right += 1,
            Heard::Closed(code) => {
                self.findings.push(format!("{name} ended with {code} instead of {deserved}"))
            }
            _ => self.findings.push(format!("{name} did not end the connection")),
        }
        Ok(true)
    }

    fn finish(&mut self) -> Result<Vec<String>> {
        self.findings.sort();
        self.findings.dedup();
        if self.turn < violations().len() {
            self.findings.push(format!("{} of {} were tried", self.turn, violations().len()));
        }
        Ok(std::mem::take(&mut self.findings))
    }

    fn remark(&self) -> String {
        format!("{} connections ended with the right error", self.right)
    }
}

/// What is legal and asks for much: challenges, limits, complaints, acknowledgements of everything, over and over.
pub(super) struct Chatter {
    puppet: Puppet,
    sent: u64,
    findings: Vec<String>,
}

impl Chatter {
    pub(super) fn new(profile: &Profile, server: SocketAddr, mut rng: Rng) -> Result<Self> {
        Ok(Self { puppet: Puppet::new(profile, server, &mut rng)?, sent: 0, findings: Vec::new() })
    }

    fn payload(&self) -> Vec<u8> {
        let n = self.sent / 4;
        let frame = match self.sent % 4 {
            0 => [&[0x1a][..], &n.to_be_bytes()].concat(),
            1 => encode(&Frame::MaxData(fulmar_wire::MaxData { maximum: VarInt::saturating((1 << 30) + n) })),
            2 => encode(&Frame::DataBlocked(fulmar_wire::DataBlocked { limit: VarInt::saturating(n) })),
            _ => vec![0x01],
        };
        frame.repeat(PAYLOAD_BYTES / frame.len())
    }

    /// Whether the server still answers.
    fn check(&mut self) -> Result<()> {
        self.puppet.forget()?;
        self.puppet.send(&[0x01])?;
        match self.puppet.listen(true)? {
            Heard::Closed(code) => self.findings.push(format!("the connection ended with {code}")),
            Heard::Nothing => self.findings.push("the server fell silent".to_owned()),
            Heard::Something => {}
        }
        Ok(())
    }
}

impl Attacker for Chatter {
    fn strike(&mut self) -> Result<bool> {
        if !self.findings.is_empty() {
            return Ok(false);
        }
        let payload = self.payload();
        self.puppet.send(&payload)?;
        self.sent += 1;
        match self.sent.is_multiple_of(CHECK_INTERVAL) {
            true => self.check()?,
            false => self.puppet.forget()?,
        }
        Ok(true)
    }

    fn finish(&mut self) -> Result<Vec<String>> {
        if self.findings.is_empty() {
            self.check()?;
        }
        Ok(std::mem::take(&mut self.findings))
    }

    fn remark(&self) -> String {
        format!("{} datagrams of frames on one connection", self.sent)
    }
}

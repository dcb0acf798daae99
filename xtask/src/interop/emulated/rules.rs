//! What must be true of the packets of a case, beyond the right bytes in the files.

mod messages;

use std::collections::BTreeSet;
use std::net::SocketAddr;

use fulmar_wire::{ConnectionId, Frame, PacketKind, Side, Version};

use self::messages::{Handshake, handshakes_of};
use super::case::{CONNECTIONS, EARLY_FILES};
use super::{Case, Pair, Peer};
use crate::Result;
use crate::interop::certs::LONG_CHAIN_BYTES_MIN;
use crate::interop::trace::{Kind, QuicPacket};

/// TLS_CHACHA20_POLY1305_SHA256.
const CHACHA20: u16 = 0x1303;
/// The most streams that a server may allow at the start of the multiplexing case.
const STREAMS_MAX: u64 = 1000;
/// The length of a file name in the 0-RTT case.
const EARLY_NAME: usize = 250;

/// What was seen of a run.
pub(super) struct Evidence {
    pub(super) pair: Pair,
    pub(super) at_client: Vec<QuicPacket>,
    pub(super) at_server: Vec<QuicPacket>,
    pub(super) has_keys: bool,
}

impl Evidence {
    /// What the server's end of the network saw of one side's packets.
    fn from(&self, side: Side) -> impl Iterator<Item = &QuicPacket> {
        self.at_server.iter().filter(move |packet| packet.from == side)
    }

    fn of_kind(&self, side: Side, kind: PacketKind) -> impl Iterator<Item = &QuicPacket> {
        self.at_server.iter().filter(move |packet| packet.is(side, kind))
    }

    /// Rules that look into packets of the handshake or behind it.
    fn need_keys(&self) -> Result<()> {
        if self.has_keys { Ok(()) } else { Err("neither side wrote a key log".into()) }
    }
}

/// Judges a run.
pub(super) fn check(case: Case, evidence: &Evidence) -> Result<()> {
    if case != Case::V2 {
        only_version_1(evidence)?;
    }
    match case {
        Case::Handshakeloss | Case::Handshakecorruption => handshakes(evidence, CONNECTIONS)?,
        Case::Resumption | Case::Zerortt => handshakes(evidence, 2)?,
        Case::V2 => {}
        _ => handshakes(evidence, 1)?,
    }
    match case {
        Case::Handshake => without_retry(evidence),
        Case::Longrtt => hello_was_repeated(evidence),
        Case::Chacha20 => only_chacha20_offered(evidence),
        Case::Multiplexing => few_streams_at_the_start(evidence),
        Case::Retry => met_a_retry(evidence),
        Case::Resumption => second_without_certificate(evidence),
        Case::Zerortt => early_data(evidence),
        Case::Keyupdate => both_updated_keys(evidence),
        Case::Ecn => both_used_ecn(evidence),
        Case::Amplificationlimit => within_amplification_limit(evidence),
        Case::Ipv6 => only_ipv6(evidence),
        Case::V2 => version_changed(evidence),
        Case::RebindPort => paths_were_validated(evidence).map(drop),
        Case::RebindAddr => addresses_changed(evidence),
        Case::Connectionmigration => moved_with_another_id(evidence),
        Case::Http3 => spoke_http3(evidence),
        _ => Ok(()),
    }
}

fn only_version_1(evidence: &Evidence) -> Result<()> {
    let versions: BTreeSet<u32> = evidence
        .at_server
        .iter()
        .filter(|packet| packet.kind != Kind::VersionNegotiation)
        .filter_map(|packet| packet.version.map(|version| version.0))
        .collect();
    if versions != BTreeSet::from([Version::V1.0]) {
        return Err(format!("the versions on the wire were {versions:x?}").into());
    }
    Ok(())
}

/// Counted as the public runner does: by the connection IDs that the server chose.
fn handshakes(evidence: &Evidence, wanted: usize) -> Result<()> {
    let sources: BTreeSet<Vec<u8>> = evidence
        .of_kind(Side::Server, PacketKind::Initial)
        .map(|packet| packet.src.as_bytes().to_vec())
        .collect();
    if sources.len() != wanted {
        return Err(format!("{} handshakes instead of {wanted}", sources.len()).into());
    }
    Ok(())
}

fn without_retry(evidence: &Evidence) -> Result<()> {
    match evidence.at_server.iter().any(|packet| packet.kind == Kind::Retry) {
        true => Err("the server sent a Retry".into()),
        false => Ok(()),
    }
}

/// With a round trip of 1.5 s the client must not wait for ever, and must not give up.
fn hello_was_repeated(evidence: &Evidence) -> Result<()> {
    let hellos = evidence
        .at_client
        .iter()
        .filter(|packet| packet.is(Side::Client, PacketKind::Initial))
        .filter(|packet| {
            packet.frames().any(|frame| matches!(frame, Frame::Crypto(crypto) if crypto.offset.get() == 0))
        })
        .count();
    if hellos < 2 {
        return Err(format!("the client sent {hellos} ClientHello").into());
    }
    Ok(())
}

fn only_chacha20_offered(evidence: &Evidence) -> Result<()> {
    let handshakes = handshakes_of(&evidence.at_server);
    let offered = handshakes.first().and_then(Handshake::offered_suites).ok_or("there is no ClientHello")?;
    if offered != [CHACHA20] {
        return Err(format!("the client offered {offered:04x?}").into());
    }
    Ok(())
}

fn spoke_http3(evidence: &Evidence) -> Result<()> {
    evidence.need_keys()?;
    let handshakes = handshakes_of(&evidence.at_server);
    let protocol = handshakes.first().and_then(Handshake::protocol).ok_or("the server named no protocol")?;
    if protocol != "h3" {
        return Err(format!("the protocol was {protocol}").into());
    }
    Ok(())
}

fn few_streams_at_the_start(evidence: &Evidence) -> Result<()> {
    evidence.need_keys()?;
    let handshakes = handshakes_of(&evidence.at_server);
    let parameters = handshakes.first().and_then(Handshake::server_parameters);
    let parameters = parameters.ok_or("the server's transport parameters cannot be read")?;
    let streams = parameters.initial_max_streams_bidi.get();
    if streams > STREAMS_MAX {
        return Err(format!("the server allowed {streams} streams at once").into());
    }
    Ok(())
}

/// RFC 9000 §17.2.5.3: a client goes on with its packet numbers.
fn met_a_retry(evidence: &Evidence) -> Result<()> {
    let retries: Vec<&QuicPacket> =
        evidence.at_server.iter().filter(|packet| packet.kind == Kind::Retry).collect();
    let token = &retries.first().ok_or("the server sent no Retry")?.token;
    if token.is_empty() {
        return Err("the Retry has no token".into());
    }
    let numbers = |with_token: bool| {
        evidence
            .of_kind(Side::Client, PacketKind::Initial)
            .filter(move |packet| packet.token.is_empty() != with_token)
            .filter_map(|packet| packet.content.as_ref().map(|content| content.number))
    };
    let repeated = evidence
        .of_kind(Side::Client, PacketKind::Initial)
        .any(|packet| retries.iter().any(|retry| retry.token == packet.token));
    if !repeated {
        return Err("the client did not repeat the token".into());
    }
    match (numbers(false).max(), numbers(true).min()) {
        (Some(before), Some(after)) if after > before => Ok(()),
        (before, after) => {
            Err(format!("packet numbers before the Retry up to {before:?}, then from {after:?}").into())
        }
    }
}

fn second_without_certificate(evidence: &Evidence) -> Result<()> {
    evidence.need_keys()?;
    let handshakes = handshakes_of(&evidence.at_server);
    let certificates: Vec<bool> = handshakes.iter().map(Handshake::has_certificate).collect();
    if certificates != [true, false] {
        return Err(format!("connections with a certificate: {certificates:?}").into());
    }
    Ok(())
}

fn early_data(evidence: &Evidence) -> Result<()> {
    let bytes = |kind| -> usize {
        evidence.of_kind(Side::Client, kind).map(|packet| packet.len - 1 - packet.dst.len()).sum()
    };
    let early = bytes(PacketKind::ZeroRtt);
    let late = bytes(PacketKind::OneRtt);
    if early == 0 {
        return Err("the client sent no 0-RTT packets".into());
    }
    let late_max = EARLY_FILES * EARLY_NAME / 2;
    if late > late_max {
        return Err(format!("the client sent {late} bytes in 1-RTT packets, and {early} in 0-RTT").into());
    }
    Ok(())
}

fn both_updated_keys(evidence: &Evidence) -> Result<()> {
    evidence.need_keys()?;
    for side in [Side::Client, Side::Server] {
        let updated = evidence
            .of_kind(side, PacketKind::OneRtt)
            .any(|packet| packet.content.as_ref().is_some_and(|content| content.key_phase));
        if !updated {
            return Err(format!("the {} sent no packet with key phase 1", name(side)).into());
        }
    }
    Ok(())
}

fn both_used_ecn(evidence: &Evidence) -> Result<()> {
    evidence.need_keys()?;
    for side in [Side::Client, Side::Server] {
        let sent = || evidence.at_client.iter().chain(&evidence.at_server).filter(move |p| p.from == side);
        if !sent().any(|packet| matches!(packet.ecn, 1 | 2)) {
            return Err(format!("the {} set no ECT codepoint", name(side)).into());
        }
        if sent().any(|packet| packet.ecn == 3) {
            return Err(format!("the {} sent CE marks", name(side)).into());
        }
        let reported = evidence
            .from(side)
            .any(|packet| packet.frames().any(|frame| matches!(frame, Frame::Ack(ack) if ack.ecn.is_some())));
        if !reported {
            return Err(format!("the {} sent no ACK_ECN", name(side)).into());
        }
    }
    Ok(())
}

/// RFC 9000 §8.1. Strangers get the tolerance of the public runner: some finish the datagram that crosses the limit.
fn within_amplification_limit(evidence: &Evidence) -> Result<()> {
    evidence.need_keys()?;
    let handshakes = handshakes_of(&evidence.at_client);
    let flight = handshakes.first().map_or(0, |handshake| handshake.server_bytes());
    if flight < LONG_CHAIN_BYTES_MIN {
        return Err(format!("the server's flight has {flight} bytes, which is no long chain").into());
    }
    if evidence.at_server.iter().any(|packet| packet.kind == Kind::VersionNegotiation) {
        return Err("there was a version negotiation".into());
    }
    let factor = if evidence.pair.server == Peer::Fulmar { 3 } else { 4 };
    let (mut received, mut sent) = (0, 0);
    for packet in &evidence.at_server {
        if packet.is(Side::Client, PacketKind::Handshake) {
            return Ok(());
        }
        match packet.from {
            Side::Client => received += packet.datagram_len,
            Side::Server => sent += packet.datagram_len,
        }
        let breach = if factor == 3 { sent > 3 * received } else { sent >= 4 * received };
        if packet.from.is_server() && breach {
            return Err(format!("the server sent {sent} bytes for {received}").into());
        }
    }
    Err("the client never sent a Handshake packet".into())
}

fn only_ipv6(evidence: &Evidence) -> Result<()> {
    match evidence.at_server.iter().any(|packet| packet.client.is_ipv4()) {
        true => Err("there were QUIC packets over IPv4".into()),
        false => Ok(()),
    }
}

/// RFC 9369: the client begins with version 1, and both go on with version 2.
fn version_changed(evidence: &Evidence) -> Result<()> {
    let versions = |side, kind| -> BTreeSet<u32> {
        evidence.of_kind(side, kind).filter_map(|packet| packet.version.map(|version| version.0)).collect()
    };
    if !versions(Side::Client, PacketKind::Initial).contains(&Version::V1.0) {
        return Err("the client did not begin with version 1".into());
    }
    if !versions(Side::Server, PacketKind::Initial).contains(&Version::V2.0) {
        return Err("the server sent no Initial packet of version 2".into());
    }
    for side in [Side::Client, Side::Server] {
        let seen = versions(side, PacketKind::Handshake);
        if seen != BTreeSet::from([Version::V2.0]) {
            return Err(format!("the {}'s Handshake packets have the versions {seen:x?}", name(side)).into());
        }
    }
    Ok(())
}

/// A way between the two, as the server's end saw it.
type Route = (SocketAddr, SocketAddr);

fn route(packet: &QuicPacket) -> Route {
    (packet.client, packet.server)
}

/// On each new path the server's first packet challenges the client, and the client answers that challenge (RFC 9000 §9.3). What
/// the server asks on the path before is not counted: nobody may be there any more. Gives the paths in order.
fn paths_were_validated(evidence: &Evidence) -> Result<Vec<Route>> {
    evidence.need_keys()?;
    let mut paths: Vec<Route> = Vec::new();
    let mut challenges: Vec<[u8; 8]> = Vec::new();
    for packet in evidence.from(Side::Server) {
        if paths.contains(&route(packet)) {
            continue;
        }
        if !paths.is_empty() {
            let challenge = packet.frames().find_map(|frame| match frame {
                Frame::PathChallenge(challenge) => Some(challenge.data),
                _ => None,
            });
            let missing = || format!("the first packet to {} is no challenge", packet.client);
            challenges.push(challenge.ok_or_else(missing)?);
        }
        paths.push(route(packet));
    }
    if paths.len() < 2 {
        return Err("the server sent to one path only".into());
    }
    let sent_by_client = evidence.at_client.iter().filter(|packet| packet.from.is_client());
    let answers: BTreeSet<[u8; 8]> = sent_by_client
        .flat_map(QuicPacket::frames)
        .filter_map(|frame| match frame {
            Frame::PathResponse(response) => Some(response.data),
            _ => None,
        })
        .collect();
    match challenges.iter().filter(|data| !answers.contains(*data)).count() {
        0 => Ok(paths),
        unanswered => {
            Err(format!("{unanswered} of {} challenges were not answered", challenges.len()).into())
        }
    }
}

fn addresses_changed(evidence: &Evidence) -> Result<()> {
    let paths = paths_were_validated(evidence)?;
    if paths.iter().all(|(client, _)| client.ip() == paths[0].0.ip()) {
        return Err("the client had one address only".into());
    }
    Ok(())
}

/// RFC 9000 §9.5: whoever moves on purpose uses another connection ID, so that nobody links the two paths.
fn moved_with_another_id(evidence: &Evidence) -> Result<()> {
    paths_were_validated(evidence)?;
    let mut paths: Vec<Route> = Vec::new();
    let mut last: Option<ConnectionId> = None;
    for packet in evidence.at_client.iter().filter(|packet| packet.from.is_client()) {
        if !paths.contains(&route(packet)) {
            if !paths.is_empty() && last == Some(packet.dst) {
                return Err(
                    format!("the client kept its connection ID on the way to {}", packet.server).into()
                );
            }
            paths.push(route(packet));
        }
        last = Some(packet.dst);
    }
    Ok(())
}

fn name(side: Side) -> &'static str {
    if side.is_client() { "client" } else { "server" }
}

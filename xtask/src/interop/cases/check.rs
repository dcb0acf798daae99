//! What must be true after a download, beyond the right bytes in the files.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Case, LONG_RTT};
use crate::Result;
use crate::interop::certs::LONG_CHAIN_BYTES_MIN;
use crate::interop::peers::{Pair, Peer};
use crate::interop::relay::Traffic;

const CHACHA20: &str = "TLS_CHACHA20_POLY1305_SHA256";

/// What was seen of a download. Reports are what the programs print at their end; the strangers always do.
pub(super) struct Evidence {
    pub(super) pair: Pair,
    pub(super) client: Option<Value>,
    pub(super) server: Option<Value>,
    pub(super) traffic: Traffic,
    pub(super) elapsed: Duration,
}

impl Evidence {
    /// What was seen of programs that print no reports.
    pub(super) fn without_reports(pair: Pair, traffic: Traffic) -> Self {
        Self { pair, client: None, server: None, traffic, elapsed: Duration::ZERO }
    }

    /// A field of the server's report, or else of the client's.
    fn field(&self, name: &str) -> Option<&Value> {
        [&self.server, &self.client].into_iter().flatten().find_map(|report| report.get(name))
    }
}

/// Judges a download.
pub(super) fn check(case: Case, evidence: &Evidence) -> Result<()> {
    one_handshake(evidence)?;
    within_amplification_limit(evidence)?;
    match case {
        Case::Chacha20 => chacha20_only(evidence),
        Case::Longrtt => took_two_round_trips(evidence.elapsed),
        Case::Amplification => sent_the_long_chain(&evidence.traffic),
        Case::Retry => met_a_retry(&evidence.traffic),
        _ => Ok(()),
    }
}

fn one_handshake(evidence: &Evidence) -> Result<()> {
    match evidence.field("handshakes") {
        Some(handshakes) if *handshakes != json!(1) => {
            Err(format!("{handshakes} handshakes instead of one").into())
        }
        _ => Ok(()),
    }
}

/// RFC 9000 §8.1: at most three times what came, until the client's address is validated.
///
/// Fulmar has to obey to the byte. Strangers are not on trial here and get the tolerance of the interop runner, since
/// some finish the datagram that crosses the limit.
fn within_amplification_limit(evidence: &Evidence) -> Result<()> {
    let tolerance = if evidence.pair.server == Peer::Fulmar { 3 } else { 4 };
    match evidence.traffic.amplification {
        Some(breach) if breach.exceeds(tolerance) => Err(format!(
            "the server sent {} bytes for {} before the client's address was validated",
            breach.sent, breach.received
        )
        .into()),
        _ => Ok(()),
    }
}

fn chacha20_only(evidence: &Evidence) -> Result<()> {
    if let Some(offered) = evidence.field("offered_suites")
        && *offered != json!([CHACHA20])
    {
        return Err(format!("the client offered {offered}").into());
    }
    match evidence.field("cipher_suite") {
        Some(suite) if *suite != json!(CHACHA20) => Err(format!("the cipher suite was {suite}").into()),
        _ => Ok(()),
    }
}

/// One for the handshake and one for the request; less would mean that the relay did not delay.
fn took_two_round_trips(elapsed: Duration) -> Result<()> {
    if elapsed < 2 * LONG_RTT {
        return Err(format!("only {} ms over the long link", elapsed.as_millis()).into());
    }
    Ok(())
}

fn sent_the_long_chain(traffic: &Traffic) -> Result<()> {
    if traffic.from_server.bytes < LONG_CHAIN_BYTES_MIN as u64 {
        return Err(
            format!("the server sent {} bytes, which is no long chain", traffic.from_server.bytes).into()
        );
    }
    if !traffic.client_validated {
        return Err("the client never sent a Handshake packet".into());
    }
    Ok(())
}

/// A server that keeps no state may answer each Initial packet of a long ClientHello with a Retry.
fn met_a_retry(traffic: &Traffic) -> Result<()> {
    if traffic.retries == 0 {
        return Err("the server sent no Retry".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests;

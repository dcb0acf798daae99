//! The client of good faith, whose requests have to be answered whatever others do.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fulmar_base::Rng;

use super::client::{Client, PATIENCE, Profile};
use crate::Result;

/// The size of an answer.
pub(super) const ANSWER_BYTES: u64 = 1_000;

/// Connects anew and makes one request after the other for a while. Gives the latencies, each of an answer that was complete.
pub(super) fn requests(
    profile: &Profile,
    server: SocketAddr,
    request: &[u8],
    duration: Duration,
    rng: &mut Rng,
) -> Result<Latencies> {
    let mut client = Client::dial(profile, server, rng)
        .map_err(|error| format!("a client of good faith could not connect: {error}"))?;
    client.confirm()?;
    let start = Instant::now();
    let mut latencies = Vec::new();
    while start.elapsed() < duration {
        let begin = Instant::now();
        ask(&mut client, request)
            .map_err(|error| format!("a request of good faith got no answer: {error}"))?;
        latencies.push(begin.elapsed());
    }
    client.close()?;
    latencies.sort_unstable();
    Ok(Latencies(latencies))
}

fn ask(client: &mut Client, request: &[u8]) -> Result<()> {
    let mut id = None;
    client.wait_until(PATIENCE, |client| {
        id = id.or_else(|| client.ask(request, true).ok().flatten());
        id.is_some()
    })?;
    let id = id.ok_or("the server lets no stream be opened")?;
    let (mut received, mut ended) = (0, false);
    client.wait_until(PATIENCE, |client| {
        if let Ok((len, is_end)) = client.drain(id, usize::MAX) {
            received += len as u64;
            ended = is_end;
        }
        ended
    })?;
    match ended && received == ANSWER_BYTES {
        true => Ok(()),
        false => Err(format!("{received} of {ANSWER_BYTES} bytes arrived").into()),
    }
}

/// How long answers took, the quickest first.
pub(super) struct Latencies(Vec<Duration>);

impl Latencies {
    /// What 99 of a hundred do not exceed, in microseconds.
    pub(super) fn p99_us(&self) -> f64 {
        let place = (self.0.len() * 99).div_ceil(100).saturating_sub(1);
        self.0.get(place).map_or(f64::INFINITY, |latency| latency.as_secs_f64() * 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_hundred_may_be_slower() {
        let latencies = |count: u64| Latencies((1..=count).map(Duration::from_micros).collect());
        assert_eq!(latencies(100).p99_us(), 99.0);
        assert_eq!(latencies(1_000).p99_us(), 990.0);
        assert_eq!(latencies(1).p99_us(), 1.0);
        assert!(latencies(0).p99_us().is_infinite(), "no answer is not quick");
    }
}

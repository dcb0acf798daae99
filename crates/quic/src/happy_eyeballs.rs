//! Reaching a server that has several addresses, of which some may be silent (Happy Eyeballs, RFC 8305).
//!
//! ```
//! use fulmar::{Connection, ConnectionError, Endpoint, happy_eyeballs};
//!
//! async fn connect(endpoint: &Endpoint, host: &str, port: u16) -> Result<Connection, Box<dyn std::error::Error>> {
//!     let addresses = happy_eyeballs::in_turn(tokio::net::lookup_host((host, port)).await?);
//!     let connection = happy_eyeballs::first(&addresses, |address| {
//!         let connecting = endpoint.connect(address, host)?;
//!         Ok(async move { connecting.await.map_err(Box::<dyn std::error::Error>::from) })
//!     });
//!     connection.await.map_err(|mut failures| failures.pop().unwrap_or_else(|| "the name has no address".into()))
//! }
//! ```

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

/// How long an attempt has before the next one begins beside it (RFC 8305 §5, Connection Attempt Delay).
pub const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// How many addresses of a name are tried.
pub const ADDRESSES_MAX: usize = 8;

/// At most [`ADDRESSES_MAX`] different addresses: one of the family of the first, one of the other, and so on (RFC 8305 §4).
pub fn in_turn(found: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut families: [Vec<SocketAddr>; 2] = Default::default();
    let mut first_is_ipv4 = None;
    for address in found {
        let first_is_ipv4 = *first_is_ipv4.get_or_insert(address.is_ipv4());
        let family = &mut families[usize::from(address.is_ipv4() != first_is_ipv4)];
        if family.len() < ADDRESSES_MAX && !family.contains(&address) {
            family.push(address);
        }
    }
    let len = families[0].len().max(families[1].len());
    let turns = (0..len).flat_map(|n| families.iter().filter_map(move |family| family.get(n).copied()));
    turns.take(ADDRESSES_MAX).collect()
}

/// The outcome of the first attempt that succeeds. `start` begins one for each candidate, in their order: the next one when [`ATTEMPT_DELAY`] has passed, or
/// as soon as one has failed. The others are dropped, as are all when this future is.
///
/// # Errors
/// If none succeeds: how each failed, the first one to fail in front. Nothing if there was no candidate.
pub async fn first<A, T, E, F>(
    candidates: &[A],
    mut start: impl FnMut(A) -> Result<F, E>,
) -> Result<T, Vec<E>>
where
    A: Copy,
    F: Future<Output = Result<T, E>>,
{
    let mut candidates = candidates.iter().copied().peekable();
    let mut attempts: Vec<Pin<Box<F>>> = Vec::new();
    let mut failures = Vec::new();
    loop {
        match candidates.next().map(&mut start) {
            Some(Ok(attempt)) => attempts.push(Box::pin(attempt)),
            Some(Err(failure)) => {
                failures.push(failure);
                continue;
            }
            None if attempts.is_empty() => return Err(failures),
            None => {}
        }
        let ended = match candidates.peek() {
            Some(_) => tokio::time::timeout(ATTEMPT_DELAY, first_to_end(&mut attempts)).await.ok(),
            None => Some(first_to_end(&mut attempts).await),
        };
        match ended {
            Some(Ok(winner)) => return Ok(winner),
            Some(Err(failure)) => failures.push(failure),
            None => {}
        }
    }
}

/// The outcome of whichever attempt is over first. It is taken out.
async fn first_to_end<F: Future>(attempts: &mut Vec<Pin<Box<F>>>) -> F::Output {
    poll_fn(|cx| {
        for index in 0..attempts.len() {
            if let Poll::Ready(outcome) = attempts[index].as_mut().poll(cx) {
                drop(attempts.remove(index));
                return Poll::Ready(outcome);
            }
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests;

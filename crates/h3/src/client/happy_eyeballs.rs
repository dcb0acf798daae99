//! Connecting to the first of several addresses that answers (RFC 8305).

use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::error::Error;

/// How long an address has before the next one is tried beside it (RFC 8305 §5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// How many addresses of a name are tried.
pub(super) const ADDRESSES_MAX: usize = 8;

/// The addresses of a name, as the system gives them, the families in turn (RFC 8305 §4).
pub(super) async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
    let found = tokio::net::lookup_host((host, port)).await.map_err(Error::Resolve)?;
    let addresses = in_turn(found);
    if addresses.is_empty() {
        let none = std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
        return Err(Error::Resolve(none));
    }
    Ok(addresses)
}

/// At most [`ADDRESSES_MAX`] different addresses: one of the family of the first, one of the other, and so on.
pub(super) fn in_turn(found: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
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

/// Connects to the first address that answers. Each has a head start over the next one; one that fails has none.
///
/// # Errors
/// That of the last attempt that failed.
pub(super) async fn connect<A, T, F>(
    addresses: &[A],
    mut start: impl FnMut(A) -> Result<F, Error>,
) -> Result<T, Error>
where
    A: Copy,
    F: Future<Output = Result<T, Error>> + Send + 'static,
    T: Send + 'static,
{
    let mut last_error = None;
    let mut attempts = JoinSet::new();
    for &address in addresses {
        match start(address) {
            Ok(attempt) => attempts.spawn(attempt),
            Err(error) => {
                last_error = Some(error);
                continue;
            }
        };
        match tokio::time::timeout(ATTEMPT_DELAY, attempts.join_next()).await {
            Ok(Some(Ok(Ok(connection)))) => return Ok(connection),
            Ok(Some(Ok(Err(error)))) => last_error = Some(error),
            _ => {}
        }
    }
    while let Some(joined) = attempts.join_next().await {
        match joined {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => last_error = Some(error),
            Err(_) => {}
        }
    }
    let none = || Error::Resolve(std::io::ErrorKind::NotFound.into());
    Err(last_error.unwrap_or_else(none))
}

#[cfg(test)]
mod tests;

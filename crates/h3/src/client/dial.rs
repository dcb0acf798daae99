//! Connecting by name.

use std::time::Duration;

use fulmar::{Connection, Endpoint};
use tokio::task::JoinSet;

use crate::error::Error;

/// How long an address has before the next one is tried beside it (RFC 8305 §5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// How many addresses of a name are tried.
const ADDRESSES_MAX: usize = 8;

/// Connects to the first address of a host that answers.
pub(super) async fn dial(endpoint: &Endpoint, host: &str, port: u16) -> Result<Connection, Error> {
    let addresses = tokio::net::lookup_host((host, port)).await.map_err(Error::Resolve)?;
    let none = std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
    let mut last_error = Error::Resolve(none);
    let mut attempts = JoinSet::new();
    for address in addresses.take(ADDRESSES_MAX) {
        match endpoint.connect(address, host) {
            Ok(connecting) => attempts.spawn(connecting),
            Err(error) => {
                last_error = error.into();
                continue;
            }
        };
        match tokio::time::timeout(ATTEMPT_DELAY, attempts.join_next()).await {
            Ok(Some(Ok(Ok(connection)))) => return Ok(connection),
            Ok(Some(Ok(Err(error)))) => last_error = error.into(),
            _ => {}
        }
    }
    while let Some(joined) = attempts.join_next().await {
        match joined {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => last_error = error.into(),
            Err(_) => {}
        }
    }
    Err(last_error)
}

//! What is remembered of servers, and the file that it is kept in.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use fulmar::SessionStore;

use super::Item;
use crate::args::GetArgs;
use crate::failure::Failure;
use crate::part::PartFile;

/// How many servers are remembered.
const SERVERS_MAX: usize = 256;

/// What the file holds, if there is one.
pub(super) fn load(file: Option<&Path>) -> Result<Arc<SessionStore>, Failure> {
    let store = SessionStore::new(SERVERS_MAX);
    let Some(file) = file else { return Ok(store) };
    match fs::read(file) {
        Ok(bytes) => store
            .add_bytes(&bytes)
            .map_err(|error| Failure::Usage(format!("{} cannot be used: {error}", file.display())))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Failure::io(format!("cannot read {}", file.display()))(error)),
    }
    Ok(store)
}

/// Writes the file anew: it is never seen half written.
pub(super) fn save(file: Option<&Path>, store: &SessionStore) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    PartFile::replace(file, &store.to_bytes())
}

/// The files for the first connection to a server and, if a session is to be resumed, those for the second.
pub(super) fn split(args: &GetArgs, mut items: Vec<Item>) -> (Vec<Item>, Vec<Item>) {
    let others = if args.reconnect || args.early { items.split_off(items.len().min(1)) } else { Vec::new() };
    (items, others)
}

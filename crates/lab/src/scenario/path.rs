//! `[[path]]`: links side by side, each between an address of the client and one of the server.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use serde::Deserialize;

use super::File;
use super::link::{LinkSpec, LinkSpecs, ScheduleSpec};
use super::values::Seconds;
use crate::{LabPath, SERVER_ADDRESS};

/// The most paths of a scenario.
const PATHS_MAX: usize = 16;

/// A path of the client.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PathSpec {
    name: String,
    /// The client's address; without one, it gets its own.
    client: Option<IpAddr>,
    /// The server's address; without one, that of the other paths.
    server: Option<IpAddr>,
    link: LinkSpec,
    up: LinkSpec,
    down: LinkSpec,
    /// Whether the client wants it as a backup.
    backup: bool,
    /// When the client abandons it.
    abandoned_at_s: Option<Seconds>,
    pub(super) schedule: Vec<ScheduleSpec>,
}

impl PathSpec {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn specs(&self) -> LinkSpecs<'_> {
        LinkSpecs { both: &self.link, up: &self.up, down: &self.down, schedule: &self.schedule }
    }

    /// The addresses of the client and of the server; `number` counts the paths of the file from 0.
    fn addresses(&self, number: usize) -> (IpAddr, IpAddr) {
        let own = IpAddr::from(Ipv4Addr::new(10, 0, number as u8, 1));
        (self.client.unwrap_or(own), self.server.unwrap_or(SERVER_ADDRESS))
    }

    /// The path in the lab.
    pub(super) fn model(&self, number: usize, seed: u64) -> LabPath {
        let (client, server) = self.addresses(number);
        let (up, down) = self.specs().build(seed);
        LabPath {
            name: self.name.clone(),
            client,
            server,
            up,
            down,
            is_backup: self.backup,
            abandoned_at: self.abandoned_at_s.map(|at| at.0),
        }
    }
}

/// The first path that makes no sense, by its number, and why; without a number it is about the whole file.
pub(super) fn problem(file: &File) -> Option<(Option<usize>, String)> {
    let whole = |message: &str| Some((None, message.to_owned()));
    let paths = &file.path;
    if paths.is_empty() {
        return file.only.as_ref().and_then(|_| whole("`only` names a `[[path]]`, and there is none"));
    }
    let plain = LinkSpec::default();
    if file.link != plain || file.up != plain || file.down != plain || !file.schedule.is_empty() {
        return whole("a scenario has a `[link]`, or a `[[path]]` for each link, not both");
    }
    if file.nat.is_some() || !file.shift.is_empty() {
        return whole("`[nat]` and `[[shift]]` are about a `[link]`, and there are `[[path]]`s");
    }
    if paths.len() > PATHS_MAX {
        return whole(&format!("a scenario has at most {PATHS_MAX} paths"));
    }
    if let Some(only) = &file.only
        && !paths.iter().any(|path| path.name == *only)
    {
        let names: Vec<&str> = paths.iter().map(PathSpec::name).collect();
        return whole(&format!("`only` is one of {}, not {only}", names.join(", ")));
    }
    (0..paths.len()).find_map(|number| Some((Some(number), path_problem(paths, number)?)))
}

/// What makes no sense about a path, next to those before it.
fn path_problem(paths: &[PathSpec], number: usize) -> Option<String> {
    let before = &paths[..number];
    let PathSpec { name, .. } = &paths[number];
    if name.is_empty() {
        return Some("a path needs a `name`".to_owned());
    }
    if before.iter().any(|other| other.name == *name) {
        return Some(format!("another path is called {name}, too"));
    }
    let (client, server) = paths[number].addresses(number);
    if client.is_ipv4() != server.is_ipv4() {
        return Some(format!("{client} cannot reach {server}"));
    }
    let taken = before.iter().enumerate().map(|(number, path)| path.addresses(number));
    let (clients, servers): (BTreeSet<_>, BTreeSet<_>) = taken.unzip();
    // What goes back is told apart by the client's address alone.
    if clients.contains(&client) || servers.contains(&client) || client == server {
        return Some(format!("{client} is the address of another end"));
    }
    clients.contains(&server).then(|| format!("{server} is an address of the client"))
}

#[cfg(test)]
mod tests;

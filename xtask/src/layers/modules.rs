//! Which module of a crate may use which.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::source::{NamedPath, Source};
use crate::Result;
use crate::programs::repository;

/// The modules at the root of a crate, each with those that it may use. Users of a module stand below it, so there is no
/// circle.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModuleLayers {
    /// The folder of the crate in the repository.
    folder: &'static str,
    modules: &'static [(&'static str, &'static [&'static str])],
}

/// The crates whose modules have layers.
const CRATES: &[ModuleLayers] = &[PROTO, QPACK, H3_PROTO, QUIC, H3];

const PROTO: ModuleLayers = ModuleLayers {
    folder: "crates/proto",
    modules: &[
        ("cids", &[]),
        ("packed", &[]),
        ("datagram", &["packed"]),
        ("error", &[]),
        ("reliable", &[]),
        ("rtt", &["packed"]),
        ("scheduler", &[]),
        ("memory", &[]),
        ("slices", &[]),
        ("crypto", &["error"]),
        ("ids", &["crypto", "packed"]),
        ("log", &["crypto", "datagram", "ids"]),
        ("congestion", &["datagram", "packed", "rtt"]),
        ("packet", &["congestion", "crypto", "datagram", "ids", "log"]),
        ("space", &["datagram", "error", "ids", "log", "memory", "packed", "packet", "rtt"]),
        ("streams", &["error", "memory", "packet", "reliable", "slices"]),
        ("datagrams", &["error", "memory", "packet", "slices"]),
        ("ext", &["error", "ids", "log", "memory", "packed", "packet", "reliable", "rtt", "space"]),
        ("sessions", &["congestion"]),
        ("coupling", &["congestion"]),
        (
            "config",
            &["cids", "congestion", "coupling", "crypto", "ext", "rtt", "scheduler", "sessions", "streams"],
        ),
        ("tokens", &["config", "crypto", "streams"]),
        ("events", &["crypto", "datagram", "error", "streams"]),
        (
            "path",
            &[
                "config",
                "congestion",
                "coupling",
                "crypto",
                "datagram",
                "error",
                "events",
                "ext",
                "ids",
                "log",
                "packed",
                "packet",
                "reliable",
                "rtt",
                "scheduler",
                "space",
            ],
        ),
        (
            "connection",
            &[
                "cids",
                "config",
                "congestion",
                "coupling",
                "crypto",
                "datagram",
                "datagrams",
                "error",
                "events",
                "ext",
                "ids",
                "log",
                "memory",
                "packet",
                "path",
                "reliable",
                "rtt",
                "scheduler",
                "sessions",
                "space",
                "streams",
                "tokens",
            ],
        ),
        ("path_manager", &["connection", "datagram", "events"]),
        (
            "endpoint",
            &[
                "cids",
                "config",
                "connection",
                "crypto",
                "datagram",
                "events",
                "ids",
                "memory",
                "packet",
                "sessions",
                "streams",
                "tokens",
            ],
        ),
    ],
};

const QPACK: ModuleLayers = ModuleLayers {
    folder: "crates/qpack",
    modules: &[
        ("error", &[]),
        ("field", &[]),
        ("hash", &[]),
        ("huffman", &[]),
        ("integer", &[]),
        ("prefix", &["error", "field", "integer"]),
        ("static_table", &["hash"]),
        ("string", &["huffman", "integer"]),
        ("table", &["field"]),
        ("instruction", &["integer", "static_table", "string"]),
        ("representation", &["instruction", "integer", "string"]),
        (
            "decoder",
            &[
                "error",
                "field",
                "instruction",
                "integer",
                "prefix",
                "representation",
                "static_table",
                "string",
                "table",
            ],
        ),
        (
            "encoder",
            &[
                "error",
                "field",
                "hash",
                "instruction",
                "integer",
                "prefix",
                "representation",
                "static_table",
                "string",
                "table",
            ],
        ),
    ],
};

const H3_PROTO: ModuleLayers = ModuleLayers {
    folder: "crates/h3-proto",
    modules: &[
        ("config", &[]),
        ("error", &[]),
        ("origin", &[]),
        ("priority", &[]),
        ("varint", &[]),
        ("message", &[]),
        ("capsule", &["varint"]),
        ("datagram", &["error", "varint"]),
        ("frame", &["varint"]),
        ("limits", &["config", "error"]),
        ("settings", &["error", "frame", "varint"]),
        ("event", &["message", "priority", "settings"]),
        ("log", &["frame", "origin", "priority", "settings", "varint"]),
        (
            "connection",
            &[
                "config", "datagram", "error", "event", "frame", "limits", "log", "message", "origin",
                "priority", "settings", "varint",
            ],
        ),
    ],
};

const QUIC: ModuleLayers = ModuleLayers {
    folder: "crates/quic",
    modules: &[
        ("clock", &[]),
        ("error", &[]),
        ("log", &[]),
        ("sync", &[]),
        ("happy_eyeballs", &[]),
        ("tls", &[]),
        ("shared", &["clock", "log", "sync"]),
        ("stream", &["error", "shared"]),
        ("connection", &["clock", "error", "log", "shared", "stream"]),
        ("worker", &["clock", "log", "shared", "sync"]),
        (
            "endpoint",
            &["clock", "connection", "error", "happy_eyeballs", "log", "shared", "sync", "tls", "worker"],
        ),
    ],
};

const H3: ModuleLayers = ModuleLayers {
    folder: "crates/h3",
    modules: &[
        ("error", &[]),
        ("shared", &["error"]),
        ("driver", &["shared"]),
        ("incoming", &["error", "shared"]),
        ("body", &["error", "incoming", "shared"]),
        ("date", &[]),
        ("outgoing", &["date", "error", "incoming", "shared"]),
        ("server", &["body", "driver", "error", "incoming", "outgoing", "shared"]),
        ("client", &["body", "driver", "error", "incoming", "outgoing", "shared"]),
    ],
};

/// A sentence for each breach of the layers within the crates, and the number of modules that have layers.
pub(super) fn breaches() -> Result<(usize, Vec<String>)> {
    let mut breaches = Vec::new();
    for layers in CRATES {
        let root = repository().join(layers.folder).join("src/lib.rs");
        let files = read_tree(&root)?;
        breaches.extend(layers.breaches(&files));
    }
    Ok((CRATES.iter().map(|layers| layers.modules.len()).sum(), breaches))
}

/// A file of a crate.
#[derive(Debug)]
struct File {
    /// How messages name it.
    name: String,
    /// Its module, as the way to it from the root of the crate.
    module: Vec<String>,
    source: Source,
}

/// Reads the files of a crate, from its root along the declarations of modules.
fn read_tree(root: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    let mut waiting = vec![(root.to_owned(), Vec::new())];
    while let Some((path, module)) = waiting.pop() {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let source = Source::read(&text);
        let folder = folder_of_children(&path, &module);
        for child in &source.modules {
            let mut module = module.clone();
            module.push(child.clone());
            waiting.push((file_of(&folder, child), module));
        }
        let name = path.strip_prefix(repository()).unwrap_or(&path).display().to_string();
        files.push(File { name, module, source });
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

/// Where the modules are that a file declares: beside the root and `mod.rs`, and for others in a folder of their name.
fn folder_of_children(path: &Path, module: &[String]) -> PathBuf {
    let stands_for_folder = module.is_empty() || path.file_name().is_some_and(|name| name == "mod.rs");
    if stands_for_folder { path.with_file_name("") } else { path.with_extension("") }
}

fn file_of(folder: &Path, module: &str) -> PathBuf {
    let file = folder.join(format!("{module}.rs"));
    if file.exists() { file } else { folder.join(module).join("mod.rs") }
}

impl ModuleLayers {
    fn breaches(&self, files: &[File]) -> Vec<String> {
        let Some(root) = files.iter().find(|file| file.module.is_empty()) else {
            return vec![format!("{} has no root", self.folder)];
        };
        let modules = &root.source.modules;
        let mut breaches = self.differences(modules);
        let names = names_at_root(&root.source, modules);
        for file in files {
            let Some(user) = file.module.first() else { continue };
            for path in &file.source.paths {
                let place = format!("{}:{}", file.name, path.line);
                match target(path, &file.module, &names) {
                    Target::Own | Target::Elsewhere => {}
                    Target::Module(used) if used == user || self.allows(user, used) => {}
                    Target::Module(used) => breaches.push(format!("{place}: {user} must not use {used}")),
                    Target::Unknown => {
                        let path = path.segments.join("::");
                        breaches.push(format!("{place}: {path} does not say which module it uses"));
                    }
                }
            }
        }
        breaches
    }

    /// How the table differs from the modules that there are.
    fn differences(&self, modules: &[String]) -> Vec<String> {
        let is_listed = |module: &&String| self.modules.iter().any(|(name, _)| name == module);
        let is_there = |(name, _): &&(&str, &[&str])| modules.iter().any(|module| module == name);
        let unlisted = modules.iter().filter(|module| !is_listed(module));
        let gone = self.modules.iter().filter(|entry| !is_there(entry));
        unlisted
            .map(|module| format!("{}: {module} is not in the table of modules", self.folder))
            .chain(gone.map(|(name, _)| format!("{}: the table names {name}, which is gone", self.folder)))
            .collect()
    }

    fn allows(&self, user: &str, used: &str) -> bool {
        self.modules.iter().any(|(name, allowed)| *name == user && allowed.contains(&used))
    }
}

/// What can be named directly below `crate::`, each with the module that it comes from, or `None` if that is another crate.
type NamesAtRoot<'a> = BTreeMap<&'a str, Option<&'a str>>;

fn names_at_root<'a>(root: &'a Source, modules: &'a [String]) -> NamesAtRoot<'a> {
    let mut names: NamesAtRoot<'_> =
        modules.iter().map(|module| (module.as_str(), Some(module.as_str()))).collect();
    for import in &root.uses {
        let mut segments =
            import.segments.iter().map(String::as_str).filter(|s| !matches!(*s, "crate" | "self"));
        let Some(first) = segments.next() else { continue };
        let module = modules.iter().find(|module| *module == first).map(String::as_str);
        let name = import.alias.as_deref().or(segments.next_back()).unwrap_or(first);
        names.entry(name).or_insert(module);
    }
    names
}

/// What a path leads to.
#[derive(Debug, PartialEq, Eq)]
enum Target<'a> {
    /// The module itself that names it, or a part of it.
    Own,
    Module(&'a str),
    /// Another crate, by a name at the root.
    Elsewhere,
    Unknown,
}

fn target<'a>(path: &NamedPath, module: &[String], names: &NamesAtRoot<'a>) -> Target<'a> {
    let up = path.segments.iter().take_while(|segment| *segment == "super").count();
    let below = match path.segments[0].as_str() {
        "crate" => &path.segments[1..],
        "super" if up == module.len() => &path.segments[up..],
        _ => return Target::Own,
    };
    match below.first().and_then(|name| names.get(name.as_str())) {
        Some(Some(module)) => Target::Module(module),
        Some(None) => Target::Elsewhere,
        None => Target::Unknown,
    }
}

#[cfg(test)]
mod tests;

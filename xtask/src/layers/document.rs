//! What ARCHITECTURE.md says of files: that they are there, with what they are said to hold.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::programs::repository;

const DOCUMENT: &str = "ARCHITECTURE.md";
/// Directories that are not part of the repository.
const FOREIGN: [&str; 2] = ["target", ".git"];
const ENDINGS: [&str; 6] = [".rs", ".toml", ".txt", ".json", ".md", ".sh"];
/// What a name behind a file may be in it.
const ITEMS: [&str; 6] = ["fn", "struct", "enum", "trait", "const", "type"];

/// A sentence for each file that is named and not there, or lacks what it is said to hold.
pub(super) fn breaches() -> Result<Vec<String>> {
    let mut files = Vec::new();
    collect(&repository().canonicalize()?, &mut files)?;
    let text = fs::read_to_string(repository().join(DOCUMENT))?;
    let mut breaches = Vec::new();
    for (file, item) in places(&text) {
        let named: Vec<&PathBuf> = files.iter().filter(|path| path.ends_with(file)).collect();
        if named.is_empty() {
            breaches.push(format!("{DOCUMENT} names {file}, which is not there"));
        } else if let Some(item) = item
            && !holds(&named, item)?
        {
            breaches.push(format!("{DOCUMENT} names {item} in {file}, which does not have it"));
        }
    }
    Ok(breaches)
}

/// The files in code spans, each with the item behind its colon: `path/file.rs: Type::function`.
fn places(text: &str) -> Vec<(&str, Option<&str>)> {
    let spans = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let place = |span| {
        let (file, item) =
            str::split_once(span, ": ").map_or((span, None), |(file, item)| (file, Some(item)));
        let is_file = !file.contains(' ') && ENDINGS.iter().any(|ending| file.ends_with(ending));
        is_file.then_some((file, item))
    };
    spans.filter_map(place).collect()
}

/// Whether one of the files has an item of that name; of `Type::function` the last part counts.
fn holds(files: &[&PathBuf], item: &str) -> Result<bool> {
    let name = item.rsplit("::").next().unwrap_or(item);
    for file in files {
        let text = fs::read_to_string(file)?;
        let words: Vec<&str> =
            text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
        if words.windows(2).any(|pair| ITEMS.contains(&pair[0]) && pair[1] == name) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let is_foreign = FOREIGN.iter().any(|name| entry.file_name() == *name);
        match entry.file_type()? {
            kind if kind.is_dir() && !is_foreign => collect(&entry.path(), files)?,
            kind if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_what_they_hold_are_found() {
        let text =
            "See `a/b.rs: Type::make` and `c.toml`.\nNot `Type`, `x: y` or b.rs, `cargo test -p a.rs`.";
        assert_eq!(places(text), [("a/b.rs", Some("Type::make")), ("c.toml", None)]);
        let this = repository().join("xtask/src/layers/document.rs");
        assert!(holds(&[&this], "Any::holds").unwrap());
        assert!(!holds(&[&this], &["absent", "item"].join("_")).unwrap());
    }

    #[test]
    fn the_document_names_what_is_there() {
        assert_eq!(breaches().unwrap(), Vec::<String>::new());
    }
}

//! Under which name a file is kept.

use std::collections::BTreeSet;

use super::url::Url;
use crate::hq::percent_decode;
use crate::part::NAME_MAX;

/// A name for each URL: the last segment of its path. Where that name is taken by an earlier URL, `.2`, `.3` and
/// so on are added.
pub(crate) fn local_names(urls: &[Url]) -> Result<Vec<String>, String> {
    let mut taken = BTreeSet::new();
    let mut names = Vec::with_capacity(urls.len());
    for url in urls {
        let name = last_segment(url).ok_or_else(|| format!("{url} names no file that could be kept"))?;
        let numbered = (2u32..).map(|number| format!("{name}.{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
        let free = free.ok_or_else(|| format!("too many URLs end in {name}"))?;
        taken.insert(free.clone());
        names.push(free);
    }
    Ok(names)
}

/// The last segment of the path, if it is a plain name; decoded, if that is text.
fn last_segment(url: &Url) -> Option<String> {
    let encoded = url.path().rsplit('/').next()?;
    let decoded = percent_decode(encoded.as_bytes()).ok()?;
    let name = String::from_utf8(decoded).unwrap_or_else(|_| encoded.to_owned());
    // Control characters would do mischief when the name is printed; the others are separators somewhere.
    let illegal = |c: char| c.is_control() || matches!(c, '/' | '\\' | ':');
    let plain =
        !matches!(name.as_str(), "" | "." | "..") && name.len() <= NAME_MAX && !name.contains(illegal);
    plain.then_some(name)
}

#[cfg(test)]
mod tests;

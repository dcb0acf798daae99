//! The page that shows a directory.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::time::UNIX_EPOCH;

use fulmar_qlog::rfc3339;

use super::super::directory::Entry;
use crate::size::Size;

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8883;--soft:#8889;--link:light-dark(#0a58ca,#7ab7ff)}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:2rem 1rem}\
h1{font-size:1.25rem;font-weight:600;overflow-wrap:anywhere}\
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}\
table{width:100%;border-collapse:collapse}\
th{font-size:.8rem;font-weight:500;color:var(--soft);text-align:left}\
td,th{padding:.35rem .5rem;border-bottom:1px solid var(--line)}\
td:first-child{overflow-wrap:anywhere;width:100%}\
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums;color:var(--soft)}\
tbody tr:hover{background:#8881}\
.d a{font-weight:600}\
p{color:var(--soft);font-size:.85rem}\
@media(max-width:35rem){.m{display:none}}";

/// The page of the directory that a URL names by `segments`, decoded.
pub(super) fn page(segments: &[Cow<'_, str>], entries: &[Entry], is_all: bool) -> String {
    let mut html = String::with_capacity(2_000 + entries.len() * 200);
    let title = text(segments.last().map_or("/", AsRef::as_ref));
    let _ = write!(
        html,
        "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style><h1>{}</h1>",
        crumbs(segments)
    );
    html.push_str("<table><thead><tr><th>Name<th class=n>Size<th class=\"n m\">Changed (UTC)</thead><tbody>");
    if !segments.is_empty() {
        html.push_str("<tr class=d><td><a href=\"../\">..</a><td class=n><td class=\"n m\">");
    }
    for entry in entries {
        row(&mut html, entry);
    }
    html.push_str("</tbody></table><p>");
    let directories = entries.iter().filter(|entry| entry.is_directory).count();
    let files = entries.len() - directories;
    let bytes = entries.iter().filter(|entry| !entry.is_directory).map(|entry| entry.len).sum();
    let (ies, s) = (if directories == 1 { "y" } else { "ies" }, if files == 1 { "" } else { "s" });
    let _ = write!(html, "{directories} director{ies}, {files} file{s}, {}", Size(bytes));
    if !is_all {
        html.push_str(". There are more, which are not shown");
    }
    html.push_str("</p></html>\n");
    html
}

/// The way to a directory, each step a link but the last.
fn crumbs(segments: &[Cow<'_, str>]) -> String {
    let mut crumbs = String::new();
    for (index, name) in std::iter::once("Home").chain(segments.iter().map(AsRef::as_ref)).enumerate() {
        let up = segments.len() - index;
        if index > 0 {
            crumbs.push_str(" / ");
        }
        let _ = match up {
            0 => write!(crumbs, "{}", text(name)),
            _ => write!(crumbs, "<a href=\"{}\">{}</a>", "../".repeat(up), text(name)),
        };
    }
    crumbs
}

fn row(html: &mut String, entry: &Entry) {
    let slash = if entry.is_directory { "/" } else { "" };
    let class = if entry.is_directory { " class=d" } else { "" };
    let size = if entry.is_directory { String::new() } else { Size(entry.len).to_string() };
    // `./`, so that a name with a colon is no scheme.
    let _ = write!(
        html,
        "<tr{class}><td><a href=\"./{}{slash}\">{}{slash}</a><td class=n>{size}<td class=\"n m\">{}",
        percent_encode(&entry.name),
        text(&entry.name.to_string_lossy()),
        changed(entry)
    );
}

/// Day and minute.
fn changed(entry: &Entry) -> String {
    let since = entry.modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
    since.map(|since| rfc3339(since)[..16].replace('T', " ")).unwrap_or_default()
}

/// Text that stays text in a page.
fn text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A name as a segment of a path: all but unreserved characters is encoded (RFC 3986 §2.3).
pub(super) fn percent_encode(name: &OsStr) -> String {
    let mut encoded = String::with_capacity(name.len());
    for &byte in name.as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            byte => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup_and_links_lead_to_them() {
        let entry = |name: &str, is_directory| Entry {
            name: name.into(),
            is_directory,
            len: 5_000,
            modified: Some(UNIX_EPOCH + std::time::Duration::from_secs(1_795_284_245)),
        };
        let entries = [entry("sub dir", true), entry("<script>&\"'.txt", false), entry("a:b?#%", false)];
        let page = page(&["x & y".into(), "z".into()], &entries, true);
        for part in [
            "<title>z</title>",
            "<a href=\"../../\">Home</a> / <a href=\"../\">x &amp; y</a> / z",
            "<a href=\"./sub%20dir/\">sub dir/</a>",
            "<a href=\"./%3Cscript%3E%26%22%27.txt\">&lt;script&gt;&amp;&quot;&#39;.txt</a>",
            "<a href=\"./a%3Ab%3F%23%25\">",
            "2026-11-21 18:04",
            "5.00 kB",
            "1 directory, 2 files, 10.0 kB",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        assert!(!page.contains("<script"), "{page}");
    }
}

//! From the path of a URL to a path below a directory, and from there to nowhere else.

use std::path::{Component, Path, PathBuf};

use super::BadRequest;

/// The relative path that `target` names: percent-decoded, without a query and without empty segments.
pub(crate) fn relative(target: &[u8]) -> Result<PathBuf, BadRequest> {
    let end = target.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(target.len());
    let encoded = target[..end].strip_prefix(b"/").ok_or(BadRequest::NotGet)?;
    let mut relative = PathBuf::new();
    for segment in encoded.split(|byte| *byte == b'/') {
        // Decoded after it is split: an encoded slash is part of a name, and no file has such a name.
        let name = String::from_utf8(percent_decode(segment)?).map_err(|_| BadRequest::Malformed)?;
        match name.as_str() {
            "" | "." => {}
            ".." => return Err(BadRequest::Outside),
            name => relative.push(plain(name)?),
        }
    }
    Ok(relative)
}

/// `name`, if it is one plain name for the operating system: no separator, no root, no drive, no NUL.
fn plain(name: &str) -> Result<&str, BadRequest> {
    if name.contains('\0') {
        return Err(BadRequest::Malformed);
    }
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only == name => Ok(name),
        _ => Err(BadRequest::Outside),
    }
}

/// Replaces each `%` and two hexadecimal digits by the byte they stand for (RFC 3986 §2.1).
pub(crate) fn percent_decode(encoded: &[u8]) -> Result<Vec<u8>, BadRequest> {
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut bytes = encoded.iter();
    let digit =
        |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16)).ok_or(BadRequest::Malformed);
    while let Some(&byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => (digit(bytes.next())? << 4 | digit(bytes.next())?) as u8,
            byte => byte,
        });
    }
    Ok(decoded)
}

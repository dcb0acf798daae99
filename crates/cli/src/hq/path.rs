//! From the path of a URL to a path below a directory, and from there to nowhere else.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use super::BadRequest;

/// The relative path that `target` names: percent-decoded, without a query and without empty segments.
pub(crate) fn relative(target: &[u8]) -> Result<PathBuf, BadRequest> {
    let end = target.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(target.len());
    let encoded = target[..end].strip_prefix(b"/").ok_or(BadRequest::NotGet)?;
    let mut relative = PathBuf::new();
    for segment in encoded.split(|byte| *byte == b'/') {
        // Decoded after it is split: an encoded slash is part of a name, and no file has such a name.
        let name = name_of(percent_decode(segment)?)?;
        match name.as_encoded_bytes() {
            b"" | b"." => {}
            b".." => return Err(BadRequest::Outside),
            _ => relative.push(plain(&name)?),
        }
    }
    Ok(relative)
}

/// What these bytes name in a directory: any bytes are a name on Unix, and only text elsewhere.
fn name_of(bytes: Vec<u8>) -> Result<OsString, BadRequest> {
    #[cfg(unix)]
    let name = Ok(std::os::unix::ffi::OsStringExt::from_vec(bytes));
    #[cfg(not(unix))]
    let name = String::from_utf8(bytes).map(OsString::from).map_err(|_| BadRequest::Malformed);
    name
}

/// `name`, if it is one plain name for the operating system: no separator, no root, no drive, no NUL.
fn plain(name: &OsStr) -> Result<&OsStr, BadRequest> {
    if name.as_encoded_bytes().contains(&0) {
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

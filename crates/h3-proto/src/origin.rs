//! What a server is authoritative for (ORIGIN, RFC 9412, RFC 8336).

/// The payload of an ORIGIN frame. Origins that are longer than the frame can say are left out.
pub(crate) fn encode(origins: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    for origin in origins {
        if let Ok(len) = u16::try_from(origin.len()) {
            out.extend_from_slice(&len.to_be_bytes());
            out.extend_from_slice(origin.as_bytes());
        }
    }
    out
}

/// The origins of a payload, or nothing if an entry is cut short. Entries that are no text are left out.
pub(crate) fn decode(mut payload: &[u8]) -> Option<Vec<String>> {
    let mut origins = Vec::new();
    while !payload.is_empty() {
        let (len, rest) = payload.split_first_chunk::<2>()?;
        let (origin, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        if let Ok(origin) = std::str::from_utf8(origin) {
            origins.push(origin.to_owned());
        }
        payload = rest;
    }
    Some(origins)
}

//! The TLS secrets of a run, in the format of NSS (draft-ietf-tls-keylogfile).

use std::collections::HashMap;

/// Secrets by what they are for and the random bytes of the ClientHello.
#[derive(Debug, Default)]
pub(crate) struct KeyLog {
    secrets: HashMap<(String, Vec<u8>), Vec<u8>>,
    text: String,
}

impl KeyLog {
    /// Adds the lines of a file; those that are no secrets are skipped.
    pub(crate) fn add(&mut self, text: &str) {
        self.text.push_str(text);
        for line in text.lines() {
            let mut parts = line.split_whitespace();
            let (Some(label), Some(random), Some(secret)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            if let (Some(random), Some(secret)) = (from_hex(random), from_hex(secret)) {
                self.secrets.insert((label.to_owned(), random), secret);
            }
        }
    }

    pub(super) fn secret(&self, label: &str, random: &[u8]) -> Option<&[u8]> {
        self.secrets.get(&(label.to_owned(), random.to_vec())).map(Vec::as_slice)
    }

    /// Whether any secret is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// All lines, for a capture file.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    let value = |digit: u8| char::from(digit).to_digit(16);
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks(2).map(|pair| Some((value(pair[0])? << 4 | value(pair[1])?) as u8)).collect()
}

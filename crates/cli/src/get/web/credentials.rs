//! Who asks: Basic authentication (RFC 7617).

use http::HeaderValue;

/// The alphabet of Base64 (RFC 4648 §4).
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The value of the field `Authorization` for `NAME:PASSWORD`, which is not printed (-v).
///
/// # Errors
/// In a sentence: there is no password, or a character that steers terminals.
pub(super) fn basic(user: &str) -> Result<HeaderValue, String> {
    if !user.contains(':') {
        return Err("a password belongs to the name of a user: write -u NAME:PASSWORD".to_owned());
    }
    if user.chars().any(char::is_control) {
        return Err("a name or password has a control character, which RFC 7617 forbids".to_owned());
    }
    let mut value = HeaderValue::from_str(&format!("Basic {}", base64(user.as_bytes())))
        .map_err(|_| "the name or the password cannot be sent".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let [first, second, third] = std::array::from_fn(|n| u32::from(group.get(n).copied().unwrap_or(0)));
        let bits = first << 16 | second << 8 | third;
        for n in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * n)) as usize % DIGITS.len()];
            text.push(if n <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_those_of_the_standard() {
        // RFC 7617 §2 and §2.1, RFC 4648 §10.
        assert_eq!(basic("Aladdin:open sesame").unwrap(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(basic("test:123\u{a3}").unwrap(), "Basic dGVzdDoxMjPCow==");
        assert_eq!(
            ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes())),
            ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]
        );
        assert!(basic("nobody").is_err() && basic("a:b\n").is_err());
        assert!(basic("a:b").unwrap().is_sensitive());
    }
}

//! A look into a ClientHello before TLS gets it: the server's transport parameters, which name the version of QUIC,
//! depend on the client's (RFC 9368 §2.3), and TLS wants to know them beforehand.

use fulmar_wire::{Reader, Truncated};

const CLIENT_HELLO: u8 = 1;
/// The extension of transport parameters (RFC 9001 §8.2).
const QUIC_TRANSPORT_PARAMETERS: u16 = 0x39;
/// Longer messages are refused by TLS.
const MESSAGE_LEN_MAX: usize = 0xffff;

/// What is seen of the first message of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peeked<'a> {
    /// It has not arrived to its end.
    Incomplete,
    /// It holds these transport parameters.
    Parameters(&'a [u8]),
    /// It is a good message, and there are none: not under the number that they have since QUIC has version 1.
    WithoutParameters,
    /// Nothing that makes sense: TLS will say what is wrong.
    Nonsense,
}

/// Looks at the bytes that a client sends first.
pub(crate) fn peek_client_hello(bytes: &[u8]) -> Peeked<'_> {
    let mut reader = Reader::new(bytes);
    match reader.u8() {
        Err(Truncated) => return Peeked::Incomplete,
        Ok(CLIENT_HELLO) => {}
        Ok(_) => return Peeked::Nonsense,
    }
    let Ok(len) =
        reader.array::<3>().map(|[a, b, c]| usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c))
    else {
        return Peeked::Incomplete;
    };
    if len > MESSAGE_LEN_MAX {
        return Peeked::Nonsense;
    }
    let Ok(body) = reader.bytes(len) else { return Peeked::Incomplete };
    match find_parameters(body) {
        Ok(Some(parameters)) => Peeked::Parameters(parameters),
        Ok(None) => Peeked::WithoutParameters,
        Err(Truncated) => Peeked::Nonsense,
    }
}

/// RFC 8446 §4.1.2: version, random, session ID, cipher suites, compression methods, extensions.
fn find_parameters(body: &[u8]) -> Result<Option<&[u8]>, Truncated> {
    let mut reader = Reader::new(body);
    reader.bytes(2 + 32)?;
    let session_id = reader.u8()?;
    reader.bytes(usize::from(session_id))?;
    let suites = reader.u16()?;
    reader.bytes(usize::from(suites))?;
    let compressions = reader.u8()?;
    reader.bytes(usize::from(compressions))?;
    let len = reader.u16()?;
    let mut extensions = Reader::new(reader.bytes(usize::from(len))?);
    while !extensions.is_empty() {
        let (kind, len) = (extensions.u16()?, extensions.u16()?);
        let value = extensions.bytes(usize::from(len))?;
        if kind == QUIC_TRANSPORT_PARAMETERS {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_hello(extensions: &[u8]) -> Vec<u8> {
        let len = (extensions.len() as u16).to_be_bytes();
        let head = [&[3, 3][..], &[7; 32], &[2, 1, 1], &[0, 2, 0x13, 1], &[1, 0]].concat();
        let body = [&head[..], &len, extensions].concat();
        [&[CLIENT_HELLO, 0], &(body.len() as u16).to_be_bytes()[..], &body].concat()
    }

    #[test]
    fn the_parameters_are_found_when_the_message_is_complete() {
        let hello = client_hello(&[0, 1, 0, 2, 9, 9, 0, 0x39, 0, 3, 1, 2, 3, 0, 2, 0, 0]);
        for len in 0..hello.len() {
            assert_eq!(peek_client_hello(&hello[..len]), Peeked::Incomplete, "{len}");
        }
        assert_eq!(peek_client_hello(&hello), Peeked::Parameters(&[1, 2, 3]));
        assert_eq!(peek_client_hello(&[&hello[..], &[1, 2]].concat()), Peeked::Parameters(&[1, 2, 3]));
    }

    #[test]
    fn nonsense_is_left_to_tls() {
        assert_eq!(peek_client_hello(&client_hello(&[0, 1, 0, 0])), Peeked::WithoutParameters);
        // The number of the drafts.
        let of_draft = client_hello(&[0xff, 0xa5, 0, 3, 1, 2, 3]);
        assert_eq!(peek_client_hello(&of_draft), Peeked::WithoutParameters);
        assert_eq!(peek_client_hello(&client_hello(&[0, 0x39, 0, 9, 1])), Peeked::Nonsense, "cut");
        assert_eq!(peek_client_hello(&[2]), Peeked::Nonsense, "another message");
        assert_eq!(peek_client_hello(&[1, 1, 0, 0]), Peeked::Nonsense, "too long");
        let hello = client_hello(&[0, 0x39, 0, 3, 1, 2, 3]);
        for at in 4..hello.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = hello.clone();
                damaged[at] = value;
                assert_ne!(peek_client_hello(&damaged), Peeked::Incomplete, "byte {at}");
            }
        }
    }
}

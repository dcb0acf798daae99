use super::*;
use crate::crypto::vectors::bytes;

#[test]
fn what_is_exported_is_what_another_implementation_makes_of_the_secret() {
    // Computed with HMAC of Python's library, by the words of RFC 8446 §7.1 and §7.5.
    for (suite, len, expected) in [
        (
            CipherSuite::Aes128Gcm,
            32,
            "27288c5f1fb6e231a678df05a9c711056851771ec8eb72983347e081b4b20301d1d9ba47ebb145a8",
        ),
        (
            CipherSuite::Aes256Gcm,
            48,
            "9f6f9e73639cd0de5b0e7259327eb8bb3c200d7af91eb41e04f40dfc0e3f6182c976cd4c5623ce18",
        ),
    ] {
        let secret: Vec<u8> = (0..len).collect();
        let mut output = [0; 40];
        let exported = Secret::new(suite, &secret).export(b"EXPORTER-fulmar", b"a context", &mut output);
        assert_eq!((exported, output.to_vec()), (Ok(()), bytes(expected)));
    }
}

#[test]
fn labels_and_outputs_that_are_too_long_are_refused() {
    let secret = Secret::new(CipherSuite::Aes128Gcm, &[1; 32]);
    // A label has a length of one byte, prefix included, and an output 255 times that of the hash.
    for (label, len, is_fit) in [(249, 8_160, true), (250, 32, false), (1, 8_161, false), (1, 65_536, false)]
    {
        let exported = secret.export(&vec![b'x'; label], b"", &mut vec![0; len]);
        assert_eq!(exported.is_ok(), is_fit, "{label} {len}");
    }
}

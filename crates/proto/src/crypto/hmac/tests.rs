use aws_lc_rs::hmac;

use super::*;

const HASHES: [(Hash, hmac::Algorithm); 2] =
    [(Hash::Sha256, hmac::HMAC_SHA256), (Hash::Sha384, hmac::HMAC_SHA384)];

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

/// RFC 4231 §4.3 and §4.8: a short key, and one that is longer than a block of either hash.
#[test]
fn the_examples_of_rfc_4231_come_out() {
    let long = b"This is a test using a larger than block-size key and a larger than block-size data. The key needs to \
        be hashed before being used by the HMAC algorithm.";
    let examples: [(&[u8], &[u8], &str, &str); 2] = [
        (
            b"Jefe",
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
        ),
        (
            &[0xaa; 131],
            long,
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
            "6617178e941f020d351e2f254e8fd32c602420feb0b8fb9adccebb82461e99c5a678cc31e799176d3860e6110c46523e",
        ),
    ];
    for (key, message, sha256, sha384) in examples {
        for (hash, expected) in [(Hash::Sha256, sha256), (Hash::Sha384, sha384)] {
            let mut tag = vec![0; hash.len()];
            Key::new(hash, key).mac([message], &mut tag);
            assert_eq!(tag, hex(expected), "{hash:?}");
        }
    }
}

/// Around the lengths at which a hash needs another block, whatever the parts of the message.
#[test]
fn all_lengths_of_keys_and_messages_give_what_another_library_gives() {
    let bytes: Vec<u8> = (0..300_u32).map(|index| (index * 7 % 251) as u8).collect();
    for (hash, other) in HASHES {
        for key in [0, 1, 31, 32, 48, 63, 64, 65, 127, 128, 129, 200] {
            let (key, theirs) = (&bytes[..key], hmac::Key::new(other, &bytes[..key]));
            let ours = Key::new(hash, key);
            for len in 0..280 {
                let (first, rest) = bytes[..len].split_at(len / 3);
                let mut tag = vec![0; hash.len()];
                ours.mac([first, rest], &mut tag);
                let expected = hmac::sign(&theirs, &bytes[..len]);
                assert_eq!(tag, expected.as_ref(), "{hash:?}, {} and {len} bytes", key.len());
                let mut cut = [0; 16];
                ours.clone().mac([&bytes[..len]], &mut cut);
                assert_eq!(cut, expected.as_ref()[..16]);
            }
        }
    }
}

#[test]
fn a_key_is_not_told_by_its_debug_text() {
    assert_eq!(format!("{:?}", Key::new(Hash::Sha256, &[7; 32])), "Key(..)");
}

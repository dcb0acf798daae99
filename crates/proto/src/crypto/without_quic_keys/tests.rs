use super::*;

fn info<'a>(len: &'a [u8; 2], label: &'a [u8]) -> [&'a [u8]; 6] {
    [len, &[14], b"tls13 ", label, &[3], b"abc"]
}

#[test]
fn all_but_packet_keys_is_expanded_as_before() {
    for (suite, secret_len) in [(TLS13_AES_128_GCM_SHA256, 32), (TLS13_AES_256_GCM_SHA384, 48)] {
        let secret = OkmBlock::new(&[7; 48][..secret_len]);
        let (before, now) = (of_tls13(suite).hkdf_provider, of_tls13(lean(suite)).hkdf_provider);
        let (before, now) = (before.expander_for_okm(&secret), now.expander_for_okm(&secret));
        assert_eq!(before.hash_len(), now.hash_len());
        for label in [
            &b"c hs traffic"[..],
            b"finished",
            b"quic ku",
            // As the label of an exporter, whose context is a hash.
            b"quic key",
            b"key",
            b"a label longer than those of TLS 1.3, by far",
        ] {
            assert_eq!(
                before.expand_block(&info(&[0, 32], label)).as_ref(),
                now.expand_block(&info(&[0, 32], label)).as_ref()
            );
            for len in [1, 12, 32, 48, 49, 255, 255 * secret_len] {
                let (mut expected, mut got) = (vec![1; len], vec![2; len]);
                let number = (len as u16).to_be_bytes();
                before.expand_slice(&info(&number, label), &mut expected).unwrap();
                now.expand_slice(&info(&number, label), &mut got).unwrap();
                assert_eq!(expected, got, "{len} bytes");
            }
        }
        assert!(now.expand_slice(&info(&[0; 2], b"key"), &mut vec![0; 255 * secret_len + 1]).is_err());
    }
}

#[test]
fn secrets_are_extracted_as_before() {
    for suite in [TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384] {
        let (before, now) = (of_tls13(suite).hkdf_provider, of_tls13(lean(suite)).hkdf_provider);
        let same = |before: Box<dyn HkdfExpander>, now: Box<dyn HkdfExpander>| {
            assert_eq!(before.hash_len(), now.hash_len());
            for label in [&b"derived"[..], b"c hs traffic"] {
                let info = info(&[0, 32], label);
                assert_eq!(before.expand_block(&info).as_ref(), now.expand_block(&info).as_ref());
            }
        };
        for salt in [None, Some(&[][..]), Some(&[3; 32]), Some(&[4; 48]), Some(&[5; 200])] {
            same(before.extract_from_zero_ikm(salt), now.extract_from_zero_ikm(salt));
            for secret in [&[][..], &[6; 32], &[7; 1_184]] {
                same(before.extract_from_secret(salt, secret), now.extract_from_secret(salt, secret));
            }
        }
    }
}

#[test]
fn packet_keys_of_rustls_refuse_to_work() {
    for suite in aws_lc_without_quic_keys().cipher_suites {
        let Some(suite) = suite.tls13() else { continue };
        let original = rustls::crypto::aws_lc_rs::default_provider().cipher_suites.into_iter();
        let original =
            original.filter_map(|suite| suite.tls13()).find(|other| other.common.suite == suite.common.suite);
        let key_len = original.unwrap().quic.unwrap().aead_key_len();
        let keys = suite.quic_suite().unwrap().keys(&[1; 8], rustls::Side::Client, rustls::quic::Version::V1);
        assert_eq!(suite.quic.unwrap().aead_key_len(), key_len);
        assert!(keys.local.packet.encrypt_in_place(0, &[], &mut [0; 32]).is_err());
        assert!(keys.remote.packet.decrypt_in_place(0, &[], &mut [0; 32]).is_err());
        assert!(keys.local.header.encrypt_in_place(&[0; 16], &mut 0, &mut [0; 2]).is_err());
        assert!(keys.remote.header.decrypt_in_place(&[0; 16], &mut 0, &mut [0; 2]).is_err());
    }
}

#[test]
fn the_suites_of_tls_1_2_are_there_as_well() {
    let names = |provider: CryptoProvider| -> Vec<_> {
        provider.cipher_suites.iter().map(|suite| suite.suite()).collect()
    };
    assert_eq!(names(aws_lc_without_quic_keys()), names(rustls::crypto::aws_lc_rs::default_provider()));
}

#[test]
fn packet_keys_are_not_expanded() {
    let now =
        of_tls13(lean(TLS13_AES_128_GCM_SHA256)).hkdf_provider.expander_for_okm(&OkmBlock::new(&[7; 32]));
    for label in [&b"quic key"[..], b"quic iv", b"quic hp"] {
        let mut output = [1; 16];
        now.expand_slice(&[&[0, 16], &[14], b"tls13 ", label, &[0], &[]], &mut output).unwrap();
        assert_eq!(output, [0; 16]);
    }
}

/// The hash is another library's than that of what has one.
#[test]
fn nothing_claims_a_certificate() {
    for suite in [TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384] {
        assert!(!of_tls13(lean(suite)).hkdf_provider.fips());
    }
}

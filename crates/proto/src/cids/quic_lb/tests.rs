use super::*;

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// Makes and reads the connection ID of one of the draft's examples, which all tell their length.
fn check(config_id: u8, key: Option<&str>, server_id: &str, nonce: &str, cid: &str) {
    let (server_id, nonce, cid) = (hex(server_id), hex(nonce), hex(cid));
    let key = key.map(|key| <[u8; 16]>::try_from(hex(key)).unwrap());
    let config = QuicLbConfig {
        config_id,
        server_id_len: server_id.len(),
        nonce_len: nonce.len(),
        key,
        encodes_len: true,
    };
    let server = QuicLb::server(config.clone(), &server_id).unwrap();
    assert_eq!(server.encode(&nonce, 0xff).as_bytes(), cid);
    assert_eq!(server.cid_len(), cid.len());
    let balancer = QuicLb::balancer(config).unwrap();
    assert_eq!(QuicLb::config_id(&cid), Some(config_id));
    assert_eq!(balancer.server_id(&cid).as_ref(), Some(&server_id));
    // Bytes behind the ID are the server's own.
    assert_eq!(balancer.server_id(&[&cid[..], &[9, 9]].concat()).as_ref(), Some(&server_id));
    assert_eq!(balancer.server_id(&cid[..cid.len() - 1]), None);
}

const KEY: Option<&str> = Some("8f95f09245765f80256934e50c66207f");

#[test]
fn the_plain_examples_of_the_draft() {
    check(0, None, "c4605e", "4504cc4f", "07c4605e4504cc4f");
    // The draft's second one is misprinted: its nonce has nine digits. A tenth makes it whole.
    check(1, None, "350d28b420", "3487d970b0", "2a350d28b4203487d970b0");
}

#[test]
fn the_encrypted_examples_of_the_draft() {
    check(0, KEY, "ed793a", "ee080dbf", "0720b1d07b359d3c");
    check(1, KEY, "ed793a51d49b8f5fab65", "ee080dbf48", "2fcc381bc74cb4fbad2823a3d1f8fed2");
    check(2, KEY, "ed793a51d49b8f5f", "ee080dbf48c0d1e5", "504dd2d05a7b0de9b2b9907afb5ecf8cc3");
    check(0, KEY, "ed793a51d49b8f5fab", "ee080dbf48c0d1e55d", "125779c9cc86beb3a3a4a3ca96fce4bfe0cdbc");
}

#[test]
fn the_worked_example_of_four_passes() {
    let key = Some("fdf726a9893ec05c0632d3956680baf0");
    check(0, key, "31441a", "9c69c275", "0767947d29be054a");
}

#[test]
fn every_length_is_read_as_it_was_made() {
    let mut rng = Rng::from_u64(5);
    for server_id_len in 1..=15 {
        for nonce_len in 4..=19 - server_id_len {
            let key = rng.chance(0.8).then(|| rng.bytes());
            let config =
                QuicLbConfig { config_id: 6, server_id_len, nonce_len, key, encodes_len: rng.chance(0.5) };
            let mut server_id = vec![0; server_id_len];
            rng.fill(&mut server_id);
            let server = QuicLb::server(config.clone(), &server_id).unwrap();
            let cid = server.generate(&mut rng);
            assert_eq!(cid.len(), 1 + server_id_len + nonce_len);
            assert_eq!(QuicLb::balancer(config).unwrap().server_id(cid.as_bytes()), Some(server_id));
        }
    }
}

#[test]
fn ids_of_one_server_have_nothing_in_common_that_shows() {
    let config =
        QuicLbConfig { config_id: 0, server_id_len: 4, nonce_len: 8, key: Some([1; 16]), encodes_len: false };
    let server = QuicLb::server(config, &[1, 2, 3, 4]).unwrap();
    let mut rng = Rng::from_u64(1);
    let cids: Vec<_> = (0..64).map(|_| server.generate(&mut rng)).collect();
    for at in 1..13 {
        let first = cids[0].as_bytes()[at];
        assert!(cids.iter().any(|cid| cid.as_bytes()[at] != first), "byte {at} is constant");
    }
}

#[test]
fn what_cannot_be_used_is_refused_and_what_cannot_be_routed_is_not_read() {
    let good = QuicLbConfig { config_id: 0, server_id_len: 4, nonce_len: 8, key: None, encodes_len: true };
    let of = |config| QuicLb::balancer(config).err();
    assert_eq!(of(QuicLbConfig { config_id: 7, ..good.clone() }), Some(QuicLbError::ConfigId));
    assert_eq!(of(QuicLbConfig { server_id_len: 0, ..good.clone() }), Some(QuicLbError::Lengths));
    assert_eq!(of(QuicLbConfig { nonce_len: 3, ..good.clone() }), Some(QuicLbError::Lengths));
    assert_eq!(of(QuicLbConfig { nonce_len: 16, ..good.clone() }), Some(QuicLbError::Lengths));
    assert_eq!(QuicLb::server(good.clone(), &[1; 3]).err(), Some(QuicLbError::ServerId));
    let balancer = QuicLb::balancer(good).unwrap();
    assert_eq!(balancer.server_id(&[]), None);
    assert_eq!(balancer.server_id(&[0xe0; 20]), None, "0b111 is never routed");
    assert_eq!(balancer.server_id(&[0x20; 20]), None, "another configuration");
}

use super::*;
use crate::crypto::ResetKey;

const NOW: Instant = Instant::from_millis(1_000_000);
const WINDOWS: ReceiveCredit = ReceiveCredit { stream: 5_000_000, connection: 7_000_000 };
const KNOWN: TokenVerdict = TokenVerdict::Known { window_hint: WINDOWS };

struct Scene {
    issuer: TokenIssuer,
    verifier: TokenVerifier,
    rng: Rng,
    remote: SocketAddr,
    dst: ConnectionId,
    original: ConnectionId,
}

impl Scene {
    fn new(config: &AddressValidation) -> Self {
        let endpoint = EndpointConfig::new(ResetKey::new(&[1; 32]));
        Self {
            issuer: TokenIssuer::new(&endpoint, config),
            verifier: TokenVerifier::default(),
            rng: Rng::from_u64(1),
            remote: "192.0.2.1:4433".parse().unwrap(),
            dst: ConnectionId::new(&[1; 8]).unwrap(),
            original: ConnectionId::new(&[2; 9]).unwrap(),
        }
    }

    fn retry_token(&mut self) -> Vec<u8> {
        let cids = (&self.original, &self.dst);
        self.issuer.retry_token(&mut self.rng, NOW, Version::V1, self.remote, cids)
    }

    fn new_token(&mut self) -> Vec<u8> {
        self.issuer.new_token(&mut self.rng, NOW, Version::V1, self.remote.ip(), &WINDOWS)
    }

    /// A token for later connections with these contents, sealed as all are.
    fn token_of(&mut self, contents: &[u8]) -> Vec<u8> {
        let context = context(KIND_NEW_TOKEN, Version::V1, self.remote.ip());
        self.issuer.seal(&mut self.rng, KIND_NEW_TOKEN, &context, contents)
    }

    fn check_at(&mut self, now: Instant, remote: &str, token: &[u8]) -> TokenVerdict {
        let from = (remote.parse().unwrap(), &self.dst);
        self.verifier.check(&self.issuer, now, Version::V1, from, token)
    }

    fn check(&mut self, token: &[u8]) -> TokenVerdict {
        self.check_at(NOW, "192.0.2.1:4433", token)
    }
}

fn scene() -> Scene {
    Scene::new(&AddressValidation::default())
}

#[test]
fn a_retry_token_is_good_for_one_address_and_one_connection_id_and_a_short_time() {
    let mut scene = scene();
    let token = scene.retry_token();
    let good = TokenVerdict::Retried { original_dcid: scene.original };
    assert_eq!(scene.check(&token), good);
    assert_eq!(scene.check_at(NOW, "[::ffff:192.0.2.1]:4433", &token), good, "the same host");
    assert_eq!(scene.check_at(NOW, "192.0.2.1:4434", &token), TokenVerdict::InvalidRetry);
    assert_eq!(scene.check_at(NOW, "192.0.2.2:4433", &token), TokenVerdict::InvalidRetry);
    let last = NOW + Duration::from_secs(60);
    assert_eq!(scene.check_at(last, "192.0.2.1:4433", &token), good);
    let late = last + Duration::from_millis(1);
    assert_eq!(scene.check_at(late, "192.0.2.1:4433", &token), TokenVerdict::InvalidRetry);
    scene.dst = ConnectionId::new(&[3; 8]).unwrap();
    assert_eq!(scene.check(&token), TokenVerdict::InvalidRetry);
}

#[test]
fn a_token_of_an_earlier_connection_is_good_once_for_one_host_and_version() {
    let mut scene = scene();
    let token = scene.new_token();
    assert_eq!(scene.check_at(NOW, "192.0.2.2:4433", &token), TokenVerdict::Nothing);
    let v2 = scene.verifier.check(&scene.issuer, NOW, Version::V2, (scene.remote, &scene.dst), &token);
    assert_eq!(v2, TokenVerdict::Nothing);
    assert_eq!(scene.check_at(NOW, "192.0.2.1:1", &token), KNOWN, "another port");
    assert_eq!(scene.check(&token), TokenVerdict::Nothing, "it was used");
    let token = scene.new_token();
    let late = NOW + Duration::from_secs(24 * 60 * 60) + Duration::from_millis(1);
    assert_eq!(scene.check_at(late, "192.0.2.1:1", &token), TokenVerdict::Nothing);
    let future = Instant::from_millis(1_000_000 - 10_001);
    assert_eq!(scene.check_at(future, "192.0.2.1:1", &token), TokenVerdict::Nothing);
}

#[test]
fn a_token_of_another_format_proves_the_address_and_says_nothing_of_windows() {
    let mut scene = scene();
    let issued = scene.issuer.millis(NOW).to_be_bytes();
    let nothing_known = TokenVerdict::Known { window_hint: ReceiveCredit::default() };
    let later = [&issued[..], &[FORMAT_WINDOW_HINT + 1], &[0xff; 16]].concat();
    let cut = [&issued[..], &[FORMAT_WINDOW_HINT], &[0xff; 15]].concat();
    for contents in [&issued[..], &later, &cut] {
        let token = scene.token_of(contents);
        assert_eq!(scene.check(&token), nothing_known, "{} bytes", contents.len());
    }
    let token = scene.token_of(&issued[..7]);
    assert_eq!(scene.check(&token), TokenVerdict::Nothing, "not even a time");
}

#[test]
fn a_flipped_bit_anywhere_in_a_token_is_refused() {
    let mut scene = scene();
    for token in [scene.retry_token(), scene.new_token()] {
        for bit in 0..8 * token.len() {
            let mut damaged = token.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let verdict = scene.check(&damaged);
            assert!(
                matches!(verdict, TokenVerdict::Nothing | TokenVerdict::InvalidRetry),
                "bit {bit}: {verdict:?}"
            );
        }
        for len in 0..token.len() {
            let verdict = scene.check(&token[..len]);
            assert!(matches!(verdict, TokenVerdict::Nothing | TokenVerdict::InvalidRetry), "{len} bytes");
        }
        assert!(matches!(scene.check(&token), KNOWN | TokenVerdict::Retried { .. }));
    }
}

#[test]
fn tokens_of_other_servers_are_not_held_against_the_client() {
    let mut scene = scene();
    let keys = Some(TokenKeys::new([9; 32]));
    let mut other_server = Scene::new(&AddressValidation { keys, ..AddressValidation::default() });
    for token in [other_server.retry_token(), other_server.new_token(), vec![0; 60], vec![KIND_RETRY]] {
        assert_eq!(scene.check(&token), TokenVerdict::Nothing);
    }
}

#[test]
fn the_memory_of_used_tokens_is_bounded_and_none_is_used_twice() {
    let config = AddressValidation { used_tokens_max: 100, ..AddressValidation::default() };
    let mut scene = Scene::new(&config);
    let tokens: Vec<Vec<u8>> = (0..1_000)
        .map(|n| {
            let at = NOW + Duration::from_millis(n);
            scene.issuer.new_token(&mut scene.rng, at, Version::V1, scene.remote.ip(), &WINDOWS)
        })
        .collect();
    let now = NOW + Duration::from_secs(1);
    for token in &tokens {
        assert_eq!(scene.check_at(now, "192.0.2.1:1", token), KNOWN);
        assert!(scene.verifier.used.lock().unwrap().tokens.len() <= 100);
    }
    for token in &tokens {
        assert_eq!(scene.check_at(now, "192.0.2.1:1", token), TokenVerdict::Nothing);
    }
    // What was issued before the oldest one that is remembered counts as used, even if it was not.
    let early = scene.new_token();
    assert_eq!(scene.check_at(now, "192.0.2.1:1", &early), TokenVerdict::Nothing);
}

#[test]
fn as_many_used_tokens_as_may_be_are_remembered_before_the_oldest_goes() {
    let mut used = UsedTokens::default();
    assert!(used.insert(10, [1; SALT_LEN], 0, 2) && used.insert(20, [2; SALT_LEN], 0, 2));
    assert!(used.insert(5, [3; SALT_LEN], 0, 2), "nothing was forgotten so far");
    assert!(!used.insert(5, [4; SALT_LEN], 0, 2), "it may be the one that was forgotten");
    assert!(!used.insert(20, [2; SALT_LEN], 0, 2));
}

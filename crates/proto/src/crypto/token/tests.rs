use super::*;

const CONTEXT: &[u8] = b"where it came from";

fn seal(keys: &TokenKeys) -> Vec<u8> {
    keys.seal([7; SALT_LEN], CONTEXT, b"contents")
}

fn authentic() -> OpenedToken {
    OpenedToken::Authentic { salt: [7; SALT_LEN], contents: b"contents".to_vec() }
}

#[test]
fn whoever_shares_a_key_opens_its_tokens_also_after_it_was_replaced() {
    let old = TokenKeys::new([1; 32]);
    let rotated = TokenKeys::new([2; 32]).with_previous([1; 32]);
    assert_eq!(rotated.open(CONTEXT, &seal(&old)), authentic());
    assert_eq!(rotated.open(CONTEXT, &seal(&rotated)), authentic());
    assert_eq!(old.open(CONTEXT, &seal(&rotated)), OpenedToken::Foreign);
}

#[test]
fn a_flipped_bit_anywhere_a_cut_or_another_context_is_refused() {
    let keys = TokenKeys::new([1; 32]);
    let token = seal(&keys);
    for bit in 0..8 * token.len() {
        let mut damaged = token.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(!matches!(keys.open(CONTEXT, &damaged), OpenedToken::Authentic { .. }), "bit {bit}");
    }
    for len in 0..token.len() {
        assert!(!matches!(keys.open(CONTEXT, &token[..len]), OpenedToken::Authentic { .. }), "{len} bytes");
    }
    let longer = [&token[..], &[0]].concat();
    assert_eq!(keys.open(CONTEXT, &longer), OpenedToken::Forged);
    assert_eq!(keys.open(b"elsewhere", &token), OpenedToken::Forged);
}

#[test]
fn keys_are_read_from_text() {
    let (first, second) = ("0a".repeat(32), "FF".repeat(32));
    let keys = TokenKeys::parse(&format!("# current\n{first}\n\n  {second}  \n")).unwrap();
    assert_eq!(keys.open(CONTEXT, &seal(&TokenKeys::new([0x0a; 32]))), authentic());
    assert_eq!(keys.open(CONTEXT, &seal(&TokenKeys::new([0xff; 32]))), authentic());
    assert_eq!(seal(&keys), seal(&TokenKeys::new([0x0a; 32])), "the first one seals");
    assert_eq!(TokenKeys::parse("# nothing\n").unwrap_err(), TokenKeysError::Empty);
    assert_eq!(
        TokenKeys::parse(&format!("{first}\n{}", &first[1..])).unwrap_err(),
        TokenKeysError::NotAKey(2)
    );
    assert_eq!(TokenKeys::parse(&"é".repeat(32)).unwrap_err(), TokenKeysError::NotAKey(1));
    let many = format!("{first}\n").repeat(KEYS_MAX + 1);
    assert_eq!(TokenKeys::parse(&many).unwrap_err(), TokenKeysError::TooMany);
}

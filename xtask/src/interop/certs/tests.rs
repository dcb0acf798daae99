use super::*;

#[test]
fn the_long_chain_exceeds_what_the_amplification_limit_lets_through_at_first() {
    let authority =
        CertifiedIssuer::self_signed(authority_params("authority", 0).unwrap(), KeyPair::generate().unwrap())
            .unwrap();
    let chain = long_chain(&authority, &KeyPair::generate().unwrap()).unwrap();
    assert_eq!(chain.len(), LONG_CHAIN_LEN);
    let bytes: usize = chain.iter().map(|certificate| certificate.der().len()).sum();
    assert!(bytes > LONG_CHAIN_BYTES_MIN, "{bytes} bytes");
    // TLS 1.3 lets a message have 2^24 bytes, but common limits on buffered handshake data are near 64 KiB.
    assert!(bytes < 20_000, "{bytes} bytes");
}

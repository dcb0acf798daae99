use super::*;

fn circumstances(of: &[u8], limits: &[u64]) -> Circumstances {
    Circumstances { now: of.to_vec(), later: of.to_vec(), limits: limits.to_vec(), early_data: true }
}

#[test]
fn a_session_is_found_where_nothing_is_less_than_its_client_remembers() {
    let wrapped = circumstances(b"v1", &[10, 20]).wrap(b"session");
    let unwrap = |of: &[u8], limits: &[u64]| circumstances(of, limits).unwrap(&wrapped);
    assert_eq!(unwrap(b"v1", &[10, 20]).as_deref(), Some(&b"session"[..]));
    assert_eq!(unwrap(b"v1", &[11, 1 << 40]).as_deref(), Some(&b"session"[..]));
    assert_eq!(unwrap(b"v1", &[9, 30]), None);
    assert_eq!(unwrap(b"v1", &[30, 19]), None);
    assert_eq!(unwrap(b"v2", &[10, 20]), None);
    assert_eq!(unwrap(b"v1", &[10]), None, "other limits than today");
}

#[test]
fn limits_are_of_no_interest_where_no_early_data_is_taken() {
    let wrapped = circumstances(b"v1", &[10, 20]).wrap(b"session");
    let without = |of| Circumstances { early_data: false, ..circumstances(of, &[1, 1]) };
    assert!(without(b"v1").unwrap(&wrapped).is_some());
    assert!(without(b"v2").unwrap(&wrapped).is_none());
}

#[test]
fn what_is_cut_short_or_foreign_is_no_session() {
    let circumstances = circumstances(b"v1", &[10, 20]);
    let wrapped = circumstances.wrap(b"");
    for len in 0..wrapped.len() {
        assert_eq!(circumstances.unwrap(&wrapped[..len]), None, "{len} bytes");
    }
    assert_eq!(circumstances.unwrap(&[0xff; 100]), None);
}

#[test]
fn whether_sessions_are_kept_is_for_the_store_to_say() {
    let keeps = |inner| Sessions { inner, circumstances: circumstances(b"v1", &[]) }.can_cache();
    assert!(!keeps(Arc::new(rustls::server::NoServerSessionStorage {})));
    assert!(keeps(rustls::server::ServerSessionMemoryCache::new(10)));
}

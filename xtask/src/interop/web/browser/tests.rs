use super::*;

#[test]
fn base64_has_the_vectors_of_the_rfc() {
    let vectors = [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ];
    for (text, encoded) in vectors {
        assert_eq!(base64(text.as_bytes()), encoded);
    }
    assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
}

#[test]
fn the_report_is_found_in_the_page() {
    let page = r#"<body><pre id="report">{"error":"a &amp; b"}</pre></body>"#;
    assert_eq!(report(page), Some(serde_json::json!({ "error": "a & b" })));
    assert_eq!(report(r#"<pre id="report">nothing yet</pre>"#), None);
    assert_eq!(report("<body></body>"), None);
}

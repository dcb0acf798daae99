use super::*;

#[test]
fn urls_are_taken_apart() {
    for (text, host, port, target) in [
        ("https://localhost:4433/a/b.bin", "localhost", 4433, "/a/b.bin"),
        ("HTTPS://Example.org/A", "example.org", 443, "/A"),
        ("https://example.org", "example.org", 443, "/"),
        ("https://example.org?q", "example.org", 443, "/?q"),
        ("https://[::1]:4433/x", "::1", 4433, "/x"),
        ("https://192.0.2.1/x?a=/b#c/d", "192.0.2.1", 443, "/x?a=/b"),
        ("https://h/a b/é%20", "h", 443, "/a%20b/%C3%A9%20"),
        ("https://h/<a>`\\^{b|c}\"?<d>", "h", 443, "/%3Ca%3E%60%5C%5E%7Bb%7Cc%7D%22?%3Cd%3E"),
        ("https://h/a[1]'!%3c%", "h", 443, "/a[1]'!%3c%"),
        ("https://h/sub/../x", "h", 443, "/x"),
        ("https://h/../a/./b/..?c/../d", "h", 443, "/a/?c/../d"),
        ("https://h/a//b/.", "h", 443, "/a//b/"),
        ("https://h/.../..a", "h", 443, "/.../..a"),
        ("https://h/a\r\nGET /b", "h", 443, "/a%0D%0AGET%20/b"),
    ] {
        let url = Url::parse(text).expect(text);
        assert_eq!(
            (url.authority.host.as_str(), url.authority.port, url.target.as_str()),
            (host, port, target),
            "{text}"
        );
        url.to_string().parse::<http::Uri>().expect("it can be asked for");
        assert_eq!(Url::parse(&url.to_string()), Ok(url), "{text} is printed as it can be read");
    }
}

#[test]
fn what_is_no_url_is_refused_in_one_sentence() {
    let long = format!("https://h/{}", "x".repeat(9000));
    for text in [
        "",
        "localhost/a",
        "http://h/a",
        "https:/h/a",
        "https:///a",
        "https://user@h/a",
        "https://h:x/",
        "https://[::1/a",
        "höttps://h",
        &long,
    ] {
        let error = Url::parse(text).expect_err(text);
        assert!(error.starts_with('`') && !error.contains('\n'), "{error}");
    }
}

#[test]
fn the_path_has_no_query() {
    assert_eq!(Url::parse("https://h/a/b?c/d").expect("a URL").path(), "/a/b");
}

#[test]
fn users_may_leave_out_what_is_the_same_everywhere() {
    for (text, whole) in [
        ("example.org", "https://example.org/"),
        ("localhost:4433/a?b#c", "https://localhost:4433/a?b"),
        ("[::1]:4433/a", "https://[::1]:4433/a"),
        ("https://h/a", "https://h/a"),
    ] {
        assert_eq!(Url::of_user(text).expect(text).to_string(), whole);
    }
    for text in ["", "/a", "http://h/a", "https:/h/a", "mailto:a@h", "a b/c"] {
        let error = Url::of_user(text).expect_err(text);
        assert!(error.starts_with(&format!("`{text}`: ")), "{error}");
    }
}

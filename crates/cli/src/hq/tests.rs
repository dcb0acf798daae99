use super::*;

fn path_of(request: &[u8]) -> Result<PathBuf, BadRequest> {
    let mut line = RequestLine::default();
    line.push(request)?;
    line.path()
}

#[test]
fn a_request_ends_with_its_line_or_with_the_stream() {
    for request in ["GET /a/b.bin\r\n", "GET /a/b.bin\n", "GET /a/b.bin", "GET /a/b.bin\r\nHost: ignored\r\n"]
    {
        assert_eq!(path_of(request.as_bytes()), Ok(PathBuf::from("a/b.bin")), "{request:?}");
    }
    assert_eq!(path_of(request("/x").as_bytes()), Ok(PathBuf::from("x")));
}

#[test]
fn a_request_may_come_in_pieces() {
    let mut line = RequestLine::default();
    for piece in ["G", "ET /", "x", "\r"] {
        assert_eq!(line.push(piece.as_bytes()), Ok(false), "{piece:?}");
    }
    assert_eq!(line.push(b"\nignored"), Ok(true));
    assert_eq!(line.path(), Ok(PathBuf::from("x")));
}

#[test]
fn a_request_is_bounded() {
    let mut line = RequestLine::default();
    assert_eq!(line.push(&[b'x'; REQUEST_MAX]), Ok(false));
    assert_eq!(line.push(b"\n"), Ok(true));
    let mut line = RequestLine::default();
    assert_eq!(line.push(&[b'x'; REQUEST_MAX]), Ok(false));
    assert_eq!(line.push(b"y"), Err(BadRequest::TooLong));
}

#[test]
fn what_is_no_request_is_refused() {
    for request in
        ["", "\r\n", "GET", "GET ", "GET a", "get /a", "POST /a", "GET  /a", "GET https://localhost/a"]
    {
        assert_eq!(path_of(request.as_bytes()), Err(BadRequest::NotGet), "{request:?}");
    }
}

#[test]
fn paths_are_decoded_and_cleaned() {
    for (target, path) in [
        ("/", ""),
        ("/a", "a"),
        ("//a///b/", "a/b"),
        ("/./a/./b", "a/b"),
        ("/a%20b", "a b"),
        ("/%C3%A9", "é"),
        ("/a?b=/../c", "a"),
        ("/a#b", "a"),
        ("/...", "..."),
        ("/..a/b..", "..a/b.."),
    ] {
        assert_eq!(path_of(format!("GET {target}\r\n").as_bytes()), Ok(PathBuf::from(path)), "{target}");
    }
}

#[test]
fn no_path_leads_out() {
    for target in [
        "/..",
        "/../etc/passwd",
        "/a/../../b",
        "/a/..",
        "/%2e%2e/b",
        "/.%2E/b",
        "/a%2fb",
        "/..%2f..%2fb",
        "/%2fetc",
    ] {
        assert_eq!(path_of(format!("GET {target}").as_bytes()), Err(BadRequest::Outside), "{target}");
    }
}

#[test]
fn malformed_paths_are_refused() {
    for target in ["/%", "/%2", "/%zz", "/a%00b", "/a%"] {
        assert_eq!(path_of(format!("GET {target}").as_bytes()), Err(BadRequest::Malformed), "{target}");
    }
    assert_eq!(path_of(b"GET /a\0b"), Err(BadRequest::Malformed));
}

proptest::proptest! {
    #[test]
    fn whatever_is_asked_for_stays_inside(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64)) {
        let mut request = b"GET /".to_vec();
        request.extend(bytes);
        if let Ok(path) = path_of(&request) {
            for component in path.components() {
                proptest::prop_assert!(matches!(component, std::path::Component::Normal(_)), "{path:?}");
            }
        }
    }
}

//! Files that change while `fulmar serve` serves them, or are odd.

use std::fs;
use std::time::{Duration, Instant};

use http::StatusCode;

use crate::run::{Server, finish, fulmar, runtime};
use crate::test_dir::TestDir;
use crate::web::{BODY_MAX, Site, get};

#[test]
fn a_file_that_shrinks_while_it_is_sent_resets_the_stream() {
    let site = Site::new(
        "web-shrinks",
        |www| fs::File::create(www.join("a")).and_then(|file| file.set_len(1 << 30)).expect("a sparse file"),
        &[],
    );
    runtime().block_on(async {
        let client = site.client();
        let mut body = client.get(site.server.url("/a")).await.expect("a response").into_body();
        assert!(body.data().await.expect("data").is_some());
        let file = fs::File::options().write(true).open(site.dir.path().join("www/a")).expect("a file");
        file.set_len(1 << 20).expect("shorter");
        let error = loop {
            match body.data().await {
                Ok(data) => assert!(data.is_some(), "the body has no right end"),
                Err(error) => break error,
            }
        };
        // H3_INTERNAL_ERROR.
        assert!(matches!(error, fulmar_h3::Error::Reset(0x102)), "{error:?}");
        client.close().await;
    });
}

/// What one client is answered at the same time must not hide from another what has changed since.
#[test]
fn a_file_that_is_replaced_is_seen_by_all_who_ask_after_that() {
    const VERSIONS: u32 = 150;
    let site = Site::new("web-replaced", |www| fs::write(www.join("a"), "0").expect("a file"), &[]);
    let (path, next) = (site.dir.path().join("www/a"), site.dir.path().join("www/next"));
    runtime().block_on(async {
        // Others ask all the time.
        let mut others = tokio::task::JoinSet::new();
        let client = site.client();
        for _ in 0..20 {
            let (client, url) = (client.clone(), site.server.url("/a"));
            others.spawn(async move {
                loop {
                    let response = client.get(&*url).await.expect("a response");
                    let _ = response.into_body().bytes(BODY_MAX).await;
                }
            });
        }
        let client = site.client();
        for version in 1..=VERSIONS {
            match version % 3 {
                // In place, and in its place.
                0 => fs::write(&path, version.to_string()).expect("a file"),
                _ => {
                    fs::write(&next, version.to_string()).expect("a file");
                    fs::rename(&next, &path).expect("a file");
                }
            }
            let (one, other) =
                tokio::join!(get(&client, &site, "/a", &[]), get(&client, &site, "/a", &[("x", "y")]));
            for answer in [one, other] {
                assert_eq!(answer.body, version.to_string());
                assert_eq!(answer.field("content-length"), version.to_string().len().to_string());
                let again = get(&client, &site, "/a", &[("if-none-match", answer.field("etag"))]).await;
                assert_eq!(again.status, StatusCode::NOT_MODIFIED, "the tag is of another version");
            }
        }
        others.abort_all();
        fs::remove_file(&path).expect("a file");
        assert_eq!(get(&client, &site, "/a", &[]).await.status, StatusCode::NOT_FOUND);
    });
}

#[test]
fn what_is_odd_on_the_disk_is_served_by_the_rules() {
    let fill = |www: &std::path::Path| {
        std::os::unix::fs::symlink("loop", www.join("loop")).expect("a link");
        fs::write(www.join("late"), "text").expect("a file");
        let late = fs::File::options().write(true).open(www.join("late")).expect("a file");
        let next_year = std::time::SystemTime::now() + Duration::from_secs(365 * 24 * 3600);
        late.set_modified(next_year).expect("set");
    };
    let site = Site::new("web-odd", fill, &[]);
    let _socket =
        std::os::unix::net::UnixListener::bind(site.dir.path().join("www/socket")).expect("a socket");
    runtime().block_on(async {
        let client = site.client();
        for path in ["/loop", "/socket"] {
            assert_eq!(get(&client, &site, path, &[]).await.status, StatusCode::NOT_FOUND, "{path}");
        }
        let late = get(&client, &site, "/late", &[]).await;
        let time = |name| httpdate::parse_http_date(late.field(name)).expect(name);
        assert!(time("last-modified") <= time("date"), "{:?}", late.headers);
        client.close().await;
    });
}

/// As releases are switched: by a link, or by a directory that is made anew.
#[test]
fn a_directory_that_is_replaced_is_served() {
    let dir = TestDir::new("web-releases");
    let (www, one, two) = (dir.path().join("www"), dir.path().join("one"), dir.path().join("two"));
    let fill = |directory: &std::path::Path, text: &str| {
        fs::create_dir(directory).expect("a directory");
        fs::write(directory.join("a"), text).expect("a file");
    };
    fill(&one, "one");
    fill(&two, "two");
    std::os::unix::fs::symlink("one", &www).expect("a link");
    let server = Server::serve(&www, &["--workers", "1"]);
    let got = || {
        let out = finish(fulmar(&["get", "--insecure", "-o", "-", &server.url("/a")])).stdout();
        (!out.is_empty()).then_some(out)
    };
    let becomes = |expected: Option<&str>| {
        let start = Instant::now();
        while got().as_deref() != expected {
            assert!(start.elapsed() < Duration::from_secs(20), "it is not {expected:?}");
        }
    };
    assert_eq!(got().as_deref(), Some("one"));
    std::os::unix::fs::symlink("two", dir.path().join("next")).expect("a link");
    fs::rename(dir.path().join("next"), &www).expect("switched");
    becomes(Some("two"));
    fs::remove_file(&www).expect("removed");
    fill(&www, "three");
    becomes(Some("three"));
    fs::remove_dir_all(&www).expect("removed");
    becomes(None);
    fill(&www, "four");
    becomes(Some("four"));
    // A hangup is no end.
    server.hang_up();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(got().as_deref(), Some("four"));
    assert_eq!(server.interrupt(), Some(0));
}

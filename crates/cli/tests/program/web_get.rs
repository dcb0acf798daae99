//! `fulmar get` by HTTP.

use std::fs;
use std::io::Read;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::odd::{Answer, Odd};
use crate::run::{Server, content, finish, fulmar, hang_up, heeding_hangups, interrupt};
use crate::scene::Scene;
use crate::test_dir::TestDir;

/// The validator of a file.
fn etag(scene: &Scene, path: &str) -> String {
    let head = finish(scene.get(&["-I", &scene.url(path)])).succeeded().stdout();
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: "));
    etag.unwrap_or_else(|| panic!("no etag: {head}")).to_owned()
}

#[test]
fn a_head_that_goes_to_standard_output_has_no_file() {
    let out = TestDir::new("head-file");
    let file = out.path().join("head").to_str().expect("a path").to_owned();
    // Told before anything is asked for: nobody listens there.
    finish(fulmar(&["get", "-I", "https://localhost:9/", "-o", &file])).failed(2, &["-I", "-o names a file"]);
}

#[test]
fn a_head_that_is_asked_for_by_its_name_leaves_files_alone() {
    let scene = Scene::new("web-named-head");
    let file = scene.out.path().join("a");
    fs::write(&file, "old").expect("a file");
    let told = finish(scene.get(&["-X", "HEAD", "-o", scene.out(), &scene.url("/a")])).succeeded().stdout();
    assert!(told.starts_with("HTTP/3.0 200 OK\n") && told.contains("content-length: 6"), "{told}");
    let named = file.to_str().expect("a path");
    finish(scene.get(&["-X", "HEAD", "-o", named, &scene.url("/a")])).failed(2, &["-o names a file"]);
    assert_eq!(fs::read(&file).expect("the file"), b"old");
    assert_eq!(scene.out.names(), ["a"]);
}

#[test]
fn files_come_by_http3() {
    let scene = Scene::new("web-files");
    let arguments = ["--json", "-o", scene.out(), &scene.url("/a"), &scene.url("/large")];
    let objects = finish(scene.get(&arguments)).succeeded().objects();
    assert_eq!(scene.out.names(), ["a", "large"]);
    let same = fs::read(scene.out.path().join("large")).expect("a file") == content(3_000_000, 1);
    assert!(same, "it differs");
    let (files, summary) = objects.split_at(2);
    for file in files {
        assert_eq!((&file["version"], &file["status"]), (&"HTTP/3.0".into(), &200.into()), "{file}");
        let timing = &file["timing"];
        for key in ["dns_s", "handshake_s", "first_byte_s", "total_s"] {
            assert!(timing[key].is_number(), "{key}: {file}");
        }
        assert!(timing["total_s"].as_f64() >= timing["first_byte_s"].as_f64(), "{file}");
    }
    assert_eq!((&summary[0]["files"], &summary[0]["bytes"]), (&2.into(), &3_000_006.into()));
    let connection = &summary[0]["connections"][0];
    assert_eq!((&connection["version"], &connection["resumed"]), (&"v1".into(), &false.into()));
    assert!(connection["bytes_received"].as_u64() > Some(3_000_006), "{connection}");
    assert!(connection["mtu"].as_u64() >= Some(1_200) && connection["rtt_ms"].is_number(), "{connection}");
    assert!(connection.get("fec").is_none(), "{connection}");
}

#[test]
fn a_file_of_ones_own_choice_or_standard_output_is_written_to() {
    let scene = Scene::new("web-places");
    let file = scene.out.path().join("b");
    finish(scene.get(&["-q", "-o", file.to_str().expect("a path"), &scene.url("/a")])).succeeded();
    assert_eq!(fs::read(&file).expect("the file"), b"a file");
    let told = finish(scene.get(&["-o", "-", &scene.url("/a"), &scene.url("/a")])).succeeded();
    assert_eq!(told.stdout(), "a filea file");
    finish(scene.get(&["-o", file.to_str().expect("a path"), &scene.url("/a"), &scene.url("/large")]))
        .failed(2, &["directory"]);
}

#[test]
fn what_goes_to_a_pipe_arrives_there_and_the_pipe_stays() {
    let scene = Scene::new("web-pipe");
    let pipe = scene.out.path().join("large");
    let named = pipe.to_str().expect("a path");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let pin = &scene.server.fingerprint;
    let commands = [
        scene.get(&["-o", named, &scene.url("/large")]),
        scene.get_hq(&["--pin", pin, &scene.url("/large")]),
    ];
    for command in commands {
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).expect("a pipe")
        });
        finish(command).succeeded();
        assert!(reader.join().expect("read") == content(3_000_000, 1), "it differs");
        assert!(scene.out.names() == ["large"] && !pipe.is_file());
    }
}

#[test]
fn what_goes_to_standard_output_is_there_before_the_rest_comes() {
    let odd = Odd::start(|_| Answer::whole("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"));
    let mut get = fulmar(&["get", "--insecure", "-q", "--max-time", "20s", "-o", "-", &odd.url("/")]);
    let mut get = get.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts");
    let mut begin = [0; 3];
    get.stdout.take().expect("its output").read_exact(&mut begin).expect("what has come");
    assert_eq!(&begin, b"hel");
    get.kill().and_then(|()| get.wait()).expect("ended");
}

#[test]
fn a_reader_that_has_enough_ends_it_without_a_word() {
    let mut scene = Scene::new("web-head-of");
    let urls = [scene.url("/large"), scene.url("/large")];
    let mut get = scene.get(&["-o", "-", &urls[0], &urls[1]]);
    let mut get = get.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    get.stdout.take().expect("its output").read_exact(&mut [0; 10]).expect("what has come");
    let ended = get.wait_with_output().expect("ended");
    assert_eq!((ended.status.code(), &*ended.stderr), (Some(0), &b""[..]));
    // Nothing more was asked for.
    finish(scene.get(&["-o", "-", &scene.url("/a")])).succeeded();
    let paths = [(); 2].map(|()| scene.server.next_object()["path"].to_string());
    assert_eq!(paths, ["\"/large\"", "\"/a\""]);
}

/// Nobody reads the pipe, or writes to it.
#[test]
fn a_pipe_without_another_end_does_not_hold_up_the_end() {
    let scene = Scene::new("web-lone-pipe");
    let pipe = scene.out.path().join("pipe");
    let named = pipe.to_str().expect("a path");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    // This server takes no uploads.
    for (option, code, words) in [("-o", 28, "--max-time"), ("-T", 22, "405")] {
        let finished = finish(scene.get(&["-m", "2", option, named, &scene.url("/a")]));
        let finished = finished.failed(code, &[words]);
        assert!(finished.took < Duration::from_secs(10), "{option}: {:?}", finished.took);
    }
    let get = scene.get(&["-o", named, &scene.url("/a")]).stderr(Stdio::null()).spawn();
    let mut get = get.expect("the program starts");
    let start = Instant::now();
    while get.try_wait().expect("its state").is_none() {
        assert!(start.elapsed() < Duration::from_secs(10), "it does not end");
        // It may not have begun to listen to signals.
        std::thread::sleep(Duration::from_millis(500));
        interrupt(&get);
    }
}

#[test]
fn what_the_server_refuses_leaves_nothing() {
    let scene = Scene::new("web-refused");
    finish(scene.get(&["-o", scene.out(), &scene.url("/nothing")])).failed(22, &["/nothing", "404"]);
    let posted = finish(scene.get(&["-d", "a=b", "-o", scene.out(), &scene.url("/a")]));
    posted.failed(22, &["405"]);
    assert!(scene.out.names().is_empty(), "{:?}", scene.out.names());
}

#[test]
fn a_file_that_is_up_to_date_stays_as_it_is() {
    let scene = Scene::new("web-unchanged");
    let condition = format!("If-None-Match: {}", etag(&scene, "/a"));
    let file = scene.out.path().join("a");
    let arguments = ["--json", "-H", &condition, "-o", scene.out(), &scene.url("/a")];
    for held in [Some("what is here"), None] {
        let _ = fs::remove_file(&file);
        let _ = held.map(|held| fs::write(&file, held).expect("a file"));
        let objects = finish(scene.get(&arguments)).succeeded().objects();
        assert_eq!((&objects[0]["status"], &objects[0]["bytes"]), (&304.into(), &0.into()));
        assert_eq!(fs::read_to_string(&file).ok().as_deref(), held);
        assert_eq!(scene.out.names().len(), usize::from(held.is_some()), "{:?}", scene.out.names());
    }
}

#[test]
fn the_head_is_printed() {
    let scene = Scene::new("web-head");
    let head = finish(scene.get(&["-I", &scene.url("/large")])).succeeded().stdout();
    assert!(head.starts_with("HTTP/3.0 200 OK\n"), "{head}");
    assert!(head.contains("content-length: 3000000\n"), "{head}");
    let absent = finish(scene.get(&["-I", &scene.url("/nothing")])).failed(22, &["404"]).stdout();
    assert!(absent.starts_with("HTTP/3.0 404 Not Found\n"), "{absent}");
}

#[test]
fn a_response_that_never_has_content_is_not_cut() {
    let odd = Odd::start(|_| Answer::whole("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"));
    let out = TestDir::new("web-no-content");
    finish(odd.get(&out, &[], "/a")).succeeded();
    assert_eq!(fs::read(out.path().join("a")).expect("the file"), b"");
}

#[test]
fn the_head_is_asked_for_again() {
    let times = AtomicU32::new(0);
    let odd = Odd::start(move |_| match times.fetch_add(1, Ordering::Relaxed) {
        0 => Answer::whole("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
        _ => Answer::whole("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
    });
    let out = TestDir::new("web-head-again");
    let ended = finish(odd.get(&out, &["-I", "--retry", "1"], "/a"));
    assert!(ended.stdout().starts_with("HTTP/1.1 200 OK\n"), "{}", ended.stdout());
    ended.failed(0, &["503", "attempt 2"]);
}

#[test]
fn a_server_names_the_time_when_it_may_be_asked_again() {
    let times = AtomicU32::new(0);
    let odd = Odd::start(move |_| match times.fetch_add(1, Ordering::Relaxed) {
        0 => {
            let later = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(5));
            Answer::whole(&format!("HTTP/1.1 503 Busy\r\nRetry-After: {later}\r\nContent-Length: 0\r\n\r\n"))
        }
        _ => Answer::whole("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    });
    let out = TestDir::new("web-retry-after");
    let ended = finish(odd.get(&out, &["--retry", "1"], "/a"));
    assert!(ended.took > Duration::from_secs(3), "{:?}", ended.took);
    ended.failed(0, &["503", "attempt 2"]);
}

#[test]
fn a_download_goes_on_where_it_was_cut() {
    let scene = Scene::new("web-continue");
    let whole = content(3_000_000, 1);
    let part = scene.out.path().join("large.part");
    fs::write(&part, &whole[..1_000_000]).expect("a part");
    fs::write(scene.out.path().join("large.part.of"), etag(&scene, "/large")).expect("its validator");
    let arguments = ["-C", "-", "--json", "-o", scene.out(), &scene.url("/large")];
    let objects = finish(scene.get(&arguments)).succeeded().objects();
    assert_eq!((&objects[0]["resumed_at"], &objects[0]["bytes"]), (&1_000_000.into(), &2_000_000.into()));
    assert_eq!(objects[0]["status"], 206);
    assert_eq!(scene.out.names(), ["large"]);
    assert!(fs::read(scene.out.path().join("large")).expect("the file") == whole, "it differs");
}

#[test]
fn a_part_of_something_else_is_not_gone_on_with() {
    let scene = Scene::new("web-changed");
    let part = scene.out.path().join("large.part");
    let beside = scene.out.path().join("large.part.of");
    for validator in [Some("\"another\""), None] {
        fs::write(&part, b"something else").expect("a part");
        let _ = validator.map(|validator| fs::write(&beside, validator).expect("its validator"));
        let arguments = ["-C", "-", "--json", "-o", scene.out(), &scene.url("/large")];
        let objects = finish(scene.get(&arguments)).succeeded().objects();
        assert_eq!((&objects[0]["resumed_at"], &objects[0]["bytes"]), (&0.into(), &3_000_000.into()));
        assert!(fs::read(scene.out.path().join("large")).expect("the file") == content(3_000_000, 1));
    }
}

#[test]
fn a_part_stays_when_the_time_is_over() {
    let scene = Scene::new("web-late");
    let url = scene.url("/large");
    let arguments = ["-C", "-", "--limit-rate", "500kB", "--max-time", "2s", "-o", scene.out(), &url];
    finish(scene.get(&arguments)).failed(28, &["2.00 s", "--max-time"]);
    // What was written last may still be under way to the disk.
    assert_eq!(scene.out.names(), ["large.part", "large.part.of"]);
    let len = fs::metadata(scene.out.path().join("large.part")).expect("a part").len();
    assert!(len > 0 && len < 3_000_000, "{len}");
    finish(scene.get(&["-C", "-", "-q", "-o", scene.out(), &url])).succeeded();
    assert!(fs::read(scene.out.path().join("large")).expect("the file") == content(3_000_000, 1));
    assert_eq!(scene.out.names(), ["large"]);
}

#[test]
fn a_rate_that_holds_up_some_files_holds_up_no_others() {
    let scene = Scene::new("web-rates");
    // By QUIC, and by HTTP/2 where the ends have no version of QUIC in common.
    let newer = Server::serve(scene.www.path(), &["--versions", "v2"]);
    for (server, version) in [(&scene.server, "HTTP/3.0"), (&newer, "HTTP/2.0")] {
        let mut urls: Vec<_> = (0..12).map(|n| server.url(&format!("/large?{n}"))).collect();
        urls.push(server.url("/a"));
        let mut command =
            fulmar(&["get", "--insecure", "--versions", "v1", "--limit-rate", "100kB", "-m", "4"]);
        command.args(["--json", "-o", scene.out()]).args(urls);
        let objects = finish(command).objects();
        let small = objects.iter().find(|object| object["kind"] == "file").expect("the small file has come");
        assert_eq!((&small["bytes"], &small["version"]), (&6.into(), &version.into()));
        assert!(small["timing"]["total_s"].as_f64() < Some(2.0), "{small}");
        let late =
            |object: &&serde_json::Value| object["error"].to_string().contains("-C - keeps what comes");
        assert_eq!(objects.iter().filter(late).count(), 12, "the others have begun: {objects:?}");
    }
}

#[test]
fn a_part_that_came_slowly_stays() {
    let scene = Scene::new("web-slow");
    let url = scene.url("/large");
    let arguments = ["-C", "-", "--limit-rate", "100kB", "--max-time", "3s", "-o", scene.out(), &url];
    finish(scene.get(&arguments)).failed(28, &["--max-time"]);
    assert_eq!(scene.out.names(), ["large.part", "large.part.of"]);
    let arguments = ["-C", "-", "--json", "-o", scene.out(), &url];
    let objects = finish(scene.get(&arguments)).succeeded().objects();
    assert!(objects[0]["resumed_at"].as_u64() > Some(50_000), "{}", objects[0]);
    assert!(fs::read(scene.out.path().join("large")).expect("the file") == content(3_000_000, 1));
}

#[test]
fn without_a_wish_to_go_on_nothing_stays() {
    let scene = Scene::new("web-nothing");
    let arguments = ["--limit-rate", "200kB", "--max-time", "1s", "-o", scene.out(), &scene.url("/large")];
    finish(scene.get(&arguments)).failed(28, &["--max-time"]);
    assert!(scene.out.names().is_empty(), "{:?}", scene.out.names());
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_that_is_closed_leaves_nothing() {
    let scene = Scene::new("web-hangup");
    let url = scene.url("/large");
    let arguments = ["-q", "--limit-rate", "200kB", "-o", scene.out(), &url];
    let mut get = heeding_hangups(&scene.get(&arguments));
    let mut get = get.stderr(Stdio::null()).spawn().expect("the program starts");
    let written = || {
        let parts = fs::read_dir(scene.out.path()).expect("the directory");
        parts.filter_map(|part| part.and_then(|part| part.metadata()).ok()).any(|part| part.len() > 0)
    };
    while !written() {
        std::thread::sleep(Duration::from_millis(10));
    }
    hang_up(&get);
    assert_eq!(get.wait().expect("ended").code(), Some(130));
    scene.nothing_was_written();
}

#[test]
fn a_rate_is_kept() {
    let scene = Scene::new("web-rate");
    let arguments = ["-q", "--limit-rate", "2MB", "-o", scene.out(), &scene.url("/large")];
    let finished = finish(scene.get(&arguments)).succeeded();
    assert!(finished.took >= Duration::from_millis(1_400), "{:?}", finished.took);
}

#[test]
fn a_server_that_is_not_there_has_an_exit_code() {
    let scene = Scene::new("web-absent");
    // A port that nobody listens on, by UDP or TCP.
    let port = UdpSocket::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address").port();
    let url = format!("https://127.0.0.1:{port}/a");
    finish(scene.get(&["--handshake-timeout", "1s", "-o", scene.out(), &url])).failed(7, &["QUIC", "TCP"]);
    let only = ["--handshake-timeout", "1s", "--http3-only", "-o", scene.out(), &url];
    finish(scene.get(&only)).failed(7, &["QUIC", "--http3-only"]);
    let nowhere = finish(scene.get(&["-o", scene.out(), "https://nowhere.invalid/a"]));
    nowhere.failed(6, &["nowhere.invalid has no address"]);
}

#[test]
fn a_refused_certificate_has_an_exit_code() {
    let scene = Scene::new("web-certificate");
    let wrong = format!("sha256:{}", "0".repeat(64));
    let mut command = fulmar(&["get", "--pin", &wrong, "-o", scene.out(), &scene.url("/a")]);
    finish(command).failed(60, &["certificate", "refused", &scene.server.fingerprint]);
    command = fulmar(&["get", "-o", scene.out(), &scene.url("/a")]);
    finish(command).failed(60, &["certificate"]);
    assert!(scene.www.path().join("a").exists() && scene.out.names().is_empty());
}

#[test]
fn a_retry_does_not_repeat_what_cannot_pass() {
    let scene = Scene::new("web-retry");
    let arguments = ["--retry", "3", "-o", scene.out(), &scene.url("/nothing")];
    let finished = finish(scene.get(&arguments)).failed(22, &["404"]);
    assert!(finished.took < Duration::from_secs(5), "{:?}", finished.took);
}

#[test]
fn a_body_that_is_given_up_has_one_hint() {
    let scene = Scene::new("web-given-up");
    let huge = scene.www.path().join("huge");
    fs::File::create(&huge).and_then(|file| file.set_len(1 << 30)).expect("a sparse file");
    let command = scene.get(&["-q", "--limit-rate", "20MB", "-o", scene.out(), &scene.url("/huge")]);
    let get = std::thread::spawn(move || finish(command));
    while scene.out.names().is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(500));
    fs::File::options().write(true).open(&huge).and_then(|file| file.set_len(1 << 20)).expect("shorter");
    let stderr = get.join().expect("ended").failed(18, &["cut after"]).stderr();
    assert_eq!(stderr.matches("--retry").count(), 1, "{stderr}");
}

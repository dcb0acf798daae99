//! `fulmar serve` as a service of the system, and what curl's users write.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::odd::{Answer, Odd};
use crate::run::{Server, finish, fulmar};
use crate::scene::Scene;
use crate::test_dir::TestDir;

#[test]
fn the_manager_of_services_is_told_when_it_is_ready_and_when_it_stops() {
    let dir = TestDir::new("notify");
    let path = dir.path().join("socket");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(Duration::from_secs(20))).expect("an option");
    let mut command = fulmar(&["serve", dir.path().to_str().expect("a path"), "--json"]);
    command.env("NOTIFY_SOCKET", &path);
    let server = Server::start(command);
    let state = || {
        let mut state = [0; 100];
        let len = manager.recv(&mut state).expect("a message");
        String::from_utf8(state[..len].to_vec()).expect("text")
    };
    assert_eq!(state(), "READY=1");
    server.ask_to_stop();
    assert_eq!(state(), "STOPPING=1");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn responses_have_the_fields_that_the_user_wants() {
    let (www, options) =
        (TestDir::new("fields"), ["-H", "Cache-Control: no-cache", "-H", "X-Two: 1", "-H", "x-two: 2"]);
    fs::write(www.path().join("a.txt"), "a").expect("a file");
    let server =
        Server::serve(www.path(), &[&options[..], &["--header", "Content-Type: text/x-own"]].concat());
    for (path, more, code) in [("/a.txt", "--http3-only", 0), ("/missing", "-q", 22)] {
        let head = finish(fulmar(&["get", "-k", "-I", more, &server.url(path)]));
        assert_eq!(head.code(), Some(code));
        let head = head.stdout();
        for field in ["cache-control: no-cache", "x-two: 1", "x-two: 2", "content-type: text/x-own"] {
            assert!(head.contains(&format!("\n{field}\n")), "{field} is not in {head}");
        }
        assert_eq!(head.matches("content-type").count(), 1, "{head}");
    }
    for field in ["nonsense", "Content-Length: 1", "Transfer-Encoding: chunked", "A B: c"] {
        let refused = fulmar(&["serve", "-H", field, "."]).output().expect("it ends");
        assert_eq!(refused.status.code(), Some(2), "{field}");
    }
}

/// What a server without HTTP/3 gets to read of such a request.
fn head_of(options: &[&str]) -> String {
    let odd = Odd::start(|_| Answer::whole("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    let mut get = fulmar(&["get", "-k", "-o", "-", &odd.url("/a")]);
    get.args(options);
    assert_eq!(finish(get).succeeded().stdout(), "ok");
    odd.heads().remove(0).to_lowercase()
}

#[test]
fn what_users_of_curl_write_is_understood() {
    let head = head_of(&["-fsS", "-u", "Aladdin:open sesame", "-A", "me/1", "-r", "0-1"]);
    for field in ["authorization: basic qwxhzgrpbjpvcgvuihnlc2ftzq==", "user-agent: me/1", "range: bytes=0-1"]
    {
        assert!(head.contains(field), "{field} is not in {head}");
    }
    assert_eq!(head.matches("user-agent").count(), 1, "{head}");
    let bad: [&[&str]; 3] = [&["-u", "nobody"], &["-r", "one"], &["-r", "0-1", "-C", "-"]];
    for options in bad {
        let mut get = fulmar(&["get", "https://localhost/a"]);
        assert_eq!(get.args(options).output().expect("it ends").status.code(), Some(2), "{options:?}");
    }
}

#[test]
fn a_password_is_not_shown_to_who_looks_on() {
    let scene = Scene::new("password");
    let told = finish(fulmar(&["get", "-k", "-v", "-u", "me:secret", "-o", "-", &scene.url("/a")]));
    assert!(told.stderr().contains("> authorization: (a secret)"), "{}", told.stderr());
}

#[test]
fn the_scheme_of_a_url_may_be_left_out() {
    let scene = Scene::new("scheme");
    let url = format!("{}/a", scene.server.address);
    for more in [&[][..], &["--hq"]] {
        let mut get = fulmar(&["get", "-k", "-q", "-o", scene.out(), &url]);
        finish({
            get.args(more);
            get
        })
        .succeeded();
        assert_eq!(fs::read(scene.out.path().join("a")).expect("the file"), b"a file");
    }
}

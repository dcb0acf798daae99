//! What the program shows of connections: charts, reports, qlog files and figures.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::run::{Server, content, finish, fulmar};
use crate::test_dir::TestDir;

const SMALL: &str = r#"
title = "A download over a short queue"
[link]
rate_mbps = 5
delay_ms = 10
queue_ms = 20
[[connection]]
download_bytes = 400_000
"#;

/// The page holds all that it needs.
#[track_caller]
fn is_whole(html: &str) {
    assert!(html.starts_with("<!doctype html>"));
    for reference in ["src=", "href=", "@import", "url("] {
        assert!(!html.contains(reference), "{reference}");
    }
}

#[test]
fn runs_are_drawn_and_recording_changes_nothing() {
    let dir = TestDir::new("watch-plot");
    let file = dir.path().join("small.toml");
    fs::write(&file, SMALL).expect("a scenario");
    let (file, page) = (file.to_str().expect("a path"), dir.path().join("out.html"));
    let run = |more: &[&str]| {
        let mut command = fulmar(&["lab", "run", file, "--controller", "cubic,newreno", "--json"]);
        command.args(more);
        finish(command).succeeded().objects()
    };
    let plain = run(&[]);
    assert_eq!(plain.len(), 2);
    assert_eq!(run(&["--plot", page.to_str().expect("a path")]), plain);
    let html = fs::read_to_string(page).expect("a page");
    is_whole(&html);
    for key in [
        "sent",
        "acked",
        "lost",
        "window",
        "in_flight",
        "rtt_smoothed",
        "pacing",
        "delivery",
        "queue",
        "drops",
    ] {
        assert!(html.contains(&format!("\"key\":\"{key}\"")), "{key}");
    }
}

#[test]
fn results_become_a_report_and_mistakes_are_told_with_their_line() {
    let dir = TestDir::new("watch-report");
    let path = |name: &str| dir.path().join(name).to_str().expect("a path").to_owned();
    let file = path("small.toml");
    fs::write(&file, SMALL).expect("a scenario");
    let lines = finish(fulmar(&["lab", "run", &file, "--runs", "3", "--json"])).succeeded().stdout();
    fs::write(path("results.jsonl"), &lines).expect("results");
    finish(fulmar(&["lab", "report", &path("results.jsonl"), "-o", &path("report.html")])).succeeded();
    let html = fs::read_to_string(path("report.html")).expect("a report");
    is_whole(&html);
    assert!(html.contains("3 runs in 1 groups"), "the runs are counted");

    fs::write(path("broken.jsonl"), format!("{}\nno result\n", lines.lines().next().expect("a line")))
        .expect("results");
    let command = fulmar(&["lab", "report", &path("broken.jsonl"), "-o", &path("x.html")]);
    finish(command).failed(2, &["broken.jsonl, line 2: "]);
}

#[test]
fn both_ends_write_qlog_that_is_drawn() {
    let (www, out, logs) = (TestDir::new("qlog-www"), TestDir::new("qlog-out"), TestDir::new("qlog-logs"));
    fs::write(www.path().join("f"), content(300_000, 1)).expect("a file");
    let dir = logs.path().to_str().expect("a path");
    let server = Server::serve(www.path(), &["--qlog", dir]);
    let mut command =
        fulmar(&["get", "--hq", "--insecure", "-o", out.path().to_str().expect("a path"), &server.url("/f")]);
    command.env("QLOGDIR", dir);
    finish(command).succeeded();
    assert_eq!(server.interrupt(), Some(0));
    let names = logs.names();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names[0].ends_with("_client.sqlog") && names[1].ends_with("_server.sqlog"), "{names:?}");
    assert_eq!(
        names[0].split('_').next(),
        names[1].split('_').next(),
        "both know the connection by one name"
    );

    let page = out.path().join("out.html");
    let mut command = fulmar(&["qlog", "view", "-o", page.to_str().expect("a path")]);
    command.args(names.iter().map(|name| logs.path().join(name)));
    finish(command).succeeded();
    let html = fs::read_to_string(page).expect("a page");
    is_whole(&html);
    assert!(html.contains("\"bytes\":300000"), "the server sent the file");

    // On standard output it is the same.
    let view = |options: &[&str]| {
        let mut command = fulmar(&["qlog", "view", "-o", "-"]);
        command.args(options).args(names.iter().map(|name| logs.path().join(name))).current_dir(out.path());
        finish(command)
    };
    assert!(view(&[]).succeeded().stdout() == html, "it differs");
    assert!(!out.path().join("-").exists());
    view(&["--json"]).failed(2, &["standard output"]);
}

#[test]
fn requests_of_http3_are_in_the_qlog_files_and_are_drawn() {
    let (www, out, logs) = (TestDir::new("h3log-www"), TestDir::new("h3log-out"), TestDir::new("h3log-logs"));
    fs::write(www.path().join("f"), content(50_000, 1)).expect("a file");
    let dir = logs.path().to_str().expect("a path");
    for names in ["draft", "qvis"] {
        let server = Server::serve(www.path(), &["--qlog", dir, "--qlog-names", names]);
        let mut command =
            fulmar(&["get", "--http3-only", "--insecure", "--qlog", dir, "--qlog-names", names]);
        command.args([
            "-H",
            "authorization: Basic c2VjcmV0",
            "-o",
            out.path().join("f").to_str().expect("a path"),
        ]);
        command.arg(server.url("/f?x"));
        finish(command).succeeded();
        assert_eq!(server.interrupt(), Some(0));
        let files = logs.names();
        assert_eq!(files.len(), 2, "{files:?}");
        let prefix = if names == "draft" { "http3" } else { "http" };
        for (file, [asked, answered]) in files.iter().zip([["created", "parsed"], ["parsed", "created"]]) {
            let text = fs::read_to_string(logs.path().join(file)).expect("a file");
            let has = |event: &str, words: &str| {
                let name = format!("\"name\":\"{prefix}:{event}\"");
                text.lines().any(|line| line.contains(&name) && line.contains(words))
            };
            assert!(
                has(&format!("frame_{asked}"), "{\"name\":\":path\",\"value\":\"/f?x\"}"),
                "{file}: {text}"
            );
            assert!(
                has(&format!("frame_{answered}"), "{\"name\":\":status\",\"value\":\"200\"}"),
                "{file}: {text}"
            );
            assert!(has(&format!("frame_{answered}"), "\"frame_type\":\"data\""), "{file}: {text}");
            assert!(has("parameters_set", "\"initiator\":\"local\""), "{file}: {text}");
            assert!(has("parameters_set", "\"initiator\":\"remote\""), "{file}: {text}");
            assert!(has("stream_type_set", "\"stream_type\":\"control\""), "{file}: {text}");
            assert!(text.contains("packet_sent") && text.contains("authorization"), "{file}: {text}");
            assert!(!text.contains("c2VjcmV0"), "{file} tells a secret");
            let times = text.lines().skip(1).map(|line| {
                let time = line.split("\"time\":").nth(1).and_then(|rest| rest.split(',').next());
                time.and_then(|time| time.parse::<f64>().ok()).expect("a time")
            });
            assert!(times.is_sorted(), "{file}");
        }
        let page = out.path().join("out.html");
        let mut command = fulmar(&["qlog", "view", "-o", page.to_str().expect("a path")]);
        command.args(files.iter().map(|name| logs.path().join(name)));
        finish(command).succeeded();
        let html = fs::read_to_string(page).expect("a page");
        is_whole(&html);
        let rows = html.matches("\"method\":\"GET\",\"path\":\"/f?x\",\"status\":\"200\"").count();
        assert_eq!(rows, 2, "one of each end");
        assert!(html.contains("\"sent\":0,\"received\":50000"), "the body of the response");
        files.iter().for_each(|name| fs::remove_file(logs.path().join(name)).expect("a file"));
    }
}

#[test]
fn a_file_that_is_no_qlog_is_refused() {
    let dir = TestDir::new("qlog-none");
    let file = dir.path().join("x.qlog");
    fs::write(&file, "{\"trace\":{}}\nnonsense\n{}\n").expect("a file");
    let command = fulmar(&["qlog", "view", file.to_str().expect("a path"), "-o", "never.html"]);
    finish(command).failed(2, &["x.qlog, line 2: "]);
}

#[test]
fn a_server_tells_its_figures() {
    let (www, out) = (TestDir::new("metrics-www"), TestDir::new("metrics-out"));
    fs::write(www.path().join("f"), content(100_000, 1)).expect("a file");
    // A port that was free a moment ago.
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let metrics = format!("127.0.0.1:{port}");
    let server = Server::serve(www.path(), &["--metrics", &metrics]);
    let command =
        fulmar(&["get", "--hq", "--insecure", "-o", out.path().to_str().expect("a path"), &server.url("/f")]);
    finish(command).succeeded();
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(&metrics).expect("it listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    let text = ask("/metrics");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert!(
        text.contains("\nfulmar_connections_total 1\n") && text.contains("\nfulmar_handshakes_total 1\n"),
        "{text}"
    );
    let sent = text.lines().find_map(|line| line.strip_prefix("fulmar_bytes_sent_total ")).expect("a figure");
    assert!(sent.parse::<u64>().expect("a number") > 100_000);
    assert!(text.contains("\nfulmar_http_requests_total{version="), "{text}");
    assert!(ask("/").starts_with("HTTP/1.1 404"));
    assert_eq!(server.interrupt(), Some(0));
}

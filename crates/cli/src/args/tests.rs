use std::path::PathBuf;
use std::time::Duration;

use super::perf::PERF_EXAMPLES;
use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::read(line.split_whitespace())
}

#[test]
fn the_command_line_is_consistent() {
    command_line().debug_assert();
}

#[test]
fn every_command_of_the_examples_is_understood() {
    for text in [EXAMPLES, GET_EXAMPLES, SERVE_EXAMPLES, PERF_EXAMPLES] {
        for line in text.lines().filter(|line| line.starts_with("  fulmar ")) {
            // A remark stands far behind the command, and a fingerprint may be shortened.
            let command =
                line.trim().split("  ").next().expect("a command").replace("9f86d0..", &"0".repeat(64));
            let command = command.trim();
            parse(command).unwrap_or_else(|error| panic!("{command}: {error}"));
        }
    }
}

#[test]
fn commands_have_the_documented_defaults() {
    let Command::Demo(demo) = parse("fulmar demo").expect("demo").command else { panic!("no demo") };
    assert_eq!((demo.size, demo.transport.cc), (1_000_000_000, CongestionName::Bbr));
    assert_eq!(demo.transport.handshake_timeout, Duration::from_secs(10));
    let Command::Serve(serve) = parse("fulmar serve").expect("serve").command else { panic!("no serve") };
    assert_eq!((serve.dir, serve.listen), (PathBuf::from("."), None));
}

#[test]
fn options_of_a_command_may_stand_anywhere() {
    let cli = parse(
        "fulmar --json get https://h/a --hq -o out -vv --pin=00000000000000000000000000000000000000000000000000000000000000ff --cipher chacha20 --hold 5s --idle-timeout 2s --cc newreno",
    );
    let cli = cli.expect("get");
    assert!(cli.json && cli.verbose == 2);
    let Command::Get(get) = cli.command else { panic!("no get") };
    assert_eq!((get.cipher, get.hold), (Some(Cipher::Chacha20), Some(Duration::from_secs(5))));
    assert_eq!(
        (get.transport.idle_timeout, get.transport.cc),
        (Duration::from_secs(2), CongestionName::Newreno)
    );
    assert!(get.trust.pin.is_some());
}

#[test]
fn values_may_begin_with_a_dash() {
    let Command::Get(get) = parse("fulmar get https://h/a -d -5 -d --json -o -x -X -y").expect("get").command
    else {
        panic!("no get")
    };
    assert_eq!((get.http.data, get.out), (vec!["-5".to_owned(), "--json".to_owned()], Some("-x".into())));
    assert_eq!(get.http.request.as_deref(), Some("-y"));
    // Their own parsers say what is wrong with negative numbers.
    for (line, words) in [
        ("fulmar get https://h/a -m -1", "`-1` is no time"),
        ("fulmar serve --grace -1", "`-1` is no time"),
        ("fulmar get https://h/a --parallel -1", "-1 is not in 1..=256"),
        ("fulmar lab run a --seed -1", "invalid digit"),
        ("fulmar perf client h --download -5", "`-5` is no size"),
    ] {
        let error = parse(line).expect_err(line).to_string();
        assert!(error.contains(words), "{line}: {error}");
    }
    let line = "fulmar lab sweep --from -5";
    assert!(parse(line).is_ok(), "{line}: the sweep says what it thinks of it");
}

#[test]
fn a_reset_key_has_64_digits() {
    let key = "0f".repeat(32);
    let Command::Serve(serve) = parse(&format!("fulmar serve --reset-key {key}")).expect("serve").command
    else {
        panic!("no serve")
    };
    assert_eq!(serve.reset_key, Some([0x0f; 32]));
    assert!(parse(&format!("fulmar serve --reset-key {}", &key[1..])).is_err());
}

#[test]
fn contradictions_are_refused() {
    for line in [
        "fulmar",
        "fulmar get",
        "fulmar get https://h/a --insecure --ca x",
        // Connections of HTTP/3 are kept by its client.
        "fulmar get https://h/a --hold 4s",
        "fulmar get https://h/a --reconnect",
        "fulmar get https://h/a --0rtt",
        "fulmar serve --cert x",
        "fulmar serve --key x",
        "fulmar perf",
        "fulmar perf client",
        "fulmar perf client h:1",
        "fulmar perf client h:1 --download 1 --upload 1",
        "fulmar perf client h:1 --requests 1 --handshakes 1",
        "fulmar perf client h:1 --requests 1 --concurrent 0",
        "fulmar demo --size huge",
        "fulmar demo --mtu-max 1199",
        "fulmar demo --cc quick",
    ] {
        let error = parse(line).expect_err(line);
        assert!(error.exit_code() == 2, "{line}: {error}");
    }
}

#[test]
fn options_stand_in_groups_and_the_rare_ones_are_told_on_demand() {
    let help = |line: &str| parse(line).expect_err("the help").to_string();
    let (short, long) = (help("fulmar get -h"), help("fulmar get --help"));
    let group = |text: &str, option: &str| {
        let before =
            &text[..text.find(&format!(" {option}")).unwrap_or_else(|| panic!("{option} in {text}"))];
        let heading = before.lines().rev().find(|line| line.ends_with(':') && !line.starts_with(' '));
        heading.expect("a heading").to_owned()
    };
    for (option, heading) in [
        ("--out", "Options:"),
        ("--quiet", "Options:"),
        ("--pin", "Trust and TLS:"),
        ("--qlog", "Logs and figures:"),
        ("--session", "Sessions:"),
        ("--cc", "Transport:"),
    ] {
        assert_eq!(group(&short, option), heading, "{option}");
    }
    for rare in ["--dscp", "--key-update", "--initial-version"] {
        assert!(!short.contains(rare) && long.contains(rare), "{rare}");
    }
}

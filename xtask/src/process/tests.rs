use super::*;

#[test]
fn a_server_announces_its_address_as_a_line_or_as_json() {
    assert_eq!(listening_address("listening on [::1]:4433").as_deref(), Some("[::1]:4433"));
    assert_eq!(listening_address("listening on 127.0.0.1:1 (udp)").as_deref(), Some("127.0.0.1:1"));
    let json = r#"{"listening":"127.0.0.1:4433","fingerprint":"sha256:00"}"#;
    assert_eq!(listening_address(json).as_deref(), Some("127.0.0.1:4433"));
    assert_eq!(listening_address("fingerprint sha256:00"), None);
    assert_eq!(listening_address("4433"), None);
}

#[test]
fn a_finished_program_gives_its_report_and_its_complaint() {
    let dir = std::env::temp_dir().join(format!("fulmar-xtask-process-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"echo 7; echo '{"bytes":5}'; echo done; echo 'error: Stateless Reset' >&2; exit 3"#]);
    let finished =
        Process::start(command, &dir, "sh").unwrap().wait(Duration::from_secs(10)).unwrap().unwrap();
    fs::remove_dir_all(&dir).unwrap();
    assert_eq!(finished.status.code(), Some(3));
    assert_eq!(finished.report(), Some(serde_json::json!({ "bytes": 5 })));
    assert_eq!(finished.complaint(), "error: Stateless Reset");
    assert!(finished.says("stateless reset"));
    assert!(!finished.says("idle timeout"));
}

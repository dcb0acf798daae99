use super::*;
use crate::interop::cases::Case;
use crate::interop::peers::Peer;

fn outcome(case: Case, verdict: Verdict) -> Outcome {
    Outcome::new(case, (Peer::Quinn, Peer::QuicGo), verdict, Duration::from_millis(1500))
}

#[test]
fn the_table_has_a_word_for_each_outcome_and_reasons_below() {
    let outcomes = [
        outcome(Case::Handshake, Verdict::Pass),
        outcome(Case::Transfer, Verdict::Fail("2m differs".to_owned())),
        outcome(Case::Retry, Verdict::Skip("no such option".to_owned())),
    ];
    let text = render(&outcomes);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    assert_eq!(
        lines,
        [
            "server/client   quinn/quic-go",
            "handshake       pass",
            "transfer        FAIL",
            "retry           skip",
            "transfer       server quinn    client quic-go    1.50 s  FAIL: 2m differs",
            "retry          server quinn    client quic-go    1.50 s  skipped: no such option",
        ]
    );
}

#[test]
fn json_names_all_fields() {
    let line = outcome(Case::Idle, Verdict::Fail("hangs".to_owned())).to_json();
    let object: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        object,
        json!({
            "case": "idle", "server": "quinn", "client": "quic-go",
            "result": "fail", "detail": "hangs", "seconds": 1.5
        })
    );
}

use super::*;

fn outcome() -> Outcome {
    Outcome {
        unit: "datagrams",
        quiet_p99_us: vec![100.0, 90.0, 5_000.0],
        attacked_p99_us: vec![199.0, 9_000.0, 150.0],
        growth: GROWTH_MAX,
        ..Outcome::default()
    }
}

#[test]
fn a_server_survives_up_to_the_limits() {
    assert_eq!(outcome().judge(), Vec::<String>::new());
    assert_eq!(outcome().ratio(), 1.99);
}

#[test]
fn whatever_is_beyond_a_limit_is_named() {
    let slow = Outcome { attacked_p99_us: vec![201.0; 3], ..outcome() };
    assert_eq!(slow.judge(), ["slow requests took 2.01 times as long as in quiet"]);
    let large = Outcome { growth: (GROWTH_MAX) + 1, ..outcome() };
    assert_eq!(large.judge(), ["the memory grew by 32 MiB"]);
    let wrong = Outcome { complaints: vec!["wrong".to_owned()], ..outcome() };
    assert_eq!(wrong.judge(), ["wrong"]);
    let silent = Outcome { attacked_p99_us: vec![f64::INFINITY; 3], ..outcome() };
    assert_eq!(silent.judge(), ["no request was answered"]);
}

#[test]
fn a_row_that_is_known_to_be_heavy_has_no_other_fault() {
    let heavy = Outcome { growth: GROWTH_MAX + 1, ..outcome() };
    assert!(heavy.is_lost_by_memory_alone());
    assert!(!outcome().is_lost_by_memory_alone());
    let wrong = Outcome { complaints: vec!["wrong".to_owned()], ..heavy };
    assert!(!wrong.is_lost_by_memory_alone());
    assert!(!Outcome { growth: 0, ..wrong }.is_lost_by_memory_alone());
}

#[test]
fn without_rounds_in_quiet_slow_answers_are_those_of_half_a_second() {
    let unquiet = |p99| Outcome { quiet_p99_us: Vec::new(), attacked_p99_us: vec![p99; 3], ..outcome() };
    assert_eq!(unquiet(SLOW_MAX_US).judge(), Vec::<String>::new());
    assert_eq!(unquiet(3_100_000.0).judge(), ["slow requests took 3.10 s"]);
    assert_eq!(unquiet(f64::INFINITY).judge(), ["no request was answered"]);
    let large = Outcome { growth: GROWTH_MAX + 1, ..unquiet(1.0) };
    assert_eq!(large.judge(), ["the memory grew by 32 MiB"]);
}

#[test]
fn rows_tell_what_they_do() {
    for row in Row::value_variants() {
        let value = row.to_possible_value().unwrap();
        assert!(value.get_help().is_some(), "{row}");
        let line = outcome().to_line(*row, &[]);
        assert!(line.starts_with(&row.to_string()) && line.contains("survived"), "{line}");
        let json = outcome().to_json(*row, &["x".to_owned()]);
        assert_eq!((&json["survived"], &json["p99_ratio"]), (&json!(false), &json!(1.99)));
    }
}

use super::*;

const OUTCOMES: &str = r#"{"outcomes": [
    {"scenario": "Baseline", "summary": "Success"},
    {"scenario": {"Mutant": {"name": "a/b.rs:1:2: replace f -> bool with true"}}, "summary": "CaughtMutant"},
    {"scenario": {"Mutant": {"name": "a/b.rs:1:2: replace f -> bool with false"}}, "summary": "Timeout"},
    {"scenario": {"Mutant": {"name": "a/b.rs:3:4: replace == with != in g"}}, "summary": "MissedMutant"},
    {"scenario": {"Mutant": {"name": "a/b.rs:5:6: replace == with != in g"}}, "summary": "MissedMutant"},
    {"scenario": {"Mutant": {"name": "a/b.rs:7:8: replace h -> T with Default::default()"}}, "summary": "Unviable"}
]}"#;

#[test]
fn a_hang_is_seen_and_what_does_not_compile_does_not_count() {
    let tally = read_outcomes(OUTCOMES).unwrap();
    assert_eq!((tally.caught, tally.timed_out, tally.unviable), (1, 1, 1));
    assert_eq!(tally.survivors, ["a/b.rs: replace == with != in g"; 2]);
    assert_eq!((tally.viable(), tally.percent()), (4, 50.0));
}

#[test]
fn an_outcome_that_nobody_knows_is_an_error() {
    let text = OUTCOMES.replace("Unviable", "Sideways");
    assert!(read_outcomes(&text).unwrap_err().to_string().contains("Sideways"));
}

#[test]
fn each_line_of_the_list_allows_one_survivor() {
    let tally = read_outcomes(OUTCOMES).unwrap();
    let one = read_list("# A comment.\n\na/b.rs: replace == with != in g # the same either way\n").unwrap();
    assert_eq!(unlisted(&tally, &one), ["a/b.rs: replace == with != in g"]);
    assert!(report(&tally, &one, false, false).is_err());
    let both = BTreeMap::from([("a/b.rs: replace == with != in g".to_owned(), 2)]);
    assert!(report(&tally, &both, false, false).is_ok());
    let error = report(&tally, &both, true, false).unwrap_err();
    assert!(error.to_string().contains("3 %"), "half of a whole run is too much: {error}");
}

#[test]
fn a_survivor_is_not_listed_without_a_reason() {
    for line in ["a/b.rs: replace == with != in g", "a/b.rs: replace == with != in g # "] {
        assert!(read_list(line).is_err(), "{line}");
    }
}

/// The name of the function that a mutant changes: `f` of `replace == with != in T::f` and of `replace T::f -> bool with true`.
fn function_of(change: &str) -> &str {
    let place = change.rsplit_once(" in ").map_or(change.trim_start_matches("replace "), |(_, place)| place);
    let path = place.split(" -> ").next().unwrap_or(place).split(" with ").next().unwrap_or(place);
    path.rsplit("::").next().unwrap_or(path)
}

#[test]
fn the_list_of_the_repository_can_be_read() {
    let listed = read_list(include_str!("../../mutants.txt")).unwrap();
    let missing = listed.keys().find(|name| {
        let (file, change) = name.split_once(": ").unwrap_or_default();
        let source = fs::read_to_string(programs::repository().join(file)).unwrap_or_default();
        !source.contains(&format!("fn {}", function_of(change)))
    });
    assert_eq!(missing, None, "a listed mutant is of a file or a function that is not there");
}

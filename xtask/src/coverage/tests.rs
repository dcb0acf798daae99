use super::*;

const SUMMARY: &str = r#"{"data": [{"files": [
    {"filename": "/a/crates/wire/src/x.rs", "summary": {"lines": {"count": 100, "covered": 96}, "branches": {"count": 10, "covered": 9}}},
    {"filename": "/a/crates/wire/src/y.rs", "summary": {"lines": {"count": 100, "covered": 94}, "branches": {"count": 10, "covered": 9}}},
    {"filename": "/a/crates/sim/src/x.rs", "summary": {"lines": {"count": 10, "covered": 1}}},
    {"filename": "/a/vendor/z.rs", "summary": {"lines": {"count": 10, "covered": 0}}}
]}]}"#;

#[test]
fn files_are_summed_up_by_crate() {
    let files = read_summary(SUMMARY).unwrap();
    let totals = by_crate(&files, &["wire"]);
    let expected = Coverage { lines: Count { all: 200, run: 190 }, branches: Count { all: 20, run: 18 } };
    assert_eq!(totals, BTreeMap::from([("wire", expected)]));
    assert_eq!(worst(&files)[0].0, "crates/sim/src/x.rs");
    assert_eq!(files.len(), 3, "what is not of this repository does not count");
}

#[test]
fn what_is_below_a_limit_is_named() {
    let files = read_summary(SUMMARY).unwrap();
    let whole = by_crate(&files, &["wire", "sim"]);
    assert_eq!(judge(&whole, true), ["10.0 % of the lines of sim are run"]);
    let fewer = read_summary(&SUMMARY.replace("\"covered\": 9}", "\"covered\": 8}")).unwrap();
    let wire = by_crate(&fewer, &["wire"]);
    assert_eq!(judge(&wire, true), ["80.0 % of the branches of wire are taken"]);
    assert_eq!(judge(&wire, false), Vec::<String>::new());
    let nothing = by_crate(&files, &["quic"]);
    assert_eq!(judge(&nothing, false), ["nothing is known of quic"]);
}

#[test]
fn a_crate_that_is_no_library_is_a_mistake() {
    let options = |name: &str| Options { branch: false, crates: vec![name.to_owned()], json: false };
    assert!(options("cli").chosen().is_err());
    assert_eq!(options("wire").chosen().unwrap(), ["wire"]);
    assert_eq!(package_of("quic"), "fulmar");
}

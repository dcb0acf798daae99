use super::*;

#[test]
fn a_case_that_nobody_knows_has_the_exit_code_of_the_runner() {
    let failure = Case::named("qvhzmxsp").expect_err("there is no such case");
    assert_eq!(failure.exit_code(), 127);
}

#[test]
fn each_request_of_multiconnect_has_its_own_connection() {
    assert_eq!(Case::named("multiconnect").unwrap().course, Course::OneByOne);
    assert_eq!(Case::named("transfer").unwrap().course, Course::Together);
    assert_eq!(Case::named("resumption").unwrap().course, Course::Resumed);
    assert_eq!(Case::named("zerortt").unwrap().course, Course::Early);
}

#[test]
fn files_are_moved_over_http_3_in_one_case() {
    assert!(Case::named("http3").unwrap().http3);
    assert!(!Case::named("transfer").unwrap().http3);
}

use super::Priority;

fn parsed(value: &str) -> (u8, bool) {
    let priority = Priority::parse(value.as_bytes());
    (priority.urgency, priority.incremental)
}

#[test]
fn parameters_are_read() {
    assert_eq!(parsed(""), (3, false));
    assert_eq!(parsed("u=0"), (0, false));
    assert_eq!(parsed("u=5, i"), (5, true));
    assert_eq!(parsed("i=?0,u=1"), (1, false));
    assert_eq!(parsed("i;a=1 ,\tu=7;b"), (7, true));
}

#[test]
fn what_is_unknown_or_wrong_is_ignored() {
    assert_eq!(parsed("u=8, i=1"), (3, false));
    assert_eq!(parsed("u=-1"), (3, false));
    assert_eq!(parsed("u=3.5"), (3, false));
    assert_eq!(parsed(r#"x="a, u=1, \", i", u=2"#), (2, false));
    assert_eq!(parsed("\u{0}\u{1}"), (3, false));
}

#[test]
fn what_is_written_is_read_the_same() {
    for urgency in 0..8 {
        for incremental in [false, true] {
            let priority = Priority { urgency, incremental };
            assert_eq!(Priority::parse(priority.encode().as_bytes()), priority);
        }
    }
}

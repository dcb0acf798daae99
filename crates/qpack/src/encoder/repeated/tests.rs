use super::*;

const COOKIE_LEN_MIN: usize = 20;

fn written(repeated: &mut Repeated, fields: &[FieldRef<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    repeated.write(fields.iter().copied(), COOKIE_LEN_MIN, &mut out);
    out
}

fn secret(field: FieldRef<'_>) -> FieldRef<'_> {
    FieldRef { sensitive: true, ..field }
}

#[test]
fn a_section_has_the_same_lines_whatever_was_before_it() {
    let status = FieldRef::new(":status", "200");
    let date = |text| FieldRef::new("date", text);
    let (long, cookie) = ("x".repeat(BYTES_MAX), FieldRef::new("cookie", "a=b"));
    let many = vec![status; 2 * PLACES_MAX];
    let sections: &[&[FieldRef<'_>]] = &[
        &[status, date("Sun, 06 Nov 1994 08:49:37 GMT"), FieldRef::new("x", "")],
        &[status, date("Sun, 06 Nov 1994 08:49:37 GMT"), FieldRef::new("x", "")],
        &[status, date("Sun, 06 Nov 1994 08:49:38 GMT")],
        &[status, secret(date("Sun, 06 Nov 1994 08:49:38 GMT")), FieldRef::new("", "x")],
        &[status, secret(date("Sun, 06 Nov 1994 08:49:38 GMT"))],
        &[status, date("Sun, 06 Nov 1994 08:49:38 GMT"), FieldRef::new("", "")],
        &[],
        &[FieldRef::new("x", &long), cookie, FieldRef::new("dat", "eSun")],
        &[FieldRef::new("x", &long), cookie, date("Sun")],
        &many,
        &many,
        &[date("Sun"), status],
    ];
    let mut repeated = Repeated::default();
    for section in sections {
        assert_eq!(
            written(&mut repeated, section),
            written(&mut Repeated::default(), section),
            "{section:?}"
        );
    }
    assert_eq!(repeated.places.len(), PLACES_MAX);
}

#[test]
fn secrets_and_long_fields_are_not_kept() {
    let long = "x".repeat(BYTES_MAX);
    let mut repeated = Repeated::default();
    let fields = [
        FieldRef::new("date", "today"),
        secret(FieldRef::new("x", "secret")),
        FieldRef::new("cookie", "a=b"),
        FieldRef::new("authorization", "secret"),
        FieldRef::new("x", &long),
    ];
    written(&mut repeated, &fields);
    assert_eq!(
        repeated.places.iter().map(|place| !place.bytes.is_empty()).collect::<Vec<_>>(),
        [true, false, false, false, false]
    );
}

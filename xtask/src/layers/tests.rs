use super::*;

#[test]
fn only_edges_of_the_table_are_allowed() {
    assert!(forbidden_edges("fulmar-wire", &["fulmar-base", "thiserror"]).is_empty());
    assert_eq!(forbidden_edges("fulmar-wire", &["fulmar-proto"]), ["fulmar-wire must not use fulmar-proto"]);
    assert_eq!(forbidden_edges("fulmar-base", &["fulmar-wire", "fulmar"]).len(), 2);
    assert_eq!(forbidden_edges("fulmar-new", &[]), ["fulmar-new is not in the table of layers"]);
}

#[test]
fn the_table_has_no_cycle() {
    for (position, (name, allowed)) in ALLOWED.iter().enumerate() {
        for dependency in *allowed {
            let above = ALLOWED[..position].iter().any(|(krate, _)| krate == dependency);
            assert!(above, "{name} uses {dependency}, which does not stand above it");
        }
    }
}

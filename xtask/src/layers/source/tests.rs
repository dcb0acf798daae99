use super::*;

/// All paths into the own crate, in the form `crate::a::B`.
fn paths(text: &str) -> Vec<String> {
    Source::read(text).paths.iter().map(|path| path.segments.join("::")).collect()
}

#[test]
fn a_tree_of_imports_is_read_branch_by_branch() {
    let text = "use crate::{a::{B, self}, c as d};\npub(crate) use super::e::*;\nuse std::fmt;\n";
    assert_eq!(paths(text), ["crate::a::B", "crate::a::self", "crate::c", "super::e::*"]);
    let source = Source::read(text);
    assert_eq!(source.uses.last().unwrap().segments, ["std", "fmt"]);
    assert_eq!(source.uses[2].alias.as_deref(), Some("d"));
    assert_eq!(source.paths.iter().map(|path| path.line).collect::<Vec<_>>(), [1, 1, 1, 2]);
}

#[test]
fn a_path_within_an_expression_or_a_type_counts() {
    let text = "fn f(x: &crate::a::B) -> super::c::D<crate::e::F> { crate::g::h::<u8>(x); self.i::<u8>() }";
    assert_eq!(paths(text), ["crate::a::B", "super::c::D", "crate::e::F", "crate::g::h"]);
    assert_eq!(paths("pub(in crate::a) struct S(pub(crate) u8);"), ["crate::a"]);
    assert_eq!(paths("macro_rules! m { () => { $crate::a::b() } }"), ["crate::a::b"]);
}

#[test]
fn comments_and_literals_name_nothing() {
    let text = r####"
        // crate::a
        /* crate::b /* crate::c */ crate::d */
        const T: &str = "crate::e \" crate::f";
        const R: &str = r#"crate::g " crate::h"#;
        const C: [char; 3] = ['"', '\'', 'x'];
        fn f<'a>(x: &'a crate::i::J) {}
    "####;
    assert_eq!(paths(text), ["crate::i::J"]);
    assert_eq!(Source::read(text).paths[0].line, 7);
}

#[test]
fn what_is_for_tests_only_is_left_out() {
    let text = "
        #[cfg(test)]
        use crate::{a::B, c};
        #[cfg(test)]
        #[allow(dead_code)]
        mod tests { use crate::d; fn f() { crate::e::f() } }
        #[cfg(test)]
        mod test_link;
        struct S { #[cfg(test)] x: crate::g::H, y: crate::i::J }
        #[cfg(test)]
        impl S { fn z() { crate::k::l() } }
        #[cfg(not(test))]
        use crate::m;
        mod n;
        pub mod o;
    ";
    assert_eq!(paths(text), ["crate::i::J", "crate::m"]);
    assert_eq!(Source::read(text).modules, ["n", "o"]);
}

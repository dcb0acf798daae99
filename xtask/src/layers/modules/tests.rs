use super::*;

const LAYERS: ModuleLayers = ModuleLayers {
    folder: "crates/x",
    modules: &[("leaf", &[]), ("middle", &["leaf"]), ("top", &["middle"])],
};

const ROOT: &str = "mod leaf; pub mod middle; mod top;
    pub use leaf::{Leaf, deep::Deeper as Deepest};
    pub use other_crate::Foreign;
    pub use self::top::Top;";

/// The breaches of a crate whose module `module` reads like this.
fn breaches(module: &[&str], text: &str) -> Vec<String> {
    let file = |name: &str, module: &[&str], text| File {
        name: name.to_owned(),
        module: module.iter().map(|&segment| segment.to_owned()).collect(),
        source: Source::read(text),
    };
    LAYERS.breaches(&[file("lib.rs", &[], ROOT), file("a.rs", module, text)])
}

#[test]
fn a_module_may_use_itself_and_what_the_table_names() {
    let text = "use crate::leaf::Leaf;\nuse super::top::A;\nuse crate::middle::b::C;\nuse self::d::E;";
    assert!(breaches(&["middle", "b"], text).is_empty(), "its own parts may have the names of others");
    assert!(breaches(&["middle"], "use super::leaf; use other_crate::top;").is_empty());
}

#[test]
fn every_breach_is_named_with_its_place() {
    assert_eq!(
        breaches(&["leaf"], "use crate::middle::A;\n\nfn f() {\n crate::top::g() }"),
        ["a.rs:1: leaf must not use middle", "a.rs:4: leaf must not use top"]
    );
    assert_eq!(breaches(&["top"], "use crate::leaf;"), ["a.rs:1: top must not use leaf"]);
    assert_eq!(breaches(&["leaf", "b"], "use super::super::top::A;"), ["a.rs:1: leaf must not use top"]);
    assert_eq!(breaches(&["leaf"], "pub use super::top::A;"), ["a.rs:1: leaf must not use top"]);
}

#[test]
fn a_name_at_the_root_counts_for_the_module_that_it_comes_from() {
    assert!(breaches(&["middle"], "use crate::{Leaf, Deepest, Foreign};").is_empty());
    assert_eq!(breaches(&["top"], "use crate::Deepest;"), ["a.rs:1: top must not use leaf"]);
    assert_eq!(breaches(&["leaf"], "use crate::{self, Top};").len(), 2);
    assert_eq!(breaches(&["leaf"], "use crate::*;"), ["a.rs:1: crate::* does not say which module it uses"]);
}

#[test]
fn the_table_names_the_modules_that_there_are() {
    let root = |text| File { name: "lib.rs".to_owned(), module: Vec::new(), source: Source::read(text) };
    assert_eq!(
        LAYERS.breaches(&[root("mod leaf; mod middle; mod new;")]),
        ["crates/x: new is not in the table of modules", "crates/x: the table names top, which is gone",]
    );
}

#[test]
fn no_table_has_a_circle() {
    for ModuleLayers { folder, modules } in CRATES {
        for (position, (name, allowed)) in modules.iter().enumerate() {
            for used in *allowed {
                let above = modules[..position].iter().any(|(module, _)| module == used);
                assert!(above, "{folder}: {name} uses {used}, which does not stand above it");
            }
        }
    }
}

#[test]
fn the_sources_keep_their_layers() {
    let (modules, breaches) = super::breaches().unwrap();
    assert!(modules > 20);
    assert_eq!(breaches, [""; 0]);
}

#[test]
fn the_whole_crate_is_read() {
    let files = read_tree(&repository().join("crates/proto/src/lib.rs")).unwrap();
    let has = |name: &str| files.iter().any(|file| file.name.ends_with(name));
    assert!(
        has("src/rtt/timer_style.rs") && has("src/congestion/bbr/mod.rs") && has("src/connection/close.rs")
    );
    assert!(!has("src/congestion/test_link.rs") && !has("tests.rs"), "tests may use what they like");
}

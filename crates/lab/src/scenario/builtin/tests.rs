use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;
use crate::scenario::Scenario;

#[test]
fn every_scenario_makes_sense_and_lies_in_the_folder_of_its_section() {
    for (name, text) in FILES {
        let scenario = Scenario::parse(name, text).unwrap_or_else(|error| panic!("{error}"));
        let folder = scenario.section().expect("a section").folder();
        assert_eq!(name.split('/').next(), Some(folder), "{name}");
        assert!(!scenario.goals().is_empty() || !scenario.comparisons().is_empty(), "{name} has no goal");
    }
}

#[test]
fn every_file_is_part_of_the_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut names = BTreeSet::new();
    for section in fs::read_dir(&folder).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir()) {
        for file in fs::read_dir(section.path()).unwrap().map(Result::unwrap) {
            let stem = file.path().with_extension("");
            names.insert(stem.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned());
        }
    }
    let known: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names, known);
}

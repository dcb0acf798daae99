use std::fs;

use fulmar_lab::scenario::Grid;

use super::kept::{first_field, id_of};
use super::*;
use crate::test_dir::TestDir;

/// The scenario of the runs.
const SCENARIO: &str = "title = \"x\"\ncontroller = \"cubic\"\n[[connection]]\nupload_bytes = 1\n";

fn runs() -> Vec<GridRun> {
    let text = "scenario = \"x\"\nseeds = 3\n[set]\n\"link.loss\" = [\"none\"]\n";
    let points = Grid::parse("grid", text).unwrap().points().into_iter();
    let scenario = Scenario::parse("x", SCENARIO).unwrap();
    points.map(|point| GridRun::new(point, &scenario)).collect()
}

fn line(run: &GridRun) -> GridLine {
    GridLine::new(run, &Stamp::default(), Err("did not run, \"really\"".to_owned()))
}

fn add(results: &mut Results, run: &GridRun) {
    results.add(&line(run)).unwrap();
}

/// The results of the campaign in a file.
fn to_file(path: &PathBuf, format: GridFormat, stamp: Stamp) -> Result<Results, Failure> {
    Results::to_file(path, format, stamp, &runs()[0].setting_names())
}

/// The names of the runs in a file.
fn ids(path: &Path, format: GridFormat) -> Vec<String> {
    let text = fs::read(path).unwrap();
    text.split_inclusive(|&byte| byte == b'\n').filter_map(|line| id_of(line, format)).collect()
}

#[test]
fn a_result_is_in_the_file_at_once_and_in_its_place_in_the_end() {
    for format in [GridFormat::Jsonl, GridFormat::Csv] {
        let dir = TestDir::new("results-in-place");
        let path = dir.path().join("results");
        let runs = runs();
        let [first, second, third] = [0, 1, 2].map(|number| Stamp::default().id(&runs[number]));
        let mut results = to_file(&path, format, Stamp::default()).unwrap();
        // The first run takes longer than all others.
        results.take(2, line(&runs[2])).unwrap();
        results.take(1, line(&runs[1])).unwrap();
        assert_eq!(ids(&path, format), [third.clone(), second.clone()], "{format:?}");
        results.take(0, line(&runs[0])).unwrap();
        let found = fs::read(&path).unwrap();
        results.finish(&runs).unwrap();
        assert_eq!(ids(&path, format), [first, second, third], "{format:?}");
        let (mut before, mut after) = (found.clone(), fs::read(&path).unwrap());
        if format == GridFormat::Csv {
            assert!(after.starts_with(b"id,"), "the header stays above");
        }
        before.sort_unstable();
        after.sort_unstable();
        assert_eq!(before, after, "nothing is lost");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    }
}

#[test]
fn an_error_of_several_lines_stays_with_its_result() {
    for format in [GridFormat::Jsonl, GridFormat::Csv] {
        let dir = TestDir::new("results-lines");
        let path = dir.path().join("results");
        let runs = runs();
        let mut results = to_file(&path, format, Stamp::default()).unwrap();
        let error = "panicked: they are not equal\n  left: 1\n right: 2".to_owned();
        results.take(1, GridLine::new(&runs[1], &Stamp::default(), Err(error))).unwrap();
        results.take(0, line(&runs[0])).unwrap();
        results.finish(&runs).unwrap();
        let results = to_file(&path, format, Stamp::default()).unwrap();
        assert_eq!((results.dropped(), results.has(&runs[1])), (0, true), "{format:?}");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.lines().last().unwrap().contains("  left: 1"), "{text}");
    }
}

#[test]
fn results_of_other_runs_stay_before_those_of_a_campaign() {
    let dir = TestDir::new("results-of-others");
    let path = dir.path().join("results.jsonl");
    let runs = runs();
    let mut results = to_file(&path, GridFormat::Jsonl, Stamp::default()).unwrap();
    [1, 2, 0].iter().for_each(|&number| add(&mut results, &runs[number]));
    // A campaign of the first two alone.
    results.finish(&runs[..2]).unwrap();
    let expected = [2, 0, 1].map(|number| Stamp::default().id(&runs[number]));
    assert_eq!(ids(&path, GridFormat::Jsonl), expected);
}

#[test]
fn what_is_in_the_file_is_known_and_a_line_that_was_cut_is_not() {
    for format in [GridFormat::Jsonl, GridFormat::Csv] {
        let dir = TestDir::new("results-cut");
        let path = dir.path().join("results");
        let runs = runs();
        let mut results = to_file(&path, format, Stamp::default()).unwrap();
        add(&mut results, &runs[0]);
        add(&mut results, &runs[1]);
        drop(results);
        let complete = fs::read_to_string(&path).unwrap();
        fs::write(&path, &complete[..complete.len() - 5]).unwrap();

        let mut results = to_file(&path, format, Stamp::default()).unwrap();
        let known: Vec<bool> = runs.iter().map(|run| results.has(run)).collect();
        assert_eq!(known, [true, false, false], "{format:?}");
        add(&mut results, &runs[1]);
        drop(results);
        assert_eq!(fs::read_to_string(&path).unwrap(), complete, "{format:?}");
    }
}

#[test]
fn a_csv_file_has_one_header_and_as_many_fields_in_each_line() {
    let dir = TestDir::new("results-table");
    let path = dir.path().join("results.csv");
    let mut results = to_file(&path, Results::format_of(Some(&path)), Stamp::default()).unwrap();
    runs().iter().for_each(|run| add(&mut results, run));
    drop(results);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 3);
    assert!(lines[0].starts_with("id,link.loss,scenario,controller,seed,"), "{}", lines[0]);
    assert!(lines[1].ends_with(",\"did not run, \"\"really\"\"\""), "{}", lines[1]);
    assert_eq!(first_field(lines[1]), Stamp::default().id(&runs()[0]));
}

#[test]
fn results_of_a_scenario_that_has_changed_are_dropped() {
    for format in [GridFormat::Jsonl, GridFormat::Csv] {
        let dir = TestDir::new("results-of-another");
        let path = dir.path().join("results");
        let runs = runs();
        let mut results = to_file(&path, format, Stamp::default()).unwrap();
        runs.iter().for_each(|run| add(&mut results, run));
        drop(results);
        let changed = Stamp { scenario_sha256: "0123456789abcdef0123".to_owned(), ..Stamp::default() };
        let results = to_file(&path, format, changed).unwrap();
        assert_eq!((results.dropped(), results.has(&runs[0])), (3, false), "{format:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "", "{format:?}");
    }
}

#[test]
fn a_file_of_anything_else_is_refused_and_stays_as_it_is() {
    let dir = TestDir::new("results-foreign");
    let path = dir.path().join("notes");
    let other = line(&runs()[0]);
    let result = serde_json::to_string(&other).unwrap();
    let texts = [
        "my notes, line 1\nmy notes, line 2",
        "one line without an end",
        "id,a\n1,2\n",
        "{\"id\":\"mine\"}\n",
        "rate_mbps = [1, 1000]\n",
        &format!("{result}\nand a note\n"),
        &format!("{result}\nand a note"),
    ];
    for format in [GridFormat::Jsonl, GridFormat::Csv] {
        for text in texts {
            fs::write(&path, text).unwrap();
            let refused = to_file(&path, format, Stamp::default()).err();
            let told = refused.expect(text).to_string();
            assert!(told.contains("notes, line ") && told.contains("stays as it is"), "{told}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "{format:?}");
        }
    }
}

#[test]
fn parts_that_were_put_together_are_known() {
    for format in [GridFormat::Jsonl, GridFormat::Csv] {
        let dir = TestDir::new("results-parts");
        let runs = runs();
        let mut whole = String::new();
        for (number, run) in runs.iter().enumerate() {
            let path = dir.path().join(format!("part-{number}"));
            let mut results = to_file(&path, format, Stamp::default()).unwrap();
            add(&mut results, run);
            whole += &fs::read_to_string(&path).unwrap();
        }
        let path = dir.path().join("whole");
        fs::write(&path, &whole).unwrap();
        let results = to_file(&path, format, Stamp::default()).unwrap();
        assert!(runs.iter().all(|run| results.has(run)), "{format:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), whole, "{format:?}");
    }
}

#[test]
fn a_first_line_that_was_cut_is_written_anew() {
    for format in [GridFormat::Jsonl, GridFormat::Csv] {
        let dir = TestDir::new("results-first-cut");
        let path = dir.path().join("results");
        let runs = runs();
        let mut results = to_file(&path, format, Stamp::default()).unwrap();
        add(&mut results, &runs[0]);
        drop(results);
        let complete = fs::read_to_string(&path).unwrap();
        for length in [0, 2, 20] {
            fs::write(&path, &complete[..length]).unwrap();
            let mut results = to_file(&path, format, Stamp::default()).unwrap();
            add(&mut results, &runs[0]);
            drop(results);
            assert_eq!(fs::read_to_string(&path).unwrap(), complete, "{format:?}, {length}");
        }
    }
}

#[test]
fn a_run_that_failed_has_its_scenario_its_controller_and_its_seed() {
    let stamp = Stamp { scenario: "lossy".to_owned(), ..Stamp::default() };
    let line = GridLine::new(&runs()[1], &stamp, Err("lost".to_owned()));
    let value = serde_json::to_value(&line).unwrap();
    assert_eq!(
        (&value["scenario"], &value["controller"], &value["seed"]),
        (&"lossy".into(), &"cubic".into(), &2.into())
    );
}

#[test]
fn a_run_that_failed_has_the_controller_of_its_settings() {
    let text = "scenario = \"x\"\nseeds = 1\n[set]\n\"controller\" = [\"newreno\"]\n";
    let point = Grid::parse("grid", text).unwrap().points().remove(0);
    let scenario = Scenario::parse("x", SCENARIO).unwrap().with_settings(["controller=newreno"]).unwrap();
    let line = GridLine::new(&GridRun::new(point, &scenario), &Stamp::default(), Err("lost".to_owned()));
    assert_eq!(serde_json::to_value(&line).unwrap()["controller"], "newreno");
}

#[test]
fn results_of_a_controller_of_ones_own_are_of_one_build_of_the_program() {
    for format in [GridFormat::Jsonl, GridFormat::Csv] {
        let dir = TestDir::new("results-of-a-build");
        let path = dir.path().join("results");
        let mut runs = runs();
        runs[1].has_own_controller = true;
        let build = |hash: &str| Stamp { program: Some(hash.to_owned()), ..Stamp::default() };
        let known = |stamp: Stamp| {
            let results = to_file(&path, format, stamp).unwrap();
            let known: Vec<bool> = runs.iter().map(|run| results.has(run)).collect();
            (known, results.dropped())
        };
        let mut results = to_file(&path, format, build("a")).unwrap();
        for run in &runs {
            results.add(&GridLine::new(run, &build("a"), Err("did not run".to_owned()))).unwrap();
        }
        assert_eq!(known(build("a")), (vec![true; 3], 0), "{format:?}");
        // A campaign without such controllers does not know the build, and leaves them.
        assert_eq!(known(Stamp::default()), (vec![true, false, true], 0), "{format:?}");
        assert_eq!(known(build("a")), (vec![true; 3], 0), "{format:?}");
        assert_eq!(known(build("b")), (vec![true, false, true], 1), "{format:?}");
    }
}

#[test]
fn a_table_with_other_columns_is_refused_and_stays_as_it_is() {
    let dir = TestDir::new("results-columns");
    let path = dir.path().join("results.csv");
    let settings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    let open = |names: &[&str]| Results::to_file(&path, GridFormat::Csv, Stamp::default(), &settings(names));
    let mut results = open(&["link.loss"]).unwrap();
    runs().iter().for_each(|run| add(&mut results, run));
    drop(results);
    let text = fs::read_to_string(&path).unwrap();
    for names in [vec![], vec!["link.delay_ms"], vec!["link.delay_ms", "link.loss"]] {
        let told = open(&names).err().expect("other columns").to_string();
        assert!(told.contains("results.csv, line 2, is a result under other columns"), "{told}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    assert!(open(&["link.loss"]).unwrap().has(&runs()[2]));
    // Of a table of another version before it nothing stays.
    let other = "id,link.loss,scenario,speed\nseed=1 scenario=5e1f version=0.0.1,none,x,5\n";
    fs::write(&path, format!("{other}{text}")).unwrap();
    let results = open(&["link.loss"]).unwrap();
    assert_eq!((results.dropped(), results.has(&runs()[0])), (1, true));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

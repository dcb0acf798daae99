use super::plan::{Case, Extent, Stack, cases};
use super::results::{Figures, Results, median};
use super::*;

fn figures(amount: f64, seconds: f64) -> Outcome {
    Outcome::Figures(Figures {
        seconds,
        amount,
        client_cpu_s: 1.0,
        server_cpu_s: Some(1.0),
        client_peak_kb: None,
        server_peak_kb: None,
        latency_us: None,
        full_handshakes: None,
        lost: None,
        client_bytes: None,
        server_bytes: None,
    })
}

fn case(name: &str) -> Case {
    cases(Extent::Whole).into_iter().find(|case| case.name == name).expect("there is such a case")
}

#[test]
fn the_median_is_the_middle_or_between_the_two_middles() {
    assert_eq!(median(&[3.0]), 3.0);
    assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
    assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), 3.0);
}

#[test]
fn names_of_cases_differ_and_every_goal_is_about_one_of_them() {
    let cases = cases(Extent::Whole);
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    for goal in goals::goals() {
        let (case, _) = goal.text.split_once(": ").expect("a goal begins with its case");
        assert!(names.contains(&case), "{case}");
    }
}

#[test]
fn a_word_chooses_all_cases_that_begin_with_it() {
    let names = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        chosen(cases(Extent::Quick), &words)
            .map(|cases| cases.into_iter().map(|case| case.name).collect::<Vec<_>>())
    };
    assert_eq!(names(&["memory"]).unwrap(), ["memory-idle", "memory-active"]);
    assert_eq!(names(&["requests-100", "latency"]).unwrap(), ["latency", "requests-100"]);
    assert!(names(&["nothing"]).is_err());
}

#[test]
fn ratios_are_those_of_the_medians_and_say_whether_a_goal_is_met() {
    let mut results = Results::new(false, Vec::new(), Vec::new());
    let row = results.begin(case("download"));
    for seconds in [1.0, 2.0, 9.0] {
        row.add(Stack::Fulmar, figures(1e9, seconds));
    }
    row.add(Stack::Quinn, figures(1e9, 4.0));
    row.add(Stack::S2n, figures(1e9, 2.2));
    row.add(Stack::Tcp, Outcome::Nothing("no".to_owned()));
    assert!(row.is_out(Stack::Tcp) && !row.is_out(Stack::Quinn));
    let met = |text: &str| {
        let goal = goals::goals().into_iter().find(|goal| goal.text == text).expect("there is such a goal");
        goal.judge(&results).met
    };
    assert_eq!(met("download: times quinn, at least 2"), Some(true));
    assert_eq!(met("download: times s2n-quic, at least 1.7"), Some(false));
    assert_eq!(met("download: share of the limit, at least 0.70"), None);
    assert!(report::tables(&results).contains("- download, tcp: no"));
}

#[test]
fn what_fails_is_told_and_what_is_not_supported_is_no_failure() {
    let mut results = Results::new(true, Vec::new(), Vec::new());
    let row = results.begin(case("datagrams"));
    row.add(Stack::S2n, Outcome::Nothing("none".to_owned()));
    row.add(Stack::Quinn, Outcome::Failed("it hangs".to_owned()));
    assert_eq!(results.failures(), ["datagrams of quinn: it hangs"]);
}

#[test]
fn files_over_http_have_a_table_of_their_own_with_the_cpu_of_the_servers() {
    let versions = vec!["nginx version: nginx/1.2.3".to_owned()];
    let mut results = Results::new(false, vec!["http3".to_owned()], versions);
    let row = results.begin(case("http3-13b"));
    // Each has taken a second of the server for so many requests.
    row.add(Stack::Fulmar, figures(100.0, 1.0));
    row.add(Stack::Nginx, figures(80.0, 1.0));
    row.add(Stack::H3Quinn, figures(40.0, 1.0));
    row.add(Stack::Caddy, Outcome::Nothing("caddy is not installed".to_owned()));
    let met = |text: &str| {
        let goal = goals::goals().into_iter().find(|goal| goal.text == text).expect("there is such a goal");
        goal.judge(&results).met
    };
    assert_eq!(met("http3-13b: CPU of the server, of nginx's at most 1"), Some(true));
    assert_eq!(met("http3-13b: CPU of the server, of h3-on-quinn's at most 0.5"), Some(true));
    assert_eq!(met("http3-13b: CPU of the server, of our HTTP/2's at most 1"), None);
    let tables = report::tables(&results);
    assert!(tables.starts_with("| case | unit | fulmar | fulmar-h2 | nginx | caddy | quic-go | h3-quinn |"));
    assert!(tables.contains("| 0.80 | 0.40 | - |"), "{tables}");
    assert!(tables.contains("- http3-13b, caddy: caddy is not installed"), "{tables}");
    let document = report::document(&results).expect("a document");
    assert!(document.contains("nginx/1.2.3"), "{document}");
    assert!(document.contains("extent: whole, of `http3` alone"), "{document}");
}

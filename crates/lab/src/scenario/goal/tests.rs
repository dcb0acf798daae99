use super::*;

fn goal(metric: Metric, reference: Option<f64>, goal: Option<f64>) -> Goal {
    Goal { controller: None, metric, reference, goal, set: BTreeMap::new() }
}

#[test]
fn without_a_figure_of_its_own_a_goal_is_the_reference_with_a_tolerance() {
    let goal = goal(Metric::CompletionS, Some(10.0), None);
    assert!(goal.is_met(Some(10.19)) && !goal.is_met(Some(10.21)));
}

#[test]
fn a_goal_of_its_own_has_no_tolerance() {
    let goal = goal(Metric::CompletionS, Some(10.0), Some(9.5));
    assert!(goal.is_met(Some(9.5)) && !goal.is_met(Some(9.51)));
}

#[test]
fn shares_and_indices_are_to_be_reached_from_above() {
    let goal = goal(Metric::ShareMin, None, Some(0.25));
    assert!(goal.is_met(Some(0.3)) && !goal.is_met(Some(0.2)));
}

#[test]
fn what_could_not_be_measured_is_missed() {
    assert!(!goal(Metric::CompletionS, Some(10.0), None).is_met(None));
}

#[test]
fn times_count_by_their_median_and_bounds_by_their_worst() {
    let figures = [Some(4.0), Some(1.0), Some(3.0), Some(100.0)];
    assert_eq!(Metric::CompletionS.over_seeds(&figures), Some(3.5));
    assert_eq!(Metric::PacketsLost.over_seeds(&figures), Some(100.0));
    assert_eq!(Metric::JainIndex.over_seeds(&figures), Some(1.0));
    assert_eq!(Metric::CompletionS.over_seeds(&[Some(4.0), None]), None);
    assert_eq!(Metric::CompletionS.over_seeds(&[]), None);
}

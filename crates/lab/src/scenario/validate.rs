//! Whether the parts of a scenario make sense, each by itself and together.

use super::connection::ConnectionSpec;
use super::{Goal, Metric, Scenario, ScenarioError, nat, path};
use crate::Workload;

/// The most connections that a scenario can have.
const CONNECTIONS_MAX: u32 = 10_000;

/// The most links behind the first.
const HOPS_MAX: usize = 16;

impl Scenario {
    /// Complains of the first thing that makes no sense.
    pub(super) fn validate(&self) -> Result<(), ScenarioError> {
        self.validate_connections()?;
        self.validate_links()?;
        for (name, parameters) in &self.file.controllers {
            name.configure(parameters)
                .map_err(|problem| self.about_table(&format!("[controllers.{name}]"), 0, &problem))?;
        }
        for (number, goal) in self.file.goal.iter().enumerate() {
            if let Some(problem) = self.problem_of_goal(goal) {
                return Err(self.about_table("[[goal]]", number, &problem));
            }
        }
        for (number, comparison) in self.file.comparison.iter().enumerate() {
            if let Some(problem) = comparison.problem() {
                return Err(self.about_table("[[comparison]]", number, problem));
            }
        }
        self.validate_counts()?;
        self.validate_configurations()
    }

    fn about_table(&self, header: &str, number: usize, message: &str) -> ScenarioError {
        ScenarioError::about_table(&self.name, &self.text, header, number, message)
    }

    fn validate_connections(&self) -> Result<(), ScenarioError> {
        for (number, connection) in self.file.connection.iter().enumerate() {
            let complain = |problem: &str| Err(self.about_table("[[connection]]", number, problem));
            let known = |path: &String| self.file.path.iter().any(|known| known.name() == path);
            if let Some(path) = connection.path.as_ref().filter(|path| !known(path)) {
                return complain(&format!("there is no path {path}"));
            }
            if let Some(problem) = connection.problem() {
                return complain(problem);
            }
            if self.asks_server_for_more_or_less(connection) {
                return complain("the server sends the same on all connections");
            }
        }
        Ok(())
    }

    /// Whether a connection asks for something that the server does not send on all, or not for what it sends unasked.
    fn asks_server_for_more_or_less(&self, connection: &ConnectionSpec) -> bool {
        let all = self.server_workload();
        let own = Workload { times_reads: all.times_reads, ..connection.server_workload() };
        let is_unasked = all.datagrams > 0 || !all.media.is_empty();
        own != all && (connection.asks_server() || is_unasked)
    }

    fn validate_links(&self) -> Result<(), ScenarioError> {
        if let Some((number, problem)) = path::problem(&self.file) {
            return Err(match number {
                Some(number) => self.about_table("[[path]]", number, &problem),
                None => ScenarioError::new(&self.name, problem),
            });
        }
        let mut entries_before = 0;
        for path in &self.file.path {
            if let Some((number, problem)) = path.specs().problem() {
                return Err(self.about_table("[[path.schedule]]", entries_before + number, problem));
            }
            entries_before += path.schedule.len();
        }
        if let Some((number, problem)) = self.link().problem() {
            return Err(self.about_table("[[schedule]]", number, problem));
        }
        if let Some((number, problem)) = nat::problem(self.file.nat, &self.file.shift) {
            return Err(self.about_table("[[shift]]", number, problem));
        }
        Ok(())
    }

    /// What a goal lacks that the scenario would have to say.
    fn problem_of_goal(&self, goal: &Goal) -> Option<String> {
        let Goal { metric, .. } = goal;
        let problem = match goal {
            _ if self.file.watch.is_none() && metric.is_about_rate() => {
                "this figure needs `watch`, the direction whose rate it is about".to_owned()
            }
            Goal { reference: None, goal: None, .. } => "a goal needs `goal`, `reference` or both".to_owned(),
            _ if metric.needs_baseline() && self.file.baseline.is_none() => {
                format!("a {} needs a `[baseline]` to compare with", metric.as_str())
            }
            _ if metric.is_about_paths_alone() && self.file.path.len() < 2 => {
                format!("a {} needs several `[[path]]`s to compare with", metric.as_str())
            }
            Goal { metric: Metric::SumAfterS, .. } if self.file.repaired_at_s.is_none() => {
                "a sum_after_s needs `repaired_at_s`, from which it counts".to_owned()
            }
            _ => return None,
        };
        Some(problem)
    }

    fn validate_counts(&self) -> Result<(), ScenarioError> {
        let connections: u32 =
            self.file.connection.iter().map(|spec| spec.repeat.0).fold(0, u32::saturating_add);
        if !(1..=CONNECTIONS_MAX).contains(&connections) {
            let message = format!("a scenario has 1 to {CONNECTIONS_MAX} connections, not {connections}");
            return Err(ScenarioError::new(&self.name, message));
        }
        if self.file.hop.len() > HOPS_MAX {
            return Err(ScenarioError::new(&self.name, format!("a scenario has at most {HOPS_MAX} hops")));
        }
        Ok(())
    }

    fn validate_configurations(&self) -> Result<(), ScenarioError> {
        let of_connections = self.file.connection.iter().map(|spec| spec.client_config(self.client_config()));
        for config in [self.client_config(), self.server_config()].into_iter().chain(of_connections) {
            config.validate().map_err(|error| {
                ScenarioError::about_field(&self.name, &self.text, error.field, error.to_string())
            })?;
        }
        for (number, spec) in self.file.connection.iter().enumerate() {
            let client = spec.client_config(self.client_config());
            if let Some(problem) = spec.datagram_problem(&client, &self.server_config()) {
                return Err(self.about_table("[[connection]]", number, &problem));
            }
        }
        self.baseline()?;
        // Goals that change nothing would lead back here.
        let mut changed = self.file.goal.iter().filter(|goal| !goal.set.is_empty());
        changed.try_for_each(|goal| self.without_goals()?.of_goal(goal).map(drop))
    }
}

//! A run of a scenario.

use std::sync::Arc;

use fulmar_base::Instant;
use fulmar_proto::{Side, TransportConfig};
use thiserror::Error;

use super::connection::ConnectionSpec;
use super::figures::Measuring;
use super::{ControllerName, EndpointSpec, Figures, Scenario, ScenarioError, Watched};
use crate::{Close, Connecting, Failure, Lab, Limits, LinkConfig, Recording, Role, RunReport, Workload};

/// When a run is given up, if something happens that often. The largest scenarios take a few million steps.
const STEPS_MAX: u64 = 100_000_000;

/// Entries of the logs of all connections of one side together: the memory of those that are never written is not
/// taken. A transfer of 100 MB notes about half a million.
const LOG_ENTRIES: usize = 1 << 22;
/// Entries of each log at least.
const LOG_ENTRIES_MIN: usize = 1 << 10;

/// What hops draw differs in these bits of the seed.
const HOP_SHIFT: u32 = 48;

/// Why a run has no figures.
#[derive(Debug, Clone, Error)]
pub enum RunError {
    /// The scenario cannot be run like that.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The run went wrong: a connection was lost or hung, or the stack misbehaved. Its text is one line; see [`RunError::state`].
    #[error("{scenario} with {controller}, {}", failure.sentence())]
    Failed {
        /// The scenario.
        scenario: String,
        /// The controller.
        controller: ControllerName,
        /// What happened.
        failure: Box<Failure>,
    },
}

impl RunError {
    /// What a side saw of a run that went wrong, as a pcapng file; `None` if nobody asked for it.
    pub fn capture(&self) -> Option<&[u8]> {
        match self {
            Self::Scenario(_) => None,
            Self::Failed { failure, .. } => failure.capture.as_deref(),
        }
    }

    /// The state of both hosts when the run went wrong, in several lines; `None` if it did not begin.
    pub fn state(&self) -> Option<&str> {
        match self {
            Self::Scenario(_) => None,
            Self::Failed { failure, .. } => Some(failure.state.trim_end()),
        }
    }
}

impl Scenario {
    /// Runs the scenario once, in virtual time. `controller` is that of both ends, but for connections that
    /// name their own; `None` takes the scenario's default.
    ///
    /// # Errors
    /// This version does not have the controller, or the run went wrong.
    pub fn run(&self, controller: Option<ControllerName>, seed: u64) -> Result<Figures, RunError> {
        let controller = self.controller_or_default(controller)?;
        let mut report = self.report(controller, self.lab(controller, seed)?)?;
        Ok(self.figures(controller, &mut report))
    }

    /// Runs the scenario as [`Scenario::run`] does, and records its course. The recording changes no figure.
    ///
    /// # Errors
    /// See [`Scenario::run`].
    pub fn run_recorded(
        &self,
        controller: Option<ControllerName>,
        seed: u64,
    ) -> Result<(Figures, Recording), RunError> {
        let connections: u32 = self.file.connection.iter().map(|spec| spec.repeat.0).sum();
        let entries = (LOG_ENTRIES / connections.max(1) as usize).max(LOG_ENTRIES_MIN);
        let controller = self.controller_or_default(controller)?;
        let mut report = self.report(controller, self.lab(controller, seed)?.recorded(entries))?;
        let nothing = || ScenarioError::new(&self.name, "the run was not recorded");
        let mut recording = report.recording.take().ok_or_else(nothing)?;
        if self.file.seeded {
            recording.connections.remove(0);
        }
        Ok((self.figures(controller, &mut report), recording))
    }

    /// Like [`run`](Self::run), with the packets that `side` sent and received: a pcapng file with the secrets that
    /// open them.
    ///
    /// # Errors
    /// As of `run`. An error has the packets until the run went wrong: [`RunError::capture`].
    pub fn run_with_capture(
        &self,
        controller: Option<ControllerName>,
        seed: u64,
        side: Side,
    ) -> Result<(Figures, Vec<u8>), RunError> {
        let controller = self.controller_or_default(controller)?;
        let mut report = self.report(controller, self.lab(controller, seed)?.capture_at(side))?;
        let packets = report.capture.take().unwrap_or_default();
        Ok((self.figures(controller, &mut report), packets))
    }

    fn report(&self, controller: ControllerName, lab: Lab) -> Result<RunReport, RunError> {
        let failed = |failure| RunError::Failed {
            scenario: self.name.clone(),
            controller,
            failure: Box::new(failure),
        };
        lab.run().map_err(failed)
    }

    fn figures(&self, controller: ControllerName, report: &mut RunReport) -> Figures {
        if self.file.seeded {
            // The first connection has only prepared the others.
            report.connections.remove(0);
            report.server_sessions -= 1;
        }
        let started = report.connections.iter().filter_map(|connection| connection.client.started);
        let start = started.min().unwrap_or(Instant::ZERO);
        let connections = || self.file.connection.iter().flat_map(repeated);
        let background: Vec<bool> = connections().map(|(spec, _)| spec.background).collect();
        let deadlines: Vec<_> = connections().map(|(spec, _)| spec.deadline()).collect();
        let paths = self.lab_paths(report.seed);
        let (up, down) = self.link().build(report.seed);
        let hops: Vec<_> = self.hops(report.seed).collect();
        let measuring = Measuring {
            scenario: &self.name,
            controller: controller.as_str(),
            background: &background,
            deadlines: &deadlines,
            repaired_at: self.repaired_at(),
            start,
            events: &self.link_events(),
            watched: self.file.watch.map(Watched::sender),
            links: [&up, &down],
            paths: &paths,
            hops: &hops,
        };
        Figures::of(report, measuring)
    }

    /// The whole run, ready to start.
    ///
    /// # Errors
    /// This version does not have the controller.
    pub fn lab(&self, controller: ControllerName, seed: u64) -> Result<Lab, ScenarioError> {
        let (up, down) = self.link().build(seed);
        let congestion = self.congestion(controller)?;
        let client = TransportConfig { congestion: congestion.clone(), ..self.client_config() };
        let server = TransportConfig { congestion, ..self.server_config() };
        let mut lab = Lab::new(seed)
            .link(up, down)
            .server(server)
            .server_workload(self.repeating(self.server_workload()));
        for (up, down) in self.hops(seed) {
            lab = lab.hop(up, down);
        }
        for path in self.lab_paths(seed) {
            lab = lab.path(path);
        }
        let time = self.file.limit_s.map_or(Limits::default().time, |limit| limit.0);
        lab = lab.limits(Limits { time, steps: STEPS_MAX });
        if let Some(watched) = self.file.watch {
            lab = lab.watch_packets_of(watched.sender());
        }
        if let Some(at) = self.repaired_at() {
            lab = lab.watch_from(at);
        }
        if self.file.seeded
            && let Some(first) = self.file.connection.first()
        {
            let first = self.connecting(first, 0, &client)?.role(Role::Preparation);
            lab = lab.remember_paths().connection(first);
        }
        for (number, (spec, repetition)) in self.file.connection.iter().flat_map(repeated).enumerate() {
            let connecting = self.connecting(spec, repetition, &client)?;
            let waits = self.file.seeded && number == 0;
            lab = lab.connection(if waits { connecting.after_previous() } else { connecting });
        }
        Ok(super::nat::apply(lab, self.file.nat, &self.file.shift).client(client))
    }

    /// The links behind the first one or behind the paths, from the client to the server and back.
    fn hops(&self, seed: u64) -> impl Iterator<Item = (LinkConfig, LinkConfig)> {
        let hops = self.file.hop.iter().enumerate();
        hops.map(move |(number, hop)| hop.specs().build(seed ^ (number as u64 + 1) << HOP_SHIFT))
    }

    /// The workload beside peers that may send unreliable datagrams more than once.
    fn repeating(&self, workload: Workload) -> Workload {
        let ends = [self.file.endpoints, self.file.client, self.file.server];
        Workload { datagrams_repeat: ends.into_iter().any(EndpointSpec::repeats_datagrams), ..workload }
    }

    fn connecting(
        &self,
        spec: &ConnectionSpec,
        repetition: u32,
        client: &TransportConfig,
    ) -> Result<Connecting, ScenarioError> {
        let mut connecting = Connecting::new(self.repeating(spec.client_workload())).start(spec.start_s.0);
        if spec.background {
            connecting = connecting.role(Role::Background);
        }
        if repetition > 0 {
            connecting = connecting.after_previous();
        }
        if let Some(stop) = spec.stop_after_s {
            connecting = connecting.close(Close::AtLatest(Side::Client, stop.0));
        }
        let is_single = spec.multipath == Some(false) && client.multipath.is_some();
        if spec.controller.is_some() || is_single || spec.client != EndpointSpec::default() {
            let mut own = spec.client_config(client.clone());
            if let Some(controller) = spec.controller {
                own.congestion = self.congestion(controller)?;
            }
            if is_single {
                own.multipath = None;
            }
            connecting = connecting.transport(Arc::new(own));
        }
        let on_it = |path: &str| self.path_names().iter().position(|name| *name == path);
        let path = spec.path.as_deref().and_then(on_it);
        Ok(connecting.path(path.unwrap_or_default()))
    }

    /// The client's configuration, but for the controller.
    pub(super) fn client_config(&self) -> TransportConfig {
        self.configuration(self.file.client)
    }

    /// The server's configuration, but for the controller.
    pub(super) fn server_config(&self) -> TransportConfig {
        self.configuration(self.file.server)
    }

    fn configuration(&self, own: EndpointSpec) -> TransportConfig {
        let mut config = TransportConfig::default();
        // With a path or none there is nothing to choose from.
        let paths = self.paths().count();
        if paths > 1 {
            let multipath = config.multipath.get_or_insert_default();
            multipath.paths_max = multipath.paths_max.max(paths as u32);
        }
        self.file.endpoints.apply(&mut config);
        own.apply(&mut config);
        config
    }

    fn repaired_at(&self) -> Option<Instant> {
        self.file.repaired_at_s.map(|at| Instant::ZERO + at.0)
    }

    /// The controller of a run.
    ///
    /// # Errors
    /// None was named, and that of the default configuration has no name.
    pub fn controller_or_default(
        &self,
        controller: Option<ControllerName>,
    ) -> Result<ControllerName, ScenarioError> {
        controller
            .or_else(|| self.default_controller())
            .ok_or_else(|| ScenarioError::new(&self.name, "no controller is named"))
    }

    /// Whether a run with this controller has one that is not part of the stack, on whichever connection.
    pub fn has_own_controller(&self, controller: Option<ControllerName>) -> bool {
        let of_connections = self.file.connection.iter().filter_map(|spec| spec.controller);
        let of_run = self.controller_or_default(controller).ok();
        of_connections.chain(of_run).any(|name| matches!(name, ControllerName::Own(_)))
    }

    fn congestion(
        &self,
        name: ControllerName,
    ) -> Result<fulmar_proto::congestion::CongestionControl, ScenarioError> {
        let parameters = self.file.controllers.get(&name).cloned().unwrap_or_default();
        name.configure(&parameters).map_err(|problem| ScenarioError::new(&self.name, problem))
    }
}

/// A connection as often as it is made, with the number of each repetition.
fn repeated(spec: &ConnectionSpec) -> impl Iterator<Item = (&ConnectionSpec, u32)> {
    (0..spec.repeat.0).map(move |repetition| (spec, repetition))
}

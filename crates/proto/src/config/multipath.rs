//! The configuration of multipath.

use std::sync::Arc;

use crate::coupling::CouplingFactory;
use crate::scheduler::{SchedulerFactory, SchedulerKind};

/// The most paths at a time: each has connection IDs in the endpoint's table, and a congestion controller.
pub(crate) const PATHS_MAX: u32 = 16;

/// How a connection uses several paths (RFC 10069).
#[derive(Debug, Clone)]
pub struct MultipathConfig {
    /// How many paths there may be at a time, 1 to 16. Default 4.
    pub paths_max: u32,
    /// Which of them carry what this end sends: one of [`SchedulerKind`], or one of your own. Default
    /// [`SchedulerKind::EarliestCompletion`].
    pub scheduler: Arc<dyn SchedulerFactory>,
    /// How the windows of the paths grow together, so that several of them over one bottleneck take no more than a flow with one
    /// path: one of [`CouplingKind`](crate::CouplingKind), or one of your own. NewReno, CUBIC and Prague are coupled by it; BBR,
    /// which does not grow until packets are lost, is not. Default `None`: each path is a flow of its own.
    pub coupling: Option<Arc<dyn CouplingFactory>>,
}

impl Default for MultipathConfig {
    fn default() -> Self {
        Self { paths_max: 4, scheduler: Arc::new(SchedulerKind::default()), coupling: None }
    }
}

//! The configuration of multipath.

use std::sync::Arc;

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
}

impl Default for MultipathConfig {
    fn default() -> Self {
        Self { paths_max: 4, scheduler: Arc::new(SchedulerKind::default()) }
    }
}

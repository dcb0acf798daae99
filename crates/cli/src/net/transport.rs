//! What the command line asks of the transport.

use std::sync::Arc;

use fulmar::{
    AddressDiscovery, AeadBackend, CongestionControl, CouplingFactory, CouplingKind, Dscp, Endpoint,
    EndpointBuilder, FecConfig, KeyUpdatePolicy, MultipathConfig, SchedulerKind, TimeStamps, TransportConfig,
    Version,
};

use super::unusable;
use crate::args::{AeadName, CongestionName, DiscoveryRole, PathArgs, TransportArgs, VersionName};
use crate::failure::Failure;
use crate::qlog::{self, QlogDir};

/// The least that a server may send ahead of a slow reader, in bytes.
const SLOW_WINDOW_MIN: u64 = 64 << 10;

/// What the command line asks of the transport.
#[derive(Debug, Clone)]
pub(crate) struct Transport {
    pub(super) config: Arc<TransportConfig>,
    pub(super) aead: AeadBackend,
    logs: Option<Arc<QlogDir>>,
    versions: Vec<Version>,
    initial_version: Option<Version>,
    dscp: Dscp,
}

impl Default for Transport {
    /// What users of the library get who configure nothing.
    fn default() -> Self {
        Self {
            config: Arc::default(),
            aead: AeadBackend::preferred(),
            versions: vec![Version::V1, Version::V2],
            initial_version: None,
            dscp: Dscp::default(),
            logs: None,
        }
    }
}

impl Transport {
    /// The default, but with new keys after so many packets.
    pub(crate) fn with_key_update_after(packets: u64) -> Self {
        let key_update = KeyUpdatePolicy { packets: Some(packets), ..KeyUpdatePolicy::default() };
        let config = TransportConfig { key_update, ..TransportConfig::default() };
        Self { config: Arc::new(config), ..Self::default() }
    }

    /// Fails if the options contradict each other.
    pub(crate) fn from_args(args: &TransportArgs) -> Result<Self, Failure> {
        let default = TransportConfig::default();
        let config = TransportConfig {
            congestion: match args.cc {
                CongestionName::Newreno => CongestionControl::NewReno(Default::default()),
                CongestionName::Cubic => CongestionControl::Cubic(Default::default()),
                CongestionName::Bbr => CongestionControl::Bbr(Default::default()),
                CongestionName::Bbr1 => CongestionControl::Bbr1(Default::default()),
                CongestionName::Prague => CongestionControl::Prague(Default::default()),
            },
            max_idle_timeout: Some(args.idle_timeout).filter(|timeout| !timeout.is_zero()),
            handshake_timeout: args.handshake_timeout,
            keep_alive_interval: args.keep_alive,
            key_update: KeyUpdatePolicy { packets: args.key_update, bytes: None },
            mtu_max: args.mtu_max.unwrap_or(default.mtu_max),
            fec: args.fec.map(|mode| FecConfig {
                mode,
                code: args.fec_code,
                dialects: args.fec_dialect,
                ..FecConfig::default()
            }),
            preemptive_repeat: !args.no_preemptive_repeat,
            time_stamps: args.time_stamps.then_some(TimeStamps::Both),
            address_discovery: args.address_discovery.map(|role| match role {
                DiscoveryRole::Provide => AddressDiscovery::Provide,
                DiscoveryRole::Receive => AddressDiscovery::Receive,
                DiscoveryRole::Both => AddressDiscovery::Both,
            }),
            ..default
        };
        config.validate().map_err(unusable)?;
        let aead = match args.aead {
            AeadName::Auto => AeadBackend::preferred(),
            AeadName::Ring => AeadBackend::Ring,
            AeadName::AwsLc => AeadBackend::AwsLc,
        };
        let version = |name: &VersionName| match name {
            VersionName::V1 => Version::V1,
            VersionName::V2 => Version::V2,
        };
        let versions = args.versions.iter().map(version).collect();
        let initial_version = args.initial_version.as_ref().map(version);
        // Values above 63 are refused with the arguments.
        let dscp = Dscp::new(args.dscp).unwrap_or_default();
        Ok(Self { config: Arc::new(config), aead, versions, initial_version, dscp, logs: None })
    }

    /// Takes and opens further paths, if `multipath` says so and the peer does, too.
    pub(crate) fn with_multipath(
        self,
        multipath: bool,
        scheduler: SchedulerKind,
        coupling: Option<CouplingKind>,
    ) -> Self {
        let multipath = multipath.then(|| MultipathConfig {
            scheduler: Arc::new(scheduler),
            coupling: coupling.map(|kind| Arc::new(kind) as Arc<dyn CouplingFactory>),
            ..MultipathConfig::default()
        });
        Self {
            config: Arc::new(TransportConfig { multipath, ..TransportConfig::clone(&self.config) }),
            ..self
        }
    }

    /// Receives so many streams at a time, each of which is read at `rate` bytes a second. What is sent ahead of a reader is what it takes
    /// in a second or so, and there is credit for all of them: a few that wait to be read would hold up the others else.
    pub(crate) fn with_slow_readers(self, rate: u64, streams: usize) -> Self {
        let before = &*self.config;
        let streams = streams.max(1) as u64;
        let stream = rate.max(SLOW_WINDOW_MIN).min(before.receive_window_max / streams);
        let config = TransportConfig {
            stream_receive_window: before.stream_receive_window.min(stream),
            stream_receive_window_max: before.stream_receive_window_max.min(stream),
            receive_window: before.receive_window.max(stream * streams),
            ..before.clone()
        };
        Self { config: Arc::new(config), ..self }
    }

    /// Opens further paths as the command line says.
    pub(crate) fn with_paths(self, paths: &PathArgs) -> Self {
        self.with_multipath(paths.multipath, paths.scheduler, paths.coupling)
    }

    /// Lets connections write down what they do.
    pub(crate) fn with_logs(mut self, logs: Option<Arc<QlogDir>>) -> Self {
        let log_entries = if logs.is_some() { qlog::LOG_ENTRIES } else { 0 };
        self.config = Arc::new(TransportConfig { log_entries, ..TransportConfig::clone(&self.config) });
        Self { logs, ..self }
    }

    /// The version in which connections begin.
    pub(crate) fn first_version(&self) -> Version {
        self.initial_version.or(self.versions.first().copied()).unwrap_or(Version::V1)
    }

    /// The beginnings of an endpoint.
    pub(crate) fn endpoint(&self) -> EndpointBuilder {
        let mut builder = Endpoint::builder().versions(self.versions.clone()).dscp(self.dscp);
        if let Some(logs) = &self.logs {
            builder = builder.log_sink(logs.clone(), logs.delivery());
        }
        match self.initial_version {
            Some(version) => builder.initial_version(version),
            None => builder,
        }
    }
}

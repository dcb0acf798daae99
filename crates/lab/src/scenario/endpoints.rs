//! The configuration of the ends: `[endpoints]` for both, `[client]` and `[server]` for one.

use std::sync::Arc;

use fulmar_proto::{
    CouplingKind, FecCode, FecConfig, FecDialects, FecMode, SchedulerKind, TimerStyle, TransportConfig,
    UnknownCoupling, UnknownScheduler,
};
use serde::Deserialize;

use super::values::{Count, Millis, Probability, Seconds};

/// Settings of an end, or of both, named like the fields of [`TransportConfig`]. What is not given keeps its
/// default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EndpointSpec {
    idle_timeout_s: Option<Seconds>,
    handshake_timeout_s: Option<Seconds>,
    keep_alive_s: Option<Seconds>,
    initial_rtt_ms: Option<Millis>,
    max_ack_delay_ms: Option<Millis>,
    stream_receive_window: Option<u64>,
    stream_receive_window_max: Option<u64>,
    receive_window: Option<u64>,
    receive_window_max: Option<u64>,
    send_window: Option<u64>,
    max_concurrent_bidi_streams: Option<u64>,
    max_concurrent_uni_streams: Option<u64>,
    initial_mtu: Option<u16>,
    mtu_max: Option<u16>,
    mtu_discovery: Option<bool>,
    ecn: Option<bool>,
    ack_frequency: Option<bool>,
    preemptive_repeat: Option<bool>,
    idle_duplicates: Option<bool>,
    timers: Option<TimersSpec>,
    fec: Option<FecSpec>,
    fec_code: Option<FecCodeSpec>,
    fec_dialect: Option<FecDialectsSpec>,
    fec_overhead_max: Option<Probability>,
    fec_window: Option<u16>,
    multipath: Option<bool>,
    paths_max: Option<Count>,
    scheduler: Option<SchedulerSpec>,
    coupling: Option<CouplingSpec>,
}

/// Whether there is forward erasure correction, and in which mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
enum FecSpec {
    Off,
    Mode(FecMode),
}

impl TryFrom<String> for FecSpec {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "off" => Ok(Self::Off),
            mode => mode.parse().map(Self::Mode).map_err(|error| format!("{error}, and not off")),
        }
    }
}

/// The code of repair symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct FecCodeSpec(FecCode);

/// How erasure correction is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct FecDialectsSpec(FecDialects);

impl TryFrom<String> for FecDialectsSpec {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: fulmar_proto::FecSettingError| error.to_string())
    }
}

impl TryFrom<String> for FecCodeSpec {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: fulmar_proto::FecSettingError| error.to_string())
    }
}

/// Which path carries data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct SchedulerSpec(SchedulerKind);

impl TryFrom<String> for SchedulerSpec {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: UnknownScheduler| error.to_string())
    }
}

/// How the windows of paths grow together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct CouplingSpec(CouplingKind);

impl TryFrom<String> for CouplingSpec {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: UnknownCoupling| error.to_string())
    }
}

/// How timers are derived from the round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TimersSpec {
    OncePerRtt,
    Classic,
}

impl EndpointSpec {
    /// Whether unreliable datagrams leave on several paths.
    pub(crate) fn repeats_datagrams(self) -> bool {
        self.scheduler == Some(SchedulerSpec(SchedulerKind::Redundant))
    }

    /// Changes what is given, and nothing else.
    pub(crate) fn apply(self, config: &mut TransportConfig) {
        config.max_idle_timeout = self.idle_timeout_s.map(|time| time.0).or(config.max_idle_timeout);
        config.keep_alive_interval = self.keep_alive_s.map(|time| time.0).or(config.keep_alive_interval);
        set(&mut config.handshake_timeout, self.handshake_timeout_s.map(|time| time.0));
        set(&mut config.initial_rtt, self.initial_rtt_ms.map(|time| time.0));
        set(&mut config.max_ack_delay, self.max_ack_delay_ms.map(|time| time.0));
        set(&mut config.stream_receive_window, self.stream_receive_window);
        set(&mut config.stream_receive_window_max, self.stream_receive_window_max);
        set(&mut config.receive_window, self.receive_window);
        set(&mut config.receive_window_max, self.receive_window_max);
        set(&mut config.send_window, self.send_window);
        set(&mut config.max_concurrent_bidi_streams, self.max_concurrent_bidi_streams);
        set(&mut config.max_concurrent_uni_streams, self.max_concurrent_uni_streams);
        set(&mut config.initial_mtu, self.initial_mtu);
        set(&mut config.mtu_max, self.mtu_max);
        set(&mut config.mtu_discovery, self.mtu_discovery);
        set(&mut config.ecn, self.ecn);
        set(&mut config.ack_frequency, self.ack_frequency);
        set(&mut config.preemptive_repeat, self.preemptive_repeat);
        set(&mut config.idle_duplicates, self.idle_duplicates);
        set(&mut config.timers, self.timers.map(TimersSpec::style));
        match self.fec {
            Some(FecSpec::Off) => config.fec = None,
            Some(FecSpec::Mode(mode)) => config.fec.get_or_insert_default().mode = mode,
            None => {}
        }
        match self.multipath {
            Some(false) => config.multipath = None,
            Some(true) => drop(config.multipath.get_or_insert_default()),
            None => {}
        }
        if let Some(multipath) = &mut config.multipath {
            set(&mut multipath.paths_max, self.paths_max.map(|paths| paths.0));
            if let Some(SchedulerSpec(kind)) = self.scheduler {
                multipath.scheduler = Arc::new(kind);
            }
            if let Some(CouplingSpec(kind)) = self.coupling {
                multipath.coupling = Some(Arc::new(kind));
            }
        }
        // Without erasure correction its details mean nothing.
        if let Some(fec) = &mut config.fec {
            self.apply_fec(fec);
        }
    }
}

impl EndpointSpec {
    fn apply_fec(self, fec: &mut FecConfig) {
        set(&mut fec.code, self.fec_code.map(|code| code.0));
        set(&mut fec.dialects, self.fec_dialect.map(|dialects| dialects.0));
        set(&mut fec.overhead_max, self.fec_overhead_max.map(|part| part.0));
        set(&mut fec.window, self.fec_window);
    }
}

impl TimersSpec {
    fn style(self) -> TimerStyle {
        match self {
            Self::OncePerRtt => TimerStyle::OncePerRtt,
            Self::Classic => TimerStyle::Classic,
        }
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

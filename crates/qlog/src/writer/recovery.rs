//! Losses, timers, congestion control, and what else happens to a network path.

use std::fmt::Write as _;
use std::io;

use fulmar_base::Instant;
use fulmar_proto::log::{BlockedReason, FecEvent, LogEvent};
use fulmar_proto::{PathId, SpaceId};
use serde_json::json;

use super::names::{blocked, ecn_state, number_space, packet_type, path_id, repair_outcome};
use super::{Flavor, Writer};

impl<W: io::Write> Writer<W> {
    pub(super) fn of_recovery(&mut self, at: Instant, event: &LogEvent) {
        match *event {
            LogEvent::PacketLost { space, number, mtu_probe, .. } => {
                let probe = if mtu_probe { ",\"is_mtu_probe_packet\":true" } else { "" };
                let names = ("recovery:packet_lost", "quic:packet_lost");
                self.event_on(at, space.path(), names, |text| {
                    let (kind, path) = (packet_type(space), path_id(space.path()));
                    let _ = write!(
                        text,
                        "\"header\":{{\"packet_type\":\"{kind}\",\"packet_number\":{number}{path}}}{probe}"
                    );
                });
            }
            LogEvent::PacketSpurious { space, number, .. } => {
                let names = ("recovery:spurious_loss", "fulmar:spurious_loss");
                self.event_on(at, space.path(), names, |text| {
                    let (kind, path) = (number_space(space), path_id(space.path()));
                    let _ =
                        write!(text, "\"packet_number_space\":\"{kind}\",\"packet_number\":{number}{path}");
                });
            }
            LogEvent::ProbeTimeout { space, count } => {
                self.timer(at, "pto", Some(space));
                self.counts(at, space.path(), &[("pto_count", count.min(u16::MAX.into()).into())]);
            }
            LogEvent::LossTimeout => self.timer(at, "loss_timeout", None),
            LogEvent::Phase { path, name } => {
                let names = ("recovery:congestion_state_updated", "quic:congestion_state_updated");
                // Names of states come from controllers, also of others.
                self.figure(at, path, names, &format!("\"new\":{}", json!(name)));
            }
            LogEvent::Mtu { path, bytes } => {
                let names = ("connectivity:mtu_updated", "quic:mtu_updated");
                self.figure(at, path, names, &format!("\"new\":{bytes}"));
            }
            LogEvent::EcnState { path, state } => {
                let names = ("recovery:ecn_state_updated", "quic:ecn_state_updated");
                self.figure(at, path, names, &format!("\"new\":\"{}\"", ecn_state(state)));
            }
            LogEvent::Blocked { path, reason } => self.blocked(at, path, reason),
            LogEvent::RecoveryParameters { .. } => self.recovery_parameters(at, event),
            ref other if self.of_fulmar(at, other) => {}
            ref figure => self.figures(at, figure),
        }
    }

    /// What the drafts have no name for.
    fn of_fulmar(&mut self, at: Instant, event: &LogEvent) -> bool {
        match *event {
            LogEvent::ObservedAddress { ip, port } => {
                let ip = std::net::Ipv6Addr::from(ip).to_canonical();
                self.own_event(at, "fulmar:observed_address", &format!("\"ip\":\"{ip}\",\"port\":{port}"));
            }
            LogEvent::Queues { path, forward, back } => {
                let millis = |nanos: u64| nanos as f64 / 1e6;
                let (forward, back) = (millis(forward), millis(back));
                let data = format!("\"forward\":{forward:?},\"return\":{back:?}");
                self.figure(at, path, ("fulmar:one_way_queues", "fulmar:one_way_queues"), &data);
            }
            LogEvent::DatagramsDropped { late, other } => {
                let data = format!("\"late\":{late},\"other\":{other}");
                self.own_event(at, "fulmar:datagrams_dropped", &data);
            }
            LogEvent::Fec(event) => self.fec(at, event),
            _ => return false,
        }
        true
    }

    /// What forward erasure correction did.
    fn fec(&mut self, at: Instant, event: FecEvent) {
        let covered = |first: u64, count: u16| format!("\"first_symbol_id\":{first},\"symbols\":{count}");
        match event {
            FecEvent::RepairSent { first, count } => {
                self.own_event(at, "fulmar:fec_repair_sent", &covered(first, count));
            }
            FecEvent::RepairReceived { first, count, outcome } => {
                let outcome = repair_outcome(outcome);
                let data = format!("{},\"outcome\":\"{outcome}\"", covered(first, count));
                self.own_event(at, "fulmar:fec_repair_received", &data);
            }
            FecEvent::Recovered { id } => {
                self.own_event(at, "fulmar:fec_symbol_recovered", &format!("\"symbol_id\":{id}"));
            }
            FecEvent::DecoderOff => self.own_event(at, "fulmar:fec_decoder_off", ""),
        }
    }

    fn own_event(&mut self, at: Instant, name: &str, data: &str) {
        self.event(at, (name, name), |text| text.push_str(data));
    }

    /// Where the application has nothing to send, nothing is blocked.
    fn blocked(&mut self, at: Instant, path: PathId, reason: BlockedReason) {
        let new = if reason == BlockedReason::NothingToSend { "unblocked" } else { "blocked" };
        let reason = match reason {
            BlockedReason::NothingToSend => String::new(),
            reason => format!(",\"reason\":\"{}\"", blocked(reason)),
        };
        let names = ("transport:connection_data_blocked_updated", "quic:connection_data_blocked_updated");
        // The drafts leave no room for a path in its data.
        self.event_on(at, path, names, |text| {
            let _ = write!(text, "\"new\":\"{new}\"{reason}");
        });
    }

    fn recovery_parameters(&mut self, at: Instant, event: &LogEvent) {
        let LogEvent::RecoveryParameters {
            initial_rtt,
            packet_threshold,
            time_threshold,
            persistent_threshold,
            datagram,
            window,
        } = *event
        else {
            return;
        };
        let (rtt, time) = (initial_rtt as f64 / 1e6, f64::from(time_threshold) / 8.0);
        // RFC 9002 §7.2, appendix A.2: the smallest window are two datagrams, timers count milliseconds.
        let minimum = 2 * u32::from(datagram);
        self.event(at, ("recovery:parameters_set", "quic:recovery_parameters_set"), |text| {
            let _ = write!(
                text,
                "\"reordering_threshold\":{packet_threshold},\"time_threshold\":{time:?},\
                 \"timer_granularity\":1,\"initial_rtt\":{rtt:?},\"max_datagram_size\":{datagram},\
                 \"initial_congestion_window\":{window},\"minimum_congestion_window\":{minimum},\
                 \"persistent_congestion_threshold\":{persistent_threshold}"
            );
        });
    }

    fn figures(&mut self, at: Instant, event: &LogEvent) {
        match *event {
            LogEvent::Window { path, window, in_flight } => {
                self.counts(at, path, &[("congestion_window", window), ("bytes_in_flight", in_flight)]);
            }
            LogEvent::SlowStartThreshold { path, bytes: Some(bytes) } => {
                self.counts(at, path, &[("ssthresh", bytes)]);
            }
            LogEvent::Rates { path, pacing, delivery } => {
                let bits = |bytes: u64| bytes.saturating_mul(8);
                let rates = [("pacing_rate", bits(pacing)), ("delivery_rate", bits(delivery))];
                // The drafts know no delivery rate.
                self.counts(at, path, if self.flavor == Flavor::Qvis { &rates } else { &rates[..1] });
            }
            LogEvent::Rtt { path, latest, smoothed } => {
                self.times(at, path, [("latest_rtt", latest), ("smoothed_rtt", smoothed)]);
            }
            LogEvent::RttBounds { path, min, variance } => {
                self.times(at, path, [("min_rtt", min), ("rtt_variance", variance)]);
            }
            _ => {}
        }
    }

    fn counts(&mut self, at: Instant, path: PathId, values: &[(&str, u64)]) {
        let fields: Vec<String> = values.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        self.metrics(at, path, &fields.join(","));
    }

    /// Times are given in nanoseconds and told in milliseconds.
    fn times(&mut self, at: Instant, path: PathId, values: [(&str, u64); 2]) {
        let fields = values.map(|(name, nanos)| format!("\"{name}\":{:?}", nanos as f64 / 1e6));
        self.metrics(at, path, &fields.join(","));
    }

    fn metrics(&mut self, at: Instant, path: PathId, fields: &str) {
        self.figure(at, path, ("recovery:metrics_updated", "quic:recovery_metrics_updated"), fields);
    }

    /// Figures of a path, which say whose they are.
    fn figure(&mut self, at: Instant, path: PathId, names: (&str, &str), fields: &str) {
        self.event_on(at, path, names, |text| {
            text.push_str(fields);
            text.push_str(&path_id(path));
        });
    }

    fn timer(&mut self, at: Instant, kind: &str, space: Option<SpaceId>) {
        let path = space.map_or(PathId::ZERO, SpaceId::path);
        let space = space.map(|space| format!(",\"packet_number_space\":\"{}\"", number_space(space)));
        let space = space.unwrap_or_default();
        let fields = format!("\"timer_type\":\"{kind}\",\"event_type\":\"expired\"{space}");
        self.figure(at, path, ("recovery:loss_timer_updated", "quic:timer_updated"), &fields);
    }
}

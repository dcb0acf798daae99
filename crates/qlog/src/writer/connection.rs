//! The life of a connection: how it begins, what was agreed on, its keys and addresses, how it ends.

use std::fmt::Write as _;
use std::io;

use fulmar_base::Instant;
use fulmar_proto::log::{CloseCause, ConnectionState, LogEvent, LogText, PacketDropReason, TextKind};
use fulmar_proto::{PacketKind, PathId, Version};
use serde_json::json;

use super::names::{
    ApplicationErrors, PARAMETERS, connection_state, drop_trigger, error, migration_state, tls_cipher,
    transport_error,
};
use super::{Flavor, Writer};

/// The names of the event that tells of new keys.
const KEY_UPDATED: (&str, &str) = ("security:key_updated", "quic:key_updated");

/// What comes in several entries, of which the last makes an event of all.
#[derive(Debug, Default)]
pub(super) struct Parts {
    local: Option<[u8; 16]>,
    client_versions: Vec<Version>,
    server_versions: Vec<Version>,
    parameters: String,
    text: Vec<u8>,
}

impl<W: io::Write> Writer<W> {
    /// Takes an event if it is one of these.
    pub(super) fn of_connection(&mut self, at: Instant, event: &LogEvent) -> bool {
        match *event {
            LogEvent::LocalAddress { ip } => self.parts.local = Some(ip),
            LogEvent::Started { ip, port } => self.started(at, ip, port),
            LogEvent::PeerAddress { path, ip, port } => {
                let (remote, local) = (endpoint(ip, Some(port)), self.local());
                let tuple = if path == PathId::ZERO { String::new() } else { path.0.to_string() };
                self.event_on(at, path, ("connectivity:tuple_assigned", "quic:tuple_assigned"), |text| {
                    let _ = write!(text, "\"tuple_id\":\"{tuple}\",\"tuple_remote\":{{{remote}}}{local}");
                });
            }
            LogEvent::Migration { state, ip, port } => {
                let (remote, local) = (endpoint(ip, Some(port)), self.local());
                let names = ("connectivity:migration_state_updated", "quic:migration_state_updated");
                self.event(at, names, |text| {
                    let state = migration_state(state);
                    let _ = write!(text, "\"new\":\"{state}\",\"tuple_remote\":{{{remote}}}{local}");
                });
            }
            LogEvent::VersionKnown { server, version } => {
                let parts = &mut self.parts;
                let list = if server { &mut parts.server_versions } else { &mut parts.client_versions };
                list.push(version);
            }
            LogEvent::VersionChosen(version) => self.versions(at, version),
            LogEvent::Parameter { id, value } => self.parameter(id, value),
            LogEvent::ParametersEnd { remote } => self.parameters(at, remote),
            LogEvent::Tls { suite, resumed, early } => {
                self.event(at, ("transport:parameters_set", "quic:parameters_set"), |text| {
                    let _ = write!(
                        text,
                        "\"tls_cipher\":\"{}\",\"resumption_allowed\":{resumed},\"early_data_enabled\":{early}",
                        tls_cipher(suite)
                    );
                });
            }
            LogEvent::Text(ref part) => self.words(at, part),
            LogEvent::KeysInstalled(kind) => self.keys(at, KEY_UPDATED, kind, true),
            LogEvent::KeysDiscarded(kind) => {
                self.keys(at, ("security:key_discarded", "quic:key_discarded"), kind, false);
            }
            LogEvent::KeyGeneration(generation) => {
                self.key_phase = generation;
                self.keys(at, KEY_UPDATED, PacketKind::OneRtt, false);
            }
            LogEvent::PacketDropped { reason, kind, size } => self.dropped(at, reason, kind, size),
            LogEvent::PacketBuffered { kind, size } => {
                self.event(at, ("transport:packet_buffered", "quic:packet_buffered"), |text| {
                    let kind = packet_type(kind);
                    let _ = write!(
                        text,
                        "\"header\":{{\"packet_type\":\"{kind}\"}},\"raw\":{{\"length\":{size}}},\
                         \"trigger\":\"keys_unavailable\""
                    );
                });
            }
            LogEvent::State(state) => self.state(at, state),
            LogEvent::Closed { local, cause, code } => self.closed(at, local, cause, code),
            _ => return false,
        }
        true
    }

    /// This end's address for a tuple, if it was told; it counts for one event.
    fn local(&mut self) -> String {
        let local = self.parts.local.take();
        local.map_or_else(String::new, |ip| format!(",\"tuple_local\":{{{}}}", endpoint(ip, None)))
    }

    fn started(&mut self, at: Instant, ip: [u8; 16], port: u16) {
        let remote = endpoint(ip, Some(port));
        let local = self.parts.local.take().map_or_else(String::new, |ip| endpoint(ip, None));
        self.event(at, ("connectivity:connection_started", "quic:connection_started"), |text| {
            let _ = write!(text, "\"local\":{{{local}}},\"remote\":{{{remote}}}");
        });
    }

    fn versions(&mut self, at: Instant, chosen: Option<Version>) {
        let hex = |version: &Version| format!("{:08x}", version.0);
        let mut fields = Vec::new();
        let lists = [
            ("server_versions", std::mem::take(&mut self.parts.server_versions)),
            ("client_versions", std::mem::take(&mut self.parts.client_versions)),
        ];
        for (name, list) in lists {
            if !list.is_empty() {
                let list: Vec<String> = list.iter().map(hex).collect();
                fields.push(format!("\"{name}\":{}", json!(list)));
            }
        }
        fields.extend(chosen.map(|version| format!("\"chosen_version\":\"{}\"", hex(&version))));
        self.event(at, ("transport:version_information", "quic:version_information"), |text| {
            text.push_str(&fields.join(","));
        });
    }

    fn parameter(&mut self, id: u64, value: u64) {
        let known = PARAMETERS.iter().find(|(known, ..)| *known == id);
        let Some((_, name, is_flag)) = known else { return };
        let text = &mut self.parts.parameters;
        let _ = match is_flag {
            true => write!(text, ",\"{name}\":true"),
            false => write!(text, ",\"{name}\":{value}"),
        };
    }

    fn parameters(&mut self, at: Instant, remote: bool) {
        let (initiator, list) =
            (if remote { "remote" } else { "local" }, std::mem::take(&mut self.parts.parameters));
        // The key of qlog 0.3, which qvis asks for.
        let owner = match self.flavor {
            Flavor::Qvis => format!(",\"owner\":\"{initiator}\""),
            Flavor::Draft => String::new(),
        };
        self.event(at, ("transport:parameters_set", "quic:parameters_set"), |text| {
            let _ = write!(text, "\"initiator\":\"{initiator}\"{owner}{list}");
        });
    }

    /// A part of a text: the whole is told when its last part has come, or with what follows.
    fn words(&mut self, at: Instant, part: &LogText) {
        self.parts.text.extend_from_slice(part.as_bytes());
        if part.kind == TextKind::Alpn && !part.goes_on {
            let alpn = std::mem::take(&mut self.parts.text);
            self.errors = ApplicationErrors::of_alpn(&alpn);
            let alpn = match std::str::from_utf8(&alpn) {
                Ok(text) => json!({"string_value": text}),
                Err(_) => {
                    let hex: String = alpn.iter().map(|byte| format!("{byte:02x}")).collect();
                    json!({"byte_value": hex})
                }
            };
            self.event(at, ("transport:alpn_information", "quic:alpn_information"), |text| {
                let _ = write!(text, "\"chosen_alpn\":{alpn}");
            });
        }
    }

    /// An event for each of the keys of a kind of packets.
    fn keys(&mut self, at: Instant, names: (&str, &str), kind: PacketKind, by_tls: bool) {
        for name in key_types(kind) {
            self.key(at, names, name, kind, by_tls);
        }
    }

    fn key(&mut self, at: Instant, names: (&str, &str), name: &str, kind: PacketKind, by_tls: bool) {
        let phase = match kind {
            PacketKind::OneRtt => format!(",\"key_phase\":{}", self.key_phase),
            _ => String::new(),
        };
        let trigger = if by_tls { ",\"trigger\":\"tls\"" } else { "" };
        self.event(at, names, |text| {
            let _ = write!(text, "\"key_type\":\"{name}\"{phase}{trigger}");
        });
    }

    fn dropped(&mut self, at: Instant, reason: PacketDropReason, kind: Option<PacketKind>, size: u16) {
        self.event(at, ("transport:packet_dropped", "quic:packet_dropped"), |text| {
            if let Some(kind) = kind {
                let _ = write!(text, "\"header\":{{\"packet_type\":\"{}\"}},", packet_type(kind));
            }
            let trigger = drop_trigger(reason);
            let _ = write!(text, "\"raw\":{{\"length\":{size}}},\"trigger\":\"{trigger}\"");
        });
    }

    fn state(&mut self, at: Instant, state: ConnectionState) {
        let names = ("connectivity:connection_state_updated", "quic:connection_state_updated");
        let new = connection_state(state);
        self.event(at, names, |text| {
            let _ = write!(text, "\"new\":\"{new}\"");
        });
    }

    fn closed(&mut self, at: Instant, local: bool, cause: CloseCause, code: u64) {
        let words = std::mem::take(&mut self.parts.text);
        let mut reason = String::from_utf8_lossy(&words).into_owned();
        let trigger = match cause {
            CloseCause::Application => "application",
            CloseCause::Transport if code == 0 => "unspecified",
            CloseCause::Transport => "error",
            CloseCause::IdleTimeout => "idle_timeout",
            CloseCause::HandshakeTimeout => {
                // The drafts have no word for it.
                "the handshake took too long".clone_into(&mut reason);
                "aborted"
            }
            CloseCause::StatelessReset => "stateless_reset",
            CloseCause::VersionMismatch => "version_mismatch",
            CloseCause::Refused => {
                "nobody listens at the address".clone_into(&mut reason);
                "aborted"
            }
            CloseCause::Unsent => {
                "the system sends nothing to the address".clone_into(&mut reason);
                "aborted"
            }
            CloseCause::DatagramsTooLarge => {
                "datagrams of 1200 bytes are too large for the interface".clone_into(&mut reason);
                "aborted"
            }
        };
        let error = match cause {
            CloseCause::Application => {
                format!(",{}", error("application_error", self.errors.name(code), code))
            }
            CloseCause::Transport => {
                format!(",{}", error("connection_error", transport_error(code).as_deref(), code))
            }
            _ => String::new(),
        };
        let reason = if reason.is_empty() { String::new() } else { format!(",\"reason\":{}", json!(reason)) };
        let initiator = if local { "local" } else { "remote" };
        self.event(at, ("connectivity:connection_closed", "quic:connection_closed"), |text| {
            let _ = write!(text, "\"initiator\":\"{initiator}\"{error}{reason},\"trigger\":\"{trigger}\"");
        });
    }
}

/// The fields of an address.
fn endpoint(ip: [u8; 16], port: Option<u16>) -> String {
    let ip = std::net::Ipv6Addr::from(ip);
    let (family, ip) = match ip.to_ipv4_mapped() {
        Some(ip) => ("v4", ip.to_string()),
        None => ("v6", ip.to_string()),
    };
    let port = port.map_or_else(String::new, |port| format!(",\"port_{family}\":{port}"));
    format!("\"ip_{family}\":\"{ip}\"{port}")
}

fn packet_type(kind: PacketKind) -> &'static str {
    match kind {
        PacketKind::Initial => "initial",
        PacketKind::ZeroRtt => "0RTT",
        PacketKind::Handshake => "handshake",
        PacketKind::OneRtt => "1RTT",
    }
}

/// The names of the keys for packets of a kind. Only clients send early data.
fn key_types(kind: PacketKind) -> &'static [&'static str] {
    match kind {
        PacketKind::Initial => &["server_initial_secret", "client_initial_secret"],
        PacketKind::ZeroRtt => &["client_0rtt_secret"],
        PacketKind::Handshake => &["server_handshake_secret", "client_handshake_secret"],
        PacketKind::OneRtt => &["server_1rtt_secret", "client_1rtt_secret"],
    }
}

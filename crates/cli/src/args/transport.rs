//! The options of the transport.

use std::time::Duration;

use clap::{Args, ValueEnum};
use fulmar::{FecCode, FecDialects, FecMode};

use crate::duration::parse_duration;

/// The options of the transport, for either side. The rare ones are told by `--help` alone.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Transport")]
pub(crate) struct TransportArgs {
    /// The congestion controller
    #[arg(long, value_name = "NAME", default_value = "bbr")]
    pub(crate) cc: CongestionName,

    /// End a connection that was silent this long; 0 never ends it
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub(crate) idle_timeout: Duration,

    /// Give up a handshake after this time
    #[arg(hide_short_help = true, long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub(crate) handshake_timeout: Duration,

    /// Send something after this much silence, so that the connection stays, and one learns of a peer that has forgotten it
    /// [default: 1s for `get` without --hold, else never]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) keep_alive: Option<Duration>,

    /// The implementation that protects packets; `auto` takes the faster one for this processor
    #[arg(hide_short_help = true, long, value_name = "NAME", default_value = "auto")]
    pub(crate) aead: AeadName,

    /// The versions of QUIC to speak, the preferred one first: `v1`, `v2` or both
    #[arg(hide_short_help = true, long, value_name = "LIST", value_delimiter = ',', default_value = "v1,v2")]
    pub(crate) versions: Vec<VersionName>,

    /// The version in which a client begins, if that is not the preferred one: the server may go over to that
    #[arg(hide_short_help = true, long, value_name = "VERSION")]
    pub(crate) initial_version: Option<VersionName>,

    /// Change the keys after this many packets. Without it they are changed before the limit of the cipher
    #[arg(hide_short_help = true, long, value_name = "PACKETS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) key_update: Option<u64>,

    /// The largest UDP payload to try, in bytes
    #[arg(hide_short_help = true, long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1200..=65_000))]
    pub(crate) mtu_max: Option<u16>,

    /// Send timestamps to peers that want them, and want theirs (draft-huitema-quic-ts)
    #[arg(hide_short_help = true, long)]
    pub(crate) time_stamps: bool,

    /// Protect what is sent by forward erasure correction, towards peers that have it, and recover what they protect: `tail` (when
    /// there is nothing else to send), `constant:K,R` (R repair packets after each K), `deadline:MS` (so that data arrives within
    /// MS milliseconds), `none` (only recover). Without this option there is none in either direction
    #[arg(hide_short_help = true, long, value_name = "MODE")]
    pub(crate) fec: Option<FecMode>,

    /// The erasure code: xor, rs (Reed-Solomon) or rlc (RFC 8681; third parties claim patents on such codes)
    #[arg(hide_short_help = true, long, value_name = "CODE", default_value = "rs", requires = "fec")]
    pub(crate) fec_code: FecCode,

    /// How erasure correction is spoken: `x` (our own), `m` (draft-michel-quic-fec-01, as a fork of quic-go has it, with its fixed
    /// rates), or `both` (our own where the peer has it)
    #[arg(hide_short_help = true, long, value_name = "DIALECT", default_value = "x", requires = "fec")]
    pub(crate) fec_dialect: FecDialects,

    /// Do not send data twice that was lost and is sent again, where nothing else waits to be sent
    #[arg(hide_short_help = true, long)]
    pub(crate) no_preemptive_repeat: bool,

    /// Tell peers their addresses, or be told one's own (draft-ietf-quic-address-discovery)
    #[arg(hide_short_help = true, long, value_name = "ROLE")]
    pub(crate) address_discovery: Option<DiscoveryRole>,

    /// Mark packets with this differentiated services code point, for routers that treat them accordingly (46: expedited
    /// forwarding, 1: lower effort)
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=63))]
    pub(crate) dscp: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiscoveryRole {
    /// Tell peers at which address they are seen
    Provide,
    /// Ask peers for this end's address
    Receive,
    /// Both
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CongestionName {
    /// NewReno (RFC 9002)
    Newreno,
    /// CUBIC (RFC 9438)
    Cubic,
    /// BBR version 3 (draft-ietf-ccwg-bbr)
    Bbr,
    /// BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control)
    Bbr1,
    /// Prague, for L4S networks (draft-briscoe-iccrg-prague-congestion-control)
    Prague,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VersionName {
    /// RFC 9000
    V1,
    /// RFC 9369
    V2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AeadName {
    Auto,
    Ring,
    AwsLc,
}

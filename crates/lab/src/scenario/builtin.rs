//! The scenarios that are part of the program, so that they are at hand wherever it runs.

/// Pairs each name with the text of its file in `scenarios/`.
macro_rules! scenarios {
    ($($name:literal,)*) => {
        &[$(($name, include_str!(concat!("../../../../scenarios/", $name, ".toml")))),*]
    };
}

/// Names and texts, in the order of the specification.
pub(super) const FILES: &[(&str, &str)] = scenarios![
    "satellite/basic",
    "satellite/loss",
    "satellite/loss-small-window",
    "satellite/loss-repeat",
    "satellite/jitter",
    "satellite/medium",
    "satellite/small",
    "satellite/small-uplink",
    "satellite/download",
    "satellite/geo-start",
    "satellite/seeded",
    "satellite/second-connection",
    "satellite/second-connection-100ms",
    "deep-space/minute",
    "deep-space/minute-bulk",
    "deep-space/minute-requests",
    "deep-space/mars",
    "deep-space/saturn",
    "deep-space/five-seconds",
    "deep-space/five-seconds-bulk",
    "deep-space/long-rtt",
    "wifi/suspension",
    "wifi/suspension-hard",
    "wifi/suspension-many",
    "wifi/suspension-long",
    "wifi/bad",
    "wifi/fade",
    "wifi/ten-minutes",
    "recovery/suspended-path",
    "recovery/black-hole",
    "recovery/mtu-drop",
    "recovery/heavy-loss",
    "recovery/heavy-loss-exchanges",
    "recovery/two-of-64",
    "recovery/l1",
    "recovery/reordering",
    "congestion/four-in-sequence",
    "congestion/four-in-sequence-jitter",
    "congestion/ten-100m",
    "congestion/ten-1g",
    "congestion/long-slow",
    "congestion/very-long-slow",
    "congestion/asymmetric-10",
    "congestion/asymmetric-40",
    "congestion/red",
    "congestion/policer",
    "congestion/l4s",
    "congestion/application-limited",
    "congestion/cubic-with-cubic",
    "congestion/fairness",
    "congestion/fairness-bbr-cubic-1-bdp",
    "congestion/fairness-bbr-cubic-5-bdp",
    "congestion/drop-and-back",
    "congestion/low-and-up",
    "congestion/black-hole",
    "congestion/asymmetric-satellite",
    "congestion/wifi-suspension",
    "congestion/media-100m",
    "congestion/media-suspension",
    "congestion/media-wifi",
    "congestion/media-10m",
    "congestion/satellite-seeded",
];

#[cfg(test)]
mod tests;

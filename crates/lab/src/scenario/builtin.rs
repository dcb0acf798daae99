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
    "satellite/jitter",
    "satellite/medium",
    "satellite/small",
    "satellite/small-uplink",
    "satellite/download",
    "deep-space/minute",
    "deep-space/minute-bulk",
    "deep-space/minute-requests",
    "deep-space/mars",
    "deep-space/saturn",
    "deep-space/five-seconds",
    "deep-space/five-seconds-bulk",
    "deep-space/long-rtt",
    "wifi/fade",
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
    "congestion/application-limited",
    "congestion/cubic-with-cubic",
    "congestion/fairness",
    "congestion/fairness-bbr-cubic-1-bdp",
    "congestion/fairness-bbr-cubic-5-bdp",
];

#[cfg(test)]
mod tests;

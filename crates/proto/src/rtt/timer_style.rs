//! The choice of how timers follow from the round-trip time.

use std::fmt;
use std::str::FromStr;

use crate::packed::packed_names;
use thiserror::Error;

/// How the round-trip time becomes timers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TimerStyle {
    /// The statistics move once per round trip, however many acknowledgements come, and the probe timeout is
    /// the smoothed time and three variances. The second probe timeout in a row is as long as the first one, and
    /// none is longer than a sixteenth of the idle timeout or, during the handshake, of the handshake timeout.
    #[default]
    OncePerRtt,
    /// RFC 9002 to the letter: every sample moves the statistics, the probe timeout is the smoothed time and
    /// four variances, and it doubles each time.
    Classic,
}

packed_names!(TimerStyle { OncePerRtt, Classic });

impl fmt::Display for TimerStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OncePerRtt => "once-per-rtt",
            Self::Classic => "classic",
        })
    }
}

/// A text that names no [`TimerStyle`].
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[error("{0:?} is no style of timers: there are once-per-rtt and classic")]
pub struct UnknownTimerStyle(pub String);

impl FromStr for TimerStyle {
    type Err = UnknownTimerStyle;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "once-per-rtt" => Ok(Self::OncePerRtt),
            "classic" => Ok(Self::Classic),
            _ => Err(UnknownTimerStyle(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_of_timers_are_read_as_they_are_written() {
        for style in [TimerStyle::OncePerRtt, TimerStyle::Classic] {
            assert_eq!(style.to_string().parse(), Ok(style));
        }
        let error = "modern".parse::<TimerStyle>().unwrap_err().to_string();
        assert_eq!(error, "\"modern\" is no style of timers: there are once-per-rtt and classic");
    }
}

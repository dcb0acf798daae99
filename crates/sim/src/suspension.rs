//! A link that stops for a while and then delivers what has gathered.

use std::collections::VecDeque;
use std::time::Duration;

use fulmar_base::Instant;

use crate::{Change, Context, DropReason, Element, Packet};

/// The most packets held at a time.
const HELD_MAX: usize = 1 << 20;

/// A stop of one direction of a link, as when a radio scans other channels. Nothing is lost by it unless the
/// queue overflows. [`Change::Suspend`] starts it; stops that overlap last until the latest of their ends.
///
/// A radio that stops does so in both directions: suspend both of them at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspension {
    /// How long it lasts.
    pub duration: Duration,
    /// What stops.
    pub side: SuspendedSide,
}

/// Which end of a direction stops in a [`Suspension`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspendedSide {
    /// The transmitter: packets gather in its queue, the one in transmission is continued afterwards, and they
    /// arrive at the rate of the link, or together if it has none. What has left the transmitter arrives
    /// as it would have. For a queue limit in time the rest of the stop is part of the wait.
    Send,
    /// The receiver: what would arrive is held, and all of it arrives together at the end of the stop.
    /// The transmitter goes on, so no capacity is lost.
    Receive,
    /// Both.
    Both,
}

impl SuspendedSide {
    /// Whether the transmitter stops.
    pub const fn stops_sending(self) -> bool {
        matches!(self, Self::Send | Self::Both)
    }

    /// Whether the receiver stops.
    pub const fn stops_receiving(self) -> bool {
        matches!(self, Self::Receive | Self::Both)
    }
}

/// Holds packets at the far end while receiving is suspended. The transmitter's part is in `bottleneck`.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    until: Option<Instant>,
    held: VecDeque<Packet>,
}

impl Element for Hold {
    fn accept(&mut self, packet: Packet, cx: &mut Context<'_>) {
        // At the very end of the stop a new packet still goes behind those that wait.
        let holds = self.until.is_some_and(|until| until > cx.now()) || !self.held.is_empty();
        if !holds {
            cx.pass(packet);
        } else if self.held.len() >= HELD_MAX {
            cx.discard(packet, DropReason::Overflow);
        } else {
            self.held.push_back(packet);
        }
    }

    fn is_transparent(&self) -> bool {
        self.until.is_none() && self.held.is_empty()
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.until
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        if self.until.is_none_or(|until| until <= cx.now()) {
            self.until = None;
            self.held.drain(..).for_each(|packet| cx.pass(packet));
        }
    }

    fn apply(&mut self, change: &Change, cx: &mut Context<'_>) {
        if let Change::Suspend(suspension) = change
            && suspension.side.stops_receiving()
        {
            self.until = self.until.max(Some(cx.now() + suspension.duration));
        }
    }
}

//! What a connection notes for its log.

use super::{Connection, Critical};
use crate::event::RequestHead;
use crate::log::{LogEvent, StreamKind};
use crate::priority::Priority;

impl Connection {
    /// Begins to note what happens. To be called before anything else, so that nothing is missing; without it nothing is noted.
    pub fn start_log(&mut self) {
        self.shared.log.start();
        let settings = self.settings();
        self.shared.log.note(|| LogEvent::SettingsSet { is_local: true, settings: Box::new(settings) });
        if let Some(settings) = &self.peer.remembered {
            self.shared.log.note(|| LogEvent::SettingsRestored(Box::new(settings.clone())));
        }
        self.shared.log.control_began(self.output.waiting_for_control());
    }

    /// Takes what was noted, oldest first. To be called after every other call, as events have no time of their own.
    #[inline]
    pub fn take_log(&mut self) -> Vec<LogEvent> {
        self.shared.log.take()
    }

    /// Tells the log by which stream one of the three of [`take_output`](Self::take_output) goes. Without this nothing of the
    /// control stream is noted.
    pub fn on_opened(&mut self, critical: Critical, stream: u64) {
        let kind = match critical {
            Critical::Control => StreamKind::Control,
            Critical::Encoder => StreamKind::Encoder,
            Critical::Decoder => StreamKind::Decoder,
        };
        self.shared.log.note(|| LogEvent::StreamType { stream, is_local: true, kind });
        if critical == Critical::Control {
            self.shared.log.control_opened(stream);
        }
    }

    /// A request has come, with a priority by its field or by a frame that came before.
    pub(super) fn log_first_priority(&mut self, stream: u64, head: &RequestHead, early: Option<Priority>) {
        if early.is_some() || head.parts.headers.contains_key("priority") {
            let new = early.unwrap_or(head.priority);
            self.shared.log.note(|| LogEvent::PrioritySet { stream, new, is_received: true });
        }
    }
}

//! What a connection has to say to those around it: events for the application and for the endpoint.

use std::collections::VecDeque;

use crate::events::{ConnectionError, EndpointEventInner, Event, PathEvent};

/// Events that wait to be polled.
///
/// Limit: the caller drains both queues after every call, and a call adds a few events for each frame of a datagram.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// For the application.
    pub(super) events: VecDeque<Event>,
    /// For the endpoint.
    pub(super) endpoint_events: VecDeque<EndpointEventInner>,
}

impl Outbox {
    pub(super) fn push(&mut self, event: Event) {
        self.events.push_back(event);
    }

    pub(super) fn push_path(&mut self, event: PathEvent) {
        self.push(Event::Path(event));
    }

    /// The connection is over.
    pub(super) fn push_lost(&mut self, reason: ConnectionError) {
        self.push(Event::ConnectionLost { reason });
    }

    pub(super) fn push_endpoint(&mut self, event: EndpointEventInner) {
        self.endpoint_events.push_back(event);
    }
}

//! What a connection has to say to those around it: events for the application and for the endpoint.

use std::collections::VecDeque;

use crate::events::{ConnectionError, EndpointEventInner, Event, PathEvent};
use crate::streams::Streams;

/// Events that wait to be polled.
///
/// Limit: the caller drains both queues after every call, and a call adds a few events for each frame of a datagram.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// For the application.
    events: VecDeque<Event>,
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

    /// The connection is over. That is told after what has become of the streams until then: one whose delivery was
    /// acknowledged beside the peer's CONNECTION_CLOSE was delivered.
    pub(super) fn end(&mut self, streams: &mut Streams, reason: ConnectionError) {
        while let Some(event) = streams.poll_event() {
            self.push(Event::Stream(event));
        }
        self.push(Event::ConnectionLost { reason });
    }

    /// The next event for the application.
    pub(super) fn poll(&mut self) -> Option<Event> {
        poll(&mut self.events)
    }

    /// The next event for the endpoint.
    pub(super) fn poll_endpoint(&mut self) -> Option<EndpointEventInner> {
        poll(&mut self.endpoint_events)
    }

    pub(super) fn push_endpoint(&mut self, event: EndpointEventInner) {
        self.endpoint_events.push_back(event);
    }
}

/// Takes the first event. These events are rare, so the memory of an empty queue is given back.
fn poll<T>(queue: &mut VecDeque<T>) -> Option<T> {
    let event = queue.pop_front()?;
    if queue.is_empty() {
        *queue = VecDeque::new();
    }
    Some(event)
}

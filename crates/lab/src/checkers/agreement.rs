//! Both ends of a connection tell the same story.

use fulmar_proto::StreamId;

use crate::Application;
use crate::application::{Receiving, ReceivingEnd, Sending, SendingEnd, SendingFate};

/// Compares the records of both ends of a connection. With `complete`, every stream has to have come to its end
/// on both sides; without, the connection was cut short and only what did arrive is compared.
///
/// # Errors
/// A sentence about the first difference.
pub fn agreement(client: &Application, server: &Application, complete: bool) -> Result<(), String> {
    for (name, source, sink) in [("client", client, server), ("server", server, client)] {
        one_direction(source, sink, complete).map_err(|what| format!("{what}, sent by the {name}"))?;
    }
    Ok(())
}

fn one_direction(source: &Application, sink: &Application, complete: bool) -> Result<(), String> {
    for (id, receiving) in sink.receiving() {
        match source.sending().get(id) {
            Some(sending) => {
                stream(sending, receiving).map_err(|what| describe(*id, what, sending, receiving))?
            }
            // The receiver opened it, and the sender has not heard of it.
            None if !complete && receiving.bytes() == 0 && is_quiet(receiving) => {}
            None => return Err(format!("stream {id} was received and never sent")),
        }
    }
    for (id, sending) in source.sending() {
        let unknown = sending.written() > 0 || sending.end() != SendingEnd::Open;
        if complete && unknown && !sink.receiving().contains_key(id) {
            return Err(format!("stream {id} never arrived"));
        }
    }
    if sink.messages().received_end() > source.messages().sent() {
        return Err("a datagram arrived that nobody sent".to_owned());
    }
    if let Some(index) = source.messages().dropped_and_received(sink.messages()) {
        return Err(format!("datagram {index} arrived although it was dropped before it was sent"));
    }
    if complete { all_over(source, sink) } else { Ok(()) }
}

fn is_quiet(receiving: &Receiving) -> bool {
    matches!(receiving.end(), ReceivingEnd::Open | ReceivingEnd::Stopped(_))
}

fn all_over(source: &Application, sink: &Application) -> Result<(), String> {
    match (source.is_done(), sink.is_done()) {
        (true, true) => Ok(()),
        _ => Err("the workload is not done".to_owned()),
    }
}

/// What each end knows of one direction of a stream.
fn stream(sending: &Sending, receiving: &Receiving) -> Result<(), &'static str> {
    if receiving.read_end() > sending.written() {
        return Err("more was read than written");
    }
    match receiving.end() {
        ReceivingEnd::Open => {}
        ReceivingEnd::Finished => finished(sending, receiving)?,
        ReceivingEnd::Reset(code) => match sending.end() {
            SendingEnd::Reset { code: sent, reliable_size, .. } if sent == code => {
                if receiving.read_from_start() < reliable_size {
                    return Err("the receiver saw the reset before what was promised");
                }
            }
            _ => return Err("the receiver saw a reset that was not sent"),
        },
        ReceivingEnd::Stopped(_) => {}
    }
    match (sending.fate(), receiving.end()) {
        (SendingFate::Stopped(code), ReceivingEnd::Stopped(sent)) if code == sent => Ok(()),
        (SendingFate::Stopped(_), _) => Err("the sender was stopped, but not by the receiver"),
        // The transport has everything, although the application may still have to read it.
        (SendingFate::Acknowledged, ReceivingEnd::Reset(_)) => match sending.end() {
            SendingEnd::Reset { reliable_size, .. } if reliable_size > 0 => Ok(()),
            _ => Err("a stream that was acknowledged was reset"),
        },
        (SendingFate::Acknowledged | SendingFate::Unknown, _) => Ok(()),
    }
}

fn finished(sending: &Sending, receiving: &Receiving) -> Result<(), &'static str> {
    match sending.end() {
        SendingEnd::Finished | SendingEnd::Reset { finished: true, .. } => {}
        SendingEnd::Open | SendingEnd::Reset { finished: false, .. } => {
            return Err("the receiver saw an end that was not sent");
        }
    }
    match receiving.bytes() == sending.written() {
        true => Ok(()),
        false => Err("the receiver saw the end without all of the bytes"),
    }
}

fn describe(id: StreamId, what: &str, sending: &Sending, receiving: &Receiving) -> String {
    format!("{what}: stream {id}, {sending:?}, {receiving:?}")
}

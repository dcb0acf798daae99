//! What uses capacity that nothing else needs: a list of writers that are asked when nothing waits to be sent.
//!
//! Data that was lost once leaves twice when it is sent again. A transfer ends when its last byte arrives. On
//! a path that loses packets by chance some of the data that is sent again is lost as well, and each time that costs a
//! round trip. Where the sender has nothing else to do, a second copy is cheap: there are as few of
//! them as there were losses. The copies need room in the window and wait for the pacer like all that is sent, and no
//! copy has a copy.
//!
//! Where forward erasure correction protects the ends of transfers, repair symbols take the place of the copies: one of them
//! repairs any loss.

use super::reinjection::{repeat_here, repeat_what_is_slow};
use super::transmit::Sender;
use crate::packet::SentFrame;
use crate::path::Pending;

/// The writers, in the order of their priority. One that has something to send queues it with its owner.
const WRITERS: [fn(&mut Sender<'_>); 4] = [duplicate, repeat_preemptively, repeat_what_is_slow, repair];

/// Lets the writers queue what they have, one after the other, until there is something to send. Returns whether there is.
pub(super) fn fill(sender: &mut Sender<'_>) -> bool {
    WRITERS.iter().any(|write| {
        write(sender);
        // Whoever has queued something has raised its bit.
        !sender.parts.path().due().is_empty() && sender.wants_any()
    })
}

/// Queues all stream data that is in flight once more, where that was asked for.
fn duplicate(sender: &mut Sender<'_>) {
    if !sender.config.idle_duplicates || protects_tails(sender) || !has_room(sender) {
        return;
    }
    let uncopied = sender.parts.path_mut().space.take_uncopied();
    let frames: Vec<SentFrame> = uncopied.flat_map(|packet| packet.frames.iter().cloned()).collect();
    repeat(sender, &frames);
}

/// Queues what was sent again, and is in flight, once more.
fn repeat_preemptively(sender: &mut Sender<'_>) {
    if !sender.config.preemptive_repeat || !sender.parts.path().space.has_resent() || protects_tails(sender) {
        return;
    }
    let resent = sender.parts.path_mut().space.take_resent();
    let frames: Vec<SentFrame> = resent.flat_map(|packet| packet.frames.iter().cloned()).collect();
    repeat(sender, &frames);
}

fn repeat(sender: &mut Sender<'_>, frames: &[SentFrame]) {
    repeat_here(sender, sender.parts.path().id, frames);
}

/// Whether repair symbols take the place of copies.
fn protects_tails(sender: &mut Sender<'_>) -> bool {
    sender.parts.extensions.fec_sender().is_some_and(|fec| fec.protects_tails())
}

/// Whether the congestion window has room for a packet.
fn has_room(sender: &Sender<'_>) -> bool {
    let tuple = sender.tuple();
    tuple.congestion.window_left() >= u64::from(tuple.mtu())
}

/// Lets forward erasure correction make repair symbols.
fn repair(sender: &mut Sender<'_>) {
    if sender.parts.extensions.fec_sender().is_none() || !has_room(sender) {
        return;
    }
    let (now, rtt) = (sender.now, sender.tuple().rtt.smoothed());
    if let Some(fec) = sender.parts.extensions.fec_sender() {
        fec.schedule(now, true, rtt);
        if fec.has_repairs() {
            fec.take_path(sender.parts.paths.for_repairs(sender.parts.index, fec.repair_len_max()));
            sender.parts.paths.raise(Pending::FEC);
        }
    }
}

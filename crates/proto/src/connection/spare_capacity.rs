//! What uses capacity that nothing else needs: a list of writers that are asked when nothing waits to be sent.
//!
//! Data that was lost once leaves twice when it is sent again. A transfer ends when its last byte arrives. On
//! a path that loses packets by chance some of the data that is sent again is lost as well, and each time that costs a
//! round trip. Where the sender has nothing else to do, a second copy is cheap: there are as few of
//! them as there were losses. The copies need room in the window and wait for the pacer like all that is sent. On a long and
//! fast path that loses much, so much is lost at once that some copies are lost as well: there a copy has a copy, while that takes
//! less time on the wire than it saves.
//!
//! Where forward erasure correction protects the ends of transfers, repair symbols take the place of the copies: one of them
//! repairs any loss. What none covers, as they would cost too much or are for others, has its copies.

use super::reinjection::{repeat_here, repeat_what_is_slow};
use super::transmit::Sender;
use crate::ext::{FecSender, PathFigures};
use crate::packet::{SentFrame, SentPacket};
use crate::path::{Pending, Tuple};
use crate::scheduler::loss_chance;

/// The writers, in the order of their priority. One that has something to send queues it with its owner.
const WRITERS: [fn(&mut Sender<'_>); 4] = [repair, duplicate, repeat_preemptively, repeat_what_is_slow];

/// The most copies of data that was lost, all in flight together: what takes so many one after the other is no chance.
const MAX_COPIES: u8 = 4;

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
    if !sender.config.idle_duplicates || !has_room(sender) {
        return;
    }
    let path = sender.parts.paths.at_mut(sender.parts.index);
    let fec = sender.parts.extensions.fec_sender();
    let frames = all_frames(path.space.take_uncopied(|packet| needs_copy(packet, fec.as_deref())));
    repeat(sender, &frames);
}

/// Queues what was sent again, and is in flight, once more.
fn repeat_preemptively(sender: &mut Sender<'_>) {
    if !sender.config.preemptive_repeat || !sender.parts.path().space.has_resent() {
        return;
    }
    let path = sender.parts.paths.at_mut(sender.parts.index);
    let fec = sender.parts.extensions.fec_sender();
    for copies in 1..copies_of_lost(&path.tuple) {
        let frames = all_frames(path.space.take_resent(copies, |packet| needs_copy(packet, fec.as_deref())));
        if !frames.is_empty() {
            repeat(sender, &frames);
            return sender.parts.streams.repeat_as_copy(copies + 1);
        }
    }
    // Asked whenever there is nothing to send: the records are looked through only if there is something to find.
    path.space.forget_resent();
}

/// How many copies of what was lost may be in flight together on this path.
fn copies_of_lost(tuple: &Tuple) -> u8 {
    let (delivered, lost) = tuple.congestion.totals();
    let chance = loss_chance(delivered, lost);
    let round_trip = tuple.rtt.smoothed().as_secs_f64() * tuple.congestion.delivery_rate() as f64;
    copies_worth(chance, round_trip / f64::from(tuple.mtu()))
}

/// How many copies are worth their time on the wire, where each is lost with this chance and a round trip takes as long as so many packets.
/// The second one always. One more, if all before it are lost so often that it saves more of a round trip than it takes.
fn copies_worth(chance: f64, packets: f64) -> u8 {
    let pays = |copies: &u8| packets * chance.powi((*copies).into()) > 1.0;
    2 + (2..MAX_COPIES).take_while(pays).count() as u8
}

/// Whether no repair symbol in flight takes the place of a copy of this packet.
pub(super) fn needs_copy(packet: &SentPacket, fec: Option<&FecSender>) -> bool {
    !packet.symbol.is_some_and(|symbol| fec.is_some_and(|fec| fec.covers(symbol)))
}

fn all_frames<'p>(packets: impl Iterator<Item = &'p SentPacket>) -> Vec<SentFrame> {
    packets.flat_map(|packet| packet.frames.iter().cloned()).collect()
}

fn repeat(sender: &mut Sender<'_>, frames: &[SentFrame]) {
    repeat_here(sender, sender.parts.path().id, frames);
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
    let (now, figures) = (sender.now, path_figures(sender.tuple()));
    if let Some(fec) = sender.parts.extensions.fec_sender() {
        fec.schedule(now, true, &figures);
        if fec.has_repairs() {
            fec.take_path(sender.parts.paths.for_repairs(sender.parts.index, fec.repair_len_max()));
            sender.parts.paths.raise(Pending::FEC);
        }
    }
}

/// What repair symbols cost on this path, as far as it has shown that.
///
/// How much has to wait on the path tells how slow it is: what is delivered in a round trip takes as long on the wire as what
/// comes last in it waits behind the rest. Where it leaves in bursts the mean wait is half of that; a queue that is never empty makes
/// all wait for all, which is the whole round trip. By the rate of delivery alone each path would be slow on which little was sent.
pub(super) fn path_figures(tuple: &Tuple) -> PathFigures {
    let (rtt, congestion) = (&tuple.rtt, &tuple.congestion);
    let recent = rtt.recent();
    let waited = recent.saturating_sub(rtt.min());
    let flight = match congestion.delivery_rate() {
        0 => congestion.window_max() as f64,
        rate => rate as f64 * recent.as_secs_f64(),
    };
    let packet = u64::from(tuple.mtu());
    PathFigures {
        smoothed_rtt: rtt.smoothed(),
        min_rtt: rtt.min(),
        byte_time: (waited * 2).min(recent).as_secs_f64() / flight.max(packet as f64),
        room: congestion.window_left() / packet,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_a_copy_where_that_saves_more_of_a_round_trip_than_it_takes() {
        for (chance, packets, copies) in [
            (0.0, 1e6, 2),
            (0.01, 9_000.0, 2),
            (0.01, 11_000.0, 3),
            (0.1, 90.0, 2),
            (0.1, 900.0, 3),
            (0.1, 1_100.0, 4),
            (0.5, 1e6, MAX_COPIES),
        ] {
            assert_eq!(copies_worth(chance, packets), copies, "{chance} of {packets}");
        }
    }
}

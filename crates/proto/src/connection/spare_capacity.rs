//! What uses capacity that nothing else needs: a list of writers that are asked when nothing waits to be sent.
//!
//! The first: data that was lost once leaves twice when it is sent again. A transfer ends when its last byte arrives. On
//! a path that loses packets by chance some of the data that is sent again is lost as well, and each time that costs a
//! round trip. Where the sender has nothing else to do, a second copy is cheap: there are as few of
//! them as there were losses. The copies need room in the window and wait for the pacer like all that is sent, and no
//! copy has a copy.

use super::delivery::{Fate, Owners};
use super::transmit::Sender;
use crate::ids::SpaceId;
use crate::packet::SentFrame;

/// The writers, in the order of their priority. One that has something to send queues it with its owner.
const WRITERS: [fn(&mut Sender<'_>); 1] = [repeat_preemptively];

/// Lets the writers queue what they have, one after the other, until there is something to send. Returns whether there is.
pub(super) fn fill(sender: &mut Sender<'_>) -> bool {
    WRITERS.iter().any(|write| {
        write(sender);
        sender.wants_any()
    })
}

/// Queues what was sent again, and is in flight, once more.
fn repeat_preemptively(sender: &mut Sender<'_>) {
    if !sender.config.preemptive_repeat {
        return;
    }
    let path = sender.parts.path_mut();
    let resent = path.space.take_resent();
    let frames: Vec<SentFrame> = resent.flat_map(|packet| packet.frames.iter().cloned()).collect();
    let space = SpaceId::Data(path.id);
    Owners::of(&mut sender.parts).deliver(space, &frames, Fate::Probed);
}

//! Who waits for what: tasks that wait for an event of the connection, and the tasks of its streams.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::num::NonZeroU64;
use std::task::{Context, Waker};

use fulmar_base::{HashKey, IdMap, Rng};
use fulmar_proto::{Dir, StreamId, VarInt};
use slab::Slab;

/// Tasks that wait for the same event, each with a ticket, so that whoever gives up leaves nothing behind.
///
/// An event wakes all of them: each looks whether there is something for it, and waits again if not. So it does no harm if one
/// that was woken is dropped before it runs.
///
/// Limit: an entry for each handle or future that waits.
pub(crate) struct WaitList {
    wakers: Slab<Waker>,
    /// Counts the events. Tickets from before the last one are void.
    round: NonZeroU64,
}

/// A place in a [`WaitList`].
pub(crate) struct Ticket {
    /// Never zero, so that handles, which programs move around, need no more room for no ticket.
    round: NonZeroU64,
    place: usize,
}

impl Default for WaitList {
    fn default() -> Self {
        Self { wakers: Slab::new(), round: NonZeroU64::MIN }
    }
}

impl WaitList {
    /// The task of `cx` waits for the next event. `ticket` is the one it has, which is renewed if it is void.
    pub(crate) fn wait(&mut self, ticket: &mut Option<Ticket>, cx: &Context<'_>) {
        match ticket {
            Some(Ticket { round, place }) if *round == self.round => {
                self.wakers[*place].clone_from(cx.waker());
            }
            _ => {
                if self.wakers.capacity() == 0 {
                    // Mostly it is one task that waits.
                    self.wakers.reserve_exact(1);
                }
                let place = self.wakers.insert(cx.waker().clone());
                *ticket = Some(Ticket { round: self.round, place });
            }
        }
    }

    /// Gives a ticket back, if there is one: its task no longer waits.
    pub(crate) fn leave(&mut self, ticket: &mut Option<Ticket>) {
        if let Some(ticket) = ticket.take()
            && ticket.round == self.round
        {
            self.wakers.remove(ticket.place);
        }
    }

    /// The event has come.
    pub(crate) fn wake_all(&mut self, wakers: &mut Vec<Waker>) {
        self.round = self.round.saturating_add(1);
        wakers.extend(self.wakers.drain());
    }
}

/// The tasks that wait to open or to accept streams.
#[derive(Default)]
pub(crate) struct StreamQueues {
    /// In the order of [`Awaited::index`]; one that nobody has ever waited in takes no room.
    lists: [Option<Box<WaitList>>; 4],
}

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// The peer allows more streams of this direction.
    Open(Dir),
    /// The peer has opened a stream of this direction.
    Accept(Dir),
}

impl Awaited {
    /// All there are, in the order of [`Awaited::index`].
    pub(crate) const ALL: [Self; 4] =
        [Self::Open(Dir::Bi), Self::Open(Dir::Uni), Self::Accept(Dir::Bi), Self::Accept(Dir::Uni)];

    /// The place in [`Awaited::ALL`].
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Open(dir) => direction(dir),
            Self::Accept(dir) => 2 + direction(dir),
        }
    }
}

fn direction(dir: Dir) -> usize {
    match dir {
        Dir::Bi => 0,
        Dir::Uni => 1,
    }
}

impl StreamQueues {
    /// Those who wait for this, for one who will.
    pub(crate) fn of(&mut self, awaited: Awaited) -> &mut WaitList {
        self.lists[awaited.index()].get_or_insert_default()
    }

    /// Gives a ticket back, if there is one.
    pub(crate) fn leave(&mut self, awaited: Awaited, ticket: &mut Option<Ticket>) {
        if let Some(list) = &mut self.lists[awaited.index()] {
            list.leave(ticket);
        }
    }

    /// What they wait for has come.
    pub(crate) fn wake(&mut self, awaited: Awaited, wakers: &mut Vec<Waker>) {
        if let Some(list) = &mut self.lists[awaited.index()] {
            list.wake_all(wakers);
        }
    }

    /// Wakes everybody: the connection is over.
    pub(crate) fn wake_all(&mut self, wakers: &mut Vec<Waker>) {
        self.lists.iter_mut().flatten().for_each(|list| list.wake_all(wakers));
    }
}

/// The tasks of all streams that the application holds: a slot for each stream.
///
/// Handles keep the key of their slot, so that only events of the core, which name streams by ID, have to be looked up.
///
/// Limit: a slot exists as long as a handle of its stream, or a future that waits for its completion. Streams are
/// limited by `TransportConfig::max_concurrent_*_streams` of both ends. Memory for as many slots as there ever were at
/// a time is kept.
pub(crate) struct StreamSlots {
    slots: Slab<Slot>,
    by_id: IdMap,
    /// The slot that the last event was for: events of the same stream come in rows.
    guess: usize,
}

/// Where the tasks of a stream are in [`StreamSlots`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotKey {
    pub(crate) id: StreamId,
    slot: usize,
}

/// The tasks of a stream: at most one reader and one writer, and any number that wait for its completion.
struct Slot {
    id: StreamId,
    /// Handles and futures that hold the key.
    users: usize,
    reader: Option<Waker>,
    writer: Option<Waker>,
    completion: Option<Completion>,
    /// Those who wait for the completion.
    completing: WaitList,
}

/// How the sending of a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    /// The peer has received everything, or what a reset has left of it.
    Received,
    /// The peer has asked to stop, with this code.
    Stopped(VarInt),
    /// This end has reset the stream.
    Reset,
}

impl Default for StreamSlots {
    fn default() -> Self {
        // Peers must not know the key, and nothing here has to be repeatable.
        let seed = RandomState::new().hash_one(0);
        let by_id = IdMap::new(HashKey::new(&mut Rng::from_u64(seed)));
        Self { slots: Slab::new(), by_id, guess: 0 }
    }
}

impl StreamSlots {
    /// Makes the slot of a new stream, for `users` handles.
    pub(crate) fn insert(&mut self, id: StreamId, users: usize) -> SlotKey {
        let slot = self.slots.insert(Slot {
            id,
            users,
            reader: None,
            writer: None,
            completion: None,
            completing: WaitList::default(),
        });
        self.by_id.insert(id.as_u64(), slot);
        self.guess = slot;
        SlotKey { id, slot }
    }

    /// Somebody else will hold the key.
    pub(crate) fn share(&mut self, key: SlotKey) {
        self.slot(key).users += 1;
    }

    /// A holder of the key gives it back.
    pub(crate) fn release(&mut self, key: SlotKey) {
        let slot = self.slot(key);
        slot.users -= 1;
        if slot.users == 0 {
            self.slots.remove(key.slot);
            self.by_id.remove(key.id.as_u64());
        }
    }

    /// The handle that receives the stream gives its key back.
    pub(crate) fn release_reader(&mut self, key: SlotKey) {
        self.slot(key).reader = None;
        self.release(key);
    }

    /// The handle that sends the stream gives its key back.
    pub(crate) fn release_writer(&mut self, key: SlotKey) {
        self.slot(key).writer = None;
        self.release(key);
    }

    /// The task of `cx` waits for bytes of the stream, or its end.
    pub(crate) fn wait_to_read(&mut self, key: SlotKey, cx: &Context<'_>) {
        set(&mut self.slot(key).reader, cx);
    }

    /// The task of `cx` waits for room in the stream.
    pub(crate) fn wait_to_write(&mut self, key: SlotKey, cx: &Context<'_>) {
        set(&mut self.slot(key).writer, cx);
    }

    /// How the sending of the stream ended, if it has.
    pub(crate) fn completion(&mut self, key: SlotKey) -> Option<Completion> {
        self.slot(key).completion
    }

    /// The sending of a stream had ended before it had a slot.
    pub(crate) fn set_completion(&mut self, key: SlotKey, completion: Completion) {
        self.slot(key).completion = Some(completion);
    }

    /// Those who wait for the completion of the stream.
    pub(crate) fn completing(&mut self, key: SlotKey) -> &mut WaitList {
        &mut self.slot(key).completing
    }

    /// There is something to read. Returns whether a task waits for it.
    pub(crate) fn on_readable(&mut self, id: StreamId, wakers: &mut Vec<Waker>) -> bool {
        let reader = self.find(id).and_then(|slot| slot.reader.take());
        let waits = reader.is_some();
        wakers.extend(reader);
        waits
    }

    /// There is room to write.
    pub(crate) fn on_writable(&mut self, id: StreamId, wakers: &mut Vec<Waker>) {
        wakers.extend(self.find(id).and_then(|slot| slot.writer.take()));
    }

    /// The sending of the stream has ended.
    pub(crate) fn on_completed(&mut self, id: StreamId, completion: Completion, wakers: &mut Vec<Waker>) {
        if let Some(slot) = self.find(id) {
            slot.complete(completion, wakers);
        }
    }

    /// A handle has reset the stream.
    pub(crate) fn on_reset(&mut self, key: SlotKey, wakers: &mut Vec<Waker>) {
        self.slot(key).complete(Completion::Reset, wakers);
    }

    /// Wakes everybody: the connection is over.
    pub(crate) fn wake_all(&mut self, wakers: &mut Vec<Waker>) {
        for (_, slot) in &mut self.slots {
            wakers.extend(slot.reader.take());
            wakers.extend(slot.writer.take());
            slot.completing.wake_all(wakers);
        }
    }

    /// The slot of a key, which exists as long as the key is held.
    fn slot(&mut self, key: SlotKey) -> &mut Slot {
        let slot = &mut self.slots[key.slot];
        debug_assert!(slot.id == key.id, "the slot belongs to another stream");
        slot
    }

    fn find(&mut self, id: StreamId) -> Option<&mut Slot> {
        if self.slots.get(self.guess).is_none_or(|slot| slot.id != id) {
            self.guess = self.by_id.get(id.as_u64())?;
        }
        self.slots.get_mut(self.guess)
    }
}

impl Slot {
    fn complete(&mut self, completion: Completion, wakers: &mut Vec<Waker>) {
        wakers.extend(self.writer.take());
        // A stream that was stopped may be reported as received or reset later; what came first counts.
        self.completion.get_or_insert(completion);
        self.completing.wake_all(wakers);
    }
}

/// Keeps the waker of `cx`, without a copy if it is the one that is there.
fn set(waker: &mut Option<Waker>, cx: &Context<'_>) {
    match waker {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *waker = Some(cx.waker().clone()),
    }
}

#[cfg(test)]
mod tests;

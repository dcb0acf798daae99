//! What was sent before, from which follows what is likely to be sent again.
//!
//! Everything here is a guess: a collision of hashes or a slot that was taken over makes compression worse, never wrong.

/// Sets of slots for fields, and slots of a set.
const FIELD_SETS: usize = 64;
const FIELD_WAYS: usize = 4;

/// The same for names.
const NAME_SETS: usize = 32;
const NAME_WAYS: usize = 2;

/// What an appearance weighs: 256 are one.
pub(super) const ONE: u32 = 256;

/// After so many sections an appearance weighs half.
const HALF_LIFE: u32 = 16;

/// A field that was seen.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    hash: u32,
    /// The section in which it was seen last.
    last: u32,
    /// How often, fading with time.
    pub(super) weight: u32,
    /// The lower half of the absolute index of the entry that may have it.
    pub(super) entry: u32,
}

/// A name that was seen.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SeenName {
    hash: u32,
    last: u32,
    pub(super) weight: u32,
    /// How many fields had the name, and how many of them had been seen before; both are halved now and then.
    fields: u16,
    repeated: u16,
    /// The lower half of the absolute index of an entry that may have the name.
    pub(super) entry: u32,
}

/// Fields and names that were seen.
#[derive(Debug)]
pub(super) struct History {
    fields: Box<[Seen]>,
    names: Box<[SeenName]>,
    /// How many sections there were.
    now: u32,
}

/// What a weight is worth after some sections.
pub(super) fn faded(weight: u32, sections: u32) -> u32 {
    let halvings = sections / HALF_LIFE;
    if halvings >= u32::BITS {
        return 0;
    }
    let weight = weight >> halvings;
    weight - weight / 2 * (sections % HALF_LIFE) / HALF_LIFE
}

impl History {
    pub(super) fn new() -> Self {
        Self {
            fields: vec![Seen::default(); FIELD_SETS * FIELD_WAYS].into_boxed_slice(),
            names: vec![SeenName::default(); NAME_SETS * NAME_WAYS].into_boxed_slice(),
            now: 0,
        }
    }

    /// A section begins.
    pub(super) fn tick(&mut self) -> u32 {
        self.now = self.now.wrapping_add(1);
        self.now
    }

    /// Notes that a field was seen, and returns its slot. A field that is new has the weight of one appearance.
    pub(super) fn field(&mut self, hash: u64) -> &mut Seen {
        let (set, hash) = (hash as usize % FIELD_SETS, (hash >> 32) as u32 | 1);
        let now = self.now;
        let slots = &mut self.fields[set * FIELD_WAYS..][..FIELD_WAYS];
        let at = slots.iter().position(|slot| slot.hash == hash).unwrap_or_else(|| {
            let weakest =
                (0..FIELD_WAYS).min_by_key(|&at| faded(slots[at].weight, now.wrapping_sub(slots[at].last)));
            let at = weakest.unwrap_or(0);
            slots[at] = Seen { hash, ..Seen::default() };
            at
        });
        let slot = &mut slots[at];
        slot.weight = faded(slot.weight, now.wrapping_sub(slot.last)) + ONE;
        slot.last = now;
        slot
    }

    /// Notes that a name was seen, with a value that was seen before or not.
    pub(super) fn name(&mut self, hash: u64, name: &[u8], is_repeated: bool) -> &mut SeenName {
        let (set, hash) = (hash as usize % NAME_SETS, (hash >> 32) as u32 | 1);
        let now = self.now;
        let slots = &mut self.names[set * NAME_WAYS..][..NAME_WAYS];
        let at = slots.iter().position(|slot| slot.hash == hash).unwrap_or_else(|| {
            let oldest = (0..NAME_WAYS).max_by_key(|&at| now.wrapping_sub(slots[at].last));
            let at = oldest.unwrap_or(0);
            let (fields, repeated) = expectation(name);
            slots[at] = SeenName { hash, fields, repeated, ..SeenName::default() };
            at
        });
        let slot = &mut slots[at];
        slot.weight = faded(slot.weight, now.wrapping_sub(slot.last)) + ONE;
        slot.last = now;
        slot.fields += 1;
        slot.repeated += u16::from(is_repeated);
        if slot.fields >= 256 {
            slot.fields /= 2;
            slot.repeated /= 2;
        }
        slot
    }
}

impl History {
    /// Where the entry of a field may be.
    pub(super) fn peek(&self, hash: u64) -> Option<u32> {
        let (set, hash) = (hash as usize % FIELD_SETS, (hash >> 32) as u32 | 1);
        let slots = &self.fields[set * FIELD_WAYS..][..FIELD_WAYS];
        slots.iter().find(|slot| slot.hash == hash).map(|slot| slot.entry)
    }

    /// Where an entry with a name may be.
    pub(super) fn peek_name(&self, hash: u64) -> Option<u32> {
        let (set, hash) = (hash as usize % NAME_SETS, (hash >> 32) as u32 | 1);
        let slots = &self.names[set * NAME_WAYS..][..NAME_WAYS];
        slots.iter().find(|slot| slot.hash == hash).map(|slot| slot.entry)
    }

    /// Notes where the entry of a field is.
    pub(super) fn set_entry(&mut self, field_hash: u64, name_hash: u64, index: u64) {
        let (set, hash) = (field_hash as usize % FIELD_SETS, (field_hash >> 32) as u32 | 1);
        let slots = &mut self.fields[set * FIELD_WAYS..][..FIELD_WAYS];
        if let Some(slot) = slots.iter_mut().find(|slot| slot.hash == hash) {
            slot.entry = index as u32;
        }
        let (set, hash) = (name_hash as usize % NAME_SETS, (name_hash >> 32) as u32 | 1);
        let slots = &mut self.names[set * NAME_WAYS..][..NAME_WAYS];
        if let Some(slot) = slots.iter_mut().find(|slot| slot.hash == hash) {
            slot.entry = index as u32;
        }
    }
}

impl SeenName {
    /// How many appearances are to be expected of a field of this name for each one that there was: 256 are one.
    pub(super) fn prospect(&self) -> u32 {
        let (fields, repeated) = (u32::from(self.fields), u32::from(self.repeated));
        (ONE * (repeated + 1) / (fields - repeated.min(fields) + 1)).min(PROSPECT_MAX)
    }
}

/// The most appearances that are expected for one.
const PROSPECT_MAX: u32 = 4 * ONE;

/// What is assumed of a name that was not seen before: of so many fields so many were repeated.
fn expectation(name: &[u8]) -> (u16, u16) {
    const CHANGING: [&[u8]; 14] = [
        b":path",
        b"age",
        b"content-length",
        b"content-md5",
        b"content-range",
        b"etag",
        b"expires",
        b"if-modified-since",
        b"if-none-match",
        b"last-modified",
        b"location",
        b"range",
        b"set-cookie",
        b"x-request-id",
    ];
    if CHANGING.contains(&name) { (6, 0) } else { (2, 2) }
}

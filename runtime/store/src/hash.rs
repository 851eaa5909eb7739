//! Rows by the value of a unique column: an open-addressed table of hashes and places, which finds a row without going
//! down a tree. Values stay in the rows; whoever asks compares them.
//!
//! It is made of parts that grow and shrink each for itself, so that no statement moves more than a part's entries.

use crate::key;
use crate::value::Cell;
use abi::tables::ColumnKind;
use foldhash::quality::RandomState;
use std::hash::BuildHasher;

/// The upper bits of a hash say which part it is in.
const PART_BITS: u32 = 8;
/// Entries of a part that has any, at least; a power of two.
const LEAST: usize = 8;

/// Memory of an entry, with the room that a part larger than `LEAST` has at most beside it: two thirds of its entries.
pub(crate) const ENTRY_COST: usize = 24;

/// Hashes values with a key of the process, so that nobody outside can choose many with the same hash.
#[derive(Debug, Default)]
pub(crate) struct Hasher(RandomState);

impl Hasher {
    /// Values that are one key have one hash; nil, which is never the same as another one, has none.
    pub fn hash(&self, kind: ColumnKind, cell: Cell<'_>) -> Option<u64> {
        match cell {
            Cell::Nil => None,
            Cell::Word(word) => Some(self.0.hash_one(key::ordered(kind, word))),
            Cell::Bytes(bytes) => Some(self.0.hash_one(bytes)),
        }
    }
}

/// What rows are found by: half of the hash of their value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hash(u32);

#[derive(Debug, Default)]
pub(crate) struct Places {
    hasher: Hasher,
    /// None before the first entry: many tables never have one.
    parts: Box<[Part]>,
}

/// Entries lie at the place that the lower bits of their hash name or behind it, without a gap in between.
#[derive(Debug, Default)]
struct Part {
    /// The hash above, below it the place plus one; 0: no entry. As many as a power of two, or none.
    entries: Box<[u64]>,
    used: usize,
}

impl Places {
    /// The hash of a value, unless it is nil.
    pub fn hash(&self, kind: ColumnKind, cell: Cell<'_>) -> Option<Hash> {
        self.hasher.hash(kind, cell).map(|hash| Hash((hash >> 32) as u32))
    }

    fn part(hash: Hash) -> usize {
        (hash.0 >> (u32::BITS - PART_BITS)) as usize
    }

    /// The place of the entry with this hash that `is_it` recognizes.
    pub fn find(&self, hash: Hash, is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let part = self.parts.get(Places::part(hash))?;
        part.find(hash, is_it).map(|(_, place)| place)
    }

    pub fn insert(&mut self, hash: Hash, place: u32) {
        if self.parts.is_empty() {
            self.parts = std::iter::repeat_with(Part::default).take(1 << PART_BITS).collect();
        }
        if let Some(part) = self.parts.get_mut(Places::part(hash)) {
            if (part.used + 1) * 4 > part.entries.len() * 3 {
                part.resize((part.entries.len() * 2).max(LEAST));
            }
            part.put(entry(hash, place));
            part.used += 1;
        }
    }

    /// Removes the entry of a place.
    pub fn remove(&mut self, hash: Hash, place: u32) {
        if let Some(part) = self.parts.get_mut(Places::part(hash))
            && let Some((at, _)) = part.find(hash, |other| other == place)
        {
            part.close(at);
            part.used -= 1;
            // Two thirds of the smaller one are in use then: it neither grows nor shrinks again at once.
            if part.used * 3 < part.entries.len() && part.entries.len() > LEAST {
                part.resize(part.entries.len() / 2);
            }
        }
    }
}

fn entry(hash: Hash, place: u32) -> u64 {
    u64::from(hash.0) << 32 | u64::from(place + 1)
}

impl Part {
    /// Where an entry would lie if all had room.
    fn home(&self, entry: u64) -> usize {
        (entry >> 32) as usize & (self.entries.len() - 1)
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.entries.len() - 1)
    }

    /// The number and the place of the entry with this hash that `is_it` recognizes.
    fn find(&self, hash: Hash, mut is_it: impl FnMut(u32) -> bool) -> Option<(usize, u32)> {
        if self.used == 0 {
            return None;
        }
        let mut at = self.home(entry(hash, 0));
        // There is a gap: three quarters are used at most.
        while let Some(entry) = self.entries.get(at).copied().filter(|entry| *entry != 0) {
            if (entry >> 32) as u32 == hash.0 {
                let place = entry as u32 - 1;
                if is_it(place) {
                    return Some((at, place));
                }
            }
            at = self.next(at);
        }
        None
    }

    /// Puts an entry into the first gap behind its home.
    fn put(&mut self, entry: u64) {
        let mut at = self.home(entry);
        while self.entries.get(at).is_some_and(|taken| *taken != 0) {
            at = self.next(at);
        }
        if let Some(place) = self.entries.get_mut(at) {
            *place = entry;
        }
    }

    /// Removes an entry; those behind it move up where the gap would part them from their homes.
    fn close(&mut self, mut gap: usize) {
        let mask = self.entries.len() - 1;
        let mut at = self.next(gap);
        while let Some(entry) = self.entries.get(at).copied().filter(|entry| *entry != 0) {
            let way = at.wrapping_sub(self.home(entry)) & mask;
            if way >= at.wrapping_sub(gap) & mask {
                self.entries.swap(gap, at);
                gap = at;
            }
            at = self.next(at);
        }
        if let Some(place) = self.entries.get_mut(gap) {
            *place = 0;
        }
    }

    fn resize(&mut self, len: usize) {
        let before = std::mem::replace(&mut self.entries, vec![0; len].into());
        for entry in before.into_iter().filter(|entry| *entry != 0) {
            self.put(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// One of seven hashes around the seam, in one of two parts.
    fn crowded(place: u32) -> Hash {
        Hash((place % 7).wrapping_sub(3) & 0x00ff_ffff | (place % 2) << 24)
    }

    /// Entries that share few homes, at the seam of the table too, added and removed in every order: each is found
    /// exactly while it is there.
    #[test]
    fn entries_are_found_until_they_are_removed() {
        let mut places = Places::default();
        let mut there = HashSet::new();
        let mut state = 0x2545_f491_u64;
        for round in 0..200_000u32 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let place = (state >> 20) as u32 % if round / 20_000 % 2 == 0 { 600 } else { 40 };
            let hash = crowded(place);
            if there.remove(&place) {
                places.remove(hash, place);
            } else {
                places.insert(hash, place);
                let _ = there.insert(place);
            }
            if round % 64 == 0 {
                for place in 0..600 {
                    assert_eq!(
                        places.find(crowded(place), |other| other == place).is_some(),
                        there.contains(&place),
                        "{round}"
                    );
                }
            }
        }
        for part in &places.parts {
            assert_eq!(part.used, part.entries.iter().filter(|entry| **entry != 0).count());
            assert!(part.used * 4 <= part.entries.len() * 3);
        }
    }

    /// Of every part at all times: what its entries cost covers it, whether they become more or fewer.
    #[test]
    fn entries_cost_what_they_take() {
        let mut places = Places::default();
        let hash = |n: u32| Hash(n.wrapping_mul(0x9e37_79b9));
        let is_covered = |places: &Places, n: u32| {
            let part = places.parts.get(Places::part(hash(n)));
            part.is_some_and(|part| part.entries.len() * 8 <= (part.used * ENTRY_COST).max(LEAST * 8))
        };
        for n in 0..100_000 {
            places.insert(hash(n), n);
            assert!(is_covered(&places, n), "{n} are there");
        }
        for n in 0..100_000 {
            places.remove(hash(n), n);
            assert!(is_covered(&places, n), "{n} are gone");
        }
        assert!(places.parts.iter().all(|part| part.used == 0 && part.entries.len() == LEAST));
    }
}

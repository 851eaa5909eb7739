//! `map`: insertion-ordered. Entries lie in one array in the order of insertion; a second array, the index, leads from
//! hashes to entries by open addressing. Maps of up to eight entries have no index and are searched in order.
//!
//! Removing the first or last entry only narrows the range in use (`head..used`). Any other removal leaves a dead
//! entry, marked in a bitmap, until the array is full or finding entries by position has cost as much as closing the
//! gaps.

use crate::ctx::Ctx;
use crate::object::{self, Obj, Plans, Slot, plans};
use crate::text;
use abi::desc::{TypeDesc, TypeIdx};
use abi::layout::{ENTRY_KEY, ENTRY_VALUE, KIND_MAP, MAP_LEN};

#[repr(C)]
pub struct Map {
    pub header: Obj,
    /// Live entries.
    pub len: u64,
    pub key: TypeIdx,
    pub value: TypeIdx,
    /// `capacity` entries of `stride` words: the key, then the value; null while nothing was allocated.
    entries: *mut u64,
    /// Per slot 0, or the entry's hash in the upper half and its position plus one in the lower. Twice as many slots
    /// as entries fit, a power of two; null in small maps.
    index: *mut u64,
    /// One bit per entry, 1 for a removed one, then a word that counts the words searched; null when none is removed.
    /// The first and the last entry in use are never removed ones.
    dead: *mut u64,
    capacity: u32,
    /// Entries before this position are all removed.
    pub(crate) head: u32,
    /// Entries from this position on are unused.
    pub(crate) used: u32,
    stride: u16,
    keys: Keys,
}

const _: () = {
    assert!(std::mem::offset_of!(Map, len) == MAP_LEN as usize);
    assert!(ENTRY_KEY == 0 && ENTRY_VALUE == 8);
};

/// How keys are hashed and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Keys {
    /// One word compared as it is: Int, Bool, ordinal, row, actor.
    Word,
    Float,
    /// Text and Bytes.
    Text,
}

/// Largest map without an index.
const SMALL: u32 = 8;
/// Words of the bitmap searched, per entry, that are worth closing the gaps: an entry is hashed and entered for it.
const SEARCHES: u64 = 8;
/// Most entries: positions plus one must fit 32 bits, and the index twice as many slots.
const MAX_ENTRIES: u32 = 1 << 30;

/// An empty map; null and trap 4 when memory is short.
pub fn new(ctx: &mut Ctx, key: TypeIdx, value: TypeIdx) -> *mut Obj {
    let keys = match object::shapes(ctx).ty(key) {
        TypeDesc::Text | TypeDesc::Bytes | TypeDesc::Json => Keys::Text,
        TypeDesc::Float => Keys::Float,
        _ => Keys::Word,
    };
    let stride = 1 + plans(ctx).words(value) as u16;
    let obj = object::allocate(ctx, size_of::<Map>(), KIND_MAP, plans(ctx).traced_map(value));
    if !obj.is_null() {
        let null = std::ptr::null_mut();
        // SAFETY: fresh memory of the size of a `Map`; its header is already written, and stays.
        unsafe {
            let m = obj.cast::<Map>();
            (*m).len = 0;
            (*m).key = key;
            (*m).value = value;
            (*m).entries = null;
            (*m).index = null;
            (*m).dead = null;
            (*m).capacity = 0;
            (*m).head = 0;
            (*m).used = 0;
            (*m).stride = stride;
            (*m).keys = keys;
        }
    }
    obj
}

const fn index_slots(capacity: u32) -> usize {
    capacity as usize * 2
}

const fn dead_words(capacity: u32) -> usize {
    (capacity as usize).div_ceil(64)
}

/// The bitmap and the count of words searched in it.
const fn bitmap_words(capacity: u32) -> usize {
    dead_words(capacity) + 1
}

impl Map {
    /// Words of entry `i`.
    ///
    /// # Safety
    /// `i` is below `capacity`.
    #[inline]
    unsafe fn entry(&self, i: u32) -> *mut u64 {
        // SAFETY: the caller's promise.
        unsafe { self.entries.add(i as usize * self.stride as usize) }
    }

    #[inline]
    fn is_dead(&self, i: u32) -> bool {
        // SAFETY: the bitmap covers all positions below `capacity`; callers pass positions in use.
        !self.dead.is_null() && unsafe { *self.dead.add(i as usize / 64) >> (i % 64) & 1 == 1 }
    }

    /// # Safety
    /// `key` is a live key of this map's type.
    #[inline]
    unsafe fn hash(&self, key: u64) -> u32 {
        match self.keys {
            Keys::Word => hash_word(key),
            Keys::Float => hash_word(canonical(key)),
            // SAFETY: the caller's promise.
            Keys::Text => unsafe { text::hash(key as *mut Obj) },
        }
    }

    /// # Safety
    /// Both are live keys of this map's type.
    #[inline]
    unsafe fn same(&self, a: u64, b: u64) -> bool {
        match self.keys {
            Keys::Word => a == b,
            Keys::Float => canonical(a) == canonical(b),
            // SAFETY: the caller's promise.
            Keys::Text => unsafe { text::eq(a as *mut Obj, b as *mut Obj) },
        }
    }

    /// Position of the entry of `key`.
    ///
    /// # Safety
    /// `key` is a live key of this map's type, `hash` its hash (any number in maps without an index).
    #[inline]
    unsafe fn position(&self, key: u64, hash: u32) -> Option<u32> {
        // SAFETY: positions in `head..used` and those in the index are initialised entries with live keys.
        unsafe {
            if self.index.is_null() {
                return (self.head..self.used).find(|&i| !self.is_dead(i) && self.same(*self.entry(i), key));
            }
            let slot = self.slot_where(hash, |i| self.same(*self.entry(i), key));
            (*self.index.add(slot) as u32).checked_sub(1)
        }
    }

    /// The index slot that belongs to `hash` and an entry that `is` accepts, or the empty slot where one would go.
    ///
    /// # Safety
    /// There is an index.
    #[inline]
    unsafe fn slot_where(&self, hash: u32, mut is: impl FnMut(u32) -> bool) -> usize {
        let mask = index_slots(self.capacity) - 1;
        let mut slot = hash as usize & mask;
        loop {
            // SAFETY: `slot` is masked. At least half of the slots are empty, so the search ends.
            let found = unsafe { *self.index.add(slot) };
            if found == 0 || ((found >> 32) as u32 == hash && is(found as u32 - 1)) {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Enters position `i` under `hash`.
    ///
    /// # Safety
    /// There is an index with an empty slot, and position `i` is not in it.
    #[inline]
    unsafe fn enter(&mut self, hash: u32, i: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            let slot = self.slot_where(hash, |_| false);
            *self.index.add(slot) = u64::from(hash) << 32 | u64::from(i + 1);
        }
    }

    /// Takes position `i` out of the index, moving later entries of the chain up.
    ///
    /// # Safety
    /// There is an index that holds position `i` under `hash`.
    unsafe fn leave(&mut self, hash: u32, i: u32) {
        let mask = index_slots(self.capacity) - 1;
        // SAFETY: slots are masked; the chain ends at an empty slot.
        unsafe {
            let mut hole = self.slot_where(hash, |found| found == i);
            let mut next = hole;
            loop {
                next = (next + 1) & mask;
                let found = *self.index.add(next);
                if found == 0 {
                    break;
                }
                let home = (found >> 32) as usize & mask;
                // The entry may move to the hole if its home does not lie between the two.
                if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                    *self.index.add(hole) = found;
                    hole = next;
                }
            }
            *self.index.add(hole) = 0;
        }
    }

    /// Moves the live entries to the front and renews the index.
    ///
    /// # Safety
    /// The map is live and nothing points at its entries.
    unsafe fn compact(&mut self, ctx: &mut Ctx) {
        // SAFETY: entries move down only, each read before it is overwritten.
        unsafe {
            let stride = self.stride as usize;
            let mut to = 0;
            for from in self.head..self.used {
                if !self.is_dead(from) {
                    if to != from {
                        self.entry(to).copy_from(self.entry(from), stride);
                    }
                    to += 1;
                }
            }
            self.head = 0;
            self.used = to;
            self.drop_bitmap(ctx);
            if !self.index.is_null() {
                self.index.write_bytes(0, index_slots(self.capacity));
                for i in 0..to {
                    let hash = self.hash(*self.entry(i));
                    self.enter(hash, i);
                }
            }
        }
    }

    /// The position of the `i`-th live entry.
    ///
    /// # Safety
    /// As for `compact`; there are more than `i` live entries, and a bitmap.
    unsafe fn find_live(&mut self, ctx: &mut Ctx, i: u32) -> u32 {
        // SAFETY: the live entry lies in `head..used`, so the search ends within the bitmap; the count follows it.
        unsafe {
            let first = self.head as usize / 64;
            let mut word = first;
            let mut live = !*self.dead.add(word) & (u64::MAX << (self.head % 64));
            let mut left = i;
            while live.count_ones() <= left {
                left -= live.count_ones();
                word += 1;
                live = !*self.dead.add(word);
            }
            let searched = self.dead.add(dead_words(self.capacity));
            *searched += (word - first) as u64 + 1;
            if *searched > u64::from(self.used - self.head) * SEARCHES {
                self.compact(ctx);
                return i;
            }
            for _ in 0..left {
                live &= live - 1;
            }
            word as u32 * 64 + live.trailing_zeros()
        }
    }

    unsafe fn drop_bitmap(&mut self, ctx: &mut Ctx) {
        // SAFETY: the bitmap was allocated for this capacity.
        unsafe { object::raw_free(ctx, self.dead.cast(), bitmap_words(self.capacity) * 8) };
        self.dead = std::ptr::null_mut();
    }

    /// Makes room for one more entry at `used`. False with trap 4 when memory is short; the map is then as before.
    ///
    /// # Safety
    /// As for `compact`.
    #[cold]
    unsafe fn grow(&mut self, ctx: &mut Ctx) -> bool {
        // SAFETY: sizes are those of the last allocation; new storage replaces old only when all of it is there.
        unsafe {
            // A quarter of the places is free: closing the gaps costs no more than what opened them.
            if self.capacity >= 4 && self.len <= u64::from(self.capacity / 4 * 3) {
                self.compact(ctx);
                return true;
            }
            if self.capacity >= MAX_ENTRIES {
                object::out_of_memory(ctx);
                return false;
            }
            let capacity = (self.capacity * 2).max(4);
            let stride = self.stride as usize;
            let bytes = |capacity: u32| capacity as usize * stride * 8;
            let mut index = std::ptr::null_mut::<u64>();
            if capacity > SMALL {
                index = object::raw_alloc(ctx, index_slots(capacity) * 8).cast();
                if index.is_null() {
                    return false;
                }
                index.write_bytes(0, index_slots(capacity));
            }
            let entries = if self.entries.is_null() {
                object::raw_alloc(ctx, bytes(capacity))
            } else {
                object::raw_realloc(ctx, self.entries.cast(), bytes(self.capacity), bytes(capacity))
            };
            if entries.is_null() {
                object::raw_free(ctx, index.cast(), index_slots(capacity) * 8);
                return false;
            }
            self.entries = entries.cast();
            let (old_index, old_capacity) = (self.index, self.capacity);
            let gaps = !self.dead.is_null() || self.head > 0;
            if gaps && !self.dead.is_null() {
                // Dead entries and a full array at once: move the live ones down under the old capacity's bitmap.
                self.index = std::ptr::null_mut();
                self.compact(ctx);
            } else if gaps {
                let live = self.used - self.head;
                self.entries.copy_from(self.entry(self.head), live as usize * stride);
                self.head = 0;
                self.used = live;
            }
            self.capacity = capacity;
            self.index = index;
            if !index.is_null() {
                if gaps || old_index.is_null() {
                    for i in 0..self.used {
                        let hash = self.hash(*self.entry(i));
                        self.enter(hash, i);
                    }
                } else {
                    for slot in 0..index_slots(old_capacity) {
                        let found = *old_index.add(slot);
                        if found != 0 {
                            self.enter((found >> 32) as u32, found as u32 - 1);
                        }
                    }
                }
            }
            object::raw_free(ctx, old_index.cast(), index_slots(old_capacity) * 8);
            true
        }
    }
}

#[inline]
fn hash_word(key: u64) -> u32 {
    let wide = u128::from(key ^ word_seed()) * 0x9E37_79B9_7F4A_7C15;
    let h = (wide >> 64) as u64 ^ wide as u64;
    (h ^ (h >> 32)) as u32
}

/// Seed of word hashes: keys from outside cannot be chosen to collide.
#[inline]
fn word_seed() -> u64 {
    static SEED: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *SEED.get_or_init(|| {
        use std::hash::{BuildHasher, Hasher};
        std::hash::RandomState::new().build_hasher().finish()
    })
}

/// One representative for both zeros and one for all NaNs.
#[inline]
fn canonical(bits: u64) -> u64 {
    let f = f64::from_bits(bits);
    if f.is_nan() {
        f64::NAN.to_bits()
    } else if f == 0.0 {
        0
    } else {
        bits
    }
}

/// The value words of `key`, or null.
///
/// # Safety
/// `obj` is null or a live map, `key` a live key of its type.
#[inline]
#[must_use]
pub unsafe fn find(obj: *mut Obj, key: u64) -> *mut u64 {
    if obj.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the caller's promise.
    unsafe {
        let m = &*obj.cast::<Map>();
        let hash = if m.index.is_null() { 0 } else { m.hash(key) };
        m.position(key, hash).map_or(std::ptr::null_mut(), |i| m.entry(i).add(1))
    }
}

/// The value words of `key`; a new entry retains the key and has zero words. Null and trap 4 when memory is short.
///
/// # Safety
/// `obj` is a live map, `key` a live key of its type.
pub unsafe fn slot(ctx: &mut Ctx, obj: *mut Obj, key: u64) -> *mut u64 {
    // SAFETY: the caller's promise.
    unsafe {
        let m = &mut *obj.cast::<Map>();
        let (mut hash, mut free) = (0, usize::MAX);
        if m.index.is_null() {
            if let Some(i) = m.position(key, 0) {
                return m.entry(i).add(1);
            }
        } else {
            hash = m.hash(key);
            free = m.slot_where(hash, |i| m.same(*m.entry(i), key));
            if let Some(i) = (*m.index.add(free) as u32).checked_sub(1) {
                return m.entry(i).add(1);
            }
        }
        if m.used == m.capacity {
            if !m.grow(ctx) {
                return std::ptr::null_mut();
            }
            if !m.index.is_null() {
                hash = m.hash(key);
                free = m.slot_where(hash, |_| false);
            }
        }
        let i = m.used;
        let entry = m.entry(i);
        entry.write(key);
        entry.add(1).write_bytes(0, m.stride as usize - 1);
        m.used += 1;
        m.len += 1;
        if !m.index.is_null() {
            *m.index.add(free) = u64::from(hash) << 32 | u64::from(i + 1);
        }
        let slot = plans(ctx).slot(m.key);
        object::retain_slot(ctx, slot, key);
        entry.add(1)
    }
}

/// Removes the entry of `key`, releasing its key and value; false when there is none.
///
/// # Safety
/// `obj` is null or a live map, `key` a live key of its type (also while its entry is released).
pub unsafe fn remove(ctx: &mut Ctx, obj: *mut Obj, key: u64) -> bool {
    if obj.is_null() {
        return false;
    }
    // SAFETY: the caller's promise. The entry is out of the map before its words are released.
    unsafe {
        let m = &mut *obj.cast::<Map>();
        let hash = if m.index.is_null() { 0 } else { m.hash(key) };
        let Some(i) = m.position(key, hash) else { return false };
        let inner = i != m.head && i + 1 != m.used;
        if inner && m.dead.is_null() {
            let words = bitmap_words(m.capacity);
            // Without memory for the bitmap the gap is closed by moving the entries behind it.
            let bitmap = bitmap(ctx, words);
            if bitmap.is_null() {
                return remove_by_moving(ctx, m, i);
            }
            m.dead = bitmap;
        }
        if !m.index.is_null() {
            m.leave(hash, i);
        }
        let (key, value) = (*m.entry(i), *m.entry(i).add(1));
        m.len -= 1;
        if inner {
            *m.dead.add(i as usize / 64) |= 1 << (i % 64);
        } else {
            trim(m, i);
        }
        if m.len == 0 {
            m.head = 0;
            m.used = 0;
            m.drop_bitmap(ctx);
        }
        release_entry(ctx, (m.key, key), (m.value, value));
        true
    }
}

/// Narrows `head..used` after its first or last entry `i` has gone, past dead neighbours, whose marks are cleared so
/// that the places may be used again.
unsafe fn trim(m: &mut Map, i: u32) {
    if i == m.head {
        m.head += 1;
        while m.head < m.used && m.is_dead(m.head) {
            // SAFETY: the position is in use, so the bitmap covers it.
            unsafe { *m.dead.add(m.head as usize / 64) &= !(1 << (m.head % 64)) };
            m.head += 1;
        }
    } else {
        m.used -= 1;
        while m.used > m.head && m.is_dead(m.used - 1) {
            m.used -= 1;
            // SAFETY: as above.
            unsafe { *m.dead.add(m.used as usize / 64) &= !(1 << (m.used % 64)) };
        }
    }
}

/// A zeroed bitmap, or null without leaving a trap.
fn bitmap(ctx: &mut Ctx, words: usize) -> *mut u64 {
    let pending = ctx.trap;
    let place = object::raw_alloc(ctx, words * 8).cast::<u64>();
    if place.is_null() {
        if pending == 0 {
            ctx.trap = 0;
            ctx.trap_msg = std::ptr::null_mut();
        }
    } else {
        // SAFETY: fresh memory of `words` words.
        unsafe { place.write_bytes(0, words) };
    }
    place
}

unsafe fn remove_by_moving(ctx: &mut Ctx, m: &mut Map, i: u32) -> bool {
    // SAFETY: `i` is a live entry; the entries behind it move down by one, and the index is made anew.
    unsafe {
        let (key, value) = (*m.entry(i), *m.entry(i).add(1));
        let behind = (m.used - i - 1) as usize;
        m.entry(i).copy_from(m.entry(i + 1), behind * m.stride as usize);
        m.used -= 1;
        m.len -= 1;
        m.compact(ctx);
        release_entry(ctx, (m.key, key), (m.value, value));
        true
    }
}

unsafe fn release_entry(ctx: &mut Ctx, key: (TypeIdx, u64), value: (TypeIdx, u64)) {
    let plans = plans(ctx);
    // SAFETY: the words have just left the map, which owned them.
    unsafe {
        object::release_slot(ctx, plans.slot(key.0), key.1);
        object::release_slot(ctx, plans.slot(value.0), value.1);
    }
}

/// The words of the `i`-th entry, or null when there is none.
///
/// # Safety
/// `obj` is null or a live map.
pub unsafe fn entry(ctx: &mut Ctx, obj: *mut Obj, i: i64) -> *mut u64 {
    if obj.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the caller's promise; without dead entries positions count from `head`.
    unsafe {
        let m = &mut *obj.cast::<Map>();
        if !(0..m.len as i64).contains(&i) {
            return std::ptr::null_mut();
        }
        let position = match i as u32 {
            i if m.dead.is_null() => m.head + i,
            0 => m.head,
            i if u64::from(i) + 1 == m.len => m.used - 1,
            i => m.find_live(ctx, i),
        };
        m.entry(position)
    }
}

/// The words of the first live entry at or behind `position` (0 at the start), which then moves behind it.
///
/// # Safety
/// `obj` is null or a live map that has not changed since `position` was 0.
#[inline]
pub unsafe fn next_entry(obj: *mut Obj, position: &mut u32) -> Option<*mut u64> {
    if obj.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let m = unsafe { &*obj.cast::<Map>() };
    let mut i = (*position).max(m.head);
    while i < m.used && m.is_dead(i) {
        i += 1;
    }
    if i >= m.used {
        return None;
    }
    *position = i + 1;
    // SAFETY: a position in use.
    Some(unsafe { m.entry(i) })
}

/// The live entries in order, as pointers to their words.
///
/// # Safety
/// `obj` is null or a live map that is not changed while the iterator is in use.
pub unsafe fn entries(obj: *mut Obj) -> impl Iterator<Item = *mut u64> {
    let mut position = 0;
    // SAFETY: the caller's promise.
    std::iter::from_fn(move || unsafe { next_entry(obj, &mut position) })
}

/// Takes the last live entry out of a dead map; its words stay readable until the next call. Used by release.
///
/// # Safety
/// `m` is a dead map; its index is not used any more.
pub(crate) unsafe fn take_last(m: *mut Map) -> Option<*const u64> {
    // SAFETY: the caller's promise.
    unsafe {
        let m = &mut *m;
        while m.used > m.head {
            m.used -= 1;
            if !m.is_dead(m.used) {
                return Some(m.entry(m.used));
            }
        }
        None
    }
}

/// Frees the storage of a map, not what its entries hold.
///
/// # Safety
/// `m` is a dead map.
pub(crate) unsafe fn free_storage(ctx: &mut Ctx, m: *mut Map) {
    // SAFETY: the caller's promise; sizes are those of the last allocation.
    unsafe {
        let m = &mut *m;
        m.drop_bitmap(ctx);
        object::raw_free(ctx, m.index.cast(), index_slots(m.capacity) * 8);
        object::raw_free(ctx, m.entries.cast(), m.capacity as usize * m.stride as usize * 8);
    }
}

/// What a key or value of the map is, as release and copy see it.
pub(crate) fn slots(plans: &Plans, m: &Map) -> (Slot, Slot) {
    (plans.slot(m.key), plans.slot(m.value))
}

/// A copy of a map alone, for `copy`: the same entries at the same positions and the same index, scalars copied,
/// everything else null until the copy is filled; and whether there is anything else. Null and trap 4 when memory is
/// short.
///
/// # Safety
/// `obj` is a live map. Until its keys are filled in, the copy may only be filled or freed.
pub(crate) unsafe fn shell(ctx: &mut Ctx, obj: *mut Obj) -> (*mut Obj, bool) {
    // SAFETY: the caller's promise. The copy gets storage of the same sizes; its entries are initialised below.
    unsafe {
        let from = &mut *obj.cast::<Map>();
        if !from.dead.is_null() {
            from.compact(ctx);
        }
        let copy = new(ctx, from.key, from.value);
        if copy.is_null() || from.len == 0 {
            return (copy, false);
        }
        let to = &mut *copy.cast::<Map>();
        let stride = from.stride as usize;
        to.entries = object::raw_alloc(ctx, from.capacity as usize * stride * 8).cast();
        if !to.entries.is_null() && !from.index.is_null() {
            to.index = object::raw_alloc(ctx, index_slots(from.capacity) * 8).cast();
            if to.index.is_null() {
                object::raw_free(ctx, to.entries.cast(), from.capacity as usize * stride * 8);
                to.entries = std::ptr::null_mut();
            }
        }
        if to.entries.is_null() {
            object::release(ctx, copy);
            return (std::ptr::null_mut(), false);
        }
        if !to.index.is_null() {
            to.index.copy_from_nonoverlapping(from.index, index_slots(from.capacity));
        }
        (to.capacity, to.head, to.used, to.len) = (from.capacity, from.head, from.used, from.len);
        let (key, value) = slots(plans(ctx), from);
        for i in from.head..from.used {
            let (from, to) = (from.entry(i), to.entry(i));
            to.copy_from_nonoverlapping(from, stride);
            if key != Slot::Scalar {
                *to = 0;
            }
            if value != Slot::Scalar {
                *to.add(1) = 0;
            }
        }
        (copy, key != Slot::Scalar || value != Slot::Scalar)
    }
}

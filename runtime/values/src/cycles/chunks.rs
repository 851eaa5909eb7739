//! Lists of the cycle collector. They grow and shrink by chunks of one size, so that no step copies or frees much, and
//! their memory counts into the heap's account.

use crate::ctx::Heap;
use crate::object;

/// About the size of a chunk in bytes.
const TARGET: usize = 16 << 10;

/// A list in chunks. It must be emptied by `shrink`: dropping it frees nothing.
#[derive(Debug)]
pub(crate) struct Chunks<T> {
    chunks: Vec<*mut T>,
    len: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Chunks<T> {
        Chunks { chunks: Vec::new(), len: 0 }
    }
}

impl<T: Copy> Chunks<T> {
    /// Elements of a chunk, a power of two.
    const PER: usize = 1 << (TARGET / size_of::<T>()).ilog2();
    const BYTES: usize = Self::PER * size_of::<T>();

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn place(&self, i: usize) -> Option<*mut T> {
        if i >= self.len {
            return None;
        }
        // SAFETY: the place lies within its chunk.
        self.chunks.get(i / Self::PER).map(|chunk| unsafe { chunk.add(i % Self::PER) })
    }

    #[inline]
    pub fn get(&self, i: usize) -> Option<T> {
        // SAFETY: elements below `len` are initialised.
        self.place(i).map(|place| unsafe { *place })
    }

    #[inline]
    pub fn get_mut(&mut self, i: usize) -> Option<&mut T> {
        // SAFETY: as for `get`; the list is borrowed for as long as the element.
        self.place(i).map(|place| unsafe { &mut *place })
    }

    pub fn swap(&mut self, i: usize, k: usize) {
        if let (Some(a), Some(b)) = (self.place(i), self.place(k)) {
            // SAFETY: both are elements of this list.
            unsafe { std::ptr::swap(a, b) };
        }
    }

    /// Takes element `i` out; the last one goes into its place.
    pub fn swap_remove(&mut self, i: usize) {
        let last = self.len.checked_sub(1).and_then(|last| self.get(last));
        if let (Some(last), Some(place)) = (last, self.get_mut(i)) {
            *place = last;
            self.len -= 1;
        }
    }
}

/// Appends to a list of the heap, for which the account may go `debt` below zero; false when memory is short.
#[inline]
pub(crate) fn push<T: Copy>(heap: &mut Heap, list: fn(&mut Heap) -> &mut Chunks<T>, value: T, debt: i64) -> bool {
    let at = list(heap).len;
    if at == list(heap).chunks.len() * Chunks::<T>::PER && !grow(heap, list, debt) {
        return false;
    }
    list(heap).len = at + 1;
    // SAFETY: there is room for an element behind the last.
    list(heap).place(at).is_some_and(|place| unsafe {
        place.write(value);
        true
    })
}

#[cold]
fn grow<T: Copy>(heap: &mut Heap, list: fn(&mut Heap) -> &mut Chunks<T>, debt: i64) -> bool {
    if list(heap).chunks.try_reserve(1).is_err() {
        return false;
    }
    let chunk = object::alloc_table(heap, Chunks::<T>::BYTES, debt).cast::<T>();
    if !chunk.is_null() {
        list(heap).chunks.push(chunk);
    }
    !chunk.is_null()
}

/// Frees the last chunk of a list, if the first `len` elements do not need it; true when it did.
pub(crate) fn shrink<T: Copy>(heap: &mut Heap, list: fn(&mut Heap) -> &mut Chunks<T>, len: usize) -> bool {
    let all = list(heap);
    if all.chunks.len() <= len.div_ceil(Chunks::<T>::PER) {
        return false;
    }
    let chunk = all.chunks.pop();
    all.len = all.len.min(all.chunks.len() * Chunks::<T>::PER);
    if all.chunks.is_empty() {
        all.chunks = Vec::new();
    }
    if let Some(chunk) = chunk {
        // SAFETY: the chunk was allocated with this size, and no element of it is left.
        unsafe { object::give_back(heap, chunk.cast(), Chunks::<T>::BYTES) };
    }
    true
}

//! Small blocks that were freed and wait to be used again, so that making and dropping small objects seldom asks the
//! process's allocator. A shard keeps two magazines of each size and exchanges full ones with the others through a depot
//! (Bonwick and Adams, Magazines and Vmem, 2001): where one shard makes messages and another drops them, blocks travel
//! back by the magazine.

use std::alloc::Layout;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Largest block kept, in bytes; blocks are multiples of `STEP` and of that alignment.
const LARGEST: usize = 256;
const STEP: usize = 8;
const SIZES: usize = LARGEST / STEP + 1;
/// Most blocks in a magazine, and most bytes of them.
const BLOCKS: usize = 256;
const BYTES: usize = 16 << 10;
/// Most bytes in the full magazines of the depot: of each size that messages are made of, and of each larger size.
const SHARED: usize = 1 << 20;
const SHARED_LARGE: usize = 128 << 10;
const SMALL: usize = 64;

/// A free block: the next one, in its first word.
type Block = *mut u8;

#[derive(Debug)]
struct Magazine {
    first: Block,
    count: u32,
}

// SAFETY: nothing refers to the blocks but the magazine.
unsafe impl Send for Magazine {}

impl Magazine {
    const EMPTY: Magazine = Magazine { first: std::ptr::null_mut(), count: 0 };
}

/// Full magazines of one size, and how many.
struct Depot {
    full: Mutex<Vec<Magazine>>,
    count: AtomicUsize,
}

static DEPOTS: [Depot; SIZES] = [const { Depot { full: Mutex::new(Vec::new()), count: AtomicUsize::new(0) } }; SIZES];

impl Depot {
    fn take(&self) -> Option<Magazine> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = full.pop();
        self.count.store(full.len(), Ordering::Relaxed);
        taken
    }

    /// The magazine comes back when there are enough.
    fn put(&self, magazine: Magazine, most: usize) -> Option<Magazine> {
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        if full.len() >= most || full.try_reserve(1).is_err() {
            return Some(magazine);
        }
        full.push(magazine);
        self.count.store(full.len(), Ordering::Relaxed);
        None
    }
}

/// The magazine in use and one that is empty or full.
#[derive(Debug)]
struct Pair {
    loaded: Magazine,
    other: Magazine,
}

/// Free blocks by size.
#[derive(Debug)]
pub(crate) struct Pool([Pair; SIZES]);

impl Default for Pool {
    fn default() -> Pool {
        Pool(std::array::from_fn(|_| Pair { loaded: Magazine::EMPTY, other: Magazine::EMPTY }))
    }
}

/// Place of the magazines for blocks of `bytes`, if such are kept. With the address sanitizer none are: it could not tell
/// use after free.
#[inline]
fn size(bytes: usize) -> Option<usize> {
    let kept = !cfg!(feature = "sanitizer") && bytes.is_multiple_of(STEP) && bytes <= LARGEST && bytes > 0;
    kept.then_some(bytes / STEP)
}

/// Blocks in a full magazine.
#[inline]
const fn full(size: usize) -> u32 {
    let fit = BYTES / (size * STEP);
    (if fit < BLOCKS { fit } else { BLOCKS }) as u32
}

/// Most full magazines in the depot.
const fn most(size: usize) -> usize {
    let bytes = size * STEP;
    (if bytes <= SMALL { SHARED } else { SHARED_LARGE }) / (full(size) as usize * bytes)
}

impl Pool {
    /// Whether free blocks of `bytes` are kept.
    #[inline]
    pub(crate) fn keeps(bytes: usize) -> bool {
        size(bytes).is_some()
    }

    /// A block of `bytes`, not initialised, if one is there.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) -> Option<*mut u8> {
        let size = size(bytes)?;
        let pair = self.0.get_mut(size)?;
        if pair.loaded.first.is_null() && !pair.reload(size) {
            return None;
        }
        let block = pair.loaded.first;
        // SAFETY: blocks of a magazine are free, at least a word, and hold the next one there.
        let next = unsafe { block.cast::<Block>().read() };
        // Another processor may have used it last.
        crate::object::prefetch(next);
        pair.loaded.first = next;
        pair.loaded.count -= 1;
        Some(block)
    }

    /// Keeps a block; false when it must be freed instead.
    ///
    /// # Safety
    /// `block` was allocated with `bytes` aligned to `STEP`, and nothing uses it any more.
    #[inline]
    pub(crate) unsafe fn keep(&mut self, block: *mut u8, bytes: usize) -> bool {
        let Some(size) = size(bytes) else { return false };
        let Some(pair) = self.0.get_mut(size) else { return false };
        if pair.loaded.count == full(size) && !pair.unload(size) {
            return false;
        }
        // SAFETY: the caller's promise; a kept block is at least a word.
        unsafe { block.cast::<Block>().write(pair.loaded.first) };
        pair.loaded.first = block;
        pair.loaded.count += 1;
        true
    }
}

impl Pair {
    /// Makes a magazine with blocks the loaded one, which is empty. False: there is none.
    #[cold]
    fn reload(&mut self, size: usize) -> bool {
        if self.other.count == 0 {
            let Some(full) = DEPOTS.get(size).and_then(Depot::take) else { return false };
            self.other = full;
        }
        std::mem::swap(&mut self.loaded, &mut self.other);
        true
    }

    /// Makes an empty magazine the loaded one, which is full. False: there are enough of this size.
    #[cold]
    fn unload(&mut self, size: usize) -> bool {
        if self.other.count > 0 {
            let full = std::mem::replace(&mut self.other, Magazine::EMPTY);
            if let Some(back) = DEPOTS.get(size).and_then(|depot| depot.put(full, most(size))) {
                self.other = back;
                return false;
            }
        }
        std::mem::swap(&mut self.loaded, &mut self.other);
        true
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for (size, pair) in self.0.iter_mut().enumerate() {
            for magazine in [&mut pair.loaded, &mut pair.other] {
                while !magazine.first.is_null() {
                    let block = magazine.first;
                    // SAFETY: as in `take`; kept with this size and alignment.
                    unsafe {
                        magazine.first = block.cast::<Block>().read();
                        std::alloc::dealloc(block, Layout::from_size_align_unchecked(size * STEP, STEP));
                    }
                }
            }
        }
    }
}

#[cfg(all(test, not(feature = "sanitizer")))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::{LARGEST, Pool, STEP, full, most};
    use std::alloc::{Layout, alloc, dealloc};
    use std::collections::BTreeSet;

    #[test]
    fn magazines_and_depots_hold_no_more_than_they_may() {
        for size in 1..=LARGEST / STEP {
            let bytes = full(size) as usize * size * STEP;
            assert!(full(size) >= 64 && bytes <= 16 << 10);
            assert!(most(size) * bytes <= if size * STEP <= 64 { 1 << 20 } else { 128 << 10 });
        }
        assert_eq!((full(8), most(8)), (256, 64));
    }

    /// Blocks come back each once, from this pool or by way of the depot.
    #[test]
    fn a_block_is_handed_out_once() {
        let layout = Layout::from_size_align(LARGEST, STEP).unwrap();
        let (mut here, mut there) = (Pool::default(), Pool::default());
        let magazine = full(LARGEST / STEP);
        let mut kept = 0;
        for _ in 0..5 * magazine {
            // SAFETY: the layout is not empty; a block that is not kept is freed.
            unsafe {
                let block = alloc(layout);
                if here.keep(block, LARGEST) {
                    kept += 1;
                } else {
                    dealloc(block, layout);
                }
            }
        }
        assert!(kept >= 2 * magazine as usize);
        let mut seen = BTreeSet::new();
        for pool in [&mut there, &mut here] {
            while let Some(block) = pool.take(LARGEST) {
                assert!(seen.insert(block as usize));
                // SAFETY: taken out of the pool, with this layout.
                unsafe { dealloc(block, layout) };
            }
        }
        assert!(seen.len() >= 2 * magazine as usize, "{}", seen.len());
        // SAFETY: no block is kept of these sizes.
        assert!(unsafe { !here.keep(std::ptr::null_mut(), LARGEST + STEP) && !here.keep(std::ptr::null_mut(), 9) });
    }
}

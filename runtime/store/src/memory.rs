//! The account of the memory that rows and indexes take, and its bound.

use std::sync::atomic::{AtomicI64, Ordering};

#[derive(Debug)]
pub(crate) struct Memory {
    bound: i64,
    left: AtomicI64,
}

impl Memory {
    pub fn new(bound: u64) -> Memory {
        let bound = i64::try_from(bound).unwrap_or(i64::MAX);
        Memory { bound, left: AtomicI64::new(bound) }
    }

    /// Takes `bytes`, which may be negative; false if the bound would be exceeded.
    pub fn charge(&self, bytes: i64) -> bool {
        if bytes <= 0 {
            let _ = self.left.fetch_sub(bytes, Ordering::Relaxed);
            return true;
        }
        let take = |left: i64| (left >= bytes).then(|| left - bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    pub fn used(&self) -> u64 {
        (self.bound - self.left.load(Ordering::Relaxed)).unsigned_abs()
    }
}

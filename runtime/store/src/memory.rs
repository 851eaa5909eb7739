//! The account of the memory that rows and indexes take, and its bound.

use std::sync::atomic::{AtomicI64, Ordering};

#[derive(Debug)]
pub(crate) struct Memory {
    left: AtomicI64,
}

impl Memory {
    pub fn new(bound: u64) -> Memory {
        Memory { left: AtomicI64::new(i64::try_from(bound).unwrap_or(i64::MAX)) }
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

    #[cfg(test)]
    pub fn left(&self) -> i64 {
        self.left.load(Ordering::Relaxed)
    }
}

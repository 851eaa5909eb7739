//! The atomics of the lock-free parts (`inbox`, `counts`): the standard library's, or those of `loom` where a test
//! explores the orders in which threads may run (`scripts/explore.sh`).

#[cfg(feature = "explore")]
pub use loom::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, Ordering, fence};
#[cfg(not(feature = "explore"))]
pub use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, Ordering, fence};

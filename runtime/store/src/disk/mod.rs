//! The files of a store, behind an interface so that tests can fail, delay, tear or stop any operation.
//!
//! A `Disk` is one directory. Names are plain file names in it. What `File::sync` and `Disk::sync_dir` have confirmed
//! survives the loss of power; what was written since may be there or not, in any part and order. A sync covers what was
//! written before it began.
//!
//! Any operation may fail. A failed write may have written a part; after a failed sync, what it was to cover may be lost
//! even if a later one succeeds.

mod real;
pub mod simulated;

pub(crate) use real::LOCK;
pub use real::{Directory, OpenError};

use std::fmt;
use std::io;
use std::sync::Arc;

/// One directory of files.
pub trait Disk: Send + Sync {
    /// Names of the files in it, in no order.
    fn list(&self) -> Result<Vec<String>, Fault>;
    /// An existing file.
    fn open(&self, name: &str) -> Result<Arc<dyn File>, Fault>;
    /// A new, empty file; one that is there is emptied.
    fn create(&self, name: &str) -> Result<Arc<dyn File>, Fault>;
    /// Gives a file another name, in place of a file that has it.
    fn rename(&self, from: &str, to: &str) -> Result<(), Fault>;
    fn remove(&self, name: &str) -> Result<(), Fault>;
    /// Makes durable which files there are and what they are called.
    fn sync_dir(&self) -> Result<(), Fault>;
}

/// An open file. Any thread may use it.
pub trait File: Send + Sync {
    /// Bytes in it.
    fn size(&self) -> Result<u64, Fault>;
    /// Reads as many bytes as there are from `at` on, at most `into.len()`; how many.
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize, Fault>;
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), Fault>;
    /// Cuts the file, or grows it with zeros.
    fn set_len(&self, len: u64) -> Result<(), Fault>;
    /// Makes durable what was written, and the file's length.
    fn sync(&self) -> Result<(), Fault>;
}

/// A failed operation on a file.
#[derive(Debug)]
pub struct Fault {
    /// What was tried, as in `sync`.
    pub operation: &'static str,
    pub path: String,
    pub error: io::Error,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}: {}", self.operation, self.path, self.error)
    }
}

impl std::error::Error for Fault {}

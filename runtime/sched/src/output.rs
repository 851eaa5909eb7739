//! Standard output of a shard: lines are gathered while a fiber runs and handed to the system when its slice ends, whole
//! lines of one shard at a time.

use crate::sys;
use std::sync::{Mutex, PoisonError};

/// Bytes beyond which lines are handed over at once.
const FULL: usize = 64 * 1024;

/// Held while lines are handed over: those of several shards do not mix.
static STDOUT: Mutex<()> = Mutex::new(());

#[derive(Default)]
pub struct Output {
    buf: Vec<u8>,
    /// Error of a write that no `print` has reported yet.
    failed: Option<i32>,
}

impl Output {
    /// Takes a line and its line feed. Gives the error number of an earlier or of this write.
    pub fn line(&mut self, bytes: &[u8]) -> Result<(), i32> {
        if let Some(e) = self.failed.take() {
            return Err(e);
        }
        self.buf.extend_from_slice(bytes);
        self.buf.push(b'\n');
        if self.buf.len() >= FULL {
            self.flush();
            if let Some(e) = self.failed.take() {
                return Err(e);
            }
        }
        Ok(())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buf.is_empty()
    }

    /// Hands everything to the system; an error is kept for the next `print`.
    pub fn flush(&mut self) {
        if self.buf.is_empty() {
            return;
        }
        let turn = STDOUT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(e) = sys::write_all(1, &self.buf) {
            self.failed = Some(e);
        }
        drop(turn);
        self.buf.clear();
        self.buf.shrink_to(FULL);
    }
}

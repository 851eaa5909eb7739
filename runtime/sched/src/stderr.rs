//! Standard error: reports, notices and what `print_err` says, of all shards in the order in which it comes, each text in
//! one piece. A pipe or terminal whose reader does not read gets only what it takes without waiting. The rest is tried
//! again later, and for a moment at the end; in the meantime only `print_err` has to wait.
//!
//! What the runtime reports cannot wait for long: beyond `MOST` bytes of backlog a shard waits for the reader once, for
//! `PATIENCE_MS`. If that takes nothing, it is not merely slow: reports are left out, and counted, until it does.

use crate::{config, output, sys};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Bytes of backlog beyond which `print_err` waits, and reports do.
const FULL: usize = 64 * 1024;
const MOST: usize = 1024 * 1024;
/// How long a report waits for a reader that may be slow, in milliseconds.
const PATIENCE_MS: i32 = 100;

/// What the system has not taken yet.
struct Backlog {
    text: Vec<u8>,
    /// The reader has taken nothing though a report waited for it.
    unread: bool,
    /// Reports that were left out, and not yet told of.
    left_out: u64,
}

static BACKLOG: Mutex<Backlog> = Mutex::new(Backlog { text: Vec::new(), unread: false, left_out: 0 });
/// Bytes of it.
static LENGTH: AtomicUsize = AtomicUsize::new(0);

fn backlog() -> MutexGuard<'static, Backlog> {
    BACKLOG.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Backlog {
    fn put(&mut self, text: &[u8]) -> Result<(), i32> {
        self.tell_left_out();
        self.text.extend_from_slice(text);
        self.hand_over()
    }

    fn tell_left_out(&mut self) {
        let n = std::mem::take(&mut self.left_out);
        if n > 0 {
            let line = format!("{}: {n} reports left out: standard error was not read\n", config::program_name());
            self.text.extend_from_slice(line.as_bytes());
        }
    }

    /// Hands over what the system takes without waiting; nothing is kept after an error.
    fn hand_over(&mut self) -> Result<(), i32> {
        let taken = output::write_some(2, &self.text);
        let n = taken.unwrap_or(self.text.len());
        if n > 0 {
            drop(self.text.drain(..n));
            self.text.shrink_to(FULL);
            self.unread = false;
        }
        LENGTH.store(self.text.len(), Ordering::Relaxed);
        taken.map(|_| ())
    }
}

/// Puts a text behind the others, whether there is room or not. Gives the error number of the write.
pub fn write(text: &[u8]) -> Result<(), i32> {
    backlog().put(text)
}

/// Puts a report behind the others, or leaves it out; failures are ignored.
pub fn report(text: &[u8]) {
    let mut backlog = backlog();
    if backlog.text.len() >= MOST && !backlog.unread {
        let _ = sys::poll(2, libc::POLLOUT, PATIENCE_MS);
        let _ = backlog.hand_over();
        backlog.unread = backlog.text.len() >= MOST;
    }
    if backlog.text.len() >= MOST {
        backlog.left_out += 1;
    } else {
        let _ = backlog.put(text);
    }
}

/// A report of one line.
pub fn line(line: &str) {
    report(format!("{line}\n").as_bytes());
}

/// The system has not taken everything.
#[must_use]
pub fn is_stuck() -> bool {
    LENGTH.load(Ordering::Relaxed) > 0
}

/// Whoever prints must wait for the reader.
#[must_use]
pub fn is_full() -> bool {
    LENGTH.load(Ordering::Relaxed) >= FULL
}

/// Hands over what the system takes by now, unless another shard is at it.
pub fn flush() {
    if is_stuck()
        && let Ok(mut backlog) = BACKLOG.try_lock()
    {
        let _ = backlog.hand_over();
    }
}

/// The run is over: hands over everything, waiting for the reader until then.
pub fn finish(until: Instant) {
    let mut backlog = backlog();
    backlog.tell_left_out();
    let _ = backlog.hand_over();
    while !backlog.text.is_empty() && sys::poll_until(2, libc::POLLOUT, until) {
        let _ = backlog.hand_over();
    }
}

//! Standard output of a shard: lines are gathered while a fiber runs and handed to the system when its slice ends, whole
//! lines of one shard at a time. A pipe or terminal whose reader does not read gets only what it takes without waiting;
//! the rest is tried again later, and in the meantime only fibers that print have to wait.

use crate::sys;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// Bytes beyond which lines are handed over at once, and whoever prints waits for room.
const FULL: usize = 64 * 1024;
/// Bytes that a pipe that is ready takes without waiting.
const PIECE: usize = libc::PIPE_BUF;

/// The end of a line that a full pipe has cut: it comes before the lines of any shard. Held while lines are handed over.
static CUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

#[derive(Default)]
pub struct Output {
    buf: Vec<u8>,
    /// The system did not take everything: there is something to try again, of this shard or of a cut line.
    stuck: bool,
    /// Error of a write that no `print` has reported yet.
    failed: Option<i32>,
}

/// Whether writes to standard output may wait for a reader.
fn may_wait() -> bool {
    static STREAM: OnceLock<bool> = OnceLock::new();
    *STREAM.get_or_init(|| {
        // SAFETY: zeroed memory is a valid destination.
        unsafe {
            let mut about: libc::stat = std::mem::zeroed();
            libc::fstat(1, &raw mut about) == 0 && about.st_mode & libc::S_IFMT != libc::S_IFREG
        }
    })
}

/// Writes what the system takes without waiting; how many bytes.
fn write_some(bytes: &[u8]) -> Result<usize, i32> {
    let mut done = 0;
    while let Some(left) = bytes.get(done..).filter(|left| !left.is_empty()) {
        let most = if may_wait() { PIECE.min(left.len()) } else { left.len() };
        if may_wait() && !sys::poll(1, libc::POLLOUT, 0) {
            break;
        }
        match sys::write(1, left.get(..most).unwrap_or(left)) {
            Ok(n) => done += n,
            Err(libc::EAGAIN) => break,
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// Hands over the cut line, then `lines`, as far as the system takes them. What is left of a line that has begun becomes
/// the cut one.
fn hand_over(cut: &mut MutexGuard<'_, Vec<u8>>, lines: &mut Vec<u8>) -> Result<(), i32> {
    let n = write_some(cut)?;
    drop(cut.drain(..n));
    if !cut.is_empty() {
        return Ok(());
    }
    let n = write_some(lines)?;
    let begun = n > 0 && lines.get(n - 1).is_some_and(|b| *b != b'\n');
    let rest = lines.get(n..).unwrap_or(&[]);
    let end = if begun { rest.iter().position(|b| *b == b'\n').map_or(rest.len(), |at| at + 1) } else { 0 };
    cut.extend_from_slice(rest.get(..end).unwrap_or(&[]));
    drop(lines.drain(..n + end));
    Ok(())
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

    /// There is nothing to hand over.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buf.is_empty() && !self.stuck
    }

    /// The system did not take everything.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.stuck
    }

    /// Whoever prints must wait for the reader.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.stuck && self.buf.len() >= FULL
    }

    /// Hands over what the system takes without waiting; an error is kept for the next `print`.
    pub fn flush(&mut self) {
        if self.is_empty() {
            return;
        }
        let mut cut = CUT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(e) = hand_over(&mut cut, &mut self.buf) {
            self.failed = Some(e);
            cut.clear();
            self.buf.clear();
        }
        self.stuck = !cut.is_empty() || !self.buf.is_empty();
        self.buf.shrink_to(FULL);
    }

    /// The run is over: hands over everything, waiting for the reader until then.
    pub fn finish(&mut self, until: Instant) {
        self.flush();
        while self.stuck {
            let left = until.saturating_duration_since(Instant::now()).as_millis();
            if left == 0 {
                return;
            }
            let _ = sys::poll(1, libc::POLLOUT, i32::try_from(left).unwrap_or(i32::MAX));
            self.flush();
        }
    }
}

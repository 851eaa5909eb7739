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

/// Writes what a stream that is not this process's own takes without waiting, a piece at most; `EAGAIN` where it takes
/// nothing. One at a time, so that nothing else of this process fills it between the look and the write.
pub(crate) fn write_ready(fd: i32, bytes: &[u8]) -> Result<usize, i32> {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if sys::poll(fd, libc::POLLOUT, 0) {
        sys::write(fd, bytes.get(..PIECE).unwrap_or(bytes))
    } else {
        Err(libc::EAGAIN)
    }
}

/// Whether writes to standard output or error may wait for a reader.
fn may_wait(fd: i32) -> bool {
    static STREAMS: [OnceLock<bool>; 2] = [OnceLock::new(), OnceLock::new()];
    *STREAMS[usize::from(fd == 2)].get_or_init(|| {
        // SAFETY: zeroed memory is a valid destination.
        unsafe {
            let mut about: libc::stat = std::mem::zeroed();
            libc::fstat(fd, &raw mut about) == 0 && about.st_mode & libc::S_IFMT != libc::S_IFREG
        }
    })
}

/// Writes what standard output or error takes without waiting; how many bytes.
pub(crate) fn write_some(fd: i32, bytes: &[u8]) -> Result<usize, i32> {
    let may_wait = may_wait(fd);
    let mut done = 0;
    while let Some(left) = bytes.get(done..).filter(|left| !left.is_empty()) {
        match if may_wait { write_ready(fd, left) } else { sys::write(fd, left) } {
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
    let n = write_some(1, cut)?;
    drop(cut.drain(..n));
    if !cut.is_empty() {
        return Ok(());
    }
    let n = write_some(1, lines)?;
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
        while self.stuck && sys::poll_until(1, libc::POLLOUT, until) {
            self.flush();
        }
    }
}

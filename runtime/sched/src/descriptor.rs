//! An open descriptor: who waits on it and who holds it. Fibers of any shard use it; what they note stands behind one
//! lock, under which nothing waits. It is closed when the last use of it ends, so that a system call under way on one
//! shard never meets a number that another shard has closed and the system has given out again.
//!
//! Events of epoll are edges. Reads and writes therefore count the events: whoever found nothing to do waits only if no
//! event has come since before he looked (`State::reads`, `State::writes`).

use crate::fiber::{Outcome, Token};
use crate::reactor::Reactor;
use crate::shard::Shard;
use crate::sys;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A descriptor that more actors than these have used is not closed by the death of one.
const HOLDERS: usize = 64;

pub struct Descriptor {
    pub fd: i32,
    pub handle: i64,
    /// Inherited: shared with other processes, so it stays blocking and is only used when ready.
    pub inherited: bool,
    /// The calls of sockets, which take a shorter way through the kernel, have not failed on it yet.
    socket: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
pub struct State {
    pub closed: bool,
    /// The epoll set that it is in, of the shard that waited for it first.
    epoll: Option<i32>,
    /// A read since the last event has found nothing more: only another event brings something.
    pub drained: bool,
    /// End of stream or an error was reported.
    pub hup: bool,
    /// Events so far that said it can be read, or written.
    pub reads: u64,
    pub writes: u64,
    pub readers: VecDeque<Token>,
    /// The fiber whose write waits for room.
    pub writer: Option<Token>,
    /// A write is in progress; others queue.
    pub writing: bool,
    pub write_queue: VecDeque<Token>,
    /// Actors that hold the handle (0 is `main`): the one that opened it, until another uses it; then those that did.
    holder: u64,
    used: bool,
    more_holders: BTreeSet<u64>,
    shared: bool,
}

impl Descriptor {
    #[must_use]
    pub fn new(fd: i32, handle: i64, inherited: bool, holder: u64) -> Descriptor {
        let state = State { holder, ..State::default() };
        Descriptor { fd, handle, inherited, socket: AtomicBool::new(!inherited), state: Mutex::new(state) }
    }

    /// Reads into `room` what is there; how much. Gives the error number on failure.
    pub fn read(&self, room: &mut [u8]) -> Result<usize, i32> {
        let (at, n) = (room.as_mut_ptr().cast(), room.len());
        // SAFETY: the slice is writable for its length.
        let read = || unsafe { libc::read(self.fd, at, n) };
        if n == 0 {
            // The call of sockets would wait until there is something not to read.
            return sys::uninterrupted(read);
        }
        // SAFETY: as above.
        self.by_socket(|| unsafe { libc::recv(self.fd, at, n, 0) }, read)
    }

    /// Writes what it takes at once of `bytes`; how many. Gives the error number on failure.
    pub fn write(&self, bytes: &[u8]) -> Result<usize, i32> {
        let (at, n) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: the slice is readable for its length.
        let write = || unsafe { libc::write(self.fd, at, n) };
        // SAFETY: as above.
        self.by_socket(|| unsafe { libc::send(self.fd, at, n, libc::MSG_NOSIGNAL) }, write)
    }

    fn by_socket(&self, socket: impl FnMut() -> isize, other: impl FnMut() -> isize) -> Result<usize, i32> {
        if self.socket.load(Ordering::Relaxed) {
            match sys::uninterrupted(socket) {
                Err(libc::ENOTSOCK) => self.socket.store(false, Ordering::Relaxed),
                done => return done,
            }
        }
        sys::uninterrupted(other)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts it into the reactor's set where it is in none yet. A closed one and a kind that epoll refuses give an error.
    pub fn watch(&self, state: &mut State, reactor: &Reactor) -> Result<(), i32> {
        if state.closed {
            return Err(libc::EBADF);
        }
        if state.epoll.is_none() {
            reactor.register(self.fd, self.handle.unsigned_abs())?;
            state.epoll = Some(reactor.epoll());
            // If there is something to read, an event will say so.
            state.drained = true;
        }
        Ok(())
    }

    /// Ends its use: gives the waits to end.
    pub fn close(&self) -> Vec<Token> {
        let mut state = self.state();
        state.closed = true;
        let mut waits: Vec<Token> = state.readers.drain(..).collect();
        waits.extend(state.writer.take());
        waits.extend(state.write_queue.drain(..));
        if self.inherited
            && let Some(epoll) = state.epoll.take()
        {
            Reactor::remove(epoll, self.fd);
        }
        if self.fd <= 2 {
            // The number must not pass to a connection: the runtime's own output goes there.
            sys::blank(self.fd);
        }
        waits
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        let closed = self.state.get_mut().unwrap_or_else(PoisonError::into_inner).closed;
        // What was inherited and not closed stays for the process.
        if self.fd > 2 && (closed || !self.inherited) {
            sys::close(self.fd);
        }
    }
}

impl State {
    #[must_use]
    pub fn registered(&self) -> bool {
        self.epoll.is_some()
    }

    /// `who` performs an operation on the handle.
    pub fn hold(&mut self, who: u64) {
        if !self.used {
            self.holder = who;
            self.used = true;
        } else if self.holder != who && !self.shared {
            let _ = self.more_holders.insert(who);
            if self.more_holders.len() > HOLDERS {
                self.more_holders.clear();
                self.shared = true;
            }
        }
    }

    /// `who` dies and holds it no longer. True: it was the only holder.
    pub fn drop_holder(&mut self, who: u64) -> bool {
        if self.shared {
            return false;
        }
        if self.holder != who {
            let _ = self.more_holders.remove(&who);
            return false;
        }
        match self.more_holders.pop_first() {
            Some(next) => self.holder = next,
            None => return true,
        }
        false
    }

    /// Wakes the first fiber that waits to read.
    pub fn wake_reader(&mut self, s: &mut Shard) {
        while let Some(t) = self.readers.pop_front() {
            if s.wake(t, Outcome::Ready) {
                return;
            }
        }
    }

    /// A wait to read is over without having been chosen by an event. If one has chosen it all the same, the next
    /// reader gets it.
    pub fn forget_reader(&mut self, s: &mut Shard, token: Token) {
        match self.readers.iter().position(|t| *t == token) {
            Some(at) => drop(self.readers.remove(at)),
            None => self.wake_reader(s),
        }
    }

    /// The turn to write passes to the next writer that still waits.
    pub fn pass_turn(&mut self, s: &mut Shard) {
        while let Some(t) = self.write_queue.pop_front() {
            if s.wake(t, Outcome::Ready) {
                return;
            }
        }
        self.writing = false;
    }

    /// A queued writer gives up. If it was given the turn meanwhile, the turn passes on.
    pub fn forget_writer(&mut self, s: &mut Shard, token: Token) {
        match self.write_queue.iter().position(|t| *t == token) {
            Some(at) => drop(self.write_queue.remove(at)),
            None if !self.closed => self.pass_turn(s),
            None => {}
        }
    }
}

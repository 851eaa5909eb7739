//! The shard's epoll set. Descriptors are registered once, edge-triggered, under their handle number; events that name
//! a handle no longer open are dropped by the shard.

use crate::sys;

/// Key of the shard's own eventfd.
pub const WAKE: u64 = u64::MAX;
const BATCH: usize = 256;

pub struct Reactor {
    epoll: i32,
    events: Vec<libc::epoll_event>,
    filled: usize,
    precise: bool,
}

/// What epoll reported for one handle.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    pub handle: u64,
    pub read: bool,
    pub write: bool,
    /// End of stream or an error: reads must be tried from now on whatever earlier reads said.
    pub hup: bool,
}

impl Reactor {
    /// A reactor that watches `wake_fd`. Gives the error number on failure.
    pub fn new(wake_fd: i32) -> Result<Reactor, i32> {
        // SAFETY: plain system call.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if epoll < 0 {
            return Err(sys::errno());
        }
        let r =
            Reactor { epoll, events: vec![libc::epoll_event { events: 0, u64: 0 }; BATCH], filled: 0, precise: true };
        r.add(wake_fd, WAKE, libc::EPOLLIN)?;
        Ok(r)
    }

    /// Watches `fd` for both directions, edge-triggered.
    pub fn register(&self, fd: i32, handle: u64) -> Result<(), i32> {
        self.add(fd, handle, libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET)
    }

    fn add(&self, fd: i32, key: u64, events: i32) -> Result<(), i32> {
        let mut e = libc::epoll_event { events: events.cast_unsigned(), u64: key };
        // SAFETY: a valid event; the descriptor is open.
        if unsafe { libc::epoll_ctl(self.epoll, libc::EPOLL_CTL_ADD, fd, &raw mut e) } < 0 {
            return Err(sys::errno());
        }
        Ok(())
    }

    /// The number of the set.
    #[must_use]
    pub fn epoll(&self) -> i32 {
        self.epoll
    }

    /// Takes `fd` out of a set; needed only for descriptors that stay open.
    pub fn remove(epoll: i32, fd: i32) {
        // SAFETY: the kernel ignores the event pointer for this operation.
        let _ = unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
    }

    /// Collects events, waiting at most `ns` nanoseconds (`sys::NEVER`: without limit).
    pub fn wait(&mut self, ns: u64) {
        let most = i32::try_from(BATCH).unwrap_or(1);
        let p = self.events.as_mut_ptr();
        if self.precise && ns != 0 && ns != sys::NEVER {
            let ts = libc::timespec {
                tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX / 4),
                tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
            };
            // SAFETY: the buffer holds `BATCH` events.
            let n = unsafe { libc::epoll_pwait2(self.epoll, p, most, &raw const ts, std::ptr::null()) };
            if n < 0 && sys::errno() == libc::ENOSYS {
                self.precise = false;
            } else {
                self.filled = usize::try_from(n).unwrap_or(0);
                return;
            }
        }
        let ms = if ns == sys::NEVER { -1 } else { i32::try_from(ns.div_ceil(1_000_000)).unwrap_or(i32::MAX) };
        // SAFETY: as above.
        let n = unsafe { libc::epoll_wait(self.epoll, p, most, ms) };
        self.filled = usize::try_from(n).unwrap_or(0);
    }

    #[must_use]
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// The eventfd was among the events of the last `wait`.
    #[must_use]
    pub fn woken(&self) -> bool {
        self.events.iter().take(self.filled).any(|e| { e.u64 } == WAKE)
    }

    /// The `i`-th event of the last `wait`.
    #[must_use]
    pub fn event(&self, i: usize) -> Ready {
        let Some(e) = self.events.get(i) else { return Ready { handle: 0, read: false, write: false, hup: false } };
        let bits = e.events.cast_signed();
        let hup = bits & (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) != 0;
        Ready {
            handle: e.u64,
            read: hup || bits & libc::EPOLLIN != 0,
            write: bits & (libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR) != 0,
            hup,
        }
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        sys::close(self.epoll);
    }
}

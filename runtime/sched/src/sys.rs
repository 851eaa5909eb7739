//! Thin wrappers over the C library: clocks, error texts, descriptors. Clocks go through `clock_gettime`, so that a
//! test can step them from outside.

use crate::proc::pty;
use std::ffi::CStr;
use std::time::Instant;

/// The calling thread's last error number.
#[must_use]
pub fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// The system's own text for an error number, `Broken pipe`.
#[must_use]
pub fn text(errno: i32) -> String {
    let mut buf = [0 as libc::c_char; 256];
    // SAFETY: the buffer is writable for its stated length, and the text is terminated within it.
    unsafe {
        if libc::strerror_r(errno, buf.as_mut_ptr(), buf.len()) != 0 {
            return format!("error {errno}");
        }
        CStr::from_ptr(buf.as_ptr()).to_string_lossy().into_owned()
    }
}

fn clock(id: libc::clockid_t) -> (i64, i64) {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid destination.
    let _ = unsafe { libc::clock_gettime(id, &raw mut ts) };
    (ts.tv_sec, ts.tv_nsec)
}

/// Monotonic time in nanoseconds.
#[must_use]
pub fn monotonic() -> u64 {
    let (s, n) = clock(libc::CLOCK_MONOTONIC);
    s.unsigned_abs().wrapping_mul(1_000_000_000).wrapping_add(n.unsigned_abs())
}

/// Wall clock, milliseconds since 1970.
#[must_use]
pub fn wall_ms() -> i64 {
    let (s, n) = clock(libc::CLOCK_REALTIME);
    s.wrapping_mul(1000).wrapping_add(n / 1_000_000)
}

/// Microseconds since the machine booted, time asleep included.
#[must_use]
pub fn boot_us() -> i64 {
    let (s, n) = clock(libc::CLOCK_BOOTTIME);
    s.wrapping_mul(1_000_000).wrapping_add(n / 1000)
}

/// The monotonic instant `ms` milliseconds after `now`; `NEVER` when `ms <= 0`.
#[must_use]
pub fn deadline(ms: i64) -> u64 {
    if ms <= 0 { NEVER } else { after(monotonic(), ms) }
}

/// `from` plus `ms` milliseconds, saturating just below `NEVER`.
#[must_use]
pub fn after(from: u64, ms: i64) -> u64 {
    from.saturating_add(ms.max(0).unsigned_abs().saturating_mul(1_000_000)).min(NEVER - 1)
}

/// A deadline that is never reached.
pub const NEVER: u64 = u64::MAX;

/// Makes a system call that gives a number, or -1, until no signal interrupts it. Gives the error number on failure.
pub fn uninterrupted(mut call: impl FnMut() -> isize) -> Result<usize, i32> {
    loop {
        if let Ok(n) = usize::try_from(call()) {
            return Ok(n);
        }
        match errno() {
            libc::EINTR => {}
            e => return Err(e),
        }
    }
}

/// Wakes whoever waits for an eventfd. Async-signal-safe but for `errno`.
pub fn raise_event(fd: i32) {
    let one = 1u64;
    // SAFETY: eight readable bytes; `write` is async-signal-safe.
    let _ = unsafe { libc::write(fd, (&raw const one).cast(), 8) };
}

/// Writes to `fd` what it takes at once of `bytes`; how many. Gives the error number on failure.
pub fn write(fd: i32, bytes: &[u8]) -> Result<usize, i32> {
    // SAFETY: the slice is readable for its length.
    uninterrupted(|| unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) })
}

/// Whether `fd` is ready for `events` (or failed) within `ms` milliseconds.
#[must_use]
pub fn poll(fd: i32, events: i16, ms: i32) -> bool {
    let mut p = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: one valid entry.
    unsafe { libc::poll(&raw mut p, 1, ms) > 0 }
}

/// Whether `fd` becomes ready for `events` (or fails) by `until`.
#[must_use]
pub fn poll_until(fd: i32, events: i16, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now()).as_millis();
        if poll(fd, events, i32::try_from(left).unwrap_or(i32::MAX)) {
            return true;
        }
        if left == 0 {
            return false;
        }
    }
}

/// Closes a descriptor; errors are ignored, the descriptor is gone either way.
pub fn close(fd: i32) {
    // SAFETY: the caller owns the descriptor.
    let _ = unsafe { libc::close(fd) };
}

/// Puts the null device in the place of a standard descriptor.
pub fn blank(fd: i32) {
    // SAFETY: a terminated path; the descriptors are the process's own.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if null >= 0 {
            let _ = libc::dup2(null, fd);
            let _ = libc::close(null);
        }
    }
}

/// Gives standard output and error, where they are terminals, open files of this process's own that do not block: a
/// terminal says that it is ready when it has room for less than a line, and a write that blocks waits for the rest. One
/// that cannot be opened anew (another user's) stays as it is.
pub fn unblock_terminals() {
    for (fd, path) in [(1, c"/proc/self/fd/1"), (2, c"/proc/self/fd/2")] {
        // SAFETY: a terminated path; the descriptors are the process's own.
        unsafe {
            // To open the master's side would make another terminal.
            if libc::isatty(fd) == 0 || pty::is_master(fd) {
                continue;
            }
            let access = libc::fcntl(fd, libc::F_GETFL) & libc::O_ACCMODE;
            let own = libc::open(path.as_ptr(), access | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC);
            if own >= 0 {
                let _ = libc::dup2(own, fd);
                let _ = libc::close(own);
            }
        }
    }
}

/// Has the system kill this process when the thread that started it ends, unless that has happened already.
pub fn end_with_parent() {
    // SAFETY: a plain system call on integers.
    let _ = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Signals that the program ignores for itself: the writes that they are about fail, and that is reported.
pub const IGNORED: [i32; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Raises the soft limit on open files to the hard limit and ignores some signals. A `SIGCHLD` that who started the
/// program ignored would make the system reap children, and lose their exit codes.
pub fn prepare_process() {
    // SAFETY: plain system calls with valid arguments.
    unsafe {
        for signal in IGNORED {
            let _ = libc::signal(signal, libc::SIG_IGN);
        }
        let _ = libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let mut lim = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut lim) == 0 && lim.rlim_cur < lim.rlim_max {
            lim.rlim_cur = lim.rlim_max;
            let _ = libc::setrlimit(libc::RLIMIT_NOFILE, &raw const lim);
        }
    }
}

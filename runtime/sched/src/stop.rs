//! The stop latch: set by SIGTERM or SIGINT once a program asked for it, never reset. The signal handler only touches
//! atomics and the shards' eventfds.

use crate::sys;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static INSTALLED: AtomicBool = AtomicBool::new(false);
static LATCH: AtomicBool = AtomicBool::new(false);
static INTERRUPTS: AtomicI32 = AtomicI32::new(0);
/// Most shards.
pub const SHARDS: usize = 256;
/// Eventfds of the shards, 0 for none.
static WAKE: [AtomicI32; SHARDS] = [const { AtomicI32::new(0) }; SHARDS];

extern "C" fn on_signal(signal: libc::c_int) {
    if signal == libc::SIGINT && INTERRUPTS.fetch_add(1, Ordering::Relaxed) > 0 {
        // SAFETY: async-signal-safe; ends the process.
        unsafe { libc::_exit(130) };
    }
    LATCH.store(true, Ordering::Release);
    wake_all();
}

/// Wakes every shard. Async-signal-safe.
pub fn wake_all() {
    // SAFETY: the interrupted code's errno is kept.
    let errno = unsafe { *libc::__errno_location() };
    for fd in WAKE.iter().map(|w| w.load(Ordering::Relaxed)).filter(|fd| *fd > 0) {
        sys::raise_event(fd);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Wakes one shard.
pub fn wake(shard: usize) {
    if let Some(fd) = WAKE.get(shard).map(|w| w.load(Ordering::Acquire)).filter(|fd| *fd > 0) {
        sys::raise_event(fd);
    }
}

/// Shards that signals wake.
#[must_use]
pub fn watched() -> usize {
    WAKE.iter().filter(|w| w.load(Ordering::Acquire) > 0).count()
}

/// The latch, without installing anything.
#[must_use]
pub fn latched() -> bool {
    LATCH.load(Ordering::Acquire)
}

/// `env.stopping()`: the first call installs the handlers.
#[must_use]
pub fn stopping() -> bool {
    if !INSTALLED.swap(true, Ordering::AcqRel) {
        for signal in [libc::SIGTERM, libc::SIGINT] {
            // SAFETY: a zeroed action with a valid handler; the handler is async-signal-safe.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = on_signal as *const () as usize;
                action.sa_flags = libc::SA_RESTART;
                let _ = libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            }
        }
    }
    latched()
}

/// Signals wake this shard from now on.
pub fn watch(shard: u16, wake_fd: i32) {
    if let Some(w) = WAKE.get(usize::from(shard)) {
        w.store(wake_fd, Ordering::Release);
    }
}

/// The shard's eventfd is about to be closed.
pub fn forget(shard: u16, wake_fd: i32) {
    if let Some(w) = WAKE.get(usize::from(shard)) {
        let _ = w.compare_exchange(wake_fd, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

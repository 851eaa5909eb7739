//! The stop latch: set by SIGTERM or SIGINT once a program asked for it, never reset. The signal handler only touches
//! atomics and an eventfd.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static INSTALLED: AtomicBool = AtomicBool::new(false);
static LATCH: AtomicBool = AtomicBool::new(false);
static INTERRUPTS: AtomicI32 = AtomicI32::new(0);
/// Eventfd of shard 0, -1 while there is none.
static WAKE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn on_signal(signal: libc::c_int) {
    if signal == libc::SIGINT && INTERRUPTS.fetch_add(1, Ordering::Relaxed) > 0 {
        // SAFETY: async-signal-safe; ends the process.
        unsafe { libc::_exit(130) };
    }
    LATCH.store(true, Ordering::Release);
    let fd = WAKE.load(Ordering::Relaxed);
    if fd >= 0 {
        let one = 1u64;
        // SAFETY: `write` is async-signal-safe and the bytes are readable; the interrupted code's errno is kept.
        unsafe {
            let errno = *libc::__errno_location();
            let _ = libc::write(fd, (&raw const one).cast(), 8);
            *libc::__errno_location() = errno;
        }
    }
}

/// The latch, without installing anything.
#[must_use]
pub fn latched() -> bool {
    LATCH.load(Ordering::Acquire)
}

/// `env.stopping()`: the first call installs the handlers.
#[must_use]
pub fn stopping(wake_fd: i32) -> bool {
    if !INSTALLED.swap(true, Ordering::AcqRel) {
        WAKE.store(wake_fd, Ordering::Release);
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

/// The eventfd is about to be closed.
pub fn forget(wake_fd: i32) {
    let _ = WAKE.compare_exchange(wake_fd, -1, Ordering::AcqRel, Ordering::Relaxed);
}

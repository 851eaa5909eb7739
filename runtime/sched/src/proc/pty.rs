//! Terminals for children: a pair of descriptors, the size, and what their end looks like.

use crate::sys;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A terminal's size; values that are not positive become 80 and 24.
#[must_use]
pub fn size(cols: i64, rows: i64) -> (u16, u16) {
    let of = |n: i64, default: u16| if n <= 0 { default } else { u16::try_from(n).unwrap_or(u16::MAX) };
    (of(cols, 80), of(rows, 24))
}

/// A new terminal: the program's side, which does not block, and the child's.
pub fn open(cols: u16, rows: u16) -> Result<(OwnedFd, OwnedFd), i32> {
    let unlocked: libc::c_int = 0;
    // SAFETY: system calls on descriptors that are open and owned here; the ioctl's argument is a readable int.
    unsafe {
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        let master = libc::open(c"/dev/ptmx".as_ptr(), flags | libc::O_NONBLOCK);
        if master < 0 {
            return Err(sys::errno());
        }
        let master = OwnedFd::from_raw_fd(master);
        if libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked) < 0 {
            return Err(sys::errno());
        }
        let slave = libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, flags);
        if slave < 0 {
            return Err(sys::errno());
        }
        let slave = OwnedFd::from_raw_fd(slave);
        resize(master.as_raw_fd(), cols, rows)?;
        Ok((master, slave))
    }
}

/// Sets the size; the processes in the terminal's foreground get `SIGWINCH`.
pub fn resize(fd: i32, cols: u16, rows: u16) -> Result<(), i32> {
    let size = libc::winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: an open descriptor; the argument is a readable `winsize`.
    if unsafe { libc::ioctl(fd, libc::TIOCSWINSZ, &raw const size) } < 0 { Err(sys::errno()) } else { Ok(()) }
}

/// Whether this is the program's side of a terminal: reading one whose child's side is closed fails with `EIO`, which
/// is its end of stream.
#[must_use]
pub fn is_master(fd: i32) -> bool {
    let mut number: libc::c_int = 0;
    // SAFETY: an open descriptor; the argument is a writable int. Other kinds of descriptors refuse.
    unsafe { libc::ioctl(fd, libc::TIOCGPTN, &raw mut number) == 0 }
}

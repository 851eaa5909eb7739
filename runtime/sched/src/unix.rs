//! Unix sockets: by path, and descriptors that pass through them. Paths are looked up on helper threads. What a
//! connection carries otherwise is the matter of `net`.

use crate::fiber::{self, Outcome, Wait};
use crate::net::{self, Next, adopt, open, raise, shard};
use crate::park::park;
use crate::sys;
use crate::wait::blocking;
use abi::trap;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use values::ctx::Ctx;

/// Pause before a listener whose queue is full is tried again, in milliseconds.
const FULL_RETRY_MS: i64 = 10;
/// Bytes of a control message with one descriptor. The room for a second, which alignment would leave, is not told to
/// the kernel: it closes what does not fit.
const CONTROL: usize = size_of::<libc::cmsghdr>() + size_of::<libc::c_int>();

/// A path as the address of a socket.
#[derive(Clone, Copy)]
pub struct Path(libc::sockaddr_un);

impl Path {
    /// `None`: longer than 107 bytes.
    #[must_use]
    pub fn new(path: &[u8]) -> Option<Path> {
        // SAFETY: all zeroes is a valid address.
        let mut raw: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        raw.sun_family = libc::AF_UNIX as libc::sa_family_t;
        // The last byte stays zero.
        let room = raw.sun_path.len() - 1;
        for (to, from) in raw.sun_path.get_mut(..room)?.get_mut(..path.len())?.iter_mut().zip(path) {
            *to = from.cast_signed();
        }
        Some(Path(raw))
    }

    /// An empty path would name a socket outside the file system.
    fn usable(&self) -> Result<(), i32> {
        if self.0.sun_path[0] == 0 { Err(libc::ENOENT) } else { Ok(()) }
    }

    fn bind(&self, fd: &OwnedFd) -> Result<(), i32> {
        // SAFETY: a valid address of the stated length.
        result(unsafe { libc::bind(fd.as_raw_fd(), (&raw const self.0).cast(), LEN) })
    }

    fn connect(&self) -> Result<OwnedFd, i32> {
        let fd = socket()?;
        // SAFETY: as above.
        result(unsafe { libc::connect(fd.as_raw_fd(), (&raw const self.0).cast(), LEN) })?;
        Ok(fd)
    }

    /// Removes a socket that nobody listens at any more.
    fn remove_stale(&self) -> bool {
        let path = self.0.sun_path.as_ptr();
        // SAFETY: the path is terminated, `about` is writable.
        unsafe {
            let mut about: libc::stat = std::mem::zeroed();
            libc::lstat(path, &raw mut about) == 0
                && about.st_mode & libc::S_IFMT == libc::S_IFSOCK
                && matches!(self.connect(), Err(libc::ECONNREFUSED))
                && libc::unlink(path) == 0
        }
    }
}

const LEN: libc::socklen_t = size_of::<libc::sockaddr_un>() as libc::socklen_t;

fn result(rc: i32) -> Result<(), i32> {
    if rc < 0 { Err(sys::errno()) } else { Ok(()) }
}

fn socket() -> Result<OwnedFd, i32> {
    // SAFETY: a fresh descriptor.
    net::socket(libc::AF_UNIX).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A listening socket at the path; 0 with a pending trap 9. A stale socket there is replaced, nothing else is.
pub fn listen(ctx: &mut Ctx, path: Path) -> i64 {
    let job = move || -> Result<OwnedFd, i32> {
        path.usable()?;
        let fd = socket()?;
        match path.bind(&fd) {
            Err(libc::EADDRINUSE) if path.remove_stale() => path.bind(&fd)?,
            other => other?,
        }
        // SAFETY: plain system call.
        result(unsafe { libc::listen(fd.as_raw_fd(), 4096) })?;
        Ok(fd)
    };
    match blocking(ctx, Wait::Pool, job) {
        Some(Ok(fd)) => adopt(ctx, fd.into_raw_fd()).max(0),
        Some(Err(e)) => {
            raise(ctx, e);
            0
        }
        None => 0,
    }
}

/// A connection to the socket at the path; 0 with a pending trap 9 or an unwind. A listener whose queue is full is tried
/// again until the limit of `net.connect`.
pub fn connect(ctx: &mut Ctx, path: Path) -> i64 {
    let deadline = sys::deadline(shard(ctx).shared().config.connect_ms);
    loop {
        match blocking(ctx, Wait::Resolve, move || path.usable().and_then(|()| path.connect())) {
            Some(Ok(fd)) => return adopt(ctx, fd.into_raw_fd()).max(0),
            Some(Err(libc::EAGAIN)) if sys::monotonic() < deadline => {}
            Some(Err(e)) => {
                raise(ctx, if e == libc::EAGAIN { libc::ETIMEDOUT } else { e });
                return 0;
            }
            None => return 0,
        }
        let f = fiber::of(ctx);
        let _ = f.shard().begin_wait(f);
        if park(ctx, Wait::Input, deadline.min(sys::deadline(FULL_RETRY_MS))) == Outcome::Unwind {
            return 0;
        }
    }
}

fn is_unix(fd: i32) -> bool {
    let mut domain: libc::c_int = 0;
    let mut len: libc::socklen_t = 4;
    // SAFETY: the option value is writable for its size.
    let rc = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_DOMAIN, (&raw mut domain).cast(), &raw mut len) };
    rc == 0 && domain == libc::AF_UNIX
}

/// Room for a control message, aligned as one.
#[repr(C, align(8))]
struct Control([u8; 24]);

const _: () = assert!(CONTROL <= size_of::<Control>());

/// Calls `with` with a message of one byte and room for one descriptor.
fn message<R>(control: &mut Control, with: impl FnOnce(&mut libc::msghdr) -> R) -> R {
    let mut byte = 0u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: all zeroes is a valid header.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = (&raw mut control.0).cast();
    header.msg_controllen = CONTROL;
    with(&mut header)
}

/// Sends one descriptor and one filler byte. True; or false with a pending trap 9 or an unwind.
pub fn send_fd(ctx: &mut Ctx, conn: i64, handle: i64) -> bool {
    let Some(d) = open(ctx, conn) else { return false };
    if !is_unix(d.fd) {
        ctx.raise(trap::IO, "send_fd needs a unix socket");
        return false;
    }
    drop(d);
    if open(ctx, handle).is_none() {
        return false;
    }
    net::in_turn(ctx, conn, sys::NEVER, false, |ctx| send_owned(ctx, conn, handle)) == Some(true)
}

fn send_owned(ctx: &mut Ctx, conn: i64, handle: i64) -> Option<bool> {
    loop {
        // Either may have been closed meanwhile.
        let passed = open(ctx, handle)?;
        let to = open(ctx, conn)?;
        let events = to.state().writes;
        let sent = message(&mut Control([0; 24]), |header| {
            // SAFETY: the control buffer is aligned, and large enough for the message written into it.
            unsafe {
                let control = libc::CMSG_FIRSTHDR(header);
                (*control).cmsg_level = libc::SOL_SOCKET;
                (*control).cmsg_type = libc::SCM_RIGHTS;
                (*control).cmsg_len = CONTROL;
                libc::CMSG_DATA(control).cast::<libc::c_int>().write_unaligned(passed.fd);
                sys::uninterrupted(|| libc::sendmsg(to.fd, header, libc::MSG_NOSIGNAL))
            }
        });
        if net::unless_waiting(ctx, sent)?.is_some() {
            return Some(true);
        }
        drop(passed);
        match net::wait_writable(ctx, to, events, |ctx| park(ctx, Wait::Input, sys::NEVER))? {
            Outcome::Ready | Outcome::Deadline | Outcome::Stop => {}
            Outcome::Closed => {
                raise(ctx, libc::EBADF);
                return None;
            }
            Outcome::Unwind => return None,
        }
    }
}

/// The handle of a descriptor that comes with the next byte. `None` without a trap: a plain byte, or the end of the
/// stream.
pub fn recv_fd(ctx: &mut Ctx, conn: i64) -> Option<i64> {
    loop {
        let d = open(ctx, conn)?;
        if !is_unix(d.fd) {
            ctx.raise(trap::IO, "recv_fd needs a unix socket");
            return None;
        }
        let events = d.state().reads;
        if let Some((fd, cut)) = net::unless_waiting(ctx, receive(d.fd))? {
            d.state().wake_reader(shard(ctx));
            return match fd {
                Some(fd) => {
                    let h = adopt(ctx, fd.into_raw_fd());
                    (h >= 0).then_some(h)
                }
                // There was one, but this process may not have more.
                None if cut => {
                    raise(ctx, libc::EMFILE);
                    None
                }
                None => None,
            };
        }
        if let Next::Trap = net::wait_readable(ctx, d, events, Wait::Input, sys::NEVER) {
            return None;
        }
    }
}

/// Takes one byte from the socket, if any is left: the descriptor that came with it, and whether one was lost.
fn receive(from: i32) -> Result<(Option<OwnedFd>, bool), i32> {
    message(&mut Control([0; 24]), |header| {
        // SAFETY: header, byte and control buffer are writable and of the stated sizes; the kernel fills in whole
        // control messages, and the descriptor in one is fresh.
        unsafe {
            let _ = sys::uninterrupted(|| libc::recvmsg(from, header, libc::MSG_CMSG_CLOEXEC))?;
            let control = libc::CMSG_FIRSTHDR(header);
            let has_fd = !control.is_null()
                && (*control).cmsg_level == libc::SOL_SOCKET
                && (*control).cmsg_type == libc::SCM_RIGHTS
                && (*control).cmsg_len >= CONTROL;
            let fd = has_fd.then(|| {
                let fd = libc::CMSG_DATA(control).cast::<libc::c_int>().read_unaligned();
                // Everything in the table of handles must not block; the sender's descriptor is the same open file.
                let flags = libc::fcntl(fd, libc::F_GETFL);
                if flags & libc::O_NONBLOCK == 0 {
                    let _ = libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
                }
                OwnedFd::from_raw_fd(fd)
            });
            Ok((fd, header.msg_flags & libc::MSG_CTRUNC != 0))
        }
    })
}

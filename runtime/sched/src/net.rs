//! Sockets. Every operation is tried first and parks only when it would block; a descriptor is registered with the
//! reactor once, when it first has to wait. Values and deadlines are as `stdlib/net.wo` says.

use crate::addr::{self, Raw};
use crate::descriptor::Descriptor;
use crate::fiber::{self, Outcome, Wait};
use crate::park::park;
use crate::proc::pty;
use crate::shard::Shard;
use crate::wait::blocking;
use crate::{output, shim, stderr, sys};
use abi::trap;
use std::net::SocketAddr;
use std::sync::Arc;
use values::ctx::Ctx;
use values::object::Obj;

/// Pause before `accept` is tried again at the descriptor limit, in milliseconds.
const LIMIT_RETRY_MS: i64 = 100;
/// Least time between two notices about it, in nanoseconds.
const LIMIT_NOTICE: u64 = 10_000_000_000;

pub(crate) fn raise(ctx: &mut Ctx, errno: i32) {
    ctx.raise(trap::IO, &sys::text(errno));
}

pub(crate) fn shard<'a>(ctx: &Ctx) -> &'a mut Shard {
    fiber::of(ctx).shard()
}

/// Who runs: the actor's number, 0 for `main`.
fn me(ctx: &Ctx) -> u64 {
    let actor = fiber::of(ctx).actor;
    // SAFETY: a fiber at work has a live actor.
    if actor.is_null() { 0 } else { unsafe { (*actor).id } }
}

/// The descriptor of an open handle, now held by the running actor; else trap 9 is pending. To be dropped before the
/// fiber parks: a descriptor that the program closes stays open while it is in use.
pub(crate) fn open(ctx: &mut Ctx, handle: i64) -> Option<Arc<Descriptor>> {
    let d = look_up(ctx, handle)?;
    d.state().hold(me(ctx));
    Some(d)
}

/// The same without becoming a holder.
fn look_up(ctx: &mut Ctx, handle: i64) -> Option<Arc<Descriptor>> {
    let found = shard(ctx).shared().handles.get(handle);
    if found.is_none() {
        raise(ctx, libc::EBADF);
    }
    found
}

/// What a system call gave. An inner `None`: it would have to wait. `None`: trap 9 is pending.
pub(crate) fn unless_waiting<T>(ctx: &mut Ctx, result: Result<T, i32>) -> Option<Option<T>> {
    match result {
        Ok(value) => Some(Some(value)),
        Err(libc::EAGAIN) => Some(None),
        Err(e) => {
            raise(ctx, e);
            None
        }
    }
}

/// Adopts a fresh descriptor; -1 with a pending trap when the table is full.
pub(crate) fn adopt(ctx: &mut Ctx, fd: i32) -> i64 {
    let who = me(ctx);
    if let Some(h) = shard(ctx).shared().handles.insert(fd, who) {
        return h;
    }
    raise(ctx, libc::EMFILE);
    -1
}

/// How one wait to read ended.
pub(crate) enum Next {
    Retry,
    /// The deadline passed or the stop resolved the wait: one more try, then nil.
    Last,
    /// A trap is pending.
    Trap,
}

/// Parks until the descriptor may be read, unless an event has come since it had seen `events` of them.
pub(crate) fn wait_readable(ctx: &mut Ctx, d: Arc<Descriptor>, events: u64, wait: Wait, deadline: u64) -> Next {
    let s = shard(ctx);
    let token = {
        let mut state = d.state();
        if let Err(e) = d.watch(&mut state, &s.reactor) {
            drop(state);
            raise(ctx, e);
            return Next::Trap;
        }
        if state.reads != events {
            return Next::Retry;
        }
        let token = s.begin_wait(fiber::of(ctx));
        state.readers.push_back(token);
        token
    };
    let handle = d.handle;
    drop(d);
    let outcome = park(ctx, wait, deadline);
    if outcome != Outcome::Ready
        && let s = shard(ctx)
        && let Some(d) = s.shared().handles.get(handle)
    {
        d.state().forget_reader(s, token);
    }
    match outcome {
        Outcome::Ready => Next::Retry,
        Outcome::Deadline | Outcome::Stop => Next::Last,
        Outcome::Closed => {
            raise(ctx, libc::EBADF);
            Next::Trap
        }
        Outcome::Unwind => Next::Trap,
    }
}

/// One read of at most `max` bytes; null without a trap means the deadline or a stop. `ms`: `None` for the form
/// without a deadline.
pub fn read(ctx: &mut Ctx, handle: i64, max: i64, ms: Option<i64>) -> *mut Obj {
    let deadline = ms.map_or(sys::NEVER, sys::deadline);
    let wait = if ms.is_some() { Wait::InputDl } else { Wait::Input };
    let mut last = false;
    loop {
        let Some(d) = open(ctx, handle) else { return std::ptr::null_mut() };
        let s = shard(ctx);
        let want = usize::try_from(max).unwrap_or(0).min(s.scratch.len());
        let (events, drained) = {
            let state = d.state();
            (state.reads, state.registered() && state.drained && !state.hup && !d.inherited)
        };
        let ready = if d.inherited { sys::poll(d.fd, libc::POLLIN, 0) } else { !drained || last || want == 0 };
        if ready {
            let result = d.read(s.scratch.get_mut(..want).unwrap_or_default());
            let mut state = d.state();
            match result {
                Ok(n) => {
                    // A short read has drained the descriptor: the next byte brings an event. The end of the stream does
                    // not go away: it is for every reader.
                    if n < want && n > 0 && state.registered() && !state.hup && state.reads == events {
                        state.drained = true;
                    } else if !state.readers.is_empty() {
                        state.wake_reader(s);
                    }
                    drop(state);
                    let got = s.scratch.get(..n).unwrap_or(&[]);
                    return shim::text(ctx, got);
                }
                Err(libc::EAGAIN) => state.drained |= state.reads == events,
                Err(libc::EIO) if pty::is_master(d.fd) => {
                    drop(state);
                    return shim::text(ctx, &[]);
                }
                Err(err) => {
                    drop(state);
                    raise(ctx, err);
                    return std::ptr::null_mut();
                }
            }
        }
        if last {
            return std::ptr::null_mut();
        }
        match wait_readable(ctx, d, events, wait, deadline) {
            Next::Retry => {}
            Next::Last => last = true,
            Next::Trap => return std::ptr::null_mut(),
        }
    }
}

/// The next connection's handle; `None` without a trap means the deadline or a stop.
pub fn accept(ctx: &mut Ctx, handle: i64, ms: Option<i64>) -> Option<i64> {
    let deadline = ms.map_or(sys::NEVER, sys::deadline);
    let wait = if ms.is_some() { Wait::InputDl } else { Wait::Input };
    let mut last = false;
    loop {
        let d = open(ctx, handle)?;
        let events = d.state().reads;
        // SAFETY: the caller does not ask for the peer's address.
        let fd = unsafe {
            let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            libc::accept4(d.fd, std::ptr::null_mut(), std::ptr::null_mut(), flags)
        };
        if fd >= 0 {
            d.state().wake_reader(shard(ctx));
            drop(d);
            let h = adopt(ctx, fd);
            return (h >= 0).then_some(h);
        }
        let mut until = deadline;
        match sys::errno() {
            libc::EINTR | libc::ECONNABORTED | libc::EPROTO => continue,
            libc::EAGAIN => {}
            libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => {
                limit_notice(shard(ctx));
                until = deadline.min(sys::deadline(LIMIT_RETRY_MS));
            }
            err => {
                raise(ctx, err);
                return None;
            }
        }
        if last {
            return None;
        }
        match wait_readable(ctx, d, events, wait, until) {
            Next::Retry => {}
            Next::Last => last = until == deadline || shard(ctx).stopping || sys::monotonic() >= deadline,
            Next::Trap => return None,
        }
    }
}

fn limit_notice(s: &mut Shard) {
    if s.shared().limit_notice_due(sys::monotonic(), LIMIT_NOTICE) {
        s.out.flush();
        stderr::line(&format!("{}: descriptor limit reached; accepting later", s.shared().config.program));
    }
}

/// Writes all of `text`. `Some(false)`: the deadline, or the bound of a stop, came first. `None`: a trap is pending.
pub fn write(ctx: &mut Ctx, handle: i64, text: *const Obj, ms: Option<i64>) -> Option<bool> {
    let deadline = ms.map_or(sys::NEVER, sys::deadline);
    in_turn(ctx, handle, deadline, ms.is_some(), |ctx| write_owned(ctx, handle, text, deadline, ms.is_some()))
}

/// Lets `work` write to the handle while no other fiber does. What it gives is as for `write`.
pub(crate) fn in_turn(
    ctx: &mut Ctx,
    handle: i64,
    deadline: u64,
    with_deadline: bool,
    work: impl FnOnce(&mut Ctx) -> Option<bool>,
) -> Option<bool> {
    let d = open(ctx, handle)?;
    let turn = {
        let mut state = d.state();
        if state.closed {
            // By another shard, just now; whoever queued would not be woken any more.
            drop(state);
            raise(ctx, libc::EBADF);
            return None;
        }
        if std::mem::replace(&mut state.writing, true) {
            let token = shard(ctx).begin_wait(fiber::of(ctx));
            state.write_queue.push_back(token);
            Some(token)
        } else {
            None
        }
    };
    drop(d);
    if let Some(token) = turn {
        match park_write(ctx, deadline, with_deadline) {
            Outcome::Ready => {}
            other => {
                let s = shard(ctx);
                if let Some(d) = s.shared().handles.get(handle) {
                    d.state().forget_writer(s, token);
                }
                return ended(ctx, other);
            }
        }
    }
    let result = work(ctx);
    let s = shard(ctx);
    if let Some(d) = s.shared().handles.get(handle) {
        d.state().pass_turn(s);
    }
    result
}

/// Writes in its turn.
fn write_owned(ctx: &mut Ctx, handle: i64, text: *const Obj, deadline: u64, with_deadline: bool) -> Option<bool> {
    let mut done = 0;
    let mut last = false;
    loop {
        let d = look_up(ctx, handle)?;
        // SAFETY: the text is borrowed for the whole call and texts do not change while others hold them.
        let left = unsafe { shim::bytes(text) }.get(done..).unwrap_or(&[]);
        if left.is_empty() && !(done == 0 && d.inherited) {
            return Some(true);
        }
        let events = d.state().writes;
        // What was printed comes before. It may take the room that is left.
        if d.inherited && d.fd <= 2 {
            shard(ctx).out.flush();
            stderr::flush();
        }
        let written = if d.inherited { output::write_ready(d.fd, left) } else { d.write(left) };
        if let Some(n) = unless_waiting(ctx, written)? {
            done += n;
            if left.is_empty() {
                return Some(true);
            }
            continue;
        }
        if last {
            return Some(false);
        }
        match wait_writable(ctx, d, events, |ctx| park_write(ctx, deadline, with_deadline))? {
            Outcome::Ready => {}
            Outcome::Deadline | Outcome::Stop => last = true,
            other => return ended(ctx, other),
        }
    }
}

/// Lets the fiber `park` until the descriptor may be written, unless an event has come since it had seen `events` of
/// them. `None`: a trap is pending.
pub(crate) fn wait_writable(
    ctx: &mut Ctx,
    d: Arc<Descriptor>,
    events: u64,
    park: impl FnOnce(&mut Ctx) -> Outcome,
) -> Option<Outcome> {
    let s = shard(ctx);
    {
        let mut state = d.state();
        if let Err(e) = d.watch(&mut state, &s.reactor) {
            drop(state);
            raise(ctx, e);
            return None;
        }
        if state.writes != events {
            return Some(Outcome::Ready);
        }
        state.writer = Some(s.begin_wait(fiber::of(ctx)));
    }
    let handle = d.handle;
    drop(d);
    let outcome = park(ctx);
    if outcome != Outcome::Ready
        && let Some(d) = shard(ctx).shared().handles.get(handle)
    {
        d.state().writer = None;
    }
    Some(outcome)
}

/// Parks a writer; after a stop no longer than the drain may take. An unbounded write that a stop cut off unwinds.
fn park_write(ctx: &mut Ctx, deadline: u64, with_deadline: bool) -> Outcome {
    let s = shard(ctx);
    s.work_waiting += 1;
    let outcome = park(ctx, Wait::Write, if s.stopping { deadline.min(s.stop_bound) } else { deadline });
    shard(ctx).work_waiting -= 1;
    if outcome == Outcome::Deadline && !with_deadline {
        ctx.trap = trap::UNWIND;
        ctx.trap_recorded = true;
        return Outcome::Unwind;
    }
    outcome
}

fn ended(ctx: &mut Ctx, outcome: Outcome) -> Option<bool> {
    match outcome {
        Outcome::Ready | Outcome::Deadline | Outcome::Stop => Some(false),
        Outcome::Closed => {
            raise(ctx, libc::EBADF);
            None
        }
        Outcome::Unwind => None,
    }
}

/// Closes a handle; whoever waits on it traps 9. Never traps.
pub fn close(ctx: &mut Ctx, handle: i64) {
    shard(ctx).close(handle);
}

/// Ends the write side (1) or both sides (2); other values do nothing. Never traps.
pub fn shut(ctx: &mut Ctx, handle: i64, how: i64) {
    let who = me(ctx);
    let s = shard(ctx);
    let Some(d) = s.shared().handles.get(handle) else { return };
    let how = match how {
        1 => libc::SHUT_WR,
        2 => libc::SHUT_RDWR,
        _ => return,
    };
    let mut state = d.state();
    state.hold(who);
    // SAFETY: an open descriptor; other kinds than sockets only fail.
    let _ = unsafe { libc::shutdown(d.fd, how) };
    if how == libc::SHUT_RDWR {
        state.hup = true;
        state.reads += 1;
        while let Some(t) = state.readers.pop_front() {
            let _ = s.wake(t, Outcome::Ready);
        }
    }
}

fn name_of(fd: i32, peer: bool) -> Result<Raw, i32> {
    let mut raw = Raw::room();
    let p = (&raw mut raw.storage).cast();
    // SAFETY: the storage is as large as its length says.
    let rc = unsafe {
        if peer { libc::getpeername(fd, p, &raw mut raw.len) } else { libc::getsockname(fd, p, &raw mut raw.len) }
    };
    if rc < 0 { Err(sys::errno()) } else { Ok(raw) }
}

/// Local port of a socket; trap 9 otherwise.
pub fn port(ctx: &mut Ctx, handle: i64) -> i64 {
    let Some(d) = look_up(ctx, handle) else { return 0 };
    match name_of(d.fd, false) {
        Ok(raw) => match raw.addr() {
            Some(a) => i64::from(a.port()),
            None => {
                raise(ctx, libc::EAFNOSUPPORT);
                0
            }
        },
        Err(err) => {
            raise(ctx, err);
            0
        }
    }
}

/// The peer as text; empty on any error.
pub fn peer(ctx: &mut Ctx, handle: i64) -> String {
    let Some(d) = shard(ctx).shared().handles.get(handle) else { return String::new() };
    match name_of(d.fd, true) {
        Ok(raw) if raw.family() == libc::AF_UNIX => "unix".into(),
        Ok(raw) => raw.addr().map_or_else(String::new, |a| match a {
            SocketAddr::V4(a) => a.to_string(),
            SocketAddr::V6(a) => format!("[{}]:{}", a.ip(), a.port()),
        }),
        Err(_) => String::new(),
    }
}

/// Addresses of a host; resolution runs on a helper thread and a stop unwinds it. `None`: a trap is pending.
fn lookup(ctx: &mut Ctx, host: &[u8], port: u16) -> Option<Vec<SocketAddr>> {
    if let Some(a) = std::str::from_utf8(host).ok().and_then(|h| addr::numeric(h, port)) {
        return Some(vec![a]);
    }
    let owned = host.to_vec();
    match blocking(ctx, Wait::Resolve, move || addr::resolve(&owned, port))? {
        Ok(list) => Some(list),
        Err(text) => {
            ctx.raise(trap::IO, &text);
            None
        }
    }
}

pub(crate) fn socket(family: i32) -> Result<i32, i32> {
    // SAFETY: plain system call.
    let fd = unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0) };
    if fd < 0 { Err(sys::errno()) } else { Ok(fd) }
}

fn set(fd: i32, level: i32, name: i32) {
    let on: libc::c_int = 1;
    // SAFETY: the option value is readable for its size.
    let _ = unsafe { libc::setsockopt(fd, level, name, (&raw const on).cast(), 4) };
}

/// A listening socket; 0 with a pending trap 9. Accepted sockets inherit its `TCP_NODELAY`.
pub fn listen(ctx: &mut Ctx, host: &[u8], port: u16) -> i64 {
    let Some(addrs) = lookup(ctx, host, port) else { return 0 };
    let mut error = libc::EADDRNOTAVAIL;
    for a in addrs {
        let raw = Raw::of(&a);
        let fd = match socket(raw.family()) {
            Ok(fd) => fd,
            Err(e) => {
                error = e;
                continue;
            }
        };
        set(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR);
        set(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY);
        // SAFETY: a valid address of the stated length.
        if unsafe { libc::bind(fd, raw.ptr(), raw.len) == 0 && libc::listen(fd, 4096) == 0 } {
            return adopt(ctx, fd).max(0);
        }
        error = sys::errno();
        sys::close(fd);
    }
    raise(ctx, error);
    0
}

/// A connection to the first address that answers; 0 with a pending trap 9 or an unwind.
pub fn connect(ctx: &mut Ctx, host: &[u8], port: u16) -> i64 {
    let deadline = sys::deadline(shard(ctx).shared().config.connect_ms);
    let Some(addrs) = lookup(ctx, host, port) else { return 0 };
    let mut error = libc::ECONNREFUSED;
    for a in addrs {
        match connect_to(ctx, &a, deadline) {
            Ok(h) => return h,
            Err(0) => return 0,
            Err(e) => error = e,
        }
    }
    raise(ctx, error);
    0
}

/// One attempt. `Err(0)`: a trap or an unwind is pending.
fn connect_to(ctx: &mut Ctx, a: &SocketAddr, deadline: u64) -> Result<i64, i32> {
    let raw = Raw::of(a);
    let fd = socket(raw.family())?;
    set(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY);
    // Owned by the table from here on, so that nothing on the fiber's stack has to close it.
    let h = adopt(ctx, fd);
    if h < 0 {
        return Err(0);
    }
    // SAFETY: a valid address of the stated length.
    if unsafe { libc::connect(fd, raw.ptr(), raw.len) } == 0 {
        return Ok(h);
    }
    let err = sys::errno();
    if err != libc::EINPROGRESS && err != libc::EINTR {
        close(ctx, h);
        return Err(err);
    }
    loop {
        let Some(d) = look_up(ctx, h) else { return Err(0) };
        let events = d.state().writes;
        if sys::poll(fd, libc::POLLOUT, 0) {
            drop(d);
            let mut code: libc::c_int = 0;
            let mut len: libc::socklen_t = 4;
            // SAFETY: the option value is writable for its size.
            let _ =
                unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, (&raw mut code).cast(), &raw mut len) };
            if code == 0 {
                return Ok(h);
            }
            close(ctx, h);
            return Err(code);
        }
        match wait_writable(ctx, d, events, |ctx| park(ctx, Wait::Input, deadline)) {
            Some(Outcome::Ready) => {}
            Some(Outcome::Deadline | Outcome::Stop) => {
                close(ctx, h);
                return Err(libc::ETIMEDOUT);
            }
            Some(Outcome::Closed) => return Err(libc::EBADF),
            Some(Outcome::Unwind) | None => {
                close(ctx, h);
                return Err(0);
            }
        }
    }
}

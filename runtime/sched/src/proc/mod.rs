//! Child processes: `run`, which waits for the end, and `spawn`, whose children belong to an actor. Starting goes to a
//! helper thread; what follows is events of the shard's reactor, so nothing here blocks a shard.

pub mod pty;
mod start;
mod table;
mod watch;

pub use table::Children;
pub use watch::{KEY, Local, owner_died, ready};

use crate::actor::Actor;
use crate::fiber::{self, Outcome, Token, Wait};
use crate::park::{park, yield_now};
use crate::shard::Shard;
use crate::wait::blocking;
use crate::{net, sys};
use abi::trap;
use start::{Started, Streams};
use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use table::{Begin, Key};
use values::ctx::Ctx;
use values::object::Claim;
use watch::What;

const RUN_MS: i64 = 30_000;
const OUT_CAP: i64 = 1 << 20;
const ERR_CAP: i64 = 1 << 16;

fn shard<'a>(ctx: &Ctx) -> &'a mut Shard {
    fiber::of(ctx).shard()
}

/// Bounds of `run`; a value that is not positive selects the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    pub ms: i64,
    pub out_cap: i64,
    pub err_cap: i64,
}

/// How a child of `run` ended. What was read counts against the program's memory.
pub struct Ran {
    pub code: i32,
    pub out: Vec<u8>,
    pub err: Vec<u8>,
    _claims: [Claim; 2],
}

/// A child of `spawn`: its id and the handles of its streams, -1 for none.
#[derive(Clone, Copy, Debug)]
pub struct Spawned {
    pub id: i64,
    pub stdin: i64,
    pub stdout: i64,
    pub stderr: i64,
    key: Key,
}

/// Starts a child on a helper thread. `None`: a trap or an unwind is pending.
fn start(ctx: &mut Ctx, argv: Vec<CString>, streams: Streams) -> Option<Started> {
    let children = &shard(ctx).children.all;
    let Some(place) = children.reserve() else {
        let text = format!("process ceiling: {} live children", children.most());
        ctx.raise(trap::IO, &text);
        return None;
    };
    match blocking(ctx, Wait::Pool, move || start::start(&argv, streams, place))? {
        Some(Ok(started)) => Some(started),
        Some(Err(e)) => {
            ctx.raise(trap::IO, &sys::text(e));
            None
        }
        // The program ended meanwhile, and with it this fiber.
        None => None,
    }
}

/// Parks until an event of the child, the deadline or a stop. What has happened is for the caller to look at.
fn await_child(ctx: &mut Ctx, key: Key, wait: Wait, deadline: u64) -> Outcome {
    let f = fiber::of(ctx);
    let s = f.shard();
    let token = s.begin_wait(f);
    if let Some(w) = s.children.watch(key) {
        w.token = token;
    }
    let outcome = park(ctx, wait, deadline);
    if let Some(w) = shard(ctx).children.watch(key) {
        w.token = Token::NONE;
    }
    outcome
}

/// Kills a child that this shard watches and parks until it is reaped; a stop does not disturb that, and the drain
/// waits for it as for a helper thread. When the program ends, its end sees to it.
fn kill_and_wait(ctx: &mut Ctx, key: Key) {
    let s = shard(ctx);
    s.children.all.kill(key);
    s.pool_busy += 1;
    while !shard(ctx).ending && !shard(ctx).children.all.ended(key) {
        let _ = await_child(ctx, key, Wait::Pool, sys::NEVER);
    }
    shard(ctx).pool_busy -= 1;
}

/// One of the two outputs of a child of `run`.
struct Output {
    /// Closed at the end of the stream.
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
    claim: Claim,
    cap: usize,
}

/// What a look at an output came to.
enum Look {
    /// There may be more.
    Some,
    /// Nothing now, or nothing any more.
    Nothing,
    OverCap,
    NoMemory,
    Failed(i32),
}

impl Output {
    fn new(pipe: Option<OwnedFd>, cap: i64) -> Output {
        let cap = usize::try_from(cap).unwrap_or(usize::MAX);
        Output { pipe, bytes: Vec::new(), claim: Claim::default(), cap }
    }

    /// Takes in what is there, at most one `scratch` of it.
    fn read(&mut self, scratch: &mut [u8]) -> Look {
        let Some(pipe) = &self.pipe else { return Look::Nothing };
        let (from, to) = (pipe.as_raw_fd(), scratch.as_mut_ptr().cast());
        // SAFETY: `scratch` is writable for its length.
        let n = match sys::uninterrupted(|| unsafe { libc::read(from, to, scratch.len()) }) {
            Ok(n) => n,
            Err(libc::EAGAIN) => return Look::Nothing,
            Err(e) => return Look::Failed(e),
        };
        if n == 0 {
            self.pipe = None;
            return Look::Nothing;
        }
        if n > self.cap - self.bytes.len() {
            return Look::OverCap;
        }
        let missing = n.saturating_sub(self.bytes.capacity() - self.bytes.len());
        if missing > 0 {
            let more = missing.max(self.bytes.capacity()).min(self.cap - self.bytes.len());
            if !self.claim.grow(more) || self.bytes.try_reserve_exact(more).is_err() {
                return Look::NoMemory;
            }
        }
        self.bytes.extend_from_slice(scratch.get(..n).unwrap_or(&[]));
        Look::Some
    }
}

/// Runs a command to its end. `None`: a trap or an unwind is pending, and the child is dead.
pub fn run(ctx: &mut Ctx, argv: Vec<CString>, bounds: Bounds) -> Option<Ran> {
    let or = |n: i64, default: i64| if n <= 0 { default } else { n };
    let bounds = Bounds {
        ms: or(bounds.ms, RUN_MS),
        out_cap: or(bounds.out_cap, OUT_CAP),
        err_cap: or(bounds.err_cap, ERR_CAP),
    };
    let deadline = sys::deadline(bounds.ms);
    let s = shard(ctx);
    if s.stopping {
        // As any wait that a stop unwinds; no child is started for it.
        let _ = s.begin_wait(fiber::of(ctx));
        let _ = park(ctx, Wait::Input, deadline);
        return None;
    }
    let Started { key, pidfd, stdout, stderr, guard, .. } = start(ctx, argv, Streams::Run)?;
    let mut out = Output::new(Some(stdout), bounds.out_cap);
    let mut err = Output::new(stderr, bounds.err_cap);
    let s = shard(ctx);
    let watched = watch::attend(s, key, pidfd);
    let outputs = [(&out, What::Stdout), (&err, What::Stderr)];
    let mut pipes = outputs.iter().filter_map(|(output, what)| Some((output.pipe.as_ref()?.as_raw_fd(), *what)));
    let watched =
        watched.and_then(|()| pipes.try_for_each(|(fd, what)| s.reactor.register(fd, watch::reactor_key(key, what))));
    if let Err(e) = watched {
        // The guard kills the child; its end removes the watch.
        s.children.unwatch(key, false);
        ctx.raise(trap::IO, &sys::text(e));
        return None;
    }
    guard.disarm();
    let code = attend(ctx, key, deadline, &bounds, &mut out, &mut err);
    let s = shard(ctx);
    let ended = s.children.all.ended(key);
    s.children.unwatch(key, ended);
    let Some(code) = code else {
        s.children.all.abandon(key);
        return None;
    };
    Some(Ran { code, out: out.bytes, err: err.bytes, _claims: [out.claim, err.claim] })
}

/// Reads both outputs and waits for the end of the child: its code, or `None` with a trap or an unwind pending.
fn attend(ctx: &mut Ctx, key: Key, deadline: u64, bounds: &Bounds, out: &mut Output, err: &mut Output) -> Option<i32> {
    let refusal = loop {
        let s = shard(ctx);
        let mut more = false;
        let mut refusal = None;
        for (output, name) in [(&mut *out, "stdout"), (&mut *err, "stderr")] {
            match output.read(&mut s.scratch) {
                Look::Some => more = true,
                Look::Nothing => {}
                Look::OverCap => {
                    refusal = Some((trap::IO, format!("process {name} cap {} bytes exceeded", output.cap)));
                }
                Look::NoMemory => refusal = Some((trap::OOM, trap::OUT_OF_MEMORY.to_string())),
                Look::Failed(e) => refusal = Some((trap::IO, sys::text(e))),
            }
        }
        if let Some(refusal) = refusal {
            break refusal;
        }
        let done = out.pipe.is_none() && err.pipe.is_none();
        if done && s.children.all.ended(key) {
            return s.children.all.finish_wait(key);
        }
        // A child that writes without end meets its deadline, and a stop, all the same. What one that has ended left in
        // the pipes is still taken.
        let late = sys::monotonic() >= deadline;
        if more && !s.stopping && (!late || s.children.all.ended(key)) {
            yield_now(ctx);
            if ctx.trap != 0 {
                return None;
            }
            continue;
        }
        let outcome =
            if late && !s.stopping { Outcome::Deadline } else { await_child(ctx, key, Wait::Input, deadline) };
        match outcome {
            Outcome::Ready | Outcome::Stop | Outcome::Closed => {}
            // Looked at once more: what is there wins over the deadline.
            Outcome::Deadline if !late => {}
            Outcome::Deadline => break (trap::IO, format!("process deadline exceeded after {} ms", bounds.ms)),
            Outcome::Unwind => {
                kill_and_wait(ctx, key);
                return None;
            }
        }
    };
    kill_and_wait(ctx, key);
    ctx.raise(refusal.0, &refusal.1);
    None
}

/// Starts a command that belongs to the running actor, or to the program where `main` runs. `terminal`: columns and rows
/// of the terminal it gets instead of pipes. `None`: a trap or an unwind is pending.
pub fn spawn(ctx: &mut Ctx, argv: Vec<CString>, terminal: Option<(i64, i64)>) -> Option<Spawned> {
    let streams = terminal.map_or(Streams::Pipes, |(cols, rows)| {
        let (cols, rows) = pty::size(cols, rows);
        Streams::Terminal { cols, rows }
    });
    let Started { key, pidfd, stdin, stdout, stderr, guard } = start(ctx, argv, streams)?;
    let f = fiber::of(ctx);
    if let Err(e) = watch::add(f.shard(), key, pidfd, f.actor) {
        // The guard kills the child.
        ctx.raise(trap::IO, &sys::text(e));
        return None;
    }
    guard.disarm();
    let stdout = net::adopt(ctx, stdout.into_raw_fd());
    let mut hand_out = |fd: Option<OwnedFd>| fd.map_or(-1, |fd| net::adopt(ctx, fd.into_raw_fd()));
    let (stdin, stderr) = (hand_out(stdin), hand_out(stderr));
    let stdin = if terminal.is_some() { stdout } else { stdin };
    let spawned = Spawned { id: key.id, stdin, stdout, stderr, key };
    if ctx.trap != 0 {
        undo(ctx, &spawned);
        return None;
    }
    if terminal.is_some() {
        shard(ctx).children.all.set_terminal(key, stdout);
    }
    Some(spawned)
}

/// Takes back a `spawn` of which the program will not hear.
pub fn undo(ctx: &mut Ctx, spawned: &Spawned) {
    let s = shard(ctx);
    for handle in [spawned.stdin, spawned.stdout, spawned.stderr] {
        s.close(handle);
    }
    s.children.all.abandon(spawned.key);
}

const NOT_A_CHILD: &str = "process id is not a live child";

/// The exit code of a child; `None` without a trap: it still runs at the deadline.
pub fn wait(ctx: &mut Ctx, id: i64, ms: i64) -> Option<i32> {
    let deadline = sys::deadline(ms);
    let s = shard(ctx);
    let (key, pid) = match s.children.all.begin_wait(id) {
        Begin::Unknown => {
            ctx.raise(trap::IO, NOT_A_CHILD);
            return None;
        }
        Begin::Waited => {
            ctx.raise(trap::IO, "child already has a waiter");
            return None;
        }
        Begin::Ended(code) => return Some(code),
        Begin::Lives(key, pid) => (key, pid),
    };
    let mut failed = None;
    // The child was started on another shard.
    if s.children.watch(key).is_none() {
        failed = open_pidfd(pid).and_then(|fd| watch::add(s, key, fd, std::ptr::null_mut())).err();
    }
    while failed.is_none() && !shard(ctx).children.all.ended(key) {
        match await_child(ctx, key, Wait::Input, deadline) {
            Outcome::Ready => {}
            Outcome::Deadline | Outcome::Stop | Outcome::Closed => break,
            Outcome::Unwind => {
                kill_and_wait(ctx, key);
                break;
            }
        }
    }
    let s = shard(ctx);
    let code = s.children.all.finish_wait(key);
    s.children.unwatch(key, code.is_some());
    if let Some(e) = failed.filter(|_| code.is_none()) {
        ctx.raise(trap::IO, &sys::text(e));
    }
    code.filter(|_| ctx.trap == 0)
}

/// A descriptor that tells of the end of a child, which was not reaped yet.
fn open_pidfd(pid: libc::pid_t) -> Result<OwnedFd, i32> {
    // SAFETY: plain system call; its result is a fresh descriptor.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        match i32::try_from(fd) {
            Ok(fd) if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(sys::errno()),
        }
    }
}

/// Sends a signal. Traps 9.
pub fn signal(ctx: &mut Ctx, id: i64, signal: i64) {
    // A number beyond the range is as invalid as -1.
    let sent = shard(ctx).children.all.signal(id, i32::try_from(signal).unwrap_or(-1));
    match sent {
        Some(Ok(())) => {}
        Some(Err(e)) => ctx.raise(trap::IO, &sys::text(e)),
        None => ctx.raise(trap::IO, NOT_A_CHILD),
    }
}

/// Sets the size of a child's terminal. Traps 9.
pub fn resize(ctx: &mut Ctx, id: i64, cols: i64, rows: i64) {
    let s = shard(ctx);
    let Some(terminal) = s.children.all.terminal(id) else {
        ctx.raise(trap::IO, NOT_A_CHILD);
        return;
    };
    let (cols, rows) = pty::size(cols, rows);
    // One that the program closed is no terminal any more.
    let Some(d) = terminal.and_then(|handle| s.shared().handles.get(handle)) else {
        ctx.raise(trap::IO, "child has no terminal to resize");
        return;
    };
    if let Err(e) = pty::resize(d.fd, cols, rows) {
        ctx.raise(trap::IO, &sys::text(e));
    }
}

/// Whether the actor has a live child and so is not reclaimed.
#[must_use]
pub fn owns_live(s: &Shard, actor: *const Actor) -> bool {
    s.children.owned_by(actor)
}

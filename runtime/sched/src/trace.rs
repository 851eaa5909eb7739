//! Recent events of a shard, for someone who wonders what a program is doing: with `WO_TRACE=1` each shard keeps the
//! last `KEPT` of them in a ring. SIGUSR1 asks every shard to write its ring to stderr, and so does `request` before a
//! fatal exit: a shard answers at its next round of checks, or when it ends. Without `WO_TRACE` an event costs a branch.
//!
//! A line is `wotrace SHARD SECONDS EVENT …`; the seconds are monotonic, so that the lines of several shards can be
//! sorted together.

use crate::actor::Actor;
use crate::fiber::{Fiber, Outcome, Wait};
use crate::shard::Shard;
use crate::{report, stderr, stop, sys};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use values::ctx::Image;

/// Events a shard keeps.
pub const KEPT: usize = 4096;
/// How often a dump was asked for.
static REQUESTS: AtomicU32 = AtomicU32::new(0);

#[derive(Clone, Copy)]
enum What {
    Spawn,
    /// `receive` begins, with a message of this class.
    Deliver(u32),
    /// And the number of the actor that a call waits for, or 0.
    Park(Wait, u64),
    Wake(Outcome),
    Trap(i64),
    Stop,
}

#[derive(Clone, Copy)]
struct Event {
    /// Monotonic, in nanoseconds.
    at: u64,
    what: What,
    /// 0: `main`, or no actor.
    actor: u64,
    class: u32,
    fiber: u32,
}

/// No fiber and no class.
const NONE: u32 = u32::MAX;

struct Ring {
    events: Vec<Event>,
    /// Events so far; the next goes to this place modulo `KEPT`.
    seen: usize,
    /// Requests that were answered.
    answered: u32,
}

/// A shard's ring, if it has one.
pub struct Trace(Option<Box<Ring>>);

impl Trace {
    /// A ring if `on`, and SIGUSR1 taken.
    #[must_use]
    pub fn new(on: bool) -> Trace {
        if !on {
            return Trace(None);
        }
        listen();
        let answered = REQUESTS.load(Ordering::Acquire);
        Trace(Some(Box::new(Ring { events: Vec::with_capacity(KEPT), seen: 0, answered })))
    }

    pub fn spawn(&mut self, actor: &Actor) {
        if let Some(ring) = &mut self.0 {
            ring.push(What::Spawn, actor.id, actor.class(), NONE);
        }
    }

    pub fn deliver(&mut self, f: &Fiber) {
        if let Some(ring) = &mut self.0 {
            ring.of(f, What::Deliver(report::class_index(f.msg).unwrap_or(NONE)));
        }
    }

    pub fn park(&mut self, f: &Fiber, wait: Wait) {
        if let Some(ring) = &mut self.0 {
            // SAFETY: the calling fiber's frame holds the address while `calling` is set.
            let target = if f.calling.is_null() { 0 } else { unsafe { (*f.calling).id } };
            ring.of(f, What::Park(wait, target));
        }
    }

    pub fn wake(&mut self, f: &Fiber, outcome: Outcome) {
        if let Some(ring) = &mut self.0 {
            ring.of(f, What::Wake(outcome));
        }
    }

    pub fn trap(&mut self, f: &Fiber) {
        if let Some(ring) = &mut self.0 {
            ring.of(f, What::Trap(f.ctx.trap));
        }
    }

    pub fn stop(&mut self) {
        if let Some(ring) = &mut self.0 {
            ring.push(What::Stop, 0, NONE, NONE);
        }
    }
}

impl Ring {
    #[cold]
    fn push(&mut self, what: What, actor: u64, class: u32, fiber: u32) {
        let event = Event { at: sys::monotonic(), what, actor, class, fiber };
        match self.events.get_mut(self.seen % KEPT) {
            Some(oldest) => *oldest = event,
            None => self.events.push(event),
        }
        self.seen += 1;
    }

    #[cold]
    fn of(&mut self, f: &Fiber, what: What) {
        // SAFETY: a fiber at work has a live actor.
        let (actor, class) = if f.actor.is_null() { (0, NONE) } else { unsafe { ((*f.actor).id, (*f.actor).class()) } };
        self.push(what, actor, class, f.slot);
    }

    /// The lines, oldest first.
    fn lines(&self, shard: u16, image: &Image) -> String {
        let class = |class: u32| image.shapes.classes.get(class as usize).map_or("?", |c| c.name.as_str());
        let mut out = String::new();
        let kept = self.events.len();
        let _ = writeln!(out, "wotrace {shard} the last {kept} of {} events", self.seen);
        let (newer, older) = self.events.split_at(if kept < KEPT { 0 } else { self.seen % KEPT });
        for e in older.iter().chain(newer) {
            let _ = write!(out, "wotrace {shard} {}.{:06} ", e.at / 1_000_000_000, e.at / 1000 % 1_000_000);
            let name = match e.what {
                What::Spawn => "spawn",
                What::Deliver(_) => "deliver",
                What::Park(..) => "park",
                What::Wake(_) => "wake",
                What::Trap(_) => "trap",
                What::Stop => "stop",
            };
            out.push_str(name);
            if e.fiber != NONE {
                let _ = write!(out, " fiber {}", e.fiber);
            }
            if e.actor != 0 {
                let _ = write!(out, " actor {} {}", e.actor, class(e.class));
            } else if e.fiber != NONE {
                out.push_str(" main");
            }
            let _ = match e.what {
                What::Spawn | What::Stop => Ok(()),
                What::Deliver(msg) => write!(out, ": {}", class(msg)),
                What::Park(wait, 0) => write!(out, ": {}", waits_for(wait)),
                What::Park(wait, target) => write!(out, ": {} actor {target}", waits_for(wait)),
                What::Wake(outcome) => write!(out, ": {}", ended_by(outcome)),
                What::Trap(code) => write!(out, ": {code}"),
            };
            out.push('\n');
        }
        out
    }
}

fn waits_for(wait: Wait) -> &'static str {
    match wait {
        Wait::Sleep => "sleep",
        Wait::Input => "input",
        Wait::InputDl => "input or deadline",
        Wait::Write => "room to write",
        Wait::Call => "call of",
        Wait::Pool => "helper thread",
        Wait::Resolve => "name lookup",
        Wait::Space => "room in a mailbox",
        Wait::Commit => "durable write",
    }
}

fn ended_by(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ready => "ready",
        Outcome::Deadline => "deadline",
        Outcome::Stop => "stop",
        Outcome::Closed => "closed or died",
        Outcome::Unwind => "unwind",
    }
}

/// Writes the shard's events if that was asked for since the last time.
pub fn answer(s: &mut Shard) {
    let Some(ring) = &mut s.trace.0 else { return };
    let asked = REQUESTS.load(Ordering::Acquire);
    if ring.answered != asked {
        ring.answered = asked;
        s.out.flush();
        stderr::report(ring.lines(s.id, s.image).as_bytes());
    }
}

/// Asks every shard for its events. Async-signal-safe.
pub fn request() {
    let _ = REQUESTS.fetch_add(1, Ordering::AcqRel);
    stop::wake_all();
}

extern "C" fn on_signal(_: libc::c_int) {
    request();
}

fn listen() {
    // SAFETY: a zeroed action with a valid handler, which is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        let _ = libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
    }
}

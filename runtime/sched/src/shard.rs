//! A shard: one thread's run queue, fibers, timers, reactor and counters, and the loop that drives them. References
//! into the shard are short: none is held across a switch of stacks.

use crate::actor::{self, Actor};
use crate::config::Config;
use crate::fiber::{Fiber, Outcome, State, Token, Wait};
use crate::handle::Handles;
use crate::output::Output;
use crate::pool::{Inbox, Pool};
use crate::reactor::{Reactor, WAKE};
use crate::stack::Stacks;
use crate::stats::Stats;
use crate::timer::{Due, Timers};
use crate::trace::{self, Trace};
use crate::{park, shim, stop, sys};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use values::ctx::{Ctx, Heap, Image};
use values::object::{Obj, uncharge};

thread_local! {
    static CURRENT: Cell<*mut Shard> = const { Cell::new(std::ptr::null_mut()) };
}

/// Switches without a round of checks while other fibers stay runnable.
pub const SWITCHES: u32 = 64;
/// Least time between two looks at the reactor while fibers stay runnable, in nanoseconds.
const POLL_GAP: u64 = 20_000;

/// Makes `s` the shard of this thread; gives the one before.
pub fn set_current(s: *mut Shard) -> *mut Shard {
    CURRENT.with(|c| c.replace(s))
}

/// The shard of this thread; `None` outside a run.
#[must_use]
pub fn current<'a>() -> Option<&'a mut Shard> {
    let s = CURRENT.with(Cell::get);
    // SAFETY: set for the duration of `run` on this thread only; callers keep the reference short.
    (!s.is_null()).then(|| unsafe { &mut *s })
}

/// A message that a timer will send.
pub struct After {
    pub target: *mut Actor,
    pub msg: *mut Obj,
}

pub struct Shard {
    pub config: Config,
    pub image: &'static Image,
    pub stats: Stats,
    pub trace: Trace,
    pub out: Output,
    pub handles: Handles,
    pub reactor: Reactor,
    pub timers: Timers,
    pub heap: Box<Heap>,
    /// Context for releases outside fibers.
    pub ctx: Ctx,
    /// Slots are reused; records stay where they are.
    pub fibers: Vec<Box<Fiber>>,
    pub free_slots: Vec<u32>,
    pub queue: VecDeque<u32>,
    /// Actors that are not gone.
    pub actors: Vec<*mut Actor>,
    /// Per class: messages of it change hands as they are.
    pub plain: Vec<bool>,
    /// Per class: offsets of fields that hold an actor's address.
    pub actor_fields: Vec<Vec<u32>>,
    /// Actors that may have become unreachable.
    pub orphans: Vec<*mut Actor>,
    pub reclaiming: bool,
    pub afters: Vec<Option<After>>,
    free_afters: Vec<u32>,
    pub pool: Pool,
    inbox: Arc<Inbox>,
    /// Pool operations whose result has not come.
    pub pool_busy: i64,
    /// Writes that wait for room.
    pub writes_waiting: i64,
    waits: u64,
    births: u64,
    pub stacks: Stacks,
    /// Bytes of the last read from a socket.
    pub scratch: Vec<u8>,
    /// All fibers are being unwound.
    pub ending: bool,
    /// The stop latch has been acted on, and until when writes may go on.
    pub stopping: bool,
    pub stop_bound: u64,
    pub main_status: Option<i32>,
    pub main_trapped: bool,
    pub last_poll: u64,
    pub switches: u32,
    pub last_limit_notice: u64,
}

/// A context that belongs to no stack.
fn new_ctx(heap: *mut Heap, image: &'static Image) -> Ctx {
    Ctx {
        budget: 0,
        stack_limit: 0,
        trap: 0,
        heap,
        image,
        fiber: std::ptr::null_mut(),
        stack_base: 0,
        trap_msg: std::ptr::null_mut(),
        trap_frames: Vec::new(),
        trap_recorded: false,
        caught_frames: Vec::new(),
    }
}

impl Shard {
    /// A complete shard without fibers. Gives the error number of the failing system call.
    pub fn new(config: Config, image: &'static Image) -> Result<Box<Shard>, i32> {
        shim::install_hooks();
        let handles = Handles::inherited();
        // SAFETY: plain system call.
        let wake_fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if wake_fd < 0 {
            return Err(sys::errno());
        }
        let inbox = Arc::new(Inbox::new(wake_fd));
        let reactor = Reactor::new(wake_fd)?;
        let mut heap = Box::new(Heap::default());
        let ctx = new_ctx(&raw mut *heap, image);
        Ok(Box::new(Shard {
            stacks: Stacks::new(config.stack_kb),
            pool: Pool::new(config.pool, Arc::clone(&inbox)),
            trace: Trace::new(config.trace, 0, wake_fd),
            plain: shim::plain_classes(&image.shapes),
            actor_fields: shim::actor_fields(&image.shapes),
            config,
            image,
            stats: Stats::default(),
            out: Output::default(),
            handles,
            reactor,
            timers: Timers::default(),
            heap,
            ctx,
            fibers: Vec::new(),
            free_slots: Vec::new(),
            queue: VecDeque::new(),
            actors: Vec::new(),
            orphans: Vec::new(),
            reclaiming: false,
            afters: Vec::new(),
            free_afters: Vec::new(),
            inbox,
            pool_busy: 0,
            writes_waiting: 0,
            waits: 0,
            births: 0,
            scratch: vec![0; 64 * 1024],
            ending: false,
            stopping: false,
            stop_bound: sys::NEVER,
            main_status: None,
            main_trapped: false,
            last_poll: 0,
            switches: 0,
            last_limit_notice: 0,
        }))
    }

    #[must_use]
    pub fn wake_fd(&self) -> i32 {
        self.inbox.wake_fd
    }

    #[must_use]
    pub fn class_name(&self, class: u32) -> String {
        self.image.shapes.classes.get(class as usize).map_or_else(|| "?".to_string(), |c| c.name.clone())
    }

    /// The fiber in a slot.
    pub fn fiber(&mut self, slot: u32) -> Option<&mut Fiber> {
        self.fibers.get_mut(slot as usize).map(|f| &mut **f)
    }

    /// The fiber that is still parked in this very wait.
    pub fn waiting(&mut self, t: Token) -> Option<&mut Fiber> {
        self.fiber(t.slot).filter(|f| f.wait == t.wait && f.is_parked())
    }

    /// Ends a wait; false when it has ended already.
    pub fn wake(&mut self, t: Token, outcome: Outcome) -> bool {
        let Some(f) = self.waiting(t) else { return false };
        f.state = State::Runnable;
        f.outcome = outcome;
        self.queue.push_back(t.slot);
        self.trace.wake(&self.fibers[t.slot as usize], outcome);
        true
    }

    /// Numbers the next wait of the running fiber. Whoever may end it gets the token before the fiber parks.
    pub fn begin_wait(&mut self, f: &mut Fiber) -> Token {
        self.waits += 1;
        f.wait = self.waits;
        f.token()
    }

    pub fn new_fiber(&mut self) -> u32 {
        self.births += 1;
        self.stats.fibers_live += 1;
        self.stats.fibers_peak = self.stats.fibers_peak.max(self.stats.fibers_live);
        let (heap, image, births) = (&raw mut *self.heap, self.image, self.births);
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            let slot = u32::try_from(self.fibers.len()).unwrap_or(u32::MAX);
            let mut f = Box::new(Fiber {
                ctx: new_ctx(heap, image),
                co: None,
                yielder: std::ptr::null(),
                shard: &raw mut *self,
                slot,
                state: State::Free,
                wait: 0,
                outcome: Outcome::Ready,
                deadline: sys::NEVER,
                seq: 0,
                actor: std::ptr::null_mut(),
                msg: std::ptr::null_mut(),
                caller: Token::NONE,
                reply: [0; 2],
                reply_pair: false,
                out: [0; 2],
                calling: std::ptr::null_mut(),
                cycle_reported: false,
                call_deadline: sys::NEVER,
                pool_result: None,
                status: 0,
            });
            f.ctx.fiber = (&raw mut *f).cast();
            self.fibers.push(f);
            slot
        });
        if let Some(f) = self.fiber(slot) {
            f.state = State::Runnable;
            f.seq = births;
            f.wait = 0;
        }
        self.queue.push_back(slot);
        slot
    }

    /// A fiber at the tail of the queue that will give `msg` to the actor.
    pub fn start_delivery(&mut self, actor: *mut Actor, msg: *mut Obj, caller: Token) -> u32 {
        let slot = self.new_fiber();
        if let Some(f) = self.fiber(slot) {
            f.actor = actor;
            f.msg = msg;
            f.caller = caller;
        }
        slot
    }

    pub fn arm_after(&mut self, due: u64, target: *mut Actor, msg: *mut Obj) {
        let entry = Some(After { target, msg });
        let index = match self.free_afters.pop() {
            Some(i) => {
                self.afters[i as usize] = entry;
                i
            }
            None => {
                self.afters.push(entry);
                u32::try_from(self.afters.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.timers.arm_after(due, index);
    }

    /// Closes the handles that only this actor held.
    pub fn close_held_by(&mut self, who: u64) {
        for h in self.handles.held_by(who) {
            self.close(h);
        }
    }

    /// Closes a handle and wakes whoever waits on it.
    pub fn close(&mut self, handle: i64) {
        if let Some(e) = self.handles.get(handle)
            && e.inherited
            && e.registered
        {
            let fd = e.fd;
            self.reactor.remove(fd);
        }
        if (0..=2).contains(&handle) {
            self.out.flush();
        }
        for t in self.handles.close(handle) {
            let _ = self.wake(t, Outcome::Closed);
        }
    }

    /// Inbox, due timers, ready I/O, in that order; waits for the first of them at most `ns` nanoseconds.
    pub fn poll(&mut self, ns: u64) {
        self.switches = 0;
        self.out.flush();
        let now = sys::monotonic();
        self.stats.heap_bytes_peak = self.stats.heap_bytes_peak.max(self.heap.bytes_live);
        // The clock is read each time; the reactor costs a system call and is looked at once in a while.
        let look = ns > 0 || now.saturating_sub(self.last_poll) >= POLL_GAP;
        if look {
            let idle = ns == sys::NEVER && self.timers.is_empty();
            self.reactor.wait(if idle { sys::NEVER } else { ns.min(self.timers.next().saturating_sub(now)) });
        }
        if stop::latched() && !self.stopping {
            self.stop();
        }
        trace::answer(self);
        for (t, result) in self.inbox.take() {
            self.pool_busy -= 1;
            if let Some(f) = self.waiting(t) {
                f.pool_result = result;
                let _ = self.wake(t, Outcome::Ready);
            }
        }
        let now = sys::monotonic();
        self.last_poll = now;
        self.fire(now);
        if !self.orphans.is_empty() {
            actor::sweep(self);
        }
        if look {
            for i in 0..self.reactor.filled() {
                self.ready(i);
            }
        }
    }

    fn fire(&mut self, now: u64) {
        while let Some(due) = self.timers.pop(now) {
            match due {
                Due::After(i) => {
                    self.stats.timers_fired += 1;
                    if let Some(a) = self.afters.get_mut(i as usize).and_then(Option::take) {
                        self.free_afters.push(i);
                        uncharge(&mut self.ctx, actor::TIMER_BYTES);
                        actor::deliver(self, a.target, a.msg, "timer message");
                        actor::release_in(self, a.target);
                    }
                }
                Due::Fiber(slot) => {
                    let Some(f) = self.fiber(slot) else { continue };
                    let State::Parked(wait) = f.state else { continue };
                    let (deadline, token) = (f.deadline, f.token());
                    if deadline == sys::NEVER {
                        continue;
                    }
                    if deadline > now {
                        self.timers.arm_fiber(deadline, slot);
                        continue;
                    }
                    if wait == Wait::Call
                        && let Some(again) = actor::call_timer(self, slot, now)
                    {
                        if let Some(f) = self.fiber(slot) {
                            f.deadline = again;
                        }
                        self.timers.arm_fiber(again, slot);
                        continue;
                    }
                    let _ = self.wake(token, Outcome::Deadline);
                }
            }
        }
    }

    fn ready(&mut self, i: usize) {
        let r = self.reactor.event(i);
        if r.handle == WAKE {
            let mut n = 0u64;
            // SAFETY: eight writable bytes; the descriptor does not block.
            let _ = unsafe { libc::read(self.wake_fd(), (&raw mut n).cast(), 8) };
            return;
        }
        let Some(e) = i64::try_from(r.handle).ok().and_then(|h| self.handles.get(h)) else { return };
        e.hup |= r.hup;
        let mut write = None;
        if r.write {
            write = e.writer.take();
        }
        if r.read {
            e.readable = true;
            self.wake_reader(r.handle.cast_signed());
        }
        if let Some(t) = write {
            let _ = self.wake(t, Outcome::Ready);
        }
    }

    /// Wakes the first fiber that waits to read the handle.
    pub fn wake_reader(&mut self, handle: i64) {
        while let Some(t) = self.handles.get(handle).and_then(|e| e.readers.pop_front()) {
            if self.wake(t, Outcome::Ready) {
                return;
            }
        }
    }

    /// The latch was set: resolves the waits that a stop ends.
    fn stop(&mut self) {
        self.stopping = true;
        self.trace.stop();
        self.stop_bound = sys::after(sys::monotonic(), self.config.drain_ms);
        let bound = self.stop_bound;
        for slot in 0..self.fibers.len() {
            let Some(f) = self.fibers.get_mut(slot) else { continue };
            let State::Parked(wait) = f.state else { continue };
            let token = f.token();
            if let Some(outcome) = park::stop_outcome(wait) {
                let _ = self.wake(token, outcome);
            } else if wait == Wait::Write && f.deadline > bound {
                f.deadline = bound;
                self.timers.arm_fiber(bound, token.slot);
            }
        }
    }

    /// Nothing would happen by itself any more, but for timers and outside input.
    pub fn quiescent(&self) -> bool {
        self.queue.is_empty() && self.pool_busy == 0 && self.writes_waiting == 0
    }
}

impl Fiber {
    /// The fiber's shard. Short-lived, like every reference into it.
    #[must_use]
    pub fn shard<'a>(&self) -> &'a mut Shard {
        // SAFETY: the shard outlives its fibers and one thread uses both; see the module's rule.
        unsafe { &mut *self.shard }
    }
}

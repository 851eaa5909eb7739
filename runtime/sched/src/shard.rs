//! A shard: one thread's run queue, fibers, timers, reactor and counters, and the loop that drives them. References
//! into the shard are short: none is held across a switch of stacks.

use crate::actor::{self, Actor, Life};
use crate::config::Config;
use crate::fiber::{self, Co, Fiber, Outcome, State, Token, Wait};
use crate::handle::Handles;
use crate::output::Output;
use crate::pool::{Inbox, Pool};
use crate::reactor::{Reactor, WAKE};
use crate::stack::Stacks;
use crate::stats::Stats;
use crate::timer::{Due, Timers};
use crate::{report, shim, stop, sys};
use abi::trap;
use corosensei::CoroutineResult;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use values::ctx::{Ctx, Heap, Image};
use values::object::Obj;

thread_local! {
    static CURRENT: Cell<*mut Shard> = const { Cell::new(std::ptr::null_mut()) };
}

/// Switches without a round of checks while other fibers stay runnable.
const SWITCHES: u32 = 64;
/// Least time between two looks at the reactor while fibers stay runnable, in nanoseconds.
const POLL_GAP: u64 = 20_000;
/// Resumptions granted to a fiber that must unwind.
const UNWIND_RESUMES: u32 = 10_000;

/// The shard of this thread; `None` outside a run.
#[must_use]
pub fn current<'a>() -> Option<&'a mut Shard> {
    let s = CURRENT.with(Cell::get);
    // SAFETY: set for the duration of `run` on this thread only; callers keep the reference short.
    (!s.is_null()).then(|| unsafe { &mut *s })
}

struct After {
    target: *mut Actor,
    msg: *mut Obj,
}

pub struct Shard {
    pub config: Config,
    pub image: &'static Image,
    pub stats: Stats,
    pub out: Output,
    pub handles: Handles,
    pub reactor: Reactor,
    pub timers: Timers,
    pub heap: Box<Heap>,
    /// Context for releases outside fibers.
    pub ctx: Ctx,
    /// Slots are reused; records stay where they are.
    pub fibers: Vec<Box<Fiber>>,
    free_slots: Vec<u32>,
    queue: VecDeque<u32>,
    /// Actors that are not gone.
    pub actors: Vec<*mut Actor>,
    /// Per class: messages of it change hands as they are.
    pub plain: Vec<bool>,
    /// Actors whose last address went.
    pub orphans: Vec<*mut Actor>,
    pub reclaiming: bool,
    afters: Vec<Option<After>>,
    free_afters: Vec<u32>,
    pub pool: Pool,
    inbox: Arc<Inbox>,
    /// Pool operations whose result has not come.
    pub pool_busy: i64,
    /// Writes that wait for room.
    pub writes_waiting: i64,
    waits: u64,
    births: u64,
    stacks: Stacks,
    /// Bytes of the last read from a socket.
    pub scratch: Vec<u8>,
    /// All fibers are being unwound.
    pub ending: bool,
    /// The stop latch has been acted on, and until when writes may go on.
    pub stopping: bool,
    pub stop_bound: u64,
    main_status: Option<i32>,
    main_trapped: bool,
    last_poll: u64,
    switches: u32,
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
            plain: shim::plain_classes(&image.shapes),
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
        true
    }

    /// Numbers the next wait of the running fiber. Whoever may end it gets the token before the fiber parks.
    pub fn begin_wait(&mut self, f: &mut Fiber) -> Token {
        self.waits += 1;
        f.wait = self.waits;
        f.token()
    }

    fn new_fiber(&mut self) -> u32 {
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

    /// Value of the counter `name`.
    #[must_use]
    pub fn stat(&self, name: &str) -> Option<i64> {
        let s = &self.stats;
        Some(match name {
            "shards" => 1,
            "actors_spawned" => s.actors_spawned,
            "actors_live" => s.actors_live,
            "actors_peak" => s.actors_peak,
            "actors_reclaimed" => s.actors_reclaimed,
            "actors_died" => s.actors_died,
            "fibers_live" => s.fibers_live,
            "fibers_peak" => s.fibers_peak,
            "messages" => s.messages,
            "messages_cross" => s.messages_cross,
            "messages_dropped" => s.messages_dropped,
            "mailbox_peak" => s.mailbox_peak,
            "timers_armed" => s.timers_armed,
            "timers_fired" => s.timers_fired,
            "slices" => s.slices,
            "objects_live" => self.heap.objects_live,
            "heap_bytes" => self.heap.bytes_live,
            "heap_bytes_peak" => s.heap_bytes_peak.max(self.heap.bytes_live),
            "descriptors_open" => self.handles.open,
            "children_live" => 0,
            _ => return None,
        })
    }

    /// Inbox, due timers, ready I/O, in that order; waits for the first of them at most `ns` nanoseconds.
    fn poll(&mut self, ns: u64) {
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
                        actor::deliver(self, a.target, a.msg, "timer message");
                        actor::release(a.target);
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
        self.stop_bound = sys::after(sys::monotonic(), self.config.drain_ms);
        let bound = self.stop_bound;
        for slot in 0..self.fibers.len() {
            let Some(f) = self.fibers.get_mut(slot) else { continue };
            let State::Parked(wait) = f.state else { continue };
            let token = f.token();
            if let Some(outcome) = stop_outcome(wait) {
                let _ = self.wake(token, outcome);
            } else if wait == Wait::Write && f.deadline > bound {
                f.deadline = bound;
                self.timers.arm_fiber(bound, token.slot);
            }
        }
    }

    /// Nothing would happen by itself any more, but for timers and outside input.
    fn quiescent(&self) -> bool {
        self.queue.is_empty() && self.pool_busy == 0 && self.writes_waiting == 0
    }
}

/// What a stop does to a wait; `None`: it goes on.
fn stop_outcome(wait: Wait) -> Option<Outcome> {
    match wait {
        Wait::Sleep | Wait::InputDl => Some(Outcome::Stop),
        Wait::Input | Wait::Resolve => Some(Outcome::Unwind),
        Wait::Write | Wait::Call | Wait::Pool | Wait::Space => None,
    }
}

/// Parks the running fiber in the wait it has begun, until its token is woken or `deadline` passes.
pub fn park(ctx: &mut Ctx, wait: Wait, deadline: u64) -> Outcome {
    let f = fiber::of(ctx);
    let s = f.shard();
    if s.ending {
        return unwind(ctx);
    }
    match stop_outcome(wait).filter(|_| s.stopping) {
        Some(outcome) => {
            // Resolved at once, after the others had a turn.
            f.outcome = outcome;
            f.state = State::Runnable;
            s.queue.push_back(f.slot);
        }
        None => {
            f.state = State::Parked(wait);
            f.deadline = deadline;
            if deadline != sys::NEVER {
                s.timers.arm_fiber(deadline, f.slot);
            }
            if wait != Wait::Space && !f.actor.is_null() {
                // SAFETY: a fiber at work has a live actor.
                actor::parked(s, unsafe { &mut *f.actor });
            }
        }
    }
    fiber::switch(f);
    resumed(ctx)
}

/// The slice is over: others run, then the fiber goes on. Leaves `trap::UNWIND` pending when the program ends.
pub fn yield_now(ctx: &mut Ctx) {
    let f = fiber::of(ctx);
    if f.shard().ending {
        let _ = unwind(ctx);
        return;
    }
    f.state = State::Yielded;
    f.outcome = Outcome::Ready;
    fiber::switch(f);
    let _ = resumed(ctx);
}

fn resumed(ctx: &mut Ctx) -> Outcome {
    let f = fiber::of(ctx);
    ctx.budget = f.shard().config.reductions - 1;
    match f.outcome {
        Outcome::Unwind => unwind(ctx),
        o => o,
    }
}

fn unwind(ctx: &mut Ctx) -> Outcome {
    if ctx.trap == 0 {
        ctx.trap = trap::UNWIND;
        // No stack is to be recorded for it.
        ctx.trap_recorded = true;
    }
    Outcome::Unwind
}

impl Fiber {
    /// The fiber's shard. Short-lived, like every reference into it.
    #[must_use]
    pub fn shard<'a>(&self) -> &'a mut Shard {
        // SAFETY: the shard outlives its fibers and one thread uses both; see the module's rule.
        unsafe { &mut *self.shard }
    }
}

/// Gives the fiber a stack and a coroutine. False when there is no stack.
fn start(s: &mut Shard, slot: u32) -> bool {
    let main = s.fiber(slot).is_some_and(|f| f.actor.is_null());
    let kb = s.config.main_stack_kb;
    let stack = if main { s.stacks.take_large(kb) } else { s.stacks.take() };
    let (Some(stack), Some(f)) = (stack, s.fiber(slot)) else { return false };
    f.ctx.stack_limit = stack.limit_for_code();
    f.ctx.stack_base = stack.base_address();
    f.ctx.trap = 0;
    f.ctx.trap_recorded = false;
    f.ctx.trap_frames.clear();
    f.ctx.caught_frames.clear();
    let p: *mut Fiber = f;
    f.co = Some(Co::with_stack(stack, move |yielder, ()| {
        // SAFETY: the record outlives its coroutine; this runs while the fiber is the running one.
        unsafe { (*p).yielder = yielder };
        if main {
            run_main(p);
            return;
        }
        while actor::turn(p) {
            // SAFETY: as above; no reference is held across the switch.
            unsafe {
                (*p).state = State::Runnable;
                (*p).outcome = Outcome::Ready;
                let slot = (*p).slot;
                (*p).shard().queue.push_back(slot);
                fiber::switch(p);
                if (*p).shard().ending {
                    actor::discard((*p).shard(), &mut *p);
                    return;
                }
            }
        }
    }));
    true
}

fn run_main(p: *mut Fiber) {
    // SAFETY: the running fiber's own record; references end before generated code runs.
    let (ctx, entry) = unsafe {
        let f = &mut *p;
        f.ctx.budget = f.shard().config.reductions - 1;
        (&raw mut f.ctx, f.shard().image.main)
    };
    let status = entry.map_or(0, |main| main(ctx));
    // SAFETY: as above; generated code has returned.
    unsafe { (*p).status = status };
}

/// Runs a fiber until it parks, yields or ends.
fn resume(s: *mut Shard, slot: u32) {
    // SAFETY: the shard lives and this is its thread; no reference is held while the coroutine runs.
    let co: *mut Option<Co> = unsafe {
        let s = &mut *s;
        s.stats.slices += 1;
        let Some(f) = s.fiber(slot) else { return };
        if f.co.is_none() && !start(s, slot) {
            let Some(f) = s.fiber(slot) else { return };
            let p: *mut Fiber = f;
            if (*p).actor.is_null() {
                s.main_status = Some(1);
                sys::stderr_line(&format!("{}: no memory for a stack", s.config.program));
            } else {
                actor::die_unstarted(s, &mut *p);
            }
            finish(s, slot);
            return;
        }
        let Some(f) = s.fiber(slot) else { return };
        f.state = State::Running;
        &raw mut f.co
    };
    // SAFETY: the record's coroutine is touched by this function only, and records do not move.
    let Some(co) = (unsafe { &mut *co }) else { return };
    let done = matches!(co.resume(()), CoroutineResult::Return(()));
    // SAFETY: as above; the fiber has switched back.
    let s = unsafe { &mut *s };
    if !s.out.is_empty() {
        s.out.flush();
    }
    if done {
        finish(s, slot);
    }
    if !s.orphans.is_empty() {
        actor::sweep(s);
    }
}

/// A fiber has ended: its stack and slot are free again.
fn finish(s: &mut Shard, slot: u32) {
    let Some(f) = s.fiber(slot) else { return };
    let main = f.actor.is_null();
    f.state = State::Free;
    f.actor = std::ptr::null_mut();
    f.pool_result = None;
    f.wait = 0;
    let p: *mut Fiber = f;
    if let Some(co) = f.co.take() {
        let stack = co.into_stack();
        if !main {
            s.stacks.give(stack);
        }
    }
    s.stats.fibers_live -= 1;
    if main {
        if s.main_status.is_none() {
            // SAFETY: a live record of this shard.
            let f = unsafe { &mut *p };
            s.main_status = Some(main_ended(s, f));
        }
    } else {
        s.free_slots.push(slot);
    }
}

fn main_ended(s: &mut Shard, f: &mut Fiber) -> i32 {
    s.out.flush();
    match f.ctx.trap {
        0 => i32::try_from(f.status & 0xff).unwrap_or(0),
        trap::UNWIND => {
            f.ctx.trap = 0;
            0
        }
        _ => {
            s.main_trapped = true;
            report::main_trap(&mut f.ctx);
            1
        }
    }
}

/// Runs the program of `s` to its end: `main`, the drain, the unwinding of every fiber. Gives the exit status.
pub fn run(s: *mut Shard) -> i32 {
    let outer = CURRENT.with(|c| c.replace(s));
    // SAFETY: the caller owns the shard, which lives through the call; the loop keeps no reference across `resume`.
    unsafe {
        let _ = (*s).new_fiber();
        let mut drain_until = None;
        loop {
            let sh = &mut *s;
            if sh.main_status.is_some() {
                if sh.main_trapped || !stop::latched() || sh.config.drain_ms == 0 {
                    break;
                }
                let now = sys::monotonic();
                let until = *drain_until.get_or_insert(sys::after(now, sh.config.drain_ms));
                if now >= until {
                    break;
                }
                if sh.queue.is_empty() {
                    sh.last_poll = 0;
                    sh.poll(0);
                    if sh.quiescent() {
                        break;
                    }
                    if sh.queue.is_empty() {
                        sh.poll(until.saturating_sub(now));
                    }
                }
            } else if sh.queue.is_empty() {
                sh.poll(sys::NEVER);
            } else if sh.switches >= SWITCHES {
                sh.poll(0);
            }
            let Some(slot) = sh.queue.pop_front() else { continue };
            sh.switches += 1;
            resume(s, slot);
            let sh = &mut *s;
            if sh.fiber(slot).is_some_and(|f| f.state == State::Yielded) {
                if sh.main_status.is_none() || drain_until.is_some() {
                    sh.poll(0);
                }
                if let Some(f) = sh.fiber(slot) {
                    f.state = State::Runnable;
                }
                sh.queue.push_back(slot);
            }
        }
        end(s);
        let sh = &mut *s;
        let status = sh.main_status.unwrap_or(0);
        let _ = CURRENT.with(|c| c.replace(outer));
        status
    }
}

/// Unwinds the fibers, youngest first, and releases what the actors, timers and monitors own.
unsafe fn end(s: *mut Shard) {
    // SAFETY: as in `run`.
    unsafe {
        let sh = &mut *s;
        let line = sh.config.stats.then(|| sh.stats_line());
        sh.ending = true;
        let mut live: Vec<(u64, u32)> =
            sh.fibers.iter().filter(|f| f.state != State::Free).map(|f| (f.seq, f.slot)).collect();
        live.sort_unstable_by(|a, b| b.cmp(a));
        for (_, slot) in live {
            let sh = &mut *s;
            let Some(f) = sh.fiber(slot) else { continue };
            let f: *mut Fiber = f;
            if (*f).co.is_none() {
                actor::discard(sh, &mut *f);
                finish(sh, slot);
                continue;
            }
            let mut left = UNWIND_RESUMES;
            while (*f).state != State::Free {
                (*f).outcome = Outcome::Unwind;
                if left == 0 {
                    // A defect: the fiber does not let itself be unwound. What it owns is lost.
                    if let Some(co) = (*f).co.as_mut() {
                        co.force_reset();
                    }
                    finish(&mut *s, slot);
                    break;
                }
                left -= 1;
                resume(s, slot);
            }
        }
        let sh = &mut *s;
        sh.queue.clear();
        sh.out.flush();
        // Plain memory need not be released unless someone counts it.
        if sh.config.stats || cfg!(debug_assertions) {
            for a in std::mem::take(&mut sh.afters).into_iter().flatten() {
                shim::release(&mut sh.ctx, a.msg);
                actor::release(a.target);
            }
            sh.reclaiming = true;
            while let Some(&a) = sh.actors.last() {
                actor::empty(sh, &mut *a, Outcome::Closed);
            }
            sh.reclaiming = false;
            actor::sweep(sh);
        }
        if let Some(mut line) = line {
            let objects = format!(" objects_live={}", sh.heap.objects_live);
            line.push_str(&objects);
            sys::stderr_line(&line);
        }
        stop::forget(sh.wake_fd());
    }
}

impl Shard {
    /// The exit line but for `objects_live`, which is known only after everything was released.
    fn stats_line(&self) -> String {
        let mut line = String::from("wostats");
        for name in crate::stats::NAMES {
            if name != "objects_live" {
                line.push_str(&format!(" {name}={}", self.stat(name).unwrap_or(0)));
            }
        }
        line
    }
}

/// Whether the actor is gone; for tests and checks.
#[must_use]
pub fn is_gone(actor: &Actor) -> bool {
    actor.life == Life::Gone
}

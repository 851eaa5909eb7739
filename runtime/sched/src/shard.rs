//! A shard: one thread's run queue, fibers, timers and reactor, and the rounds of checks between slices. References
//! into the shard are short: none is held across a switch of stacks. What other threads may touch is in its port.

use crate::actor::{self, Actor};
use crate::fiber::{Fiber, Outcome, State, Token, Wait};
use crate::output::Output;
use crate::reactor::{Reactor, WAKE};
use crate::shared::{Port, Post, Shared};
use crate::stack::Stacks;
use crate::stats::Counters;
use crate::timer::{Due, Timers};
use crate::trace::{self, Trace};
use crate::{durable, park, proc, shim, stderr, stop, sys};
use abi::desc::Reply;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use values::ctx::{Ctx, Heap, Image};
use values::object::{Obj, prefetch, uncharge};

thread_local! {
    static CURRENT: Cell<*mut Shard> = const { Cell::new(std::ptr::null_mut()) };
}

/// Switches without a round of checks while other fibers stay runnable.
pub const SWITCHES: u32 = 64;
/// Least time between two looks at the reactor while fibers stay runnable, in nanoseconds.
const POLL_GAP: u64 = 20_000;
/// Least time between two samples of the heaps' size while fibers stay runnable, in nanoseconds.
const SAMPLE_GAP: u64 = 1_000_000;
/// Least time between two searches of states for addresses while fibers stay runnable, in nanoseconds.
const SEARCH_GAP: u64 = 50_000_000;
/// How long after something was handed over more is likely to come, in nanoseconds, and how often the inbox is looked at
/// for it: some ten microseconds, about what it takes to sleep and be woken.
const TALK: u64 = 50_000;
const SPINS: u32 = 400;
/// How many times longer than it took a search that found nothing to reclaim is not repeated: a large state whose actor
/// is much used must not be gone through each time that the shard has nothing else to do.
const SEARCH_REST: u64 = 16;
/// How long a shard may sleep while standard output has not taken all of its lines, or standard error, in nanoseconds.
const OUTPUT_GAP: u64 = 2_000_000;
/// Posts for one shard that are handed over at once; others wait for the end of the slice.
const BATCH: usize = 32;

/// Makes `s` the shard of this thread; gives the one before.
pub fn set_current(s: *mut Shard) -> *mut Shard {
    CURRENT.with(|c| c.replace(s))
}

/// The shard of this thread; `None` outside a run.
#[must_use]
pub fn current<'a>() -> Option<&'a mut Shard> {
    let s = CURRENT.with(Cell::get);
    // SAFETY: set for the duration of a run on this thread only; callers keep the reference short.
    (!s.is_null()).then(|| unsafe { &mut *s })
}

/// A message that a timer will send.
pub struct After {
    pub target: *mut Actor,
    pub msg: *mut Obj,
}

pub struct Shard {
    pub id: u16,
    /// The only one of the run.
    pub alone: bool,
    pub image: &'static Image,
    shared: Arc<Shared>,
    pub reductions: i64,
    pub mailbox: u32,
    pub out: Output,
    pub trace: Trace,
    pub children: proc::Local,
    pub reactor: Reactor,
    pub timers: Timers,
    pub heap: Box<Heap>,
    /// Context for releases outside fibers.
    pub ctx: Ctx,
    /// Slots are reused; records stay where they are.
    pub fibers: Vec<Box<Fiber>>,
    pub free_slots: Vec<u32>,
    pub queue: VecDeque<u32>,
    /// Actors that have had a message or a monitor and are not gone.
    pub actors: Vec<*mut Actor>,
    /// Per class: messages of it change hands as they are, within the shard, and to any shard.
    pub plain: Vec<bool>,
    pub flat: Vec<bool>,
    /// Per class: offsets of fields that hold an actor's address.
    pub actor_fields: Vec<Vec<u32>>,
    /// Per class: addresses can lie elsewhere in an object of it.
    pub deep_holders: Vec<bool>,
    /// Actors that may have become unreachable.
    pub orphans: Vec<*mut Actor>,
    /// The same for those whose states must be searched for their own addresses; the time of the last search, and of the
    /// next one at the earliest.
    pub deep_orphans: Vec<*mut Actor>,
    last_search: u64,
    next_search: u64,
    pub reclaiming: bool,
    pub afters: Vec<Option<After>>,
    free_afters: Vec<u32>,
    /// Per shard: what is to be handed over; and the shards that something is for.
    outbox: Vec<Vec<Post>>,
    addressed: Vec<u16>,
    /// Fibers whose writes are not durable yet, in the order of the writes.
    pub commits: VecDeque<durable::Waiting>,
    /// Pool operations whose result has not come.
    pub pool_busy: i64,
    /// Writes that wait for room, and senders that give way: neither waits for ever.
    pub work_waiting: i64,
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
    last_sample: u64,
    /// When another thread's post was last dealt with; never, where there are more shards than processors.
    last_post: u64,
    pub switches: u32,
    /// Reductions of slices that ended since the last round of checks.
    pub spent: i64,
    /// Coroutines that rest in free records.
    pub resting: u32,
}

// SAFETY: nothing of a shard is bound to the thread that made it. It changes threads twice: before its first fiber
// starts and after its last one has ended.
unsafe impl Send for Shard {}

impl Shard {
    /// A complete shard without fibers. Gives the error number of the failing system call.
    pub fn new(id: u16, shared: &Arc<Shared>) -> Result<Box<Shard>, i32> {
        let wake_fd = shared.port(id).map_or(-1, Port::wake_fd);
        let reactor = Reactor::new(wake_fd)?;
        stop::watch(id, wake_fd);
        let image = shared.image;
        let mut heap = Box::new(Heap::default());
        let ctx = Ctx::new(&raw mut *heap, image);
        Ok(Box::new(Shard {
            id,
            alone: shared.alone(),
            image,
            reductions: shared.config.reductions,
            mailbox: shared.config.mailbox,
            stacks: Stacks::new(shared.config.stack_kb),
            plain: shim::plain_classes(&image.shapes, true),
            flat: shim::plain_classes(&image.shapes, false),
            actor_fields: shim::actor_fields(&image.shapes),
            deep_holders: shim::deep_holders(&image.shapes),
            outbox: (0..shared.ports.len()).map(|_| Vec::new()).collect(),
            addressed: Vec::new(),
            shared: Arc::clone(shared),
            children: proc::Local::new(&shared.children),
            trace: Trace::new(shared.config.trace),
            out: Output::default(),
            reactor,
            timers: Timers::default(),
            heap,
            ctx,
            fibers: Vec::new(),
            free_slots: Vec::new(),
            queue: VecDeque::new(),
            actors: Vec::new(),
            orphans: Vec::new(),
            deep_orphans: Vec::new(),
            last_search: 0,
            next_search: 0,
            reclaiming: false,
            afters: Vec::new(),
            free_afters: Vec::new(),
            commits: VecDeque::new(),
            pool_busy: 0,
            work_waiting: 0,
            waits: 0,
            births: 0,
            scratch: vec![0; 64 * 1024],
            ending: false,
            stopping: false,
            stop_bound: sys::NEVER,
            main_status: None,
            main_trapped: false,
            last_poll: 0,
            last_sample: 0,
            last_post: 0,
            switches: 0,
            spent: 0,
            resting: 0,
        }))
    }

    /// What all shards share. The reference is as short as one to the shard itself.
    #[must_use]
    pub fn shared<'a>(&self) -> &'a Shared {
        // SAFETY: this shard keeps it alive.
        unsafe { &*Arc::as_ptr(&self.shared) }
    }

    /// The same to keep.
    #[must_use]
    pub fn share(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    fn port<'a>(&self) -> &'a Port {
        let shared: &'a Shared = self.shared();
        &shared.ports[usize::from(self.id)]
    }

    #[must_use]
    pub fn counters<'a>(&self) -> &'a Counters {
        &self.port().counters
    }

    #[must_use]
    pub fn class_name(&self, class: u32) -> String {
        self.image.shapes.classes.get(class as usize).map_or_else(|| "?".to_string(), |c| c.name.clone())
    }

    /// What `receive` of an actor class replies.
    #[must_use]
    pub fn reply_of(&self, class: u32) -> Option<Reply> {
        self.image.shapes.classes.get(class as usize).and_then(|c| c.reply)
    }

    /// The fiber in a slot.
    pub fn fiber(&mut self, slot: u32) -> Option<&mut Fiber> {
        self.fibers.get_mut(slot as usize).map(|f| &mut **f)
    }

    /// The fiber of this shard that is still parked in this very wait.
    pub fn waiting(&mut self, t: Token) -> Option<&mut Fiber> {
        let id = self.id;
        self.fiber(t.slot).filter(|f| t.shard == id && f.wait == t.wait && f.is_parked())
    }

    /// Ends a wait; false when it has ended already. Of a fiber of another shard only that shard knows: true.
    pub fn wake(&mut self, t: Token, outcome: Outcome) -> bool {
        if t.shard != self.id {
            if t != Token::NONE {
                self.post(t.shard, Post::Wake { to: t, outcome });
            }
            return t != Token::NONE;
        }
        let Some(f) = self.waiting(t) else { return false };
        f.state = State::Runnable;
        f.outcome = outcome;
        let actor = f.actor;
        self.queue.push_back(t.slot);
        self.trace.wake(&self.fibers[t.slot as usize], outcome);
        actor::woken(actor);
        true
    }

    /// Gives a caller its reply: words, whether there are two, whether the first is an address, which nobody gets if
    /// the caller waits no longer.
    pub fn reply(&mut self, to: Token, words: [u64; 2], pair: bool, address: bool) {
        if to.shard != self.id && to != Token::NONE {
            self.post(to.shard, Post::Reply { to, words, pair, address });
            return;
        }
        if let Some(f) = self.waiting(to) {
            f.reply = words;
            f.reply_pair = pair;
            f.reply_address = address;
            let _ = self.wake(to, Outcome::Ready);
        } else if address {
            actor::release_in(self, std::ptr::with_exposed_provenance_mut(words[0] as usize));
        }
    }

    /// Hands something to another shard, in order, at the end of the slice or before.
    pub fn post(&mut self, shard: u16, post: Post) {
        let Some(posts) = self.outbox.get_mut(usize::from(shard)) else { return };
        if posts.is_empty() {
            self.addressed.push(shard);
        }
        posts.push(post);
        if posts.len() >= BATCH {
            let posts = std::mem::replace(posts, Vec::with_capacity(BATCH));
            if let Some(port) = self.shared().port(shard) {
                port.hand(posts);
            }
        }
    }

    /// Hands over what waits for that.
    #[inline]
    pub fn flush_posts(&mut self) {
        if !self.addressed.is_empty() {
            self.hand_posts();
        }
    }

    fn hand_posts(&mut self) {
        while let Some(shard) = self.addressed.pop() {
            let posts = std::mem::take(&mut self.outbox[usize::from(shard)]);
            if let Some(port) = self.shared().port(shard).filter(|_| !posts.is_empty()) {
                port.hand(posts);
            }
        }
    }

    /// Something waits to be handed over.
    #[must_use]
    pub fn has_posts(&self) -> bool {
        !self.addressed.is_empty()
    }

    /// Deals with what has been handed to this shard; how much that was.
    pub fn take_posts(&mut self) -> u64 {
        let port = self.port();
        port.take(|post| self.receive(post))
    }

    fn receive(&mut self, post: Post) {
        match post {
            Post::Message { to, msg, caller } => actor::arrive(self, to, msg, caller),
            Post::Deliver { to, msg, what } => {
                actor::deliver(self, to, msg, what);
                actor::release_in(self, to);
            }
            Post::Reply { to, words, pair, address } => self.reply(to, words, pair, address),
            Post::Wake { to, outcome } => {
                let _ = self.wake(to, outcome);
            }
            Post::Release(actor) => actor::release_in(self, actor),
            Post::Space { of, sender } => {
                actor::wait_for_room(self, of, sender);
                actor::release_in(self, of);
            }
            Post::Room { sender, of } => actor::room(self, sender, of),
            Post::Unused { of } => actor::unused(self, of),
            Post::Monitor { watched, observer, notice } => {
                actor::watch(self, watched, observer, notice);
                actor::release_in(self, watched);
            }
            Post::After { due, to, msg } => actor::arm(self, due, to, msg),
            Post::Done { to, result } => {
                self.pool_busy -= 1;
                if let Some(f) = self.waiting(to) {
                    f.pool_result = result;
                    let _ = self.wake(to, Outcome::Ready);
                }
            }
            Post::Probe(probe) => actor::probe(self, *probe),
        }
    }

    /// Numbers the next wait of the running fiber. Whoever may end it gets the token before the fiber parks.
    pub fn begin_wait(&mut self, f: &mut Fiber) -> Token {
        self.waits += 1;
        f.wait = self.waits;
        f.token()
    }

    /// Prepares for the fibers that come next in the queue: the record of one further on, the stack of a nearer one. With
    /// many fibers each is far from the last one in memory, and finding its page costs more than the switch.
    #[inline]
    pub fn prefetch(&self) {
        let record = |ahead: usize| self.queue.get(ahead).and_then(|slot| self.fibers.get(*slot as usize));
        if let Some(f) = record(5) {
            let at = (&raw const **f).cast::<u8>();
            for line in 0..size_of::<Fiber>() / 64 {
                prefetch(at.wrapping_add(64 * line));
            }
        }
        if let Some(f) = record(2) {
            for line in [-2, -1, 0, 1] {
                prefetch(f.depth.wrapping_offset(64 * line));
            }
        }
    }

    pub fn new_fiber(&mut self) -> u32 {
        self.births += 1;
        self.counters().fiber_started();
        let (heap, image, births) = (&raw mut *self.heap, self.image, self.births);
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            let slot = u32::try_from(self.fibers.len()).unwrap_or(u32::MAX);
            let mut f = Box::new(Fiber {
                ctx: Ctx::new(heap, image),
                co: None,
                yielder: std::ptr::null(),
                depth: std::ptr::null(),
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
                reply_address: false,
                out: [0; 2],
                calling: std::ptr::null_mut(),
                call_start: 0,
                call_deadline: sys::NEVER,
                begun: false,
                rests: false,
                retired: false,
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
            self.resting -= u32::from(self.fibers[slot as usize].co.is_some());
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
        for h in self.shared().handles.held_by(who) {
            self.close(h);
        }
    }

    /// Closes a handle and wakes whoever waits on it.
    pub fn close(&mut self, handle: i64) {
        if (0..=2).contains(&handle) {
            self.out.flush();
            stderr::flush();
        }
        let Some(d) = self.shared().handles.take(handle) else { return };
        for t in d.close() {
            let _ = self.wake(t, Outcome::Closed);
        }
    }

    /// Inbox, due timers, ready I/O, in that order; waits for the first of them at most `ns` nanoseconds.
    pub fn poll(&mut self, ns: u64) {
        self.switches = 0;
        self.spent = 0;
        self.out.flush();
        stderr::flush();
        // A collection between slices may have given up addresses.
        if !self.orphans.is_empty() {
            actor::sweep(self);
        }
        self.flush_posts();
        let now = sys::monotonic();
        // A sweep may have made fibers runnable.
        let ns = if self.queue.is_empty() { ns } else { 0 };
        // Nothing else to do: states may be searched before the shard sleeps.
        let may_search = ns > 0;
        let ns = if self.deep_orphans.is_empty() { ns } else { ns.min(self.search_rest(now)) };
        let look = ns > 0 || now.saturating_sub(self.last_poll) >= POLL_GAP;
        // The clock is read each time; the reactor costs a system call and is looked at once in a while.
        if look {
            self.wait(ns, now);
        }
        if stop::latched() && !self.stopping {
            self.stop();
        }
        trace::answer(self);
        durable::halt_if_failed(self);
        durable::settle(self);
        let posts = self.take_posts();
        let now = if look { sys::monotonic() } else { now };
        if posts > 0 && self.shared().spins {
            self.last_post = now;
        }
        self.last_poll = now;
        self.fire(now);
        if !self.deep_orphans.is_empty() && (may_search || now.saturating_sub(self.last_search) >= SEARCH_GAP) {
            self.search(now);
        }
        if !self.orphans.is_empty() {
            actor::sweep(self);
        }
        if look {
            for i in 0..self.reactor.filled() {
                self.ready(i);
            }
        }
        self.flush_posts();
    }

    /// Another shard has just handed something over and is likely to again: a look at the inbox costs less than being
    /// woken. True: something has come.
    fn spin(&mut self, until_due: u64) -> bool {
        let port = self.port();
        for _ in 0..if until_due < TALK { 0 } else { SPINS } {
            if port.has_come() {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }

    /// Sleeps until there is something to do, at most `ns` nanoseconds, and collects the events of the reactor.
    fn wait(&mut self, ns: u64, now: u64) {
        if ns > 0 || now.saturating_sub(self.last_sample) >= SAMPLE_GAP {
            self.last_sample = now;
            self.publish();
        }
        let port = self.port();
        let may_sleep = ns > 0 && port.may_sleep(self.quiescent());
        if may_sleep && self.id != 0 && self.shared().draining() {
            self.shared().ports[0].kick();
        }
        let ns = ns.min(self.stacks.trim(now, ns > 0));
        let ns = if self.out.is_stuck() || stderr::is_stuck() { ns.min(OUTPUT_GAP) } else { ns };
        let idle = ns == sys::NEVER && self.timers.is_empty();
        let until_due = if idle { sys::NEVER } else { ns.min(self.timers.next().saturating_sub(now)) };
        let talk = may_sleep && now.saturating_sub(self.last_post) < TALK && self.spin(until_due);
        self.reactor.wait(if may_sleep && !talk { until_due } else { 0 });
        if may_sleep {
            port.awake();
        }
        // Before what it may stand for is looked at: a stop or a request that comes later makes a new event.
        if self.reactor.woken() {
            port.calm();
        }
    }

    /// Searches the states that are to be searched, unless it is too early.
    fn search(&mut self, now: u64) {
        if self.search_rest(now) == 0 {
            let in_vain = actor::search(self);
            self.last_search = sys::monotonic();
            self.next_search = self.last_search + SEARCH_REST * in_vain;
        }
    }

    /// How long states are not searched yet, in nanoseconds. A drain waits for the search.
    fn search_rest(&self, now: u64) -> u64 {
        if self.stopping { 0 } else { self.next_search.saturating_sub(now) }
    }

    /// Lets other threads know what this shard's heap holds.
    pub fn publish(&self) {
        let c = self.counters();
        c.objects_live.set(self.heap.objects_live);
        c.heap_bytes.set(self.heap.bytes_live);
        self.shared().sample();
    }

    /// Value of the counter `name`, this shard's part up to date.
    #[must_use]
    pub fn stat(&self, name: &str) -> Option<i64> {
        self.publish();
        self.shared().stat(name)
    }

    fn fire(&mut self, now: u64) {
        while let Some(due) = self.timers.pop(now) {
            match due {
                Due::After(i) => {
                    self.counters().timers_fired.add(1);
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
                        if again != sys::NEVER {
                            self.timers.arm_fiber(again, slot);
                        }
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
            return;
        }
        if r.handle & proc::KEY != 0 {
            proc::ready(self, r.handle);
            return;
        }
        let Some(d) = self.shared().handles.get(r.handle.cast_signed()) else { return };
        let mut state = d.state();
        state.hup |= r.hup;
        if r.read {
            state.drained = false;
            state.reads += 1;
            state.wake_reader(self);
        }
        if r.write {
            state.writes += 1;
            if let Some(t) = state.writer.take() {
                let _ = self.wake(t, Outcome::Ready);
            }
        }
    }

    /// The latch was set: resolves the waits that a stop ends.
    fn stop(&mut self) {
        self.stopping = true;
        self.trace.stop();
        self.stop_bound = sys::after(sys::monotonic(), self.shared().config.drain_ms);
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
        self.port().stopped.store(true, std::sync::atomic::Ordering::SeqCst);
    }

    /// Nothing would happen on this shard by itself any more, but for timers and outside input.
    #[must_use]
    pub fn quiescent(&self) -> bool {
        self.queue.is_empty() && self.pool_busy == 0 && self.work_waiting == 0 && self.deep_orphans.is_empty()
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        stop::forget(self.id, self.port().wake_fd());
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

//! Actors: records with an address count, state and a bounded mailbox; sending, calling, death, reclaiming. An idle
//! actor holds no fiber. Everything here runs on the actor's home shard.

use crate::fiber::{self, Outcome, State, Token, Wait};
use crate::park::park;
use crate::shard::{Shard, current};
use crate::{proc, report, shim, sys};
use abi::desc::Reply;
use abi::trap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use values::ctx::Ctx;
use values::cycles::with_relief;
use values::object::{Obj, charge_extra, uncharge};

/// How long a sender gives way to a busy target, in milliseconds.
const GIVE_WAY_MS: i64 = 200;
/// What a pending timer counts in the program's memory, besides its message: its places in the shard's lists.
pub const TIMER_BYTES: usize = 64;
/// Least time between two notices of one target, in nanoseconds.
const NOTICE_GAP: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Idle,
    /// A fiber is at work, or queued to be.
    Busy,
    /// Died, was reclaimed, or the program ends: no state, no messages.
    Gone,
}

/// A waiting message, owned, and the wait that its reply ends.
pub struct Envelope {
    pub msg: *mut Obj,
    pub caller: Token,
}

struct Monitor {
    observer: *mut Actor,
    notice: *mut Obj,
}

pub struct Actor {
    /// Addresses outside the runtime's own bookkeeping, plus timers and registrations that name the actor.
    refs: AtomicI64,
    pub id: u64,
    /// Home shard.
    pub home: u32,
    pub class: u32,
    pub life: Life,
    /// Slot of the delivery fiber while busy.
    pub fiber: u32,
    pub state: *mut Obj,
    pub mailbox: VecDeque<Envelope>,
    /// Senders that wait for room.
    space: VecDeque<Token>,
    monitors: Vec<Monitor>,
    last_notice: u64,
    /// Fields of the state that can hold an address, at most 255.
    own_slots: u8,
    /// In the shard's queue of actors that may be unreachable.
    queued: bool,
    /// Place in the shard's list of actors that are not gone.
    listed: usize,
}

/// Counts one more address. Null is allowed.
pub extern "C" fn retain(actor: *mut Actor) {
    if !actor.is_null() {
        // SAFETY: the caller holds an address, so the record lives.
        let _ = unsafe { &*actor }.refs.fetch_add(1, Ordering::Relaxed);
    }
}

/// Gives up one address; an idle actor that nothing but itself names is reclaimed. Null is allowed.
pub extern "C" fn release(actor: *mut Actor) {
    release_later(actor);
    if let Some(s) = current()
        && !s.orphans.is_empty()
    {
        sweep(s);
    }
}

/// Gives up one address where nothing may be freed on the spot: in the middle of the release of an object, or while
/// the actor's record is in use. What the actor holds goes with the shard's next `sweep`.
pub fn release_later(actor: *mut Actor) {
    if let Some(s) = current() {
        release_in(s, actor);
    }
}

/// `release_later` for those who have the shard at hand.
pub fn release_in(s: &mut Shard, actor: *mut Actor) {
    if actor.is_null() {
        return;
    }
    // SAFETY: the caller gives up an address it holds, so the record lives until here.
    let a = unsafe { &mut *actor };
    if a.refs.fetch_sub(1, Ordering::AcqRel) - 1 <= i64::from(a.own_slots) {
        suspect(s, a);
    }
}

/// Queues an actor that may have become unreachable, once.
pub fn suspect(s: &mut Shard, actor: &mut Actor) {
    if !actor.queued {
        actor.queued = true;
        s.orphans.push(actor);
    }
}

/// Addresses of itself that an idle actor holds in the fields of its state.
fn own_addresses(s: &Shard, actor: &Actor) -> i64 {
    let Some(offsets) = s.actor_fields.get(actor.class as usize) else { return 0 };
    if actor.state.is_null() {
        return 0;
    }
    let own = offsets.iter().filter(|&&offset| {
        // SAFETY: the state is a live object of the actor's class, whose description gives the offset.
        let word = unsafe { actor.state.cast::<u8>().add(offset as usize).cast::<*const Actor>().read() };
        std::ptr::eq(word, actor)
    });
    i64::try_from(own.count()).unwrap_or(0)
}

/// Reclaims the actors that nothing but themselves names. Releases inside only queue further ones, so that chains take
/// no stack. An address of itself inside a container of an actor's state keeps the actor, as cycles do.
pub fn sweep(s: &mut Shard) {
    if s.reclaiming {
        return;
    }
    s.reclaiming = true;
    while let Some(a) = s.orphans.pop() {
        // SAFETY: queued at most once at a time; records are freed only below, when taken out of the queue.
        let actor = unsafe { &mut *a };
        actor.queued = false;
        let refs = actor.refs.load(Ordering::Acquire);
        match actor.life {
            // Looked at again when it becomes idle.
            Life::Busy => {}
            Life::Gone if refs == 0 => free(s, a),
            Life::Gone => {}
            Life::Idle if refs > own_addresses(s, actor) => {}
            // Looked at again when the child has ended.
            Life::Idle if proc::owns_live(s, actor) => {}
            Life::Idle => {
                s.stats.actors_reclaimed += 1;
                let _ = actor.refs.fetch_add(1, Ordering::Relaxed);
                empty(s, actor, Outcome::Closed);
                let _ = actor.refs.fetch_sub(1, Ordering::AcqRel);
                // Comes out of the queue as one that is gone.
                suspect(s, actor);
            }
        }
    }
    s.reclaiming = false;
}

fn free(s: &mut Shard, actor: *mut Actor) {
    uncharge(&mut s.ctx, size_of::<Actor>());
    // SAFETY: made by `Box::into_raw` in `spawn`; no address is left and it is off the shard's list.
    drop(unsafe { Box::from_raw(actor) });
}

/// Takes everything out of an actor that goes: messages, state, monitors (unfired), its place in the list.
pub fn empty(s: &mut Shard, actor: &mut Actor, callers: Outcome) {
    if actor.life == Life::Gone {
        return;
    }
    actor.life = Life::Gone;
    unlist(s, actor);
    while let Some(e) = actor.mailbox.pop_front() {
        let _ = s.wake(e.caller, callers);
        shim::release(&mut s.ctx, e.msg);
    }
    actor.mailbox = VecDeque::new();
    let state = std::mem::replace(&mut actor.state, std::ptr::null_mut());
    shim::release(&mut s.ctx, state);
    for m in std::mem::take(&mut actor.monitors) {
        shim::release(&mut s.ctx, m.notice);
        release_in(s, m.observer);
    }
    wake_space(s, actor);
}

fn unlist(s: &mut Shard, actor: &Actor) {
    let at = actor.listed;
    if at < s.actors.len() {
        let _ = s.actors.swap_remove(at);
        if let Some(&moved) = s.actors.get(at) {
            // SAFETY: listed actors are live records.
            unsafe { (*moved).listed = at };
        }
        s.stats.actors_live -= 1;
    }
}

fn wake_space(s: &mut Shard, actor: &mut Actor) {
    while let Some(t) = actor.space.pop_front() {
        let _ = s.wake(t, Outcome::Ready);
    }
}

/// The actor's fiber begins to wait for something other than room: senders need not give way any longer.
pub fn parked(s: &mut Shard, actor: &mut Actor) {
    if !actor.space.is_empty() {
        wake_space(s, actor);
    }
}

/// A new actor of this class with this state (consumed); the result is its first address.
/// Null with a pending trap 4 when memory is short.
pub fn spawn(ctx: &mut Ctx, class: u32, state: *mut Obj) -> *mut Actor {
    let state = hand_over(ctx, state);
    if ctx.trap != 0 {
        return std::ptr::null_mut();
    }
    if !with_relief(ctx, |ctx| charge_extra(ctx, size_of::<Actor>())) {
        shim::release(ctx, state);
        return std::ptr::null_mut();
    }
    let s = fiber::of(ctx).shard();
    s.stats.actors_spawned += 1;
    s.stats.actors_live += 1;
    s.stats.actors_peak = s.stats.actors_peak.max(s.stats.actors_live);
    let actor = Box::into_raw(Box::new(Actor {
        refs: AtomicI64::new(1),
        id: s.stats.actors_spawned.unsigned_abs(),
        home: 0,
        class,
        life: Life::Idle,
        fiber: u32::MAX,
        state,
        mailbox: VecDeque::new(),
        space: VecDeque::new(),
        monitors: Vec::new(),
        last_notice: 0,
        own_slots: s.actor_fields.get(class as usize).map_or(0, |f| u8::try_from(f.len()).unwrap_or(u8::MAX)),
        queued: false,
        listed: s.actors.len(),
    }));
    s.actors.push(actor);
    actor
}

/// What became of an attempt to put a message into a mailbox.
enum Put {
    Done,
    /// The target is gone; the message is still the caller's.
    Gone,
    Full,
}

fn put(s: &mut Shard, actor: &mut Actor, msg: *mut Obj, caller: Token) -> Put {
    match actor.life {
        Life::Gone => return Put::Gone,
        Life::Idle => {
            actor.life = Life::Busy;
            actor.fiber = s.start_delivery(actor, msg, caller);
        }
        Life::Busy => {
            if actor.mailbox.len() >= s.config.mailbox {
                return Put::Full;
            }
            actor.mailbox.push_back(Envelope { msg, caller });
            s.stats.mailbox_peak = s.stats.mailbox_peak.max(i64::try_from(actor.mailbox.len()).unwrap_or(i64::MAX));
        }
    }
    s.stats.messages += 1;
    Put::Done
}

/// Puts a message of a fiber, giving way to a busy target whose mailbox is full. False: the message is released; a
/// trap is pending unless the target is gone.
fn put_or_wait(ctx: &mut Ctx, target: *mut Actor, msg: *mut Obj, for_call: bool) -> bool {
    let mut until = 0;
    loop {
        let f = fiber::of(ctx);
        let s = f.shard();
        // The token of the wait that begins right after a successful put.
        let caller = if for_call { s.begin_wait(f) } else { Token::NONE };
        // SAFETY: the caller's frame holds the address.
        let actor = unsafe { &mut *target };
        match put(s, actor, msg, caller) {
            Put::Done => return true,
            Put::Gone => {
                s.stats.messages_dropped += 1;
                shim::release(ctx, msg);
                return false;
            }
            Put::Full => {}
        }
        let now = sys::monotonic();
        if until == 0 {
            until = sys::after(now, GIVE_WAY_MS);
        }
        let yields = s
            .fiber(actor.fiber)
            .is_some_and(|t| matches!(t.state, State::Runnable | State::Yielded | State::Parked(Wait::Space)));
        if target == f.actor || !yields || now >= until {
            s.stats.messages_dropped += 1;
            shim::release(ctx, msg);
            ctx.raise(trap::ACTOR, "actor mailbox full");
            return false;
        }
        let token = s.begin_wait(f);
        actor.space.push_back(token);
        let outcome = park(ctx, Wait::Space, until);
        if outcome != Outcome::Ready {
            // SAFETY: as above.
            let space = unsafe { &mut (*target).space };
            // Waits that are over leave at the front: each lasts 200 ms at most, and looking through all of them would
            // cost the square of a crowd.
            let s = fiber::of(ctx).shard();
            while space.front().is_some_and(|t| s.waiting(*t).is_none()) {
                let _ = space.pop_front();
            }
        }
        if outcome == Outcome::Unwind {
            shim::release(ctx, msg);
            return false;
        }
    }
}

/// `send`. Consumes the message. Traps 6 and 13.
pub fn send(ctx: &mut Ctx, target: *mut Actor, msg: *mut Obj) {
    if refused(ctx, target, msg, "send: nil actor address", "send: nil message") {
        return;
    }
    let msg = hand_over(ctx, msg);
    if !msg.is_null() {
        let _ = put_or_wait(ctx, target, msg, false);
    }
}

/// The message, independent of what its sender keeps; null with a pending trap 4.
fn hand_over(ctx: &mut Ctx, msg: *mut Obj) -> *mut Obj {
    let s = fiber::of(ctx).shard();
    shim::hand_over(ctx, &s.plain, msg)
}

fn refused(ctx: &mut Ctx, target: *mut Actor, msg: *mut Obj, no_target: &str, no_msg: &str) -> bool {
    let text = if target.is_null() {
        no_target
    } else if msg.is_null() {
        no_msg
    } else {
        return false;
    };
    shim::release(ctx, msg);
    ctx.raise(trap::BOUNDS, text);
    true
}

/// What a call came back with.
pub enum Answer {
    /// The words of the reply as `receive` declares it: one (and 0), or tag and value.
    One(u64),
    Pair(u64, u64),
    /// The deadline of `call_dl` passed.
    None,
    /// A trap is pending.
    Trap,
}

/// `call`, and `call_dl` with `ms > 0`. Consumes the message. Traps 6 and 13.
pub fn call(ctx: &mut Ctx, target: *mut Actor, msg: *mut Obj, ms: i64) -> Answer {
    if refused(ctx, target, msg, "call: nil actor address", "call: nil message") {
        return Answer::Trap;
    }
    if fiber::of(ctx).actor == target {
        shim::release(ctx, msg);
        ctx.raise(trap::ACTOR, "actor calls itself");
        return Answer::Trap;
    }
    let msg = hand_over(ctx, msg);
    if msg.is_null() {
        return Answer::Trap;
    }
    let now = sys::monotonic();
    let limit = if ms > 0 { sys::after(now, ms) } else { sys::NEVER };
    if !put_or_wait(ctx, target, msg, true) {
        ctx.raise(trap::ACTOR, "actor died during call");
        return Answer::Trap;
    }
    let f = fiber::of(ctx);
    f.calling = target;
    f.cycle_reported = false;
    f.call_deadline = limit;
    let look = sys::after(now, f.shard().config.cycle_ms);
    let outcome = park(ctx, Wait::Call, limit.min(look));
    let f = fiber::of(ctx);
    f.calling = std::ptr::null_mut();
    match outcome {
        Outcome::Ready if f.reply_pair => Answer::Pair(f.reply[0], f.reply[1]),
        Outcome::Ready => Answer::One(f.reply[0]),
        Outcome::Deadline | Outcome::Stop => Answer::None,
        Outcome::Closed => {
            ctx.raise(trap::ACTOR, "actor died during call");
            Answer::Trap
        }
        Outcome::Unwind => Answer::Trap,
    }
}

/// A timer of a fiber parked in a call fired: its limit, or time to look for a cycle. The time to look again, or
/// `None` when the limit is reached.
pub fn call_timer(s: &mut Shard, slot: u32, now: u64) -> Option<u64> {
    let f = s.fiber(slot)?;
    if now >= f.call_deadline {
        return None;
    }
    let (limit, reported) = (f.call_deadline, f.cycle_reported);
    if !reported {
        report_cycle(s, slot);
    }
    Some(limit.min(sys::after(now, s.config.cycle_ms)))
}

/// Follows the calls from this fiber's target; a way back to the fiber is a cycle.
fn report_cycle(s: &mut Shard, start: u32) {
    let mut members = Vec::new();
    let mut at = start;
    loop {
        let Some(f) = s.fiber(at) else { return };
        if f.state != State::Parked(Wait::Call) || f.calling.is_null() || f.actor.is_null() {
            return;
        }
        members.push(at);
        // SAFETY: the calling fiber's frame holds the address.
        let target = unsafe { &*f.calling };
        if target.life != Life::Busy || members.len() > s.fibers.len() {
            return;
        }
        at = target.fiber;
        if at == start {
            break;
        }
    }
    let mut names = String::new();
    for &slot in &members {
        if let Some(f) = s.fiber(slot) {
            f.cycle_reported = true;
            // SAFETY: a fiber at work has a live actor.
            let class = unsafe { (*f.actor).class };
            names.push_str(&s.class_name(class));
            names.push_str(" -> ");
        }
    }
    if let Some(f) = s.fiber(start) {
        // SAFETY: as above.
        let class = unsafe { (*f.actor).class };
        names.push_str(&s.class_name(class));
    }
    s.out.flush();
    sys::stderr_line(&format!("{}: call cycle: {names}", s.config.program));
}

/// `monitor`. Consumes the notice. Traps 6.
pub fn monitor(ctx: &mut Ctx, watched: *mut Actor, observer: *mut Actor, notice: *mut Obj) {
    let target = if observer.is_null() { observer } else { watched };
    if refused(ctx, target, notice, "monitor: nil actor address", "monitor: nil notice message") {
        return;
    }
    let notice = hand_over(ctx, notice);
    if notice.is_null() {
        return;
    }
    let s = fiber::of(ctx).shard();
    // SAFETY: the caller's frame holds both addresses.
    let w = unsafe { &mut *watched };
    if w.life == Life::Gone {
        deliver(s, observer, notice, "death notice");
        return;
    }
    retain(observer);
    w.monitors.push(Monitor { observer, notice });
}

/// `time.after`. Consumes the message. Traps 6.
pub fn after(ctx: &mut Ctx, ms: i64, target: *mut Actor, msg: *mut Obj) {
    if refused(ctx, target, msg, "time.after: nil actor address", "time.after: nil message") {
        return;
    }
    let msg = hand_over(ctx, msg);
    if msg.is_null() {
        return;
    }
    if ms > 0 && !with_relief(ctx, |ctx| charge_extra(ctx, TIMER_BYTES)) {
        shim::release(ctx, msg);
        return;
    }
    let s = fiber::of(ctx).shard();
    s.stats.timers_armed += 1;
    if ms <= 0 {
        s.stats.timers_fired += 1;
        deliver(s, target, msg, "timer message");
    } else {
        retain(target);
        s.arm_after(sys::after(sys::monotonic(), ms), target, msg);
    }
}

/// A message of the runtime itself, which has no sender to trap. Consumes it.
pub fn deliver(s: &mut Shard, target: *mut Actor, msg: *mut Obj, what: &str) {
    // SAFETY: the caller holds an address for the duration.
    let actor = unsafe { &mut *target };
    match put(s, actor, msg, Token::NONE) {
        Put::Done => return,
        Put::Gone => {}
        Put::Full => {
            let now = sys::monotonic();
            if actor.last_notice == 0 || now.saturating_sub(actor.last_notice) >= NOTICE_GAP {
                actor.last_notice = now;
                s.out.flush();
                let class = s.class_name(actor.class);
                sys::stderr_line(&format!("{}: {class}: mailbox full, {what} dropped", s.config.program));
            }
        }
    }
    s.stats.messages_dropped += 1;
    shim::release(&mut s.ctx, msg);
}

/// Runs `receive` on the fiber's message and settles what follows. True: the fiber has a next message and must give
/// others a turn first.
pub fn turn(f: *mut fiber::Fiber) -> bool {
    // SAFETY: called on the fiber's own stack with its live record; references end before `receive` runs.
    let (ctx, state, msg, out, entry) = unsafe {
        let f = &mut *f;
        let a = &*f.actor;
        f.out = [0, 0];
        let s = f.shard();
        f.ctx.budget = s.config.reductions - 1;
        let entry = s.image.receives.get(a.class as usize).copied().flatten();
        (&raw mut f.ctx, a.state, f.msg, &raw mut f.out, entry)
    };
    if let Some(receive) = entry {
        receive(ctx, state, msg, out);
    }
    // SAFETY: as above; generated code has returned.
    let (f, actor) = unsafe { (&mut *f, &mut *(*f).actor) };
    let s = f.shard();
    let code = f.ctx.trap;
    let caller = std::mem::replace(&mut f.caller, Token::NONE);
    f.msg = std::ptr::null_mut();
    if code != 0 && code != trap::UNWIND {
        die(s, f, actor, msg, caller);
        return false;
    }
    f.ctx.trap = 0;
    shim::release(&mut f.ctx, msg);
    if code == trap::UNWIND {
        let _ = s.wake(caller, Outcome::Closed);
    } else {
        let reply = s.image.shapes.classes.get(actor.class as usize).and_then(|c| c.reply);
        if let Some(waiting) = s.waiting(caller) {
            waiting.reply = f.out;
            waiting.reply_pair = reply == Some(Reply::Pair);
            let _ = s.wake(caller, Outcome::Ready);
        } else if reply == Some(Reply::Actor) {
            // Nobody waits, or not any more: the address that `receive` gave is given up.
            release_in(s, std::ptr::with_exposed_provenance_mut(f.out[0] as usize));
        }
    }
    if s.ending {
        return false;
    }
    if let Some(next) = actor.mailbox.pop_front() {
        if actor.mailbox.is_empty() && actor.mailbox.capacity() > 64 {
            actor.mailbox = VecDeque::new();
        }
        f.msg = next.msg;
        f.caller = next.caller;
        while let Some(t) = actor.space.pop_front() {
            if s.wake(t, Outcome::Ready) {
                break;
            }
        }
        return true;
    }
    actor.life = Life::Idle;
    actor.fiber = u32::MAX;
    if actor.refs.load(Ordering::Acquire) <= i64::from(actor.own_slots) {
        suspect(s, actor);
    }
    false
}

/// The order of effects of a death.
fn die(s: &mut Shard, f: &mut fiber::Fiber, actor: &mut Actor, msg: *mut Obj, caller: Token) {
    s.stats.actors_died += 1;
    s.out.flush();
    let of = format!("  in actor {} handling {}", s.class_name(actor.class), report::class_of(s.image, msg));
    report::fiber_trap(&mut f.ctx, &of);
    proc::owner_died(s, actor);
    s.close_held_by(actor.id);
    // Kept alive while its parts are released.
    let _ = actor.refs.fetch_add(1, Ordering::Relaxed);
    let monitors = std::mem::take(&mut actor.monitors);
    shim::release(&mut f.ctx, msg);
    let _ = s.wake(caller, Outcome::Closed);
    empty(s, actor, Outcome::Closed);
    for m in monitors {
        deliver(s, m.observer, m.notice, "death notice");
        release_in(s, m.observer);
    }
    release_in(s, actor);
}

/// Drops a delivery that never ran.
pub fn discard(s: &mut Shard, f: &mut fiber::Fiber) {
    let msg = std::mem::replace(&mut f.msg, std::ptr::null_mut());
    let caller = std::mem::replace(&mut f.caller, Token::NONE);
    let _ = s.wake(caller, Outcome::Closed);
    shim::release(&mut s.ctx, msg);
}

/// No stack could be had for a delivery: the actor dies of it.
pub fn die_unstarted(s: &mut Shard, f: &mut fiber::Fiber) {
    f.ctx.raise(trap::OOM, trap::OUT_OF_MEMORY);
    let msg = std::mem::replace(&mut f.msg, std::ptr::null_mut());
    let caller = std::mem::replace(&mut f.caller, Token::NONE);
    // SAFETY: a delivery fiber has a live actor.
    let actor = unsafe { &mut *f.actor };
    die(s, f, actor, msg, caller);
}

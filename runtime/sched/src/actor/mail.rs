//! Messages: handing them over, the mailbox and its cap, giving way to a busy target, monitors and timers.

use super::life::{list, release_in, suspect};
use super::{Actor, Envelope, Monitor, TIMER_BYTES, at, retain};
use crate::counts::Phase;
use crate::fiber::{self, Outcome, Token, Wait};
use crate::park::park;
use crate::shard::Shard;
use crate::shared::Post;
use crate::{shim, stderr, sys};
use abi::trap;
use values::ctx::Ctx;
use values::cycles::with_relief;
use values::object::{Obj, charge_extra, prefetch, uncharge};

/// Messages whose places are freed together, at most.
const PLACES: u8 = 16;
/// How long a sender gives way to a busy target, in milliseconds.
const GIVE_WAY_MS: i64 = 200;
/// Least time between two notices of one target, in nanoseconds.
const NOTICE_GAP: u64 = 1_000_000_000;

/// What became of an attempt to put a message into a mailbox.
enum Put {
    Done,
    /// The target is gone; the message is still the caller's.
    Gone,
    Full,
}

/// One attempt, from any shard. `waited`: the sender has waited for room; others queue behind those who wait.
#[inline]
fn put(s: &mut Shard, target: *mut Actor, msg: *mut Obj, caller: Token, waited: bool) -> Put {
    let a = at(target);
    let home = a.is_home(s);
    match a.counts.phase() {
        Phase::Gone => return Put::Gone,
        Phase::Idle if home => begin(s, target, msg, caller),
        Phase::Idle | Phase::Ready | Phase::Parked => {
            if a.counts.crowded() && !waited {
                return Put::Full;
            }
            let mut place = a.counts.reserve(s.mailbox, s.alone);
            if place.is_none() && home {
                settle_places(s, target);
                place = a.counts.reserve(s.mailbox, s.alone);
            }
            let Some(waiting) = place else { return Put::Full };
            let c = s.counters();
            if i64::from(waiting) > c.mailbox_peak.get() {
                c.mailbox_peak.set(i64::from(waiting));
            }
            if home {
                a.local().mailbox.push_back(Envelope { msg, caller });
            } else {
                c.messages_cross.add(1);
                s.post(a.home, Post::Message { to: target, msg, caller });
            }
        }
    }
    s.counters().messages.add(1);
    Put::Done
}

/// An idle actor gets a message.
fn begin(s: &mut Shard, actor: *mut Actor, msg: *mut Obj, caller: Token) {
    let a = at(actor);
    a.counts.set_phase(Phase::Ready);
    list(s, actor);
    a.local().fiber = s.start_delivery(actor, msg, caller);
}

/// A message of another shard has come; its place was reserved.
pub fn arrive(s: &mut Shard, to: *mut Actor, msg: *mut Obj, caller: Token) {
    let a = at(to);
    // Another processor has written it.
    prefetch(msg.cast_const().cast());
    match a.counts.phase() {
        Phase::Ready | Phase::Parked if !s.ending => {
            a.local().mailbox.push_back(Envelope { msg, caller });
            return;
        }
        Phase::Idle if !s.ending => begin(s, to, msg, caller),
        _ => {
            let _ = s.wake(caller, Outcome::Closed);
            shim::release(&mut s.ctx, msg);
        }
    }
    a.counts.leave(1, s.alone);
    if a.counts.phase() == Phase::Gone || s.ending {
        suspect(s, to);
    } else {
        give_room(s, to);
    }
}

/// The next message of an actor whose fiber is done with one.
pub(super) fn next_message(s: &mut Shard, actor: *mut Actor) -> Option<Envelope> {
    let a = at(actor);
    let l = a.local();
    let next = l.mailbox.pop_front()?;
    if l.mailbox.is_empty() && l.mailbox.capacity() > 64 {
        l.mailbox = std::collections::VecDeque::new();
    }
    l.left += 1;
    if s.alone || l.left >= PLACES || l.rare.is_some() {
        settle_places(s, actor);
        give_room(s, actor);
    }
    Some(next)
}

/// Frees the places of messages that have left the mailbox. Senders of other shards look at the same word all the time,
/// so it is written once for some messages, and whenever the actor begins to wait: before a sender may be refused.
pub(super) fn settle_places(s: &Shard, actor: *mut Actor) {
    let a = at(actor);
    let left = std::mem::take(&mut a.local().left);
    if left > 0 {
        a.counts.leave(u32::from(left), s.alone);
    }
}

/// Wakes senders that wait for room, as many as there is room for, once a quarter of the mailbox is free: waking each
/// for one place would have sender and target take turns.
pub(super) fn give_room(s: &mut Shard, actor: *mut Actor) {
    let a = at(actor);
    if a.local().rare.as_ref().is_none_or(|r| r.space.is_empty()) {
        return;
    }
    let free = s.mailbox.saturating_sub(a.counts.waiting());
    if a.counts.phase() == Phase::Ready && free < s.mailbox.div_ceil(4) {
        return;
    }
    wake_senders(s, actor, free);
}

/// Tells a sender that there may be room. False: it does not wait any longer.
pub(super) fn tell(s: &mut Shard, actor: *mut Actor, sender: Token) -> bool {
    at(actor).counts.owe();
    if sender.shard != s.id {
        retain(actor);
        s.post(sender.shard, Post::Room { sender, of: actor });
        return true;
    }
    let waits = s.wake(sender, Outcome::Ready);
    if !waits {
        at(actor).counts.settle();
    }
    waits
}

/// On the sender's shard: it may try again. Consumes an address. If it waits no longer, the room is for the next one: an
/// idle target takes no step by which it would be told.
pub fn room(s: &mut Shard, sender: Token, of: *mut Actor) {
    if s.wake(sender, Outcome::Ready) {
        release_in(s, of);
    } else {
        at(of).counts.settle();
        s.post(at(of).home, Post::Unused { of });
    }
}

/// On the home shard: a sender that was told of room did not wait any longer. Consumes an address.
pub fn unused(s: &mut Shard, of: *mut Actor) {
    give_room(s, of);
    release_in(s, of);
}

/// Wakes senders that wait for room, `most` of them.
fn wake_senders(s: &mut Shard, actor: *mut Actor, most: u32) {
    let a = at(actor);
    let Some(rare) = a.local().rare.as_mut() else { return };
    let mut left = most;
    while left > 0
        && let Some(t) = rare.space.pop_front()
    {
        left -= u32::from(tell(s, actor, t));
    }
    a.counts.set_crowded(!rare.space.is_empty());
}

/// The wait of an actor's fiber is over; null: of `main`.
pub fn woken(actor: *mut Actor) {
    if !actor.is_null() {
        at(actor).counts.set_phase(Phase::Ready);
    }
}

/// The actor's fiber begins to wait for something other than room: senders need not give way any longer.
pub fn parked(s: &mut Shard, actor: *mut Actor) {
    settle_places(s, actor);
    at(actor).counts.set_phase(Phase::Parked);
    wake_senders(s, actor, u32::MAX);
}

/// On the home shard: a sender has found the mailbox full and waits to try again.
pub fn wait_for_room(s: &mut Shard, actor: *mut Actor, sender: Token) {
    let a = at(actor);
    settle_places(s, actor);
    let waiting = a.counts.waiting();
    let full = waiting >= s.mailbox || a.counts.crowded();
    // Whoever is queued relies on the target's next step: one that is idle, with no message under way, takes none.
    let steps = match a.counts.phase() {
        Phase::Ready => true,
        Phase::Idle => waiting > 0,
        Phase::Parked | Phase::Gone => false,
    };
    if !full || !steps {
        let _ = tell(s, actor, sender);
        return;
    }
    let rare = a.local().rare.get_or_insert_default();
    // Waits that are over leave at the front: each lasts 200 ms at most, and looking through all of them would cost the
    // square of a crowd.
    while rare.space.front().is_some_and(|t| t.shard == s.id && s.waiting(*t).is_none()) {
        let _ = rare.space.pop_front();
    }
    rare.space.push_back(sender);
    a.counts.set_crowded(true);
}

/// Puts a message of a fiber, giving way to a busy target whose mailbox is full. False: the message is released; a
/// trap is pending unless the target is gone.
#[inline]
pub(super) fn put_or_wait(ctx: &mut Ctx, target: *mut Actor, msg: *mut Obj, for_call: bool) -> bool {
    match attempt(ctx, target, msg, for_call, false) {
        Put::Done => true,
        Put::Full => give_way(ctx, target, msg, for_call),
        Put::Gone => {
            drop_message(ctx, msg);
            false
        }
    }
}

#[inline]
fn attempt(ctx: &mut Ctx, target: *mut Actor, msg: *mut Obj, for_call: bool, waited: bool) -> Put {
    let f = fiber::of(ctx);
    let s = f.shard();
    // The token of the wait that begins right after a successful put.
    let caller = if for_call { s.begin_wait(f) } else { Token::NONE };
    put(s, target, msg, caller, waited)
}

fn drop_message(ctx: &mut Ctx, msg: *mut Obj) {
    fiber::of(ctx).shard().counters().messages_dropped.add(1);
    shim::release(ctx, msg);
}

/// The rest of `put_or_wait` where the mailbox is full.
#[cold]
fn give_way(ctx: &mut Ctx, target: *mut Actor, msg: *mut Obj, for_call: bool) -> bool {
    let until = sys::deadline(GIVE_WAY_MS);
    loop {
        let a = at(target);
        // One more try once it is known that the target will not make room: it may have taken a message before it began
        // to wait.
        let last = target == fiber::of(ctx).actor || sys::monotonic() >= until || a.counts.phase() == Phase::Parked;
        if !last && !wait_for_step(ctx, target, until) {
            shim::release(ctx, msg);
            return false;
        }
        match attempt(ctx, target, msg, for_call, true) {
            Put::Done => return true,
            Put::Full if !last => {}
            put => {
                drop_message(ctx, msg);
                if let Put::Full = put {
                    ctx.raise(trap::ACTOR, "actor mailbox full");
                }
                return false;
            }
        }
    }
}

/// Parks until the target has room or waits itself, or until then. False: the program ends.
fn wait_for_step(ctx: &mut Ctx, target: *mut Actor, until: u64) -> bool {
    let f = fiber::of(ctx);
    let s = f.shard();
    let token = s.begin_wait(f);
    let a = at(target);
    if a.is_home(s) {
        wait_for_room(s, target, token);
    } else {
        retain(target);
        s.post(a.home, Post::Space { of: target, sender: token });
    }
    s.work_waiting += 1;
    let outcome = park(ctx, Wait::Space, until);
    fiber::of(ctx).shard().work_waiting -= 1;
    if outcome == Outcome::Ready {
        a.counts.settle();
    }
    outcome != Outcome::Unwind
}

/// `send`. Consumes the message. Traps 6 and 13.
pub fn send(ctx: &mut Ctx, target: *mut Actor, msg: *mut Obj) {
    if refused(ctx, target, msg, "send: nil actor address", "send: nil message") {
        return;
    }
    let msg = hand_over(ctx, at(target).home, msg);
    if !msg.is_null() {
        let _ = put_or_wait(ctx, target, msg, false);
    }
}

/// The message, independent of what its sender keeps; null with a pending trap 4.
pub(super) fn hand_over(ctx: &mut Ctx, home: u16, msg: *mut Obj) -> *mut Obj {
    let s = fiber::of(ctx).shard();
    let here = home == s.id;
    shim::hand_over(ctx, if here { &s.plain } else { &s.flat }, here, msg)
}

pub(super) fn refused(ctx: &mut Ctx, target: *mut Actor, msg: *mut Obj, no_target: &str, no_msg: &str) -> bool {
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

/// `monitor`. Consumes the notice. Traps 6.
pub fn monitor(ctx: &mut Ctx, watched: *mut Actor, observer: *mut Actor, notice: *mut Obj) {
    let target = if observer.is_null() { observer } else { watched };
    if refused(ctx, target, notice, "monitor: nil actor address", "monitor: nil notice message") {
        return;
    }
    let s = fiber::of(ctx).shard();
    let w = at(watched);
    // It waits on the home shard of the watched and may be released there: it must share nothing on its way either.
    let way = if w.is_home(s) { at(observer).home } else { w.home };
    let notice = hand_over(ctx, way, notice);
    if notice.is_null() {
        return;
    }
    if w.counts.phase() == Phase::Gone {
        deliver(s, observer, notice, "death notice");
        return;
    }
    retain(observer);
    if w.is_home(s) {
        watch(s, watched, observer, notice);
    } else {
        retain(watched);
        s.post(w.home, Post::Monitor { watched, observer, notice });
    }
}

/// On the home shard of `watched`: keeps the notice until it dies. Consumes the address of the observer.
pub fn watch(s: &mut Shard, watched: *mut Actor, observer: *mut Actor, notice: *mut Obj) {
    let w = at(watched);
    if w.counts.phase() == Phase::Gone || s.ending {
        deliver(s, observer, notice, "death notice");
        release_in(s, observer);
    } else {
        list(s, watched);
        w.local().rare.get_or_insert_default().monitors.push(Monitor { observer, notice });
    }
}

/// `time.after`. Consumes the message. Traps 6.
pub fn after(ctx: &mut Ctx, ms: i64, target: *mut Actor, msg: *mut Obj) {
    if refused(ctx, target, msg, "time.after: nil actor address", "time.after: nil message") {
        return;
    }
    let msg = hand_over(ctx, at(target).home, msg);
    if msg.is_null() {
        return;
    }
    if ms > 0 && !with_relief(ctx, |ctx| charge_extra(ctx, TIMER_BYTES)) {
        shim::release(ctx, msg);
        return;
    }
    let s = fiber::of(ctx).shard();
    s.counters().timers_armed.add(1);
    if ms <= 0 {
        s.counters().timers_fired.add(1);
        deliver(s, target, msg, "timer message");
        return;
    }
    retain(target);
    let due = sys::after(sys::monotonic(), ms);
    let home = at(target).home;
    if home == s.id {
        arm(s, due, target, msg);
    } else {
        s.post(home, Post::After { due, to: target, msg });
    }
}

/// On the target's home shard: sends the message when it is due. Consumes an address of the target.
pub fn arm(s: &mut Shard, due: u64, target: *mut Actor, msg: *mut Obj) {
    if s.ending {
        uncharge(&mut s.ctx, TIMER_BYTES);
        shim::release(&mut s.ctx, msg);
        release_in(s, target);
    } else {
        s.arm_after(due, target, msg);
    }
}

/// A message of the runtime itself, which has no sender to trap. Consumes it; the caller holds an address. Where there is
/// room it takes its place at once, before what its sender sends afterwards. Else the home shard says whether there is.
pub fn deliver(s: &mut Shard, target: *mut Actor, msg: *mut Obj, what: &'static str) {
    let home = at(target).home;
    let put = if s.ending { Put::Gone } else { put(s, target, msg, Token::NONE, true) };
    match put {
        Put::Full if home != s.id => {
            s.counters().messages_cross.add(1);
            retain(target);
            s.post(home, Post::Deliver { to: target, msg, what });
            return;
        }
        Put::Done => return,
        Put::Gone => {}
        Put::Full => {
            let (a, now) = (at(target), sys::monotonic());
            let rare = a.local().rare.get_or_insert_default();
            let last = rare.last_notice;
            if last == 0 || now.saturating_sub(last) >= NOTICE_GAP {
                rare.last_notice = now;
                s.out.flush();
                let class = s.class_name(a.class());
                stderr::line(&format!("{}: {class}: mailbox full, {what} dropped", s.shared().config.program));
            }
        }
    }
    s.counters().messages_dropped.add(1);
    shim::release(&mut s.ctx, msg);
}

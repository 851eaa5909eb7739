//! Birth, turns, death and reclaiming of actors. All but `spawn` and the release of addresses happens on the home shard.

use super::mail::{deliver, give_room, hand_over, next_message, settle_places, tell};
use super::{Actor, DEEP, Local, NONE, Rare, at};
use crate::counts::{Counts, Phase};
use crate::fiber::{self, Outcome, Token};
use crate::shard::{Shard, current};
use crate::shared::Post;
use crate::{proc, report, shim, sys};
use abi::desc::Reply;
use abi::trap;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use values::ctx::Ctx;
use values::cycles::with_relief;
use values::object::{Obj, charge_extra, uncharge};

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
    let a = at(actor);
    let own = a.own_most();
    if a.is_home(s) {
        if a.counts.release_home() <= own {
            suspect(s, actor);
        }
    } else if !a.counts.release_away(own) {
        s.post(a.home, Post::Release(actor));
    }
}

/// Queues an actor that may have become unreachable, once. One whose state must be searched, because an address is left,
/// waits for a time when the shard has little to do.
pub fn suspect(s: &mut Shard, actor: *mut Actor) {
    let a = at(actor);
    let local = a.local();
    if a.own_slots == DEEP && a.counts.refs() > 0 && a.counts.phase() != Phase::Gone {
        if !local.queued_deep {
            local.queued_deep = true;
            s.deep_orphans.push(actor);
        }
    } else {
        queue(s, actor);
    }
}

/// Puts an actor into the queue of the next `sweep`, once.
fn queue(s: &mut Shard, actor: *mut Actor) {
    if !std::mem::replace(&mut at(actor).local().queued, true) {
        s.orphans.push(actor);
    }
}

/// Looks at the suspects whose states must be searched: those that only they themselves name go to `sweep`. The time
/// that went into the others, in nanoseconds.
pub fn search(s: &mut Shard) -> u64 {
    let mut in_vain = 0;
    for actor in std::mem::take(&mut s.deep_orphans) {
        let a = at(actor);
        a.local().queued_deep = false;
        match a.counts.phase() {
            Phase::Ready | Phase::Parked => a.local().look_when_idle = true,
            Phase::Gone => suspect(s, actor),
            Phase::Idle => {
                let began = sys::monotonic();
                if owned_by_none(s, actor) {
                    queue(s, actor);
                } else {
                    a.local().look_when_idle = a.counts.waiting() > 0;
                    in_vain += sys::monotonic() - began;
                }
            }
        }
    }
    in_vain
}

/// Addresses of itself that an idle actor holds in its state.
fn own_addresses(s: &mut Shard, actor: *mut Actor) -> i64 {
    let a = at(actor);
    let state = a.local().state;
    if a.own_slots == DEEP {
        // SAFETY: the state of an idle actor, which belongs to this shard, or null.
        return unsafe { values::reach::addresses(&mut s.ctx, state, actor.cast_const().cast()) };
    }
    let Some(offsets) = s.actor_fields.get(a.class() as usize).filter(|_| !state.is_null()) else { return 0 };
    let own = offsets.iter().filter(|&&offset| {
        // SAFETY: the state is a live object of the actor's class, whose description gives the offset.
        let word = unsafe { state.cast::<u8>().add(offset as usize).cast::<*mut Actor>().read() };
        word == actor
    });
    i64::try_from(own.count()).unwrap_or(0)
}

/// Nothing but the actor itself names it, and no message is on its way: looked at when it is idle or gone.
fn owned_by_none(s: &mut Shard, actor: *mut Actor) -> bool {
    // Addresses first: see `counts`.
    let refs = at(actor).counts.refs();
    (refs == 0 || refs <= own_addresses(s, actor)) && at(actor).counts.waiting() == 0
}

/// Reclaims the actors that nothing but themselves names. Releases inside only queue further ones, so that chains take
/// no stack.
pub fn sweep(s: &mut Shard) {
    if s.reclaiming {
        return;
    }
    s.reclaiming = true;
    while let Some(actor) = s.orphans.pop() {
        let a = at(actor);
        a.local().queued = false;
        match a.counts.phase() {
            Phase::Ready | Phase::Parked => a.local().look_when_idle = true,
            // Its last address may have come home before a message that another shard sent.
            Phase::Idle | Phase::Gone if !owned_by_none(s, actor) => a.local().look_when_idle = a.counts.waiting() > 0,
            // It is still in the other queue, and comes back from there.
            Phase::Gone if a.local().queued_deep => {}
            Phase::Gone => free(s, actor),
            // Looked at again when the child has ended.
            Phase::Idle if proc::owns_live(s, actor) => {}
            Phase::Idle => {
                s.counters().actors_reclaimed.add(1);
                a.counts.retain();
                empty(s, actor, Outcome::Closed);
                let _ = a.counts.release_home();
                // Comes out of the queue as one that is gone.
                suspect(s, actor);
            }
        }
    }
    s.reclaiming = false;
}

fn free(s: &mut Shard, actor: *mut Actor) {
    uncharge(&mut s.ctx, size_of::<Actor>());
    // SAFETY: made by `Box::into_raw` in `spawn`; no address is left, nothing is on its way, and it is in no list.
    drop(unsafe { Box::from_raw(actor) });
}

/// Takes everything out of an actor that goes: messages, state, monitors (unfired), its place in the list. Messages on
/// their way to it are dropped when they arrive.
pub fn empty(s: &mut Shard, actor: *mut Actor, callers: Outcome) {
    let a = at(actor);
    if a.counts.phase() == Phase::Gone {
        return;
    }
    a.counts.set_phase(Phase::Gone);
    s.shared().actor_gone();
    unlist(s, actor);
    let (state, mailbox, rare) = {
        let l = a.local();
        (std::mem::replace(&mut l.state, std::ptr::null_mut()), std::mem::take(&mut l.mailbox), l.rare.take())
    };
    settle_places(s, actor);
    for e in mailbox {
        a.counts.leave(1, s.alone);
        let _ = s.wake(e.caller, callers);
        shim::release(&mut s.ctx, e.msg);
    }
    shim::release(&mut s.ctx, state);
    let Rare { space, monitors, .. } = rare.map_or_else(Rare::default, |r| *r);
    for m in monitors {
        shim::release(&mut s.ctx, m.notice);
        release_in(s, m.observer);
    }
    for t in space {
        let _ = tell(s, actor, t);
    }
}

/// Puts an actor that has had its first message or monitor into the shard's list. Others need not be in it: such an
/// actor names only older ones, so it is on no cycle and goes with its last address.
pub fn list(s: &mut Shard, actor: *mut Actor) {
    let l = at(actor).local();
    if l.listed == NONE {
        l.listed = u32::try_from(s.actors.len()).unwrap_or(NONE);
        s.actors.push(actor);
    }
}

fn unlist(s: &mut Shard, actor: *mut Actor) {
    let place = std::mem::replace(&mut at(actor).local().listed, NONE);
    if (place as usize) < s.actors.len() {
        let _ = s.actors.swap_remove(place as usize);
        if let Some(&moved) = s.actors.get(place as usize) {
            at(moved).local().listed = place;
        }
    }
}

/// A new actor of this class with this state (consumed); the result is its first address.
/// Null with a pending trap 4 when memory is short.
pub fn spawn(ctx: &mut Ctx, class: u32, state: *mut Obj) -> *mut Actor {
    if !with_relief(ctx, |ctx| charge_extra(ctx, size_of::<Actor>())) {
        shim::release(ctx, state);
        return std::ptr::null_mut();
    }
    let s = fiber::of(ctx).shard();
    let (id, home) = s.shared().place();
    let state = hand_over(ctx, home, state);
    if ctx.trap != 0 {
        uncharge(ctx, size_of::<Actor>());
        return std::ptr::null_mut();
    }
    s.counters().actors_spawned.add(1);
    s.shared().actor_born();
    let deep = s.deep_holders.get(class as usize).copied().unwrap_or(false);
    let fields = s.actor_fields.get(class as usize).map_or(0, |f| u8::try_from(f.len()).unwrap_or(DEEP));
    let own_slots = if deep { DEEP } else { fields };
    let actor = Box::into_raw(Box::new(Actor {
        counts: Counts::default(),
        id,
        home,
        own_slots,
        local: UnsafeCell::new(Local {
            state,
            mailbox: VecDeque::new(),
            rare: None,
            class,
            fiber: NONE,
            listed: NONE,
            left: 0,
            queued: false,
            queued_deep: false,
            look_when_idle: false,
        }),
    }));
    s.trace.spawn(at(actor));
    actor
}

/// Runs `receive` on the fiber's message and settles what follows. True: the fiber has a next message and must give
/// others a turn first.
pub fn turn(f: *mut fiber::Fiber) -> bool {
    // SAFETY: called on the fiber's own stack with its live record; references end before `receive` runs.
    let (ctx, state, msg, out, entry) = unsafe {
        let f = &mut *f;
        let a = at(f.actor);
        f.out = [0, 0];
        let s = f.shard();
        s.trace.deliver(f);
        f.ctx.budget = s.reductions - 1;
        let entry = s.image.receives.get(a.class() as usize).copied().flatten();
        (&raw mut f.ctx, a.local().state, f.msg, &raw mut f.out, entry)
    };
    if let Some(receive) = entry {
        receive(ctx, state, msg, out);
    }
    // SAFETY: as above; generated code has returned.
    let f = unsafe { &mut *f };
    let s = f.shard();
    let code = f.ctx.trap;
    let caller = std::mem::replace(&mut f.caller, Token::NONE);
    f.msg = std::ptr::null_mut();
    if code != 0 && code != trap::UNWIND {
        die(s, f, msg, caller);
        return false;
    }
    f.ctx.trap = 0;
    shim::release(&mut f.ctx, msg);
    if code == trap::UNWIND {
        let _ = s.wake(caller, Outcome::Closed);
    } else {
        let reply = s.reply_of(at(f.actor).class());
        s.reply(caller, f.out, reply == Some(Reply::Pair), reply == Some(Reply::Actor));
    }
    if s.ending {
        return false;
    }
    if let Some(next) = next_message(s, f.actor) {
        f.msg = next.msg;
        f.caller = next.caller;
        return true;
    }
    let a = at(f.actor);
    a.local().fiber = NONE;
    settle_places(s, f.actor);
    a.counts.set_phase(Phase::Idle);
    give_room(s, f.actor);
    let look =
        std::mem::take(&mut a.local().look_when_idle) || (a.own_slots != DEEP && a.counts.refs() <= a.own_most());
    if look {
        suspect(s, f.actor);
    }
    false
}

/// The order of effects of a death.
fn die(s: &mut Shard, f: &mut fiber::Fiber, msg: *mut Obj, caller: Token) {
    let actor = f.actor;
    let a = at(actor);
    s.counters().actors_died.add(1);
    s.trace.trap(f);
    s.out.flush();
    let of = format!("  in actor {} handling {}", s.class_name(a.class()), report::class_of(s.image, msg));
    report::fiber_trap(&mut f.ctx, &of);
    proc::owner_died(s, actor);
    s.close_held_by(a.id);
    // Kept alive while its parts are released.
    a.counts.retain();
    let monitors = a.local().rare.as_mut().map(|r| std::mem::take(&mut r.monitors)).unwrap_or_default();
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
    die(s, f, msg, caller);
}

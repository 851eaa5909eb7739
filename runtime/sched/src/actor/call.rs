//! `call` and `call_dl`: a send after which the fiber parks, and the search for calls that wait for each other.

use super::life::release_in;
use super::mail::{hand_over, put_or_wait, refused};
use super::{Actor, NONE, at, retain};
use crate::counts::Phase;
use crate::fiber::{self, Outcome, State, Token, Wait};
use crate::park::park;
use crate::shard::Shard;
use crate::shared::Post;
use crate::{shim, stderr, sys};
use abi::trap;
use values::ctx::Ctx;
use values::object::Obj;

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
    let msg = hand_over(ctx, at(target).home, msg);
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
    f.reply_address = false;
    f.call_start = now;
    f.call_deadline = limit;
    let look = sys::after(now, f.shard().shared().config.cycle_ms);
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
        Outcome::Unwind => {
            // The program ends, and the reply has come all the same.
            if f.reply_address {
                release_in(f.shard(), std::ptr::with_exposed_provenance_mut(f.reply[0] as usize));
            }
            Answer::Trap
        }
    }
}

/// A timer of a fiber parked in a call fired: its limit, or time to look for a cycle. The time of the next, or `None`
/// when the limit is reached. Whoever closes a cycle finds it, so each call is looked at once.
pub fn call_timer(s: &mut Shard, slot: u32, now: u64) -> Option<u64> {
    let f = s.fiber(slot)?;
    if now >= f.call_deadline {
        return None;
    }
    let (limit, from) = (f.call_deadline, f.token());
    if !f.actor.is_null() && !f.calling.is_null() {
        let me = at(f.actor);
        retain(f.calling);
        let latest = (f.call_start, me.id);
        Probe { from, at: f.calling, latest, classes: vec![me.class()], saved: 0 }.go_on(s);
    }
    Some(limit)
}

/// Most class names in a report.
const NAMES: usize = 100;

/// Follows the calls from one waiting fiber to the next, over all shards; it is a cycle when it comes back to where it
/// began.
pub struct Probe {
    from: Token,
    /// The actor to look at next (counted).
    at: *mut Actor,
    /// The call on the way that began last: when, and the caller's number. The first entry is the probe's own.
    latest: (u64, u64),
    classes: Vec<u32>,
    /// Number of an actor on the way, a later one each time the way has doubled.
    saved: u64,
}

impl Probe {
    /// Looks here, or sends the probe to the shard where the next actor lives.
    fn go_on(self, s: &mut Shard) {
        let home = at(self.at).home;
        if home == s.id {
            probe(s, self);
        } else {
            s.post(home, Post::Probe(Box::new(self)));
        }
    }
}

/// A probe has come to the home shard of its next actor.
pub fn probe(s: &mut Shard, mut p: Probe) {
    loop {
        let here = p.at;
        let next = if s.ending { None } else { step(s, &mut p) }.unwrap_or(std::ptr::null_mut());
        // Retained before `here` is given up, on which it may depend.
        retain(next);
        release_in(s, here);
        if next.is_null() {
            return;
        }
        p.at = next;
        if at(next).home != s.id {
            p.go_on(s);
            return;
        }
    }
}

/// The actor that the fiber of the probe's next actor waits for. `None`: it waits for none, or the way has closed; the
/// call that closed it, which is the last one, reports it.
fn step(s: &mut Shard, p: &mut Probe) -> Option<*mut Actor> {
    let a = at(p.at);
    let slot = if a.counts.phase() == Phase::Gone { NONE } else { a.fiber() };
    let f = s.fiber(slot).filter(|f| f.state == State::Parked(Wait::Call) && !f.calling.is_null())?;
    if f.token() == p.from {
        if p.latest == (f.call_start, a.id) {
            report(s, p);
        }
        return None;
    }
    // A way into a cycle that the probe's own fiber is not on never comes back to it.
    if a.id == p.saved {
        return None;
    }
    if p.classes.len().is_power_of_two() {
        p.saved = a.id;
    }
    p.latest = p.latest.max((f.call_start, a.id));
    p.classes.push(a.class());
    Some(f.calling)
}

fn report(s: &mut Shard, p: &Probe) {
    let mut names: Vec<String> = p.classes.iter().take(NAMES).map(|class| s.class_name(*class)).collect();
    if p.classes.len() > NAMES {
        names.push(format!("{} more", p.classes.len() - NAMES));
    }
    names.extend(names.first().cloned());
    s.out.flush();
    stderr::line(&format!("{}: call cycle: {}", s.shared().config.program, names.join(" -> ")));
}

//! The life of fibers and of a run: giving a fiber its stack, resuming it, the loop of a shard, the drain, the end.
//!
//! Shard 0 runs on the thread that starts the run, each other shard on one of its own. When `main` has ended and the
//! drain is over, every shard unwinds its fibers; then all come back to the first thread, which releases what actors,
//! timers and monitors own.

use crate::actor;
use crate::config::Config;
use crate::fiber::{self, Co, Fiber, Outcome, State};
use crate::shard::{self, SWITCHES, Shard};
use crate::shared::Shared;
use crate::stats::Stats;
use crate::{report, shim, stderr, stop, sys, trace};
use abi::trap;
use corosensei::CoroutineResult;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use values::ctx::Image;
use values::object::uncharge;

/// Resumptions granted to a fiber that must unwind.
const UNWIND_RESUMES: u32 = 10_000;
/// Most coroutines that rest in free records.
const RESTING: u32 = 256;

/// Makes the fiber ready to run its first slice: on the coroutine that rests in its record, or on a new one. False when
/// there is no stack.
fn start(s: &mut Shard, slot: u32) -> bool {
    let Some(f) = s.fiber(slot) else { return false };
    f.begun = true;
    f.ctx.trap = 0;
    f.ctx.trap_recorded = false;
    f.ctx.trap_frames.clear();
    f.ctx.caught_frames.clear();
    if f.co.is_some() {
        return true;
    }
    let main = s.fiber(slot).is_some_and(|f| f.actor.is_null());
    let kb = s.shared().config.main_stack_kb;
    let stack = if main { s.stacks.take_large(kb) } else { s.stacks.take() };
    let (Some(stack), Some(f)) = (stack, s.fiber(slot)) else { return false };
    f.ctx.stack_limit = stack.limit_for_code();
    f.ctx.stack_base = stack.base_address();
    let p: *mut Fiber = f;
    f.co = Some(Co::with_stack(stack, move |yielder, ()| {
        // SAFETY: the record outlives its coroutine; this runs while the fiber is the running one.
        unsafe { (*p).yielder = yielder };
        if main {
            run_main(p);
            return;
        }
        // SAFETY: as above; no reference is held across the switch.
        unsafe {
            while !(*p).retired {
                deliver(p);
                (*p).rests = true;
                fiber::switch(p);
            }
        }
    }));
    true
}

/// Gives the fiber's actor its message, and those that wait behind it.
///
/// # Safety
/// `p` is the running fiber's live record.
unsafe fn deliver(p: *mut Fiber) {
    while actor::turn(p) {
        // SAFETY: the caller's promise; no reference is held across the switch.
        unsafe {
            let s = (*p).shard();
            // With nobody else in the queue its tail is its head: the next slice begins right here.
            if s.queue.is_empty() && s.switches < SWITCHES && !s.shared().ending() {
                s.switches += 1;
                end_slice(s);
                s.counters().slices.add(1);
                // A sweep may have made others runnable.
                if s.queue.is_empty() {
                    continue;
                }
            }
            (*p).state = State::Runnable;
            (*p).outcome = Outcome::Ready;
            s.queue.push_back((*p).slot);
            fiber::switch(p);
            if (*p).shard().ending {
                actor::discard((*p).shard(), &mut *p);
                return;
            }
        }
    }
}

/// What is due whenever a slice ends: lines and posts go out, unreachable actors go.
fn end_slice(s: &mut Shard) {
    if !s.out.is_empty() {
        s.out.flush();
    }
    if !s.orphans.is_empty() {
        actor::sweep(s);
    }
    s.flush_posts();
}

fn run_main(p: *mut Fiber) {
    // SAFETY: the running fiber's own record; references end before generated code runs.
    let (ctx, entry) = unsafe {
        let f = &mut *p;
        f.ctx.budget = f.shard().reductions - 1;
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
        s.counters().slices.add(1);
        let Some(f) = s.fiber(slot) else { return };
        if !f.begun && !start(s, slot) {
            let Some(f) = s.fiber(slot) else { return };
            let p: *mut Fiber = f;
            if (*p).actor.is_null() {
                s.main_status = Some(1);
                stderr::line(&format!("{}: no memory for a stack", s.shared().config.program));
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
    let returned = matches!(co.resume(()), CoroutineResult::Return(()));
    // SAFETY: as above; the fiber has switched back.
    let s = unsafe { &mut *s };
    if returned || s.fiber(slot).is_some_and(|f| std::mem::take(&mut f.rests)) {
        finish(s, slot);
    }
    end_slice(s);
}

/// A fiber has ended: its slot is free again. Its coroutine rests for the next fiber in the slot; if many rest already,
/// its stack is free again.
fn finish(s: &mut Shard, slot: u32) {
    let Some(f) = s.fiber(slot) else { return };
    let main = f.actor.is_null();
    f.state = State::Free;
    f.actor = std::ptr::null_mut();
    f.pool_result = None;
    f.wait = 0;
    f.begun = false;
    let p: *mut Fiber = f;
    let resting = f.co.as_ref().is_some_and(|co| !co.done());
    if resting && s.resting < RESTING {
        s.resting += 1;
    } else {
        // SAFETY: a live record of this shard, none of whose fibers runs.
        unsafe { retire(s, p, main) };
    }
    s.counters().fibers_live.add(-1);
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

/// Ends the coroutine of a record that is free, if it has one, and gives its stack back.
///
/// # Safety
/// `p` is a live record of `s`, whose coroutine rests or has returned.
unsafe fn retire(s: &mut Shard, p: *mut Fiber, main: bool) {
    // SAFETY: the caller's promise; no reference is held while the coroutine runs.
    unsafe {
        let Some(mut co) = (*p).co.take() else { return };
        if !co.done() {
            (*p).retired = true;
            let _ = co.resume(());
            (*p).retired = false;
        }
        let stack = co.into_stack();
        if !main {
            s.stacks.give(stack);
        }
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
            s.trace.trap(f);
            report::main_trap(&mut f.ctx);
            trace::request();
            1
        }
    }
}

/// Time that the other shards have to unwind their fibers: the process must be gone within a second.
const UNWIND: Duration = Duration::from_millis(800);
/// And until when children that were killed are waited for, and readers of standard output and error.
pub const LAST: Duration = Duration::from_millis(950);
/// Reductions after which a round of checks is due.
const ROUND: i64 = 4000;
/// Stack of a shard's thread, where library code runs that needs more than a fiber's reserve.
const THREAD_STACK: usize = 8 << 20;

/// How a run ended.
pub struct Ended {
    /// The exit status.
    pub status: i32,
    pub stats: Stats,
    /// Objects that nothing released; the number means something where everything is released (`Config::release_all`).
    pub objects_live: i64,
}

/// Runs a program to its end: `main`, the drain, the unwinding of every fiber. Gives the error number of a system call
/// where it cannot start.
pub fn run(config: Config, image: &'static Image) -> Result<Ended, i32> {
    shim::install_hooks();
    let shared = Arc::new(Shared::new(config, image)?);
    let mut shards = (0..shared.config.shards).map(|id| Shard::new(id, &shared)).collect::<Result<Vec<_>, i32>>()?;
    let mut first = shards.remove(0);
    let (sender, back) = channel();
    let others = shards.len();
    for mut s in shards {
        let done: Sender<Box<Shard>> = sender.clone();
        let thread = std::thread::Builder::new().name(format!("wo-shard-{}", s.id)).stack_size(THREAD_STACK);
        let started = thread.spawn(move || {
            drive(&raw mut *s);
            // Nobody waits any longer for a shard that comes too late.
            let _ = done.send(s);
        });
        if let Err(e) = started {
            shared.end();
            // Those that have started come back, then nobody is left to send.
            drop(sender);
            let _ = come_back(&back, usize::MAX, Instant::now() + UNWIND);
            return Err(e.raw_os_error().unwrap_or(libc::EAGAIN));
        }
    }
    drop(sender);
    let _ = first.new_fiber();
    drive(&raw mut *first);
    let ended = Instant::now();
    let status = first.main_status.unwrap_or(0);
    let mut all = vec![first];
    all.extend(come_back(&back, others, ended + UNWIND));
    let complete = all.len() == others + 1;
    for s in &mut all {
        s.out.finish(ended + LAST);
    }
    // Those that no fiber has seen to while it was unwound.
    shared.children.end_all(LAST.saturating_sub(ended.elapsed()));
    let stats = shared.stats();
    let mut line = shared.config.stats.then(|| shared.stats_line());
    // Plain memory need not be released unless someone counts it.
    if shared.config.release_all && complete {
        release_all(&mut all);
    }
    let objects_live = all.iter().map(|s| s.heap.objects_live).sum();
    if !complete {
        // Shards that were left behind may still use what came from these.
        std::mem::forget(all);
    }
    if let Some(line) = &mut line {
        line.push_str(&format!(" objects_live={objects_live}"));
        stderr::line(line);
    }
    stderr::finish(ended + LAST);
    Ok(Ended { status, stats, objects_live })
}

/// The shards that come back, `most` of them, in time.
#[allow(clippy::vec_box, reason = "fibers point at their shard")]
fn come_back(back: &Receiver<Box<Shard>>, most: usize, until: Instant) -> Vec<Box<Shard>> {
    let mut shards = Vec::new();
    while shards.len() < most {
        let left = until.saturating_duration_since(Instant::now());
        match back.recv_timeout(left) {
            Ok(s) => shards.push(s),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    shards
}

/// Runs the fibers of a shard until the run ends, then unwinds them.
fn drive(s: *mut Shard) {
    let outer = shard::set_current(s);
    // SAFETY: the caller owns the shard, which lives through the call; the loop keeps no reference across `resume`.
    unsafe {
        let mut drain_until = None;
        while !(*s).shared().ending() {
            let sh = &mut *s;
            if sh.main_status.is_some() {
                if drained(sh, &mut drain_until) {
                    sh.shared().drain_ended();
                    sh.shared().end();
                    break;
                }
            } else if sh.queue.is_empty() {
                // All fibers are parked: a collection that is on its way goes on until something happens.
                let idle = if values::cycles::poll_idle(&mut sh.ctx) { 0 } else { sys::NEVER };
                sh.poll(idle);
            }
            if sh.switches >= SWITCHES {
                sh.poll(0);
            }
            // What the others hand over when they have begun to unwind must not run.
            if sh.shared().ending() {
                break;
            }
            let Some(slot) = sh.queue.pop_front() else { continue };
            sh.switches += 1;
            sh.prefetch();
            resume(s, slot);
            let sh = &mut *s;
            if sh.fiber(slot).is_some_and(|f| f.state == State::Yielded) {
                // A slice of the usual length is followed by a round of checks; shorter ones share one.
                sh.spent += sh.reductions;
                if sh.spent >= ROUND && (sh.main_status.is_none() || drain_until.is_some()) {
                    sh.poll(0);
                }
                if let Some(f) = sh.fiber(slot) {
                    f.state = State::Runnable;
                }
                sh.queue.push_back(slot);
            }
        }
        unwind_all(s);
    }
    let _ = shard::set_current(outer);
}

/// One step of the drain after `main` has ended, on shard 0. True: it is over.
fn drained(s: &mut Shard, until: &mut Option<u64>) -> bool {
    let drain_ms = s.shared().config.drain_ms;
    if s.main_trapped || !stop::latched() || drain_ms == 0 {
        return true;
    }
    let now = sys::monotonic();
    let until = *until.get_or_insert_with(|| {
        s.shared().drain();
        sys::after(now, drain_ms)
    });
    if now >= until {
        return true;
    }
    if s.queue.is_empty() {
        s.last_poll = 0;
        let _ = actor::search(s);
        s.poll(0);
        if s.stopping && s.quiescent() && s.shared().others_quiescent() {
            return true;
        }
        if s.queue.is_empty() {
            s.poll(until.saturating_sub(now));
        }
    }
    false
}

/// Unwinds the fibers of a shard, youngest first.
unsafe fn unwind_all(s: *mut Shard) {
    // SAFETY: as in `drive`.
    unsafe {
        let sh = &mut *s;
        trace::answer(sh);
        sh.ending = true;
        let mut live: Vec<(u64, u32)> =
            sh.fibers.iter().filter(|f| f.state != State::Free).map(|f| (f.seq, f.slot)).collect();
        live.sort_unstable_by(|a, b| b.cmp(a));
        for (_, slot) in live {
            let sh = &mut *s;
            let Some(f) = sh.fiber(slot) else { continue };
            let f: *mut Fiber = f;
            if !(*f).begun {
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
        for i in 0..sh.fibers.len() {
            let f: *mut Fiber = &raw mut *sh.fibers[i];
            if (*f).state == State::Free {
                retire(sh, f, false);
            }
        }
        sh.queue.clear();
        sh.out.flush();
        sh.publish();
    }
}

/// Releases what actors, timers, monitors and messages under way own, on this thread, as each shard in turn.
fn release_all(shards: &mut [Box<Shard>]) {
    values::object::lift_heap_limit();
    // Set while a shard is worked on, so that addresses inside its objects are given up as its own.
    let each = |shards: &mut [Box<Shard>], work: &mut dyn FnMut(&mut Shard)| {
        for s in shards {
            let outer = shard::set_current(&raw mut **s);
            work(s);
            s.flush_posts();
            let _ = shard::set_current(outer);
        }
    };
    each(shards, &mut |s| {
        let _ = s.take_posts();
        for a in std::mem::take(&mut s.afters).into_iter().flatten() {
            uncharge(&mut s.ctx, actor::TIMER_BYTES);
            shim::release(&mut s.ctx, a.msg);
            actor::release_in(s, a.target);
        }
        s.reclaiming = true;
        while let Some(&a) = s.actors.last() {
            actor::empty(s, a, Outcome::Closed);
            actor::suspect(s, a);
        }
        s.reclaiming = false;
    });
    // What is released on one shard may end an actor of another, and that leave another cycle.
    loop {
        let mut more = false;
        each(shards, &mut |s| {
            more |= s.take_posts() > 0 || !s.orphans.is_empty() || !s.deep_orphans.is_empty();
            let _ = actor::search(s);
            actor::sweep(s);
            values::cycles::collect_all(&mut s.ctx);
            more |= s.has_posts() || !s.orphans.is_empty() || !s.deep_orphans.is_empty();
        });
        if !more {
            return;
        }
    }
}

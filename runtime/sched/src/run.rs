//! The life of fibers and of a run: giving a fiber its stack, resuming it, the loop, the drain, the end.

use crate::actor;
use crate::fiber::{self, Co, Fiber, Outcome, State};
use crate::shard::{self, SWITCHES, Shard};
use crate::{proc, report, shim, stop, sys};
use abi::trap;
use corosensei::CoroutineResult;
use values::object::uncharge;

/// Resumptions granted to a fiber that must unwind.
const UNWIND_RESUMES: u32 = 10_000;

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
    let outer = shard::set_current(s);
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
                // All fibers are parked: a collection that is on its way goes on until something happens.
                let idle = if values::cycles::poll_idle(&mut sh.ctx) { 0 } else { sys::NEVER };
                sh.poll(idle);
            }
            if sh.switches >= SWITCHES {
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
        let _ = shard::set_current(outer);
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
        proc::end(sh);
        sh.queue.clear();
        sh.out.flush();
        // Plain memory need not be released unless someone counts it.
        if sh.config.release_all {
            values::object::lift_heap_limit();
            for a in std::mem::take(&mut sh.afters).into_iter().flatten() {
                uncharge(&mut sh.ctx, actor::TIMER_BYTES);
                shim::release(&mut sh.ctx, a.msg);
                actor::release_in(sh, a.target);
            }
            sh.reclaiming = true;
            while let Some(&a) = sh.actors.last() {
                actor::empty(sh, &mut *a, Outcome::Closed);
                actor::suspect(sh, &mut *a);
            }
            sh.reclaiming = false;
            actor::sweep(sh);
            // What a cycle held may end an actor, and that leave another cycle.
            values::cycles::collect_all(&mut sh.ctx);
            while !sh.orphans.is_empty() {
                actor::sweep(sh);
                values::cycles::collect_all(&mut sh.ctx);
            }
        }
        if let Some(mut line) = line {
            let objects = format!(" objects_live={}", sh.heap.objects_live);
            line.push_str(&objects);
            sys::stderr_line(&line);
        }
        stop::forget(sh.wake_fd());
    }
}

//! Leaving the thread to other fibers: parking in a wait, the end of a slice, and what a stop does to either.

use crate::fiber::{self, Outcome, State, Wait};
use crate::{actor, sys};
use abi::trap;
use values::ctx::Ctx;

/// What a stop does to a wait; `None`: it goes on.
pub fn stop_outcome(wait: Wait) -> Option<Outcome> {
    match wait {
        Wait::Sleep | Wait::InputDl => Some(Outcome::Stop),
        Wait::Input | Wait::Resolve => Some(Outcome::Unwind),
        Wait::Write | Wait::Call | Wait::Pool | Wait::Space | Wait::Commit => None,
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
            s.trace.park(f, wait);
            if deadline != sys::NEVER {
                s.timers.arm_fiber(deadline, f.slot);
            }
            if wait != Wait::Space && !f.actor.is_null() {
                actor::parked(s, f.actor);
            }
        }
    }
    fiber::switch(f);
    resumed(ctx)
}

/// The slice is over: others run, then the fiber goes on. Leaves `trap::UNWIND` pending when the program ends.
pub fn yield_now(ctx: &mut Ctx) {
    values::cycles::poll_between(ctx);
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
    ctx.budget = f.shard().reductions - 1;
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

//! Waits that are no I/O: sleeping, work on the helper threads, work that needs a deep stack.

use crate::fiber::{self, Outcome, Token, Wait};
use crate::output::Output;
use crate::park::park;
use crate::shard::Shard;
use crate::shared::Post;
use crate::{stderr, sys};
use values::ctx::Ctx;

/// Parks for `ms` milliseconds; returns at once when `ms <= 0`, early at a stop.
pub fn sleep(ctx: &mut Ctx, ms: i64) {
    if ms <= 0 {
        return;
    }
    let f = fiber::of(ctx);
    let _ = f.shard().begin_wait(f);
    let _ = park(ctx, Wait::Sleep, sys::deadline(ms));
}

/// How long a fiber waits before it looks again whether somebody reads what was printed, in milliseconds.
const OUTPUT_MS: i64 = 2;

/// Parks until standard output `is_ready`: its reader has read. Leaves an unwind pending at the end of the program.
pub fn for_output(ctx: &mut Ctx, is_ready: impl Fn(&Output) -> bool) {
    for_reader(ctx, |s| {
        if !is_ready(&s.out) {
            s.out.flush();
        }
        is_ready(&s.out)
    });
}

/// Parks until standard error has room: its reader has read. Leaves an unwind pending at the end of the program.
pub fn for_errors(ctx: &mut Ctx) {
    for_reader(ctx, |_| {
        if stderr::is_full() {
            stderr::flush();
        }
        !stderr::is_full()
    });
}

fn for_reader(ctx: &mut Ctx, is_ready: impl Fn(&mut Shard) -> bool) {
    loop {
        let f = fiber::of(ctx);
        let s = f.shard();
        if is_ready(s) {
            return;
        }
        let _ = s.begin_wait(f);
        if park(ctx, Wait::Write, sys::deadline(OUTPUT_MS)) == Outcome::Unwind {
            return;
        }
    }
}

/// Runs `job` on a helper thread while the fiber is parked. `None`: a trap or an unwind is pending. The job owns what
/// it touches: the fiber may be gone before it ends.
pub fn blocking<T: Send + 'static>(ctx: &mut Ctx, wait: Wait, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let f = fiber::of(ctx);
    let s = f.shard();
    if s.ending {
        let _ = park(ctx, wait, sys::NEVER);
        return None;
    }
    let token = s.begin_wait(f);
    let shared = s.share();
    let done = move |to: Token, result| {
        if let Some(port) = shared.port(to.shard) {
            port.hand(vec![Post::Done { to, result }]);
        }
    };
    if !s.shared().pool.submit(token, move || Box::new(job()), done) {
        ctx.raise(abi::trap::IO, &sys::text(libc::EAGAIN));
        return None;
    }
    s.pool_busy += 1;
    if park(ctx, wait, sys::NEVER) != Outcome::Ready {
        return None;
    }
    match fiber::of(ctx).pool_result.take().map(|r| r.downcast::<T>()) {
        Some(Ok(value)) => Some(*value),
        _ => {
            ctx.raise(abi::trap::EXPLICIT, "internal error in a helper thread");
            None
        }
    }
}

/// Runs `f` on the shard's own deep stack, for library code that would need more than a fiber's reserve.
pub fn on_shard_stack<R>(ctx: &Ctx, f: impl FnOnce() -> R + Send) -> R {
    let fiber = fiber::of(ctx);
    // SAFETY: the fiber is the running one, so its yielder is live.
    unsafe { (*fiber.yielder).on_parent_stack(f) }
}

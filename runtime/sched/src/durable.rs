//! Waiting until a write of the store is durable. The store's commit thread announces how far it has come; each shard
//! keeps those of its fibers that wait, in the order of their numbers, and is woken only while it has some. When the log
//! can no longer be written, nobody goes on: what was printed is handed over and the process ends.

use crate::fiber::{self, Outcome, Token, Wait};
use crate::park::park;
use crate::shard::Shard;
use crate::{stderr, stop, sys};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use values::ctx::Ctx;

/// A fiber that waits, with the number of its write.
pub type Waiting = (u64, Token);

/// Every write up to this number is durable.
static REACHED: AtomicU64 = AtomicU64::new(0);
/// Shards with fibers that wait.
static WAITS: [AtomicBool; stop::SHARDS] = [const { AtomicBool::new(false) }; stop::SHARDS];

/// The log cannot be written any more; and how many shards have noticed.
static FAILED: AtomicBool = AtomicBool::new(false);
static HALTED: AtomicUsize = AtomicUsize::new(0);

/// Exit status of a process whose log cannot be written.
const LOG_FAILED: i32 = 74;
/// How long the shards may take to notice that, and standard output to take what was printed.
const HALT: Duration = Duration::from_millis(900);
const FLUSH: Duration = Duration::from_millis(500);

/// Every write up to `seq` is durable: wakes those who wait for one of them. For the commit thread.
pub fn announce(seq: u64) {
    // Pairs with the order of steps in `wait` and `settle`: who waits either sees the number or is seen to wait.
    REACHED.store(seq, Ordering::SeqCst);
    for (shard, waits) in WAITS.iter().enumerate() {
        if waits.load(Ordering::SeqCst) && waits.swap(false, Ordering::SeqCst) {
            stop::wake(shard);
        }
    }
}

/// Parks until the write of this number is durable. Leaves an unwind pending at the end of the program.
pub fn wait(ctx: &mut Ctx, seq: u64) {
    let f = fiber::of(ctx);
    let s = f.shard();
    if REACHED.load(Ordering::Acquire) >= seq {
        return;
    }
    let token = s.begin_wait(f);
    debug_assert!(s.commits.back().is_none_or(|(last, _)| *last <= seq));
    s.commits.push_back((seq, token));
    expect(s);
    if REACHED.load(Ordering::SeqCst) >= seq {
        let _ = s.commits.pop_back();
        return;
    }
    s.work_waiting += 1;
    let outcome = park(ctx, Wait::Commit, sys::NEVER);
    fiber::of(ctx).shard().work_waiting -= 1;
    debug_assert!(matches!(outcome, Outcome::Ready | Outcome::Unwind));
}

fn expect(s: &Shard) {
    if let Some(waits) = WAITS.get(usize::from(s.id)) {
        waits.store(true, Ordering::SeqCst);
    }
}

/// Wakes the fibers of the shard whose writes have become durable.
pub fn settle(s: &mut Shard) {
    while let Some((first, _)) = s.commits.front() {
        let first = *first;
        let reached = REACHED.load(Ordering::SeqCst);
        if reached < first {
            expect(s);
            if REACHED.load(Ordering::SeqCst) == reached {
                return;
            }
            continue;
        }
        if let Some((_, token)) = s.commits.pop_front() {
            let _ = s.wake(token, Outcome::Ready);
        }
    }
}

/// The shard's part of the end of a process whose log has failed: hands over what was printed, then rests for ever.
pub fn halt_if_failed(s: &mut Shard) {
    if FAILED.load(Ordering::Acquire) {
        s.out.finish(Instant::now() + FLUSH);
        let _ = HALTED.fetch_add(1, Ordering::AcqRel);
        loop {
            std::thread::park();
        }
    }
}

/// The log cannot be written any more: ends the process with status 74, `report` on standard error, after what was
/// printed. For the commit thread.
pub fn fail(report: &str) -> ! {
    FAILED.store(true, Ordering::Release);
    stop::wake_all();
    let until = Instant::now() + HALT;
    while HALTED.load(Ordering::Acquire) < stop::watched() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    stderr::line(report);
    stderr::finish(Instant::now() + FLUSH);
    // SAFETY: ends the process; no destructor of it matters any more.
    unsafe { libc::_exit(LOG_FAILED) }
}

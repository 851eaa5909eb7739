//! Actors, slices, mailboxes, monitors, timers, reclaiming.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]
#![allow(unsafe_code, reason = "hand-written generated code")]

mod common;

use common::*;
use sched::actor::{self, Actor};
use sched::wait;
use values::ctx::Ctx;
use values::object::Obj;

type Out = *mut [u64; 2];

fn reply(out: Out, v: i64) {
    // SAFETY: the runtime passes two writable words for the reply.
    unsafe { (*out)[0] = v as u64 };
}

extern "C" fn double(_c: *mut Ctx, _s: *mut Obj, m: *mut Obj, out: Out) {
    reply(out, n(m) * 2);
}

extern "C" fn fails(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
    wait::sleep(ctx(c), n(m));
    if ctx(c).trap == 0 {
        ctx(c).raise(1, "division by zero");
    }
}

extern "C" fn sleeps(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, out: Out) {
    wait::sleep(ctx(c), n(m));
    reply(out, n(m));
}

/// 11.1: three full slices let the meter run three times.
#[test]
fn sch_4_slices_interleave_exactly() {
    static LOG: Log = Log::new();
    extern "C" fn meter(_c: *mut Ctx, s: *mut Obj, m: *mut Obj, _out: Out) {
        set_n(s, n(s) + n(m));
        LOG.put(format!("meter {}", n(s)));
    }
    fn program(c: *mut Ctx, loops: &[i64]) {
        let c = ctx(c);
        let a = spawn(c, 0);
        for v in [10, 20, 30] {
            send(c, a, v);
        }
        for k in loops {
            assert!(spin(c, *k));
        }
        LOG.put("spun");
        actor::release(a);
    }
    extern "C" fn long(c: *mut Ctx) -> i64 {
        program(c, &[5000, 5000, 5000]);
        0
    }
    extern "C" fn short(c: *mut Ctx) -> i64 {
        program(c, &[3000]);
        0
    }
    let left = run(config(), long, &[meter]);
    assert_eq!(LOG.take(), ["meter 10", "meter 30", "meter 60", "spun"]);
    assert_eq!((left.status, left.objects_live), (0, 0));
    let left = run(config(), short, &[meter]);
    assert_eq!(LOG.take(), ["spun"]);
    assert_eq!(left.objects_live, 0);
}

#[test]
fn sch_5_with_one_reduction_loops_alternate() {
    static LOG: Log = Log::new();
    extern "C" fn looper(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        for _ in 0..3 {
            LOG.put(n(m).to_string());
            if !spin(ctx(c), 1) {
                return;
            }
        }
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        for i in 1..=3 {
            let a = spawn(c, 0);
            send(c, a, i);
            actor::release(a);
        }
        wait::sleep(c, 30);
        0
    }
    let mut cfg = config();
    cfg.reductions = 1;
    let left = run(cfg, main, &[looper]);
    assert_eq!(LOG.take().join(""), "123123123");
    assert_eq!(left.objects_live, 0);
}

#[test]
fn call_returns_replies_and_death_traps() {
    static LOG: Log = Log::new();
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let (a, b) = (spawn(c, 0), spawn(c, 1));
        LOG.put(format!("{:?} {:?}", call(c, a, 21, 0), call(c, a, 42, 0)));
        for _ in 0..2 {
            assert_eq!(call(c, b, 0, 0), None);
            LOG.put(catch(c));
        }
        send(c, b, 0);
        assert_eq!(c.trap, 0);
        actor::send(c, std::ptr::null_mut(), std::ptr::null_mut());
        LOG.put(catch(c));
        actor::send(c, a, std::ptr::null_mut());
        LOG.put(catch(c));
        actor::release(a);
        actor::release(b);
        7
    }
    let left = run(config(), main, &[double, fails]);
    assert_eq!(
        LOG.take(),
        [
            "Some(42) Some(84)",
            "13: actor died during call",
            "13: actor died during call",
            "6: send: nil actor address",
            "6: send: nil message"
        ]
    );
    assert_eq!((left.status, left.objects_live, left.stats.actors_died), (7, 0, 1));
}

#[test]
fn call_4_queued_callers_get_the_death() {
    static LOG: Log = Log::new();
    extern "C" fn caller(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        assert_eq!(call(ctx(c), addr(m), 20, 0), None);
        LOG.put(catch(ctx(c)));
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let target = spawn(c, 0);
        for _ in 0..3 {
            let a = spawn(c, 1);
            let m = obj_with(c, MSG, 0, target);
            actor::send(c, a, m);
            actor::release(a);
        }
        wait::sleep(c, 100);
        actor::release(target);
        0
    }
    let left = run(config(), main, &[fails, caller]);
    assert_eq!(LOG.take(), ["13: actor died during call"; 3]);
    assert_eq!(left.objects_live, 0);
}

#[test]
fn call_5_self_call_traps_at_once() {
    static LOG: Log = Log::new();
    extern "C" fn me(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        assert_eq!(call(ctx(c), addr(m), 1, 0), None);
        LOG.put(catch(ctx(c)));
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let a = spawn(c, 0);
        let m = obj_with(c, MSG, 0, a);
        actor::send(c, a, m);
        wait::sleep(c, 10);
        actor::release(a);
        0
    }
    let left = run(config(), main, &[me]);
    assert_eq!(LOG.take(), ["13: actor calls itself"]);
    assert_eq!((left.objects_live, left.stats.actors_reclaimed), (0, 1));
}

#[test]
fn call_8_a_late_reply_reaches_no_later_call() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let (slow, fast) = (spawn(c, 0), spawn(c, 1));
        for i in 0..20 {
            assert_eq!(call(c, slow, 6, 2), None);
            assert_eq!(call(c, fast, i, 0), Some(2 * i));
        }
        assert_eq!(call(c, slow, 3, 0), Some(3));
        actor::release(slow);
        actor::release(fast);
        0
    }
    let mut cfg = config();
    cfg.mailbox = 100;
    let left = run(cfg, main, &[sleeps, double]);
    assert_eq!((left.status, left.objects_live), (0, 0));
}

/// 11.6: a parked target takes one message and a mailbox full.
#[test]
fn mb_1_a_parked_target_traps_the_sender() {
    static LOG: Log = Log::new();
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let a = spawn(c, 0);
        let mut sent = 0;
        loop {
            send(c, a, 5000);
            if c.trap != 0 {
                LOG.put(catch(c));
                break;
            }
            sent += 1;
        }
        LOG.put(format!("accepted {sent}"));
        actor::release(a);
        0
    }
    let start = std::time::Instant::now();
    let left = run(config(), main, &[sleeps]);
    assert_eq!(LOG.take(), ["13: actor mailbox full", "accepted 9"]);
    assert_eq!(left.objects_live, 0);
    assert!(start.elapsed().as_millis() < 4000);
}

#[test]
fn mb_3_a_busy_target_makes_the_sender_give_way() {
    static LOG: Log = Log::new();
    extern "C" fn count(_c: *mut Ctx, s: *mut Obj, _m: *mut Obj, out: Out) {
        set_n(s, n(s) + 1);
        reply(out, n(s));
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let a = spawn(c, 0);
        for i in 0..400 {
            send(c, a, i);
            assert_eq!(c.trap, 0);
        }
        LOG.put(format!("{:?}", call(c, a, 0, 0)));
        actor::release(a);
        0
    }
    let left = run(config(), main, &[count]);
    assert_eq!(LOG.take(), ["Some(401)"]);
    assert_eq!((left.objects_live, left.stats.messages), (0, 401));
}

/// 11.7.
#[test]
fn mon_2_and_3_notices_arrive_once() {
    static LOG: Log = Log::new();
    extern "C" fn observer(_c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        LOG.put(format!("notice {}", n(m)));
    }
    fn watch(c: &mut Ctx, watched: *mut Actor, observer: *mut Actor, k: i64) {
        let m = obj(c, MSG, k);
        actor::monitor(c, watched, observer, m);
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let (o, w, other) = (spawn(c, 0), spawn(c, 1), spawn(c, 1));
        watch(c, w, o, 1);
        watch(c, other, o, 3);
        send(c, w, 0);
        wait::sleep(c, 20);
        watch(c, w, o, 2);
        wait::sleep(c, 20);
        LOG.put("end");
        // Reclaimed, so its registration goes without firing.
        actor::release(other);
        wait::sleep(c, 5);
        actor::release(w);
        actor::release(o);
        0
    }
    let left = run(config(), main, &[observer, fails]);
    assert_eq!(LOG.take(), ["notice 1", "notice 2", "end"]);
    assert_eq!((left.objects_live, left.stats.actors_reclaimed), (0, 2));
}

/// 11.8.
#[test]
fn tmr_2_timers_fire_in_order_and_the_last_is_forgotten() {
    static LOG: Log = Log::new();
    extern "C" fn prints(_c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        LOG.put(n(m).to_string());
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let a = spawn(c, 0);
        for ms in [0, 40, 20, 3_600_000] {
            let m = obj(c, MSG, ms);
            actor::after(c, ms, a, m);
        }
        wait::sleep(c, 80);
        LOG.put("end");
        actor::release(a);
        0
    }
    let left = run(config(), main, &[prints]);
    assert_eq!(LOG.take(), ["0", "20", "40", "end"]);
    assert_eq!((left.objects_live, left.stats.timers_fired), (0, 3));
}

#[test]
fn rcl_1_chains_of_idle_actors_are_reclaimed_without_recursion() {
    extern "C" fn keeps(c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {
        let _ = c;
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let mut last = spawn(c, 0);
        for _ in 0..50_000 {
            let state = obj_with(c, FIRST_ACTOR, 0, last);
            actor::release(last);
            last = actor::spawn(c, FIRST_ACTOR, state);
        }
        actor::release(last);
        wait::sleep(c, 1);
        let live = sched::shard::current().unwrap().stat("actors_live").unwrap();
        assert_eq!(live, 0);
        0
    }
    let left = run(config(), main, &[keeps]);
    assert_eq!((left.objects_live, left.stats.actors_reclaimed), (0, 50_001));
}

#[test]
fn end_2_parked_and_queued_fibers_are_unwound() {
    static LOG: Log = Log::new();
    extern "C" fn parks(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        let c = ctx(c);
        let held = obj(c, MSG, 1);
        wait::sleep(c, 100_000);
        assert_eq!(c.trap, abi::trap::UNWIND);
        LOG.put(n(m).to_string());
        // SAFETY: `held` was made above; this is its only reference.
        unsafe { values::object::release(c, held) };
    }
    extern "C" fn loops(c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {
        while spin(ctx(c), 1000) {}
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        for i in 0..3 {
            let a = spawn(c, 0);
            send(c, a, i);
            send(c, a, i);
            actor::release(a);
        }
        let a = spawn(c, 1);
        send(c, a, 0);
        wait::sleep(c, 5);
        send(c, a, 0);
        actor::release(a);
        c.raise(8, "boom");
        0
    }
    let left = run(config(), main, &[parks, loops]);
    assert_eq!(LOG.take(), ["2", "1", "0"]);
    assert_eq!((left.status, left.objects_live), (1, 0));
}

/// 11.3: a timer and its message get through while a fiber loops.
#[test]
fn sch_6_a_loop_does_not_starve_timers() {
    static LOG: Log = Log::new();
    extern "C" fn loops(c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {
        while spin(ctx(c), 1_000_000) {}
    }
    extern "C" fn tick(_c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {
        LOG.put("tick");
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let (a, b) = (spawn(c, 0), spawn(c, 1));
        send(c, a, 0);
        let m = obj(c, MSG, 0);
        actor::after(c, 20, b, m);
        wait::sleep(c, 60);
        actor::release(a);
        actor::release(b);
        0
    }
    let left = run(config(), main, &[loops, tick]);
    assert_eq!(LOG.take(), ["tick"]);
    assert_eq!(left.objects_live, 0);
}

/// 11.13 in small: many parked fibers, calls meanwhile.
#[test]
fn twenty_thousand_parked_fibers() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let fast = spawn(c, 1);
        for _ in 0..20_000 {
            let a = spawn(c, 0);
            send(c, a, 60_000);
            actor::release(a);
        }
        for i in 0..10_000 {
            assert_eq!(call(c, fast, i, 0), Some(2 * i));
        }
        assert!(sched::shard::current().unwrap().stat("fibers_live").unwrap() > 20_000);
        actor::release(fast);
        0
    }
    let left = run(config(), main, &[sleeps, double]);
    assert_eq!((left.status, left.objects_live, left.stats.fibers_live), (0, 0, 0));
}

#[test]
fn pool_work_parks_only_its_fiber() {
    static LOG: Log = Log::new();
    extern "C" fn works(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, out: Out) {
        let k = n(m);
        let job = move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            k + 1
        };
        if let Some(v) = wait::blocking(ctx(c), sched::fiber::Wait::Pool, job) {
            LOG.put(format!("done {v}"));
            reply(out, v);
        }
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let a = spawn(c, 0);
        send(c, a, 4);
        for i in 0..3 {
            wait::sleep(c, 5);
            LOG.put(format!("tick {i}"));
        }
        assert_eq!(call(c, a, 1, 0), Some(2));
        actor::release(a);
        0
    }
    let left = run(config(), main, &[works]);
    assert_eq!(LOG.take(), ["tick 0", "tick 1", "tick 2", "done 5", "done 2"]);
    assert_eq!((left.status, left.objects_live), (0, 0));
}

#[test]
fn rcl_2_an_address_of_itself_does_not_keep_an_actor() {
    extern "C" fn learns(c: *mut Ctx, s: *mut Obj, m: *mut Obj, _out: Out) {
        // Stores the address in its own state, as `self.me = msg.a` does.
        let _ = c;
        actor::retain(addr(m));
        set_addr(s, addr(m));
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        for _ in 0..10 {
            let a = spawn(c, 0);
            let m = obj_with(c, MSG, 0, a);
            actor::send(c, a, m);
            actor::release(a);
        }
        let kept = spawn(c, 0);
        let m = obj_with(c, MSG, 0, kept);
        actor::send(c, kept, m);
        wait::sleep(c, 2);
        let live = || sched::shard::current().unwrap().stat("actors_live").unwrap();
        assert_eq!(live(), 1);
        actor::release(kept);
        assert_eq!(live(), 0);
        0
    }
    let left = run(config(), main, &[learns]);
    assert_eq!((left.status, left.objects_live, left.stats.actors_reclaimed), (0, 0, 11));
}

#[test]
fn call_6_cycles_end_with_the_program() {
    extern "C" fn calls(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        let c = ctx(c);
        if n(m) > 0 {
            // Tells the other to call back.
            let back = obj_with(c, MSG, n(m) - 1, addr(m));
            assert!(matches!(actor::call(c, addr(m), back, 0), actor::Answer::Trap));
            assert_eq!(c.trap, abi::trap::UNWIND);
        }
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let (a, b) = (spawn(c, 0), spawn(c, 0));
        for (from, to) in [(a, b), (b, a)] {
            let m = obj_with(c, MSG, 1, to);
            actor::send(c, from, m);
        }
        wait::sleep(c, 120);
        actor::release(a);
        actor::release(b);
        0
    }
    let mut cfg = config();
    cfg.cycle_ms = 30;
    let left = run(cfg, main, &[calls]);
    assert_eq!((left.status, left.objects_live), (0, 0));
}

#[test]
fn mb_5_a_full_target_drops_a_timer_message() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let a = spawn(c, 0);
        send(c, a, 10_000);
        for ms in [0, 0, 0, 5, 6] {
            let m = obj(c, MSG, 1);
            actor::after(c, ms, a, m);
        }
        wait::sleep(c, 20);
        actor::release(a);
        0
    }
    let mut cfg = config();
    cfg.mailbox = 1;
    let left = run(cfg, main, &[sleeps]);
    assert_eq!((left.status, left.objects_live, left.stats.messages_dropped), (0, 0, 4));
}

//! Several shards: what actors of different threads may rely on. Programs written by hand, as in `actors`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]
#![allow(unsafe_code, reason = "hand-written generated code")]

mod common;

use common::*;
use sched::actor::{self, Actor};
use sched::config::Config;
use sched::wait;
use std::sync::atomic::{AtomicI64, Ordering};
use values::ctx::Ctx;
use values::object::Obj;

type Out = *mut [u64; 2];

fn reply(out: Out, n: i64) {
    // SAFETY: `receive` is given a live place for its reply.
    unsafe { (*out)[0] = n as u64 };
}

fn four() -> Config {
    let mut c = config();
    c.shards = 4;
    c
}

fn stat(name: &str) -> i64 {
    sched::shard::current().unwrap().stat(name).unwrap()
}

/// Sleeps until the condition holds; false after ten seconds.
fn soon(c: &mut Ctx, holds: impl Fn() -> bool) -> bool {
    for _ in 0..5000 {
        if holds() {
            return true;
        }
        wait::sleep(c, 2);
    }
    false
}

extern "C" fn where_am_i(_c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, out: Out) {
    reply(out, i64::from(sched::shard::current().unwrap().id));
}

#[test]
fn spn_3_actors_are_placed_in_turn_and_the_first_beside_main() {
    static LOG: Log = Log::new();
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let actors: Vec<_> = (0..6).map(|_| spawn(c, 0)).collect();
        for a in actors {
            LOG.put(format!("{}", call(c, a, 0, 0).unwrap()));
            actor::release(a);
        }
        0
    }
    let left = run(four(), main, &[where_am_i]);
    assert_eq!(LOG.take(), ["0", "1", "2", "3", "0", "1"]);
    assert_eq!((left.objects_live, left.stats.actors_spawned), (0, 6));
}

#[test]
fn send_6_one_senders_messages_arrive_in_order_on_every_shard() {
    /// Replies how many messages came out of order.
    extern "C" fn ordered(_c: *mut Ctx, s: *mut Obj, m: *mut Obj, out: Out) {
        let (next, bad) = (n(s) >> 32, n(s) & 0xffff_ffff);
        let bad = bad + i64::from(n(m) != next);
        set_n(s, ((next + 1) << 32) | bad);
        reply(out, bad);
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let actors: Vec<_> = (0..4).map(|_| spawn(c, 0)).collect();
        for i in 0..5000 {
            for &a in &actors {
                if i % 97 == 0 {
                    assert_eq!(call(c, a, i, 0), Some(0));
                } else if i % 89 == 0 {
                    let m = obj(c, MSG, i);
                    // Due at once: in order too, but it has no sender to give way.
                    if call_room(a) {
                        actor::after(c, 0, a, m);
                    } else {
                        actor::send(c, a, m);
                    }
                } else {
                    send(c, a, i);
                }
                assert_eq!(c.trap, 0);
            }
        }
        for a in actors {
            assert_eq!(call(c, a, 5000, 0), Some(0));
            actor::release(a);
        }
        0
    }
    fn call_room(a: *mut Actor) -> bool {
        // SAFETY: the test holds an address.
        unsafe { &*a }.counts.waiting() < 8
    }
    let left = run(four(), main, &[ordered]);
    assert_eq!((left.status, left.objects_live, left.stats.messages), (0, 0, 20_004));
    assert!(left.stats.messages_cross >= 15_000);
}

/// 11.6, exact cap: one message in hand and two waiting, whatever the callers' shards.
#[test]
fn mb_2_the_cap_is_exact_for_callers_on_all_shards() {
    static ANSWERED: AtomicI64 = AtomicI64::new(0);
    static REFUSED: AtomicI64 = AtomicI64::new(0);
    extern "C" fn slow(c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, out: Out) {
        wait::sleep(ctx(c), 600);
        reply(out, 1);
    }
    extern "C" fn caller(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        let c = ctx(c);
        let counter = match call(c, addr(m), 1, 0) {
            Some(_) => &ANSWERED,
            None => {
                assert_eq!(catch(c), "13: actor mailbox full");
                &REFUSED
            }
        };
        let _ = counter.fetch_add(1, Ordering::Relaxed);
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let target = spawn(c, 0);
        for _ in 0..15 {
            let a = spawn(c, 1);
            let m = obj_with(c, MSG, 0, target);
            actor::send(c, a, m);
            actor::release(a);
        }
        assert!(soon(c, || ANSWERED.load(Ordering::Relaxed) + REFUSED.load(Ordering::Relaxed) == 15));
        actor::release(target);
        0
    }
    let mut cfg = four();
    cfg.mailbox = 2;
    let left = run(cfg, main, &[slow, caller]);
    assert_eq!((ANSWERED.load(Ordering::Relaxed), REFUSED.load(Ordering::Relaxed)), (3, 12));
    assert_eq!((left.status, left.objects_live, left.stats.mailbox_peak), (0, 0, 2));
}

#[test]
fn mb_2_a_flood_from_all_shards_loses_nothing_and_keeps_to_the_cap() {
    static DONE: AtomicI64 = AtomicI64::new(0);
    const EACH: i64 = 20_000;
    extern "C" fn sum(_c: *mut Ctx, s: *mut Obj, m: *mut Obj, out: Out) {
        set_n(s, n(s) + n(m));
        reply(out, n(s));
    }
    extern "C" fn sender(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        let c = ctx(c);
        for _ in 0..EACH {
            loop {
                send(c, addr(m), 1);
                if c.trap == 0 {
                    break;
                }
                assert_eq!(catch(c), "13: actor mailbox full");
            }
            if !spin(c, 1) {
                return;
            }
        }
        let _ = DONE.fetch_add(1, Ordering::Relaxed);
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let target = spawn(c, 0);
        for _ in 0..8 {
            let a = spawn(c, 1);
            let m = obj_with(c, MSG, 0, target);
            actor::send(c, a, m);
            actor::release(a);
        }
        assert!(soon(c, || DONE.load(Ordering::Relaxed) == 8));
        assert_eq!(call(c, target, 0, 0), Some(8 * EACH));
        actor::release(target);
        0
    }
    let left = run(four(), main, &[sum, sender]);
    assert_eq!((left.status, left.objects_live), (0, 0));
    assert!(left.stats.mailbox_peak <= 8, "{}", left.stats.mailbox_peak);
}

#[test]
fn call_4_a_death_reaches_callers_and_monitors_of_all_shards() {
    static CALLERS: AtomicI64 = AtomicI64::new(0);
    static NOTICES: AtomicI64 = AtomicI64::new(0);
    extern "C" fn dies(c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {
        let c = ctx(c);
        wait::sleep(c, 50);
        c.raise(8, "gone");
    }
    extern "C" fn caller(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        let c = ctx(c);
        assert_eq!(call(c, addr(m), 1, 0), None);
        assert_eq!(catch(c), "13: actor died during call");
        let _ = CALLERS.fetch_add(1, Ordering::Relaxed);
    }
    extern "C" fn observer(_c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {
        let _ = NOTICES.fetch_add(1, Ordering::Relaxed);
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let _beside_main = spawn(c, 2);
        let target = spawn(c, 0);
        let watchers: Vec<_> = (0..5).map(|_| spawn(c, 2)).collect();
        let watch = |c: &mut Ctx| {
            for &w in &watchers {
                let notice = obj(c, MSG, 0);
                actor::monitor(c, target, w, notice);
            }
        };
        watch(c);
        for _ in 0..5 {
            let a = spawn(c, 1);
            let m = obj_with(c, MSG, 0, target);
            actor::send(c, a, m);
            actor::release(a);
        }
        assert!(soon(c, || CALLERS.load(Ordering::Relaxed) == 5 && NOTICES.load(Ordering::Relaxed) == 5));
        // Dead already: at once.
        watch(c);
        assert!(soon(c, || NOTICES.load(Ordering::Relaxed) == 10));
        watchers.iter().for_each(|&w| actor::release(w));
        actor::release(target);
        actor::release(_beside_main);
        assert!(soon(c, || stat("actors_live") == 0));
        0
    }
    let left = run(four(), main, &[dies, caller, observer]);
    assert_eq!((left.status, left.objects_live, left.stats.actors_died), (0, 0, 1));
}

/// Each actor holds the next one, on the next shard; nothing holds the first.
#[test]
fn rcl_1_chains_over_all_shards_are_reclaimed() {
    extern "C" fn nothing(_c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {}
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let mut next = spawn(c, 0);
        for i in 0..2000 {
            let state = obj_with(c, FIRST_ACTOR, 0, next);
            let a = actor::spawn(c, FIRST_ACTOR, state);
            if i % 3 == 0 {
                send(c, a, 1);
            }
            actor::release(next);
            next = a;
        }
        actor::release(next);
        assert!(soon(c, || stat("actors_live") == 0));
        0
    }
    let left = run(four(), main, &[nothing]);
    assert_eq!((left.status, left.objects_live, left.stats.actors_reclaimed), (0, 0, 2001));
}

/// A text that sender and message share is copied; both sides release what is theirs on their own threads.
#[test]
fn send_7_no_object_is_reachable_from_two_shards() {
    extern "C" fn keeps(_c: *mut Ctx, _s: *mut Obj, m: *mut Obj, out: Out) {
        // SAFETY: the message's second field is a live text.
        let text = unsafe { m.cast::<u64>().add(2).read() };
        reply(out, text as i64);
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let (near, far) = (spawn(c, 0), spawn(c, 0));
        for (a, moved) in [(near, true), (far, false)] {
            let m = obj(c, MSG, 0);
            // SAFETY: a live message, whose second field is a live text.
            let text = unsafe { m.cast::<u64>().add(2).read() };
            // SAFETY: as above.
            unsafe { values::object::retain(text as *mut Obj) };
            let actor::Answer::One(seen) = actor::call(c, a, m, 0) else { panic!("no reply") };
            assert_eq!(seen == text, moved);
            // SAFETY: retained above.
            unsafe { values::object::release(c, text as *mut Obj) };
            // What nothing shares travels as it is.
            let m = obj(c, MSG, 0);
            // SAFETY: as above.
            let text = unsafe { m.cast::<u64>().add(2).read() };
            let actor::Answer::One(seen) = actor::call(c, a, m, 0) else { panic!("no reply") };
            assert_eq!(seen, text);
            actor::release(a);
        }
        0
    }
    let left = run(four(), main, &[keeps]);
    assert_eq!((left.status, left.objects_live), (0, 0));
}

/// It may be released there, so not even a text is shared with the shard of the observer, where it came from.
#[test]
fn send_7_a_notice_that_waits_on_another_shard_shares_nothing() {
    extern "C" fn nothing(_c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {}
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let all: Vec<_> = (0..5).map(|_| spawn(c, 0)).collect();
        let (observer, far, near) = (all[0], all[1], all[4]);
        for (watched, shared) in [(near, true), (far, false)] {
            let notice = obj(c, MSG, 0);
            // SAFETY: a live message, whose second field is a live text, retained to be looked at and then released.
            unsafe {
                let text = notice.cast::<u64>().add(2).read() as *mut Obj;
                values::object::retain(text);
                actor::monitor(c, watched, observer, notice);
                assert_eq!(values::object::count(text), if shared { 2 } else { 1 });
                values::object::release(c, text);
            }
        }
        all.iter().for_each(|&a| actor::release(a));
        assert!(soon(c, || stat("actors_live") == 0));
        0
    }
    let left = run(four(), main, &[nothing]);
    assert_eq!((left.status, left.objects_live), (0, 0));
}

/// The last address comes home, by way of a third shard, before the message that was sent first.
#[test]
fn rcl_1_an_address_that_overtakes_a_message_leaves_nothing_behind() {
    extern "C" fn nothing(_c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {}
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let (beside_main, target, other) = (spawn(c, 0), spawn(c, 0), spawn(c, 0));
        send(c, target, 1);
        let m = obj(c, MSG, 0);
        set_addr(m, target);
        actor::send(c, other, m);
        // So many that they are handed over while main goes on; what is for the target waits for the end of the slice.
        for i in 0..31 {
            send(c, other, i);
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        actor::release(other);
        actor::release(beside_main);
        assert!(soon(c, || stat("actors_live") == 0));
        0
    }
    let mut cfg = four();
    cfg.mailbox = 64;
    let left = run_deep(cfg, main, &[nothing]);
    assert_eq!((left.status, left.objects_live, left.stats.actors_reclaimed), (0, 0, 3));
}

/// A registration is what an older actor can name a younger one by without ever having had a message.
#[test]
fn own_1_actors_that_registrations_alone_tie_together_are_released() {
    extern "C" fn nothing(_c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {}
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let watched = spawn(c, 0);
        let state = obj_with(c, FIRST_ACTOR, 0, watched);
        let observer = actor::spawn(c, FIRST_ACTOR, state);
        let notice = obj(c, MSG, 0);
        actor::monitor(c, watched, observer, notice);
        actor::release(watched);
        actor::release(observer);
        0
    }
    for shards in [1, 4] {
        let mut cfg = config();
        cfg.shards = shards;
        let left = run(cfg, main, &[nothing]);
        assert_eq!((left.status, left.objects_live), (0, 0), "{shards} shards");
    }
}

#[test]
fn tmr_3_timers_for_an_actor_of_another_shard_fire_in_order() {
    static LOG: Log = Log::new();
    extern "C" fn notes(_c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        LOG.put(format!("{}", n(m)));
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let _beside_main = spawn(c, 0);
        let a = spawn(c, 0);
        for ms in [60, 0, 30, -1, 30] {
            let m = obj(c, MSG, ms);
            actor::after(c, ms, a, m);
        }
        let m = obj(c, MSG, 7);
        actor::after(c, 3_600_000, a, m);
        wait::sleep(c, 200);
        actor::release(a);
        actor::release(_beside_main);
        0
    }
    let left = run(four(), main, &[notes]);
    assert_eq!(LOG.take(), ["0", "-1", "30", "30", "60"]);
    assert_eq!((left.objects_live, left.stats.timers_fired), (0, 5));
}

/// Ends in the middle of everything: messages under way, callers parked on other shards, timers, monitors.
#[test]
fn own_1_whatever_is_under_way_at_the_end_is_released() {
    extern "C" fn relay(c: *mut Ctx, s: *mut Obj, m: *mut Obj, out: Out) {
        let c = ctx(c);
        if n(m) > 0 {
            let a = if n(m) % 7 == 0 { spawn(c, 0) } else { addr(m) };
            if n(m) % 7 != 0 {
                actor::retain(a);
            }
            if !a.is_null() {
                let next = obj_with(c, MSG, n(m) - 1, a);
                if n(m) % 5 == 0 {
                    let _ = actor::call(c, a, next, 0);
                } else {
                    actor::send(c, a, next);
                }
                if c.trap != 0 && c.trap != abi::trap::UNWIND {
                    let _ = catch(c);
                }
                let late = obj(c, MSG, 0);
                actor::after(c, 5, a, late);
                let notice = obj(c, MSG, 0);
                actor::monitor(c, a, a, notice);
                if c.trap != 0 && c.trap != abi::trap::UNWIND {
                    let _ = catch(c);
                }
            }
            actor::release(a);
        }
        set_n(s, n(s) + 1);
        reply(out, n(s));
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        for i in 0..12 {
            let (a, b) = (spawn(c, 0), spawn(c, 0));
            let m = obj_with(c, MSG, 400 + i, b);
            actor::send(c, a, m);
            actor::release(a);
            actor::release(b);
        }
        wait::sleep(c, 3);
        0
    }
    for _ in 0..40 {
        let left = run(four(), main, &[relay]);
        assert_eq!((left.status, left.objects_live), (0, 0));
    }
}

//! The stop latch and the drain. The latch belongs to the process, so each case runs in a process of its own: this
//! binary started again with `WO_CASE` set.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]
#![allow(unsafe_code, reason = "hand-written generated code")]

mod common;

use common::*;
use sched::{actor, net, stop, wait};
use std::process::Command;
use std::time::{Duration, Instant};
use values::ctx::Ctx;
use values::object::Obj;

type Out = *mut [u64; 2];

/// Runs this case in a child; in the child the result is the case's exit status.
fn in_child(case: &str, body: fn() -> i32) -> Option<(i32, Duration)> {
    if std::env::var("WO_CASE").as_deref() == Ok(case) {
        std::process::exit(body());
    }
    let start = Instant::now();
    let out = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", case, "--nocapture", "--test-threads=1"])
        .env("WO_CASE", case)
        .output()
        .unwrap();
    let code = out.status.code().unwrap_or(-1);
    if code != 0 {
        eprintln!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    }
    Some((code, start.elapsed()))
}

fn stopping(_c: &mut Ctx) -> bool {
    stop::stopping()
}

fn terminate() {
    // SAFETY: plain system call.
    let _ = unsafe { libc::raise(libc::SIGTERM) };
}

fn terminate_later(ms: u64) {
    let _ = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(ms));
        // SAFETY: plain system call.
        let _ = unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
    });
}

extern "C" fn chain(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
    let c = ctx(c);
    wait::sleep(c, 1000);
    if n(m) > 0 {
        let a = spawn(c, 0);
        send(c, a, n(m) - 1);
        actor::release(a);
    } else {
        LOG.put("end of the chain");
    }
}

static LOG: Log = Log::new();

/// `main` returns at once; a chain of messages goes on through the drain, its sleeps cut short.
#[test]
fn drn_3_messages_sent_during_the_drain_are_handled() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        assert!(!stopping(c));
        terminate();
        assert!(stopping(c));
        let a = spawn(c, 0);
        send(c, a, 20);
        actor::release(a);
        3
    }
    let r = in_child("drn_3_messages_sent_during_the_drain_are_handled", || {
        let left = run(config(), main, &[chain]);
        assert_eq!(LOG.take(), ["end of the chain"]);
        assert_eq!((left.status, left.objects_live), (3, 0));
        0
    });
    let (code, time) = r.unwrap();
    assert!(code == 0 && time < Duration::from_secs(5), "{code} {time:?}");
}

/// The table of `[STOP-3]`, in actors: input without deadline unwinds, the others return.
#[test]
fn stop_3_waits_are_resolved() {
    extern "C" fn waits(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        let c = ctx(c);
        let h = n(m) >> 8;
        match n(m) & 255 {
            0 => {
                assert!(net::read(c, h, 10, Some(60_000)).is_null() && c.trap == 0);
                LOG.put("read_dl");
            }
            1 => {
                assert_eq!(net::accept(c, h, Some(60_000)), None);
                assert_eq!(c.trap, 0);
                LOG.put("accept_dl");
            }
            2 => {
                wait::sleep(c, 60_000);
                assert_eq!(c.trap, 0);
                LOG.put("sleep");
            }
            3 => {
                assert!(net::read(c, h, 10, None).is_null());
                assert_eq!(c.trap, abi::trap::UNWIND);
            }
            4 => {
                assert_eq!(net::accept(c, h, None), None);
                assert_eq!(c.trap, abi::trap::UNWIND);
            }
            _ => LOG.put("queued"),
        }
    }
    extern "C" fn caller(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        assert_eq!(call(ctx(c), addr(m), n(m), 0), None);
        LOG.put(catch(ctx(c)));
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        assert!(!stopping(c));
        let l = net::listen(c, b"127.0.0.1", 0);
        let port = u16::try_from(net::port(c, l)).unwrap();
        let client = net::connect(c, b"127.0.0.1", port);
        let server = net::accept(c, l, None).unwrap();
        for (kind, h) in [(0, client), (1, l), (2, 0), (3, server), (4, l)] {
            let a = spawn(c, 0);
            send(c, a, kind | (h << 8));
            if kind == 3 {
                send(c, a, 9);
                send(c, a, 9);
            }
            actor::release(a);
        }
        let (a, b) = (spawn(c, 0), spawn(c, 1));
        let m = obj_with(c, MSG, 3 | (server << 8), a);
        actor::send(c, b, m);
        actor::release(a);
        actor::release(b);
        terminate_later(30);
        assert_eq!(net::accept(c, l, None), None);
        0
    }
    let r = in_child("stop_3_waits_are_resolved", || {
        let left = run(config(), main, &[waits, caller]);
        let mut log = LOG.take();
        log.sort();
        assert_eq!(log, ["13: actor died during call", "accept_dl", "queued", "queued", "read_dl", "sleep"]);
        assert_eq!((left.status, left.objects_live, left.stats.actors_died), (0, 0, 0));
        0
    });
    let (code, time) = r.unwrap();
    assert!(code == 0 && time < Duration::from_secs(5), "{code} {time:?}");
}

/// 11.10, the bound: a loop that never ends.
#[test]
fn drn_1_the_drain_is_bounded() {
    extern "C" fn loops(c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {
        while spin(ctx(c), 1_000_000) {}
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        assert!(!stopping(c));
        let a = spawn(c, 0);
        send(c, a, 0);
        actor::release(a);
        terminate();
        0
    }
    let r = in_child("drn_1_the_drain_is_bounded", || {
        let mut cfg = config();
        cfg.drain_ms = 300;
        let left = run(cfg, main, &[loops]);
        assert_eq!((left.status, left.objects_live), (0, 0));
        0
    });
    let (code, time) = r.unwrap();
    assert!(code == 0 && (300..5000).contains(&time.as_millis()), "{code} {time:?}");
}

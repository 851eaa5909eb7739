//! `WO_TRACE=1` (9): the ring of recent events, written on SIGUSR1 and before a fatal exit. Each case runs in a process
//! of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]
#![allow(unsafe_code, reason = "hand-written generated code")]

mod common;

use common::*;
use sched::{actor, trace, wait};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::Duration;
use values::ctx::Ctx;
use values::object::Obj;

type Out = *mut [u64; 2];

fn traced() -> sched::config::Config {
    sched::config::Config { trace: true, ..config() }
}

extern "C" fn sleeps(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
    wait::sleep(ctx(c), n(m));
}

/// Actor 1 sleeps for a minute, `main` in a call of it.
extern "C" fn waits(c: *mut Ctx) -> i64 {
    let c = ctx(c);
    let a = spawn(c, 0);
    sched::stderr::line("ready");
    let _ = call(c, a, 60_000, 0);
    actor::release(a);
    0
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: a plain system call on the pid of a child that was not waited for.
    let _ = unsafe { libc::kill(child.id().cast_signed(), signal) };
}

/// What follows the line number and the time.
fn events<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let of = |line: &str| line.strip_prefix("wotrace 0 ").and_then(|l| l.split_once(' ')).map(|(_, e)| e.to_string());
    lines.into_iter().filter_map(of).collect()
}

#[test]
fn sigusr1_writes_what_happened_and_the_program_goes_on() {
    let run = || sched::run_with(traced(), image(waits, &[sleeps]));
    let mut command = child("sigusr1_writes_what_happened_and_the_program_goes_on", run);
    let mut p = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(p.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.by_ref().any(|line| line == "ready"));
    for _ in 0..2 {
        // All fibers are parked: the signal has to wake the shard.
        std::thread::sleep(Duration::from_millis(200));
        signal(&p, libc::SIGUSR1);
        assert_eq!(lines.next().unwrap(), "wotrace 0 the last 4 of 4 events");
        let written: Vec<String> = lines.by_ref().take(4).collect();
        let expected = [
            "spawn actor 1 Actor0",
            "park fiber 0 main: call of actor 1",
            "deliver fiber 1 actor 1 Actor0: Msg",
            "park fiber 1 actor 1 Actor0: sleep",
        ];
        assert_eq!(events(written.iter().map(String::as_str)), expected);
        let time = |line: &String| line.split(' ').nth(2).unwrap().parse::<f64>().unwrap();
        assert!(written.is_sorted_by(|a, b| time(a) <= time(b)), "{written:?}");
    }
    assert!(p.try_wait().unwrap().is_none(), "the program goes on");
    p.kill().unwrap();
    let _ = p.wait().unwrap();
}

#[test]
fn without_wo_trace_sigusr1_has_its_default_action() {
    let run = || sched::run_with(config(), image(waits, &[sleeps]));
    let mut command = child("without_wo_trace_sigusr1_has_its_default_action", run);
    let mut p = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(p.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.by_ref().any(|line| line == "ready"));
    signal(&p, libc::SIGUSR1);
    assert_eq!(p.wait().unwrap().signal(), Some(libc::SIGUSR1));
    assert_eq!(lines.next(), None);
}

#[test]
fn a_trap_in_main_writes_what_led_to_it() {
    extern "C" fn dies(c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {
        ctx(c).raise(abi::trap::EXPLICIT, "boom");
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let a = spawn(c, 0);
        assert_eq!(call(c, a, 1, 0), None);
        actor::release(a);
        0
    }
    let run = || sched::run_with(traced(), image(main, &[dies]));
    let out = child("a_trap_in_main_writes_what_led_to_it", run).output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    let (report, trace) = text.split_once("wotrace 0 the last 6 of 6 events\n").unwrap_or_else(|| panic!("{text}"));
    assert!(report.contains("\ntrap 13 in "), "{report}");
    let expected = [
        "spawn actor 1 Actor0",
        "park fiber 0 main: call of actor 1",
        "deliver fiber 1 actor 1 Actor0: Msg",
        "trap fiber 1 actor 1 Actor0: 8",
        "wake fiber 0 main: closed or died",
        "trap fiber 0 main: 13",
    ];
    assert_eq!(events(trace.lines()), expected);
}

#[test]
fn the_ring_keeps_the_latest_events() {
    extern "C" fn nothing(_c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {}
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let a = spawn(c, 0);
        for i in 0..2000 {
            assert_eq!(call(c, a, i, 0), Some(0));
        }
        wait::sleep(c, 1);
        c.raise(abi::trap::EXPLICIT, "end");
        actor::release(a);
        0
    }
    let run = || sched::run_with(traced(), image(main, &[nothing]));
    let out = child("the_ring_keeps_the_latest_events", run).output().unwrap();
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    // A spawn, three for each call, park, wake and trap.
    let (_, trace) = text.split_once("wotrace 0 the last 4096 of 6004 events\n").unwrap_or_else(|| panic!("{text}"));
    let events = events(trace.lines());
    assert_eq!(events.len(), trace::KEPT);
    assert_eq!(events[4093..], ["park fiber 0 main: sleep", "wake fiber 0 main: deadline", "trap fiber 0 main: 8"]);
    assert!(events[..4093].iter().all(|e| !e.starts_with("spawn")));
}

#[test]
fn a_stop_is_an_event() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let _ = sched::stop::stopping();
        // SAFETY: a plain system call.
        let _ = unsafe { libc::raise(libc::SIGTERM) };
        wait::sleep(c, 60_000);
        c.raise(abi::trap::EXPLICIT, "end");
        0
    }
    let run = || sched::run_with(traced(), image(main, &[]));
    let out = child("a_stop_is_an_event", run).output().unwrap();
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    let expected = ["park fiber 0 main: sleep", "stop", "wake fiber 0 main: stop", "trap fiber 0 main: 8"];
    assert_eq!(events(text.lines())[1..], expected, "{text}");
}

//! What concerns the whole process: standard output, descriptor limits, the counters, exit statuses. Each case runs in a
//! process of its own: this binary started again with `WO_CASE` set.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]
#![allow(unsafe_code, reason = "hand-written generated code")]

mod common;

use common::*;
use sched::{actor, fiber, net, sys, wait};
use std::io::Read;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};
use values::ctx::Ctx;
use values::object::Obj;

type Out = *mut [u64; 2];

fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn print(c: &mut Ctx, line: &str) {
    if let Err(e) = fiber::of(c).shard().out.line(line.as_bytes()) {
        c.raise(abi::trap::IO, &sys::text(e));
    }
}

#[test]
fn out_2_lines_reach_a_pipe_before_the_fiber_parks() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        print(c, "WO first");
        wait::sleep(c, 60_000);
        0
    }
    let mut p =
        child("out_2_lines_reach_a_pipe_before_the_fiber_parks", || sched::run_with(config(), image(main, &[])))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    // SIGKILL: nothing is flushed any more.
    p.kill().unwrap();
    let mut text = String::new();
    let _ = p.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let _ = p.wait().unwrap();
    assert!(text.contains("WO first\n"), "{text}");
}

/// As the builtin does it.
fn print_or_wait(c: &mut Ctx, text: &str) {
    print(c, text);
    if c.trap == 0 {
        wait::for_output(c, |out| !out.is_full());
    }
}

/// Nobody reads standard output: the printers wait, others of their shards go on, and the end comes all the same.
fn nobody_reads(case: &str, stdout: Stdio) {
    extern "C" fn prints(c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {
        let c = ctx(c);
        while c.trap == 0 {
            print_or_wait(c, &"x".repeat(1000));
            let _ = spin(c, 1);
        }
    }
    extern "C" fn ticks(_c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        sched::stderr::line(&format!("tick {}", n(m)));
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let printers = [spawn(c, 0), spawn(c, 0)];
        let clocks = [spawn(c, 1), spawn(c, 1)];
        printers.iter().for_each(|&a| send(c, a, 0));
        for (i, &a) in clocks.iter().enumerate() {
            let m = obj(c, MSG, i as i64);
            actor::after(c, 300, a, m);
        }
        wait::sleep(c, 700);
        printers.iter().chain(&clocks).for_each(|&a| actor::release(a));
        7
    }
    let mut command = child(case, || {
        let config = sched::config::Config { shards: 2, ..config() };
        sched::run_with(config, image(main, &[prints, ticks]))
    });
    let start = std::time::Instant::now();
    let mut p = command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
    let mut err = String::new();
    let _ = std::io::Read::read_to_string(&mut p.stderr.take().unwrap(), &mut err).unwrap();
    assert_eq!(p.wait().unwrap().code(), Some(7), "{err}");
    assert!(err.contains("tick 0") && err.contains("tick 1"), "{err}");
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}

#[test]
fn end_3_a_pipe_that_nobody_reads_holds_up_only_those_who_print() {
    nobody_reads("end_3_a_pipe_that_nobody_reads_holds_up_only_those_who_print", Stdio::piped());
}

#[test]
fn end_3_a_terminal_that_nobody_reads_holds_up_only_those_who_print() {
    let (unread, terminal) = sched::proc::pty::open(80, 24).unwrap();
    // A write that blocks would last until the other side is closed.
    let _ = std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(10));
        drop(unread);
    });
    nobody_reads("end_3_a_terminal_that_nobody_reads_holds_up_only_those_who_print", terminal.into());
}

/// A reader that comes late gets every line, each in one piece, in its printer's order.
#[test]
fn out_1_a_late_reader_gets_whole_lines_in_order() {
    const LINES: usize = 2000;
    extern "C" fn prints(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, out: Out) {
        let c = ctx(c);
        for i in 0..LINES {
            print_or_wait(c, &format!("{} {i} {}", n(m), "x".repeat(i % 300)));
        }
        // SAFETY: `receive` is given a live place for its reply.
        unsafe { (*out)[0] = 1 };
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        // The test's own first line has no end.
        print(c, "");
        wait::sleep(c, 1);
        let actors: Vec<_> = (0..4).map(|_| spawn(c, 0)).collect();
        for (i, &a) in actors.iter().enumerate() {
            send(c, a, i as i64);
        }
        for (i, &a) in actors.iter().enumerate() {
            assert_eq!(call(c, a, 10 + i as i64, 0), Some(1));
            actor::release(a);
        }
        0
    }
    let mut command = child("out_1_a_late_reader_gets_whole_lines_in_order", || {
        let config = sched::config::Config { shards: 4, ..config() };
        sched::run_with(config, image(main, &[prints]))
    });
    let mut p = command.stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let mut text = String::new();
    let _ = std::io::Read::read_to_string(&mut p.stdout.take().unwrap(), &mut text).unwrap();
    assert_eq!(p.wait().unwrap().code(), Some(0));
    let mut next = std::collections::BTreeMap::new();
    for line in text.lines().filter(|l| l.starts_with(|c: char| c.is_ascii_digit())) {
        let mut words = line.split(' ');
        let (who, i) = (words.next().unwrap(), words.next().unwrap().parse::<usize>().unwrap());
        assert_eq!(words.next().map(str::len), Some(i % 300), "{line}");
        let wanted = next.entry(who.to_string()).or_insert(0);
        assert_eq!(i, *wanted, "{who}");
        *wanted += 1;
    }
    assert_eq!(next.values().collect::<Vec<_>>(), [&LINES; 8]);
}

#[test]
fn out_4_a_closed_pipe_traps() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        for _ in 0..100 {
            print(c, "line");
            if c.trap != 0 {
                return 0;
            }
            wait::sleep(c, 10);
        }
        0
    }
    let out = child("out_4_a_closed_pipe_traps", || {
        let mut ends = [0; 2];
        // SAFETY: plain system calls on descriptors of this process; `ends` has room for two.
        unsafe {
            let _ = libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC);
            let _ = libc::close(ends[0]);
            let _ = libc::dup2(ends[1], 1);
        }
        sched::run_with(config(), image(main, &[]))
    })
    .output()
    .unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(stderr(&out).contains("trap 9 in  at line 0: Broken pipe\n"), "{}", stderr(&out));
}

#[test]
fn net_1_the_descriptor_limit_neither_traps_nor_spins() {
    extern "C" fn keeps(_c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {}
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let l = net::listen(c, b"127.0.0.1", 0);
        let port = u16::try_from(net::port(c, l)).unwrap();
        let mut clients = Vec::new();
        for _ in 0..6 {
            clients.push(net::connect(c, b"127.0.0.1", port));
            assert_eq!(c.trap, 0);
        }
        let mut lim = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: plain system calls; `lim` is writable.
        unsafe {
            let _ = libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut lim);
            let top = libc::dup(0);
            lim.rlim_cur = u64::try_from(top).unwrap() + 2;
            let _ = libc::close(top);
            let _ = libc::setrlimit(libc::RLIMIT_NOFILE, &raw const lim);
        }
        let mut servers = Vec::new();
        let start = Instant::now();
        while let Some(h) = net::accept(c, l, Some(300)) {
            servers.push(h);
        }
        assert_eq!((c.trap, servers.len()), (0, 2));
        assert!(start.elapsed() >= Duration::from_millis(300));
        // It recovers when descriptors are free again.
        net::close(c, servers[0]);
        net::close(c, clients[0]);
        assert!(net::accept(c, l, None).is_some());
        assert!(net::accept(c, l, None).is_some());
        5
    }
    let out = child("net_1_the_descriptor_limit_neither_traps_nor_spins", || {
        sched::run_with(config(), image(main, &[keeps]))
    })
    .output()
    .unwrap();
    let err = stderr(&out);
    assert_eq!(out.status.code(), Some(5), "{err}");
    assert_eq!(err.matches("descriptor limit").count(), 1, "{err}");
}

#[test]
fn the_exit_line_has_every_counter() {
    extern "C" fn nop(_c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {}
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let a = spawn(c, 0);
        send(c, a, 1);
        wait::sleep(c, 1);
        // Left over on purpose: an address in an actor's state, a timer, a queued message.
        let state = obj_with(c, FIRST_ACTOR, 0, a);
        let b = actor::spawn(c, FIRST_ACTOR, state);
        let m = obj(c, MSG, 1);
        actor::after(c, 60_000, b, m);
        send(c, b, 2);
        actor::release(a);
        actor::release(b);
        300
    }
    let out = child("the_exit_line_has_every_counter", || sched::run(image(main, &[nop])))
        .env("WO_STATS", "1")
        .env("WO_MAILBOX", "none")
        .output()
        .unwrap();
    let err = stderr(&out);
    assert_eq!(out.status.code(), Some(44), "{err}");
    let line = err.lines().find(|l| l.starts_with("wostats ")).unwrap();
    for name in sched::stats::NAMES {
        assert!(line.contains(&format!(" {name}=")), "{name}: {line}");
    }
    assert!(line.contains(" objects_live=0") && line.contains(" actors_spawned=2"), "{line}");
    assert!(err.lines().next().unwrap().contains("WO_MAILBOX=none"), "{err}");
}

/// Actors and fibers that the end has yet to unwind count as living.
#[test]
fn the_exit_line_says_what_lived_when_the_drain_ended() {
    extern "C" fn waits(c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {
        wait::sleep(ctx(c), 60_000);
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        for _ in 0..3 {
            let a = spawn(c, 0);
            send(c, a, 1);
            actor::release(a);
        }
        wait::sleep(c, 50);
        0
    }
    let out = child("the_exit_line_says_what_lived_when_the_drain_ended", || sched::run(image(main, &[waits])))
        .env("WO_STATS", "1")
        .env("WO_SHARDS", "2")
        .output()
        .unwrap();
    let err = stderr(&out);
    let line = err.lines().find(|l| l.starts_with("wostats ")).unwrap();
    for field in ["actors_live=3", "fibers_live=3", "children_live=0", "objects_live=0"] {
        assert!(line.contains(&format!(" {field}")), "{field}: {line}");
    }
}

#[test]
fn fd_3_closing_standard_output_does_not_hand_its_number_to_a_connection() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        net::close(c, 1);
        let l = net::listen(c, b"127.0.0.1", 0);
        let port = u16::try_from(net::port(c, l)).unwrap();
        let client = net::connect(c, b"127.0.0.1", port);
        let server = net::accept(c, l, None).unwrap();
        print(c, "nobody sees this");
        wait::sleep(c, 5);
        for h in [client, server] {
            assert!(net::read(c, h, 10, Some(20)).is_null());
            assert_eq!(c.trap, 0);
        }
        assert!(net::read(c, 1, 10, Some(20)).is_null());
        assert_eq!(catch(c), "9: Bad file descriptor");
        6
    }
    let out = child("fd_3_closing_standard_output_does_not_hand_its_number_to_a_connection", || {
        sched::run_with(config(), image(main, &[]))
    })
    .output()
    .unwrap();
    assert_eq!(out.status.code(), Some(6), "{}", stderr(&out));
}

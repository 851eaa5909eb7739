//! Children and what ends them: an unwound fiber, a death, the end of the program, a stop. The stop latch belongs to
//! the process, so that case runs in a process of its own: this binary started again with `WO_CASE` set.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]
#![allow(unsafe_code, reason = "hand-written generated code")]

mod common;

use common::*;
use sched::proc::{self, Bounds};
use sched::{actor, fiber, net, stop, unix, wait};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use values::ctx::Ctx;
use values::object::Obj;

type Out = *mut [u64; 2];

fn argv(words: &[&str]) -> Vec<CString> {
    words.iter().map(|w| CString::new(*w).unwrap()).collect()
}

fn live(c: &Ctx) -> usize {
    fiber::of(c).shard().children.all.live()
}

/// Lets other fibers run until the condition holds; false after some seconds.
fn until(c: &mut Ctx, condition: impl Fn(&mut Ctx) -> bool) -> bool {
    let start = Instant::now();
    while !condition(c) {
        if start.elapsed() > Duration::from_secs(10) {
            return false;
        }
        wait::sleep(c, 2);
    }
    true
}

/// A process that was reaped is no process any more.
fn reaped(pid: i64) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("wo-children-{}-{name}", std::process::id()))
}

/// A command that writes its number to a file and lasts; and the file's content once it is there.
fn lasting(file: &Path) -> Vec<CString> {
    argv(&["sh", "-c", &format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 60", file.display())])
}

fn number_in(file: &Path) -> Option<i64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[test]
fn end_2_children_are_killed_and_reaped_at_the_end() {
    static LOG: Log = Log::new();
    extern "C" fn starts(c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {
        let c = ctx(c);
        LOG.put(proc::spawn(c, argv(&["sleep", "60"]), None).unwrap().id.to_string());
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let a = spawn(c, 0);
        send(c, a, 0);
        LOG.put(proc::spawn(c, argv(&["sleep", "60"]), None).unwrap().id.to_string());
        LOG.put(proc::spawn(c, argv(&["sleep", "60"]), Some((80, 24))).unwrap().id.to_string());
        // A child that is being started counts as live, but the end would take back its `spawn`.
        assert!(until(c, |c| live(c) == 3 && LOG.lines() == 3));
        actor::release(a);
        0
    }
    let left = run(config(), main, &[starts]);
    assert_eq!((left.status, left.objects_live), (0, 0));
    let pids = LOG.take();
    assert_eq!(pids.len(), 3);
    assert!(pids.iter().all(|p| reaped(p.parse().unwrap())), "{pids:?}");
}

/// A child may end while a process of its own still holds its output. The end must not make `run` deaf to that output:
/// it comes here in a slice of another fiber, when `run` is runnable after a part of the output.
#[test]
fn proc_2_run_hears_the_end_of_an_output_that_outlives_the_child() {
    extern "C" fn holds_the_shard(c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {
        let c = ctx(c);
        loop {
            std::thread::sleep(Duration::from_millis(4));
            if !spin(c, 4000) {
                return;
            }
        }
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let a = spawn(c, 0);
        send(c, a, 0);
        actor::release(a);
        let start = Instant::now();
        let command = argv(&["sh", "-c", "sleep 1 & head -c 300000 /dev/zero"]);
        let ran = proc::run(c, command, Bounds { ms: 20_000, ..Bounds::default() }).unwrap();
        assert_eq!((ran.code, ran.out.len()), (0, 300_000));
        // Only the deadline ended it otherwise.
        assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
        0
    }
    let left = run(config(), main, &[holds_the_shard]);
    assert_eq!((left.status, left.objects_live), (0, 0));
}

#[test]
fn proc_6_a_run_child_dies_with_its_fiber() {
    extern "C" fn runs(c: *mut Ctx, _s: *mut Obj, _m: *mut Obj, _out: Out) {
        let c = ctx(c);
        assert!(proc::run(c, lasting(&scratch("run")), Bounds::default()).is_none());
        assert_eq!(c.trap, abi::trap::UNWIND);
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let a = spawn(c, 0);
        send(c, a, 0);
        actor::release(a);
        assert!(until(c, |_| number_in(&scratch("run")).is_some()));
        0
    }
    let left = run(config(), main, &[runs]);
    assert_eq!((left.status, left.objects_live), (0, 0));
    let pid = number_in(&scratch("run")).unwrap();
    let _ = std::fs::remove_file(scratch("run"));
    assert!(reaped(pid), "{pid}");
}

#[test]
fn death_1_children_of_an_actor_die_with_it_and_no_others() {
    extern "C" fn owner(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, out: Out) {
        let c = ctx(c);
        if n(m) == 0 {
            c.raise(abi::trap::EXPLICIT, "over");
            return;
        }
        let child = proc::spawn(c, argv(&["sleep", "60"]), None).unwrap();
        // SAFETY: the runtime passes room for the reply.
        unsafe { (*out)[0] = child.id.unsigned_abs() };
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let (a, b) = (spawn(c, 0), spawn(c, 0));
        let first = call(c, a, 1, 0).unwrap();
        let second = call(c, a, 1, 0).unwrap();
        let other = call(c, b, 1, 0).unwrap();
        assert_eq!(call(c, a, 0, 0), None);
        assert_eq!(catch(c), "13: actor died during call");
        assert!(until(c, |_| reaped(first) && reaped(second)));
        assert_eq!(live(c), 1);
        assert_eq!(proc::wait(c, other, 1), None);
        assert_eq!(c.trap, 0);
        assert_eq!(proc::wait(c, first, 1), None);
        assert_eq!(catch(c), "9: process id is not a live child");
        actor::release(a);
        actor::release(b);
        0
    }
    let left = run(config(), main, &[owner]);
    assert_eq!((left.status, left.objects_live), (0, 0));
}

#[test]
fn rcl_1_an_actor_is_kept_as_long_as_its_child_lives() {
    extern "C" fn owner(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        let c = ctx(c);
        if n(m) > 0 {
            let text = format!("sleep 0.{}", n(m));
            let child = proc::spawn(c, argv(&["sh", "-c", &text]), None).unwrap();
            for h in [child.stdin, child.stdout, child.stderr] {
                net::close(c, h);
            }
        }
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let stats = |c: &mut Ctx| {
            let s = fiber::of(c).shard();
            let of = |name| s.stat(name).unwrap();
            (of("actors_live"), of("actors_reclaimed"))
        };
        // Without a child it goes at once.
        let a = spawn(c, 0);
        let _ = call(c, a, 0, 0);
        actor::release(a);
        assert!(until(c, |c| stats(c) == (0, 1)));
        let a = spawn(c, 0);
        let _ = call(c, a, 4, 0);
        let _ = call(c, a, 2, 0);
        actor::release(a);
        assert!(until(c, |c| live(c) == 1));
        assert_eq!(stats(c), (1, 1));
        assert!(until(c, |c| stats(c) == (0, 2)));
        assert_eq!(live(c), 0);
        0
    }
    let left = run(config(), main, &[owner]);
    assert_eq!((left.status, left.objects_live), (0, 0));
}

/// The outputs of children count against the program's memory.
#[test]
fn mem_1_output_beyond_the_heap_bound_traps() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        let all = Bounds { ms: 0, out_cap: 1 << 40, err_cap: 0 };
        assert!(proc::run(c, argv(&["head", "-c", "200000000", "/dev/zero"]), all).is_none());
        assert_eq!(catch(c), "4: out of memory");
        assert_eq!(live(c), 0);
        let small = proc::run(c, argv(&["head", "-c", "200000", "/dev/zero"]), all).unwrap();
        assert_eq!((small.code, small.out.len()), (0, 200_000));
        0
    }
    // The bound is the process's: other cases of this binary must not meet it.
    let case = "mem_1_output_beyond_the_heap_bound_traps";
    in_child(case, || {
        let left = sched::run(image(main, &[]));
        assert_eq!(left, 0);
    });
}

/// Runs the case in a child of its own, with a small heap.
#[track_caller]
fn in_child(case: &str, body: fn()) {
    if std::env::var("WO_CASE").as_deref() == Ok(case) {
        body();
        std::process::exit(0);
    }
    let out = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", case, "--nocapture", "--test-threads=1"])
        .env("WO_CASE", case)
        .env("WO_HEAP_MB", "64")
        .output()
        .unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.code() == Some(0) && !text.contains("panicked"), "{:?}\n{text}", out.status);
}

/// The rows of `[STOP-3]` for children and unix sockets: each fiber is unwound, its child killed and reaped first; what
/// is queued behind it is handled.
#[test]
fn stop_3_waits_for_children_and_descriptors_end() {
    static LOG: Log = Log::new();
    extern "C" fn waits(c: *mut Ctx, _s: *mut Obj, m: *mut Obj, _out: Out) {
        let c = ctx(c);
        let arg = n(m) >> 8;
        let sleep = argv(&["sleep", "60"]);
        match n(m) & 255 {
            0 => assert!(proc::run(c, sleep, Bounds::default()).is_none()),
            1 => {
                let endless = argv(&["sh", "-c", "while :; do echo y; done"]);
                assert!(proc::run(c, endless, Bounds { ms: 60_000, out_cap: 1 << 40, err_cap: 0 }).is_none());
            }
            2 => {
                assert_eq!(proc::wait(c, arg, 60_000), None);
                assert!(reaped(arg), "{arg}");
            }
            3 => assert_eq!(unix::recv_fd(c, arg), None),
            4 => while unix::send_fd(c, arg, 0) {},
            _ => {
                LOG.put("queued");
                return;
            }
        }
        assert_eq!(c.trap, abi::trap::UNWIND);
        LOG.put(format!("unwound {}", n(m) & 255));
    }
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let c = ctx(c);
        assert!(!stop::stopping());
        let path = scratch("stop");
        let path = unix::Path::new(path.to_str().unwrap().as_bytes()).unwrap();
        let l = unix::listen(c, path);
        let conn = unix::connect(c, path);
        let full = unix::connect(c, path);
        assert_eq!(c.trap, 0);
        let child = proc::spawn(c, argv(&["sleep", "60"]), None).unwrap();
        for (kind, arg) in [(0, 0), (1, 0), (2, child.id), (3, conn), (4, full)] {
            let a = spawn(c, 0);
            send(c, a, kind | arg << 8);
            send(c, a, 255);
            actor::release(a);
        }
        assert!(until(c, |c| live(c) == 3));
        wait::sleep(c, 100);
        // SAFETY: plain system call.
        let _ = unsafe { libc::raise(libc::SIGTERM) };
        net::close(c, l);
        0
    }
    in_child("stop_3_waits_for_children_and_descriptors_end", || {
        let start = Instant::now();
        let left = run(config(), main, &[waits]);
        let _ = std::fs::remove_file(scratch("stop"));
        let mut lines = LOG.take();
        lines.sort();
        let queued = vec!["queued"; 5];
        let unwound = ["unwound 0", "unwound 1", "unwound 2", "unwound 3", "unwound 4"];
        assert_eq!(lines, [queued.as_slice(), unwound.as_slice()].concat());
        assert_eq!((left.status, left.objects_live), (0, 0));
        assert!(start.elapsed() < Duration::from_secs(20));
    });
}

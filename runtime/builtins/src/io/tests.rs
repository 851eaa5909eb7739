//! The I/O builtins, called as generated code calls them: by address, inside a fiber of a running program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use super::Pair;
use abi::desc::{ClassDesc, ClassKind, FIXED_TYPES, FieldDesc, Shapes, TYPE_BOOL, TYPE_INT, TYPE_TEXT};
use values::ctx::{Ctx, Image, MainFn};
use values::object::{self, Obj};

const STAT: i64 = 0;
const PARTS: i64 = 1;
const PROC: i64 = 2;
const CHILD: i64 = 3;

fn address(name: &str) -> *const u8 {
    super::functions().iter().find(|(n, _)| *n == name).unwrap().1
}

macro_rules! builtin {
    ($name:literal, fn($($arg:ty),*) -> $ret:ty) => {
        // SAFETY: the type is that of the function's entry in `abi::symbols`.
        unsafe { std::mem::transmute::<*const u8, extern "C" fn(*mut Ctx $(, $arg)*) -> $ret>(address($name)) }
    };
}

fn class(name: &str, fields: &[(&str, u32)]) -> ClassDesc {
    let fields: Vec<_> = (0u32..)
        .zip(fields)
        .map(|(i, (n, ty))| FieldDesc { name: (*n).into(), ty: *ty, offset: 8 + 8 * i, default: None })
        .collect();
    let size = 8 + 8 * fields.len() as u32;
    ClassDesc { name: name.into(), package: None, kind: ClassKind::Class, size, fields, reply: None }
}

/// Runs `main` as a program; the result is its exit status.
fn run(main: MainFn) -> (i32, i64) {
    let parts = ["year", "month", "day", "hour", "minute", "second", "dow"].map(|n| (n, TYPE_INT));
    let stat = [("size", TYPE_INT), ("mtime", TYPE_INT), ("inode", TYPE_INT), ("dir", TYPE_BOOL)];
    let image: &'static Image = Box::leak(Box::new(Image {
        receives: vec![None; 4],
        main: Some(main),
        args: vec![b"one".to_vec(), b"two".to_vec()],
        ..Image::of(Shapes {
            types: FIXED_TYPES.to_vec(),
            classes: vec![
                class("Stat", &stat),
                class("TimeParts", &parts),
                class("Proc", &[("code", TYPE_INT), ("out", TYPE_TEXT), ("err", TYPE_TEXT)]),
                class("Child", &["id", "stdin", "stdout", "stderr"].map(|n| (n, TYPE_INT))),
            ],
            ..Shapes::default()
        })
    }));
    let config = sched::config::read("test", |_| None).config;
    let ended = sched::run::run(config, image).unwrap();
    (ended.status, ended.objects_live)
}

fn text(c: *mut Ctx, s: &str) -> *mut Obj {
    // SAFETY: the test is the fiber that owns `c`, and its objects are alive until it releases them.
    values::text::new(unsafe { &mut *c }, s.as_bytes())
}

fn drop_obj(c: *mut Ctx, o: *mut Obj) {
    // SAFETY: the test is the fiber that owns `c`, and its objects are alive until it releases them.
    unsafe { object::release(&mut *c, o) };
}

/// The text's content; it is released.
fn string(c: *mut Ctx, o: *mut Obj) -> String {
    // SAFETY: the test is the fiber that owns `c`, and its objects are alive until it releases them.
    let s = String::from_utf8_lossy(unsafe { values::text::bytes(o) }).into_owned();
    drop_obj(c, o);
    s
}

fn words(c: *mut Ctx, o: *mut Obj, n: usize) -> Vec<i64> {
    assert!(!o.is_null());
    // SAFETY: the test is the fiber that owns `c`, and its objects are alive until it releases them.
    let w = (0..n).map(|i| unsafe { o.cast::<i64>().add(1 + i).read() }).collect();
    drop_obj(c, o);
    w
}

fn list(c: *mut Ctx, o: *mut Obj) -> Vec<String> {
    assert!(!o.is_null());
    // SAFETY: the test is the fiber that owns `c`, and its objects are alive until it releases them.
    let items = unsafe { values::multi::words(&*c, o) };
    let items = items
        .iter()
        // SAFETY: the test is the fiber that owns `c`, and its objects are alive until it releases them.
        .map(|w| String::from_utf8_lossy(unsafe { values::text::bytes(*w as *mut Obj) }).into_owned())
        .collect();
    drop_obj(c, o);
    items
}

fn catch(c: *mut Ctx) -> String {
    // SAFETY: the test is the fiber that owns `c`, and its objects are alive until it releases them.
    let ctx = unsafe { &mut *c };
    let code = std::mem::replace(&mut ctx.trap, 0);
    let msg = std::mem::replace(&mut ctx.trap_msg, std::ptr::null_mut());
    format!("{code}: {}", string(c, msg))
}

#[test]
fn files() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let exists = builtin!("fs.exists", fn(*mut Obj) -> i64);
        let append = builtin!("fs.append", fn(*mut Obj, *mut Obj) -> ());
        let read_all = builtin!("fs.read_all", fn(*mut Obj, i64) -> *mut Obj);
        let read_at = builtin!("fs.read_at", fn(*mut Obj, i64, i64) -> *mut Obj);
        let stat = builtin!("fs.stat", fn(i64, *mut Obj) -> *mut Obj);
        let names = builtin!("fs.list", fn(*mut Obj) -> *mut Obj);
        let dir = std::env::temp_dir().join(format!("wo-io-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir(&dir).unwrap();
        let path = dir.join("b.txt");
        let (p, d, t) = (text(c, path.to_str().unwrap()), text(c, dir.to_str().unwrap()), text(c, "hello\n"));
        assert_eq!(exists(c, p), 0);
        assert!(stat(c, STAT, p).is_null());
        append(c, p, t);
        append(c, p, t);
        std::fs::write(dir.join("a"), "").unwrap();
        assert_eq!((exists(c, p), exists(c, d)), (1, 1));
        assert_eq!(string(c, read_all(c, p, 1 << 40)), "hello\nhello\n");
        assert_eq!(string(c, read_all(c, p, 3)), "hel");
        assert_eq!(string(c, read_all(c, p, -1)), "");
        assert_eq!(string(c, read_at(c, p, 6, 100)), "hello\n");
        assert_eq!(string(c, read_at(c, p, 100, 100)), "");
        assert!(read_at(c, p, -1, 1).is_null());
        assert_eq!(catch(c), "6: negative offset or length");
        let fifo = dir.join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let f = text(c, fifo.to_str().unwrap());
        assert!(read_at(c, f, 0, 1).is_null());
        assert_eq!(catch(c), "9: Illegal seek");
        drop_obj(c, f);
        std::fs::remove_file(fifo).unwrap();
        let s = words(c, stat(c, STAT, p), 4);
        assert!(s[0] == 12 && s[1] > 1_600_000_000_000 && s[2] > 0 && s[3] == 0);
        assert_eq!(words(c, stat(c, STAT, d), 4)[3], 1);
        assert_eq!(list(c, names(c, d)), ["a", "b.txt"]);
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(names(c, d).is_null());
        assert_eq!(catch(c), "9: No such file or directory");
        let (nul, long) = (text(c, "a\0b"), text(c, &"x".repeat(4096)));
        assert_eq!(exists(c, nul), 0);
        assert_eq!(catch(c), "6: nul byte in path");
        assert!(read_all(c, long, 1).is_null());
        assert_eq!(catch(c), "6: text too long for a path");
        assert_eq!(exists(c, std::ptr::null_mut()), 0);
        assert_eq!(catch(c), "6: null text");
        for o in [p, d, t, nul, long] {
            drop_obj(c, o);
        }
        0
    }
    assert_eq!(run(main), (0, 0));
}

#[test]
fn clocks_and_calendar() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let iso = builtin!("time.iso", fn(i64) -> *mut Obj);
        let utc = builtin!("time.utc", fn(i64, i64) -> *mut Obj);
        let local = builtin!("time.local", fn(i64, i64) -> *mut Obj);
        let now = builtin!("time.now", fn() -> i64);
        let ticks = builtin!("time.ticks", fn() -> i64);
        let boot = builtin!("time.boot_id", fn() -> *mut Obj);
        let sleep = builtin!("time.sleep", fn(i64) -> ());
        assert_eq!(string(c, iso(c, -1)), "1969-12-31T23:59:59Z");
        assert_eq!(string(c, iso(c, 1_700_000_000_999)), "2023-11-14T22:13:20Z");
        assert_eq!(words(c, utc(c, PARTS, 1_700_000_000_999), 7), [2023, 11, 14, 22, 13, 20, 2]);
        assert_eq!(words(c, local(c, PARTS, 1_700_000_000_999), 7)[0], 2023);
        for ms in [i64::MIN, i64::MAX, 253_402_300_800_000, -62_167_219_200_001] {
            assert!(iso(c, ms).is_null());
            assert_eq!(catch(c), "6: instant out of range");
            assert!(utc(c, PARTS, ms).is_null());
            assert_eq!(catch(c), "6: instant out of range");
        }
        assert!(now(c) > 1_600_000_000_000);
        assert_eq!(string(c, boot(c)).len(), 36);
        let before = ticks(c);
        sleep(c, 5);
        sleep(c, 0);
        sleep(c, -5);
        assert!(ticks(c) - before >= 5000);
        0
    }
    assert_eq!(run(main), (0, 0));
}

#[test]
fn environment_and_random() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let get = builtin!("env.get", fn(*mut Obj) -> *mut Obj);
        let stat = builtin!("env.stat", fn(*mut Obj) -> Pair);
        let random = builtin!("random_bytes", fn(i64) -> *mut Obj);
        let args = builtin!("rt.args", fn() -> *mut Obj);
        let (path, none, odd) = (text(c, "PATH"), text(c, "WO_NO_SUCH_VARIABLE"), text(c, "A=\0"));
        assert_eq!(string(c, get(c, path)), std::env::var("PATH").unwrap());
        assert!(get(c, none).is_null() && get(c, odd).is_null());
        let name = text(c, "fibers_live");
        let (a, b) = (stat(c, name), stat(c, path));
        assert_eq!((a.0, a.1, b.0), (1, 1, 0));
        let r = random(c, 33);
        // SAFETY: the test is the fiber that owns `c`, and its objects are alive until it releases them.
        assert_eq!(unsafe { values::text::bytes(r) }.len(), 33);
        // SAFETY: the test is the fiber that owns `c`, and its objects are alive until it releases them.
        assert_eq!(unsafe { (*r).kind }, abi::layout::KIND_BYTES);
        drop_obj(c, r);
        assert!(random(c, -1).is_null());
        assert_eq!(catch(c), "6: negative count");
        assert!(random(c, i64::MAX).is_null());
        assert_eq!(catch(c), "4: out of memory");
        assert_eq!(list(c, args(c)), ["one", "two"]);
        for o in [path, none, odd, name] {
            drop_obj(c, o);
        }
        0
    }
    assert_eq!(run(main), (0, 0));
}

#[test]
fn ports_are_checked() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let listen = builtin!("net.listen", fn(*mut Obj, i64) -> i64);
        let port = builtin!("net.port", fn(i64) -> i64);
        let accept_dl = builtin!("net.accept_dl", fn(i64, i64) -> Pair);
        let close = builtin!("net.close", fn(i64) -> ());
        let host = text(c, "127.0.0.1");
        for p in [-1, 65_536] {
            assert_eq!(listen(c, host, p), 0);
            assert_eq!(catch(c), "6: port out of range");
        }
        let l = listen(c, host, 0);
        assert!(port(c, l) > 0);
        assert_eq!(accept_dl(c, l, 1).0, 0);
        close(c, l);
        assert_eq!(port(c, l), 0);
        assert_eq!(catch(c), "9: Bad file descriptor");
        drop_obj(c, host);
        0
    }
    assert_eq!(run(main), (0, 0));
}

#[test]
fn proc_7_a_result_that_cannot_be_made_leaves_nothing_behind() {
    extern "C" fn main(c: *mut Ctx) -> i64 {
        let run = builtin!("proc.run", fn(i64, *mut Obj, *mut Obj) -> *mut Obj);
        let spawn = builtin!("proc.spawn", fn(i64, *mut Obj, *mut Obj) -> *mut Obj);
        let wait_dl = builtin!("proc.wait_dl", fn(i64, i64) -> Pair);
        let stat = builtin!("env.stat", fn(*mut Obj) -> Pair);
        let sleep = builtin!("time.sleep", fn(i64) -> ());
        // SAFETY: the test is the fiber that owns `c`.
        let args = super::shim::list_of_texts(unsafe { &mut *c }, &[b"30".to_vec()]);
        let (echo, long) = (text(c, "echo"), text(c, "sleep"));
        let ran = run(c, PROC, echo, args);
        // SAFETY: the fields of a live `Proc`; the texts live as long as it.
        let (code, out) = unsafe { (ran.cast::<i64>().add(1).read(), *ran.cast::<*mut Obj>().add(2)) };
        // SAFETY: as above.
        assert_eq!((code, unsafe { values::text::bytes(out) }), (0, b"30\n".as_slice()));
        drop_obj(c, ran);
        // No class has this index, so no object can be made.
        for (function, command) in [(run, echo), (spawn, long)] {
            assert!(function(c, 99, command, args).is_null());
            assert_eq!(catch(c), "8: internal error: unknown class");
        }
        let (children, descriptors) = (text(c, "children_live"), text(c, "descriptors_open"));
        assert_eq!(stat(c, descriptors).1, 0);
        while stat(c, children).1 > 0 {
            sleep(c, 2);
        }
        let child = words(c, spawn(c, CHILD, long, args), 4);
        assert_eq!((stat(c, children).1, stat(c, descriptors).1), (1, 3));
        assert_eq!(wait_dl(c, child[0], 5).0, 0);
        assert!(run(c, PROC, echo, std::ptr::null_mut()).is_null());
        assert_eq!(catch(c), "6: null receiver");
        assert!(run(c, PROC, std::ptr::null_mut(), args).is_null());
        assert_eq!(catch(c), "6: null text");
        for o in [args, echo, long, children, descriptors] {
            drop_obj(c, o);
        }
        0
    }
    assert_eq!(run(main), (0, 0));
}

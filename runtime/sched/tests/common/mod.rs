//! Programs for the scheduler written by hand: what generated code would be, as `extern "C"` functions.
#![allow(dead_code, reason = "each test binary uses a part")]

use abi::desc::{ClassDesc, ClassKind, FIXED_TYPES, FieldDesc, Reply, Shapes, TYPE_INT, TYPE_TEXT, TypeDesc, TypeIdx};
use sched::actor::{self, Actor, Answer};
use sched::config::{self, Config};
use sched::run::Ended;
use std::process::Command;
use std::sync::Mutex;
use values::ctx::{Ctx, Image, MainFn, ReceiveFn};
use values::object::{self, Obj};

/// Class indexes of the test image.
pub const MSG: u32 = 0;
pub const STATE: u32 = 1;
/// Actor classes follow, in the order of `receives`; their states have the layout of `STATE`.
pub const FIRST_ACTOR: u32 = 2;

/// Types of the test image after the fixed ones.
const TYPE_ACTOR: TypeIdx = FIXED_TYPES.len() as TypeIdx;
const TYPE_ACTORS: TypeIdx = TYPE_ACTOR + 1;

fn class(name: &str, reply: Option<Reply>, last: TypeIdx) -> ClassDesc {
    let field = |name: &str, ty, offset| FieldDesc { name: name.into(), ty, offset, default: None };
    ClassDesc {
        name: name.into(),
        package: None,
        kind: ClassKind::Class,
        size: 40,
        fields: vec![
            field("n", TYPE_INT, 8),
            field("text", TYPE_TEXT, 16),
            field("a", TYPE_ACTOR, 24),
            field("m", last, 32),
        ],
        reply,
    }
}

/// An image with this `main` and one actor class per `receive`, each of which replies one word.
pub fn image(main: MainFn, receives: &[ReceiveFn]) -> &'static Image {
    image_with(main, receives, TYPE_INT)
}

fn image_with(main: MainFn, receives: &[ReceiveFn], last_of_state: TypeIdx) -> &'static Image {
    let mut types = FIXED_TYPES.to_vec();
    types.extend([TypeDesc::Actor, TypeDesc::Multi(TYPE_ACTOR)]);
    let mut classes = vec![class("Msg", None, TYPE_INT), class("State", None, last_of_state)];
    let mut entries = vec![None, None];
    for (i, r) in receives.iter().enumerate() {
        classes.push(class(&format!("Actor{i}"), Some(Reply::One), last_of_state));
        entries.push(Some(*r));
    }
    Box::leak(Box::new(Image {
        receives: entries,
        main: Some(main),
        ..Image::of(Shapes { types, classes, ..Shapes::default() })
    }))
}

pub fn config() -> Config {
    let mut c = config::read("test", |_| None).config;
    c.shards = 1;
    c.mailbox = 8;
    c.release_all = true;
    c
}

pub fn run(config: Config, main: MainFn, receives: &[ReceiveFn]) -> Ended {
    sched::run::run(config, image(main, receives)).unwrap()
}

/// The same, with states that can hold addresses in a list, which is nil.
pub fn run_deep(config: Config, main: MainFn, receives: &[ReceiveFn]) -> Ended {
    sched::run::run(config, image_with(main, receives, TYPE_ACTORS)).unwrap()
}

/// Lines that the functions of one test note, in order.
pub struct Log(Mutex<Vec<String>>);

impl Log {
    pub const fn new() -> Log {
        Log(Mutex::new(Vec::new()))
    }

    pub fn put(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub fn lines(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

pub fn ctx<'a>(c: *mut Ctx) -> &'a mut Ctx {
    // SAFETY: the runtime passes the running fiber's live context; it makes no reference of its own meanwhile.
    unsafe { &mut *c }
}

fn field(o: *mut Obj, i: usize) -> *mut u64 {
    // SAFETY: objects of the test image are a header word and four field words (`class`); `i` is below four.
    unsafe { o.cast::<u64>().add(1 + i) }
}

/// The Int of a message or state.
pub fn n(o: *mut Obj) -> i64 {
    // SAFETY: a live object of the test image, whose first field is an Int.
    unsafe { field(o, 0).read() as i64 }
}

pub fn set_n(o: *mut Obj, n: i64) {
    // SAFETY: a live object of the test image, whose first field is an Int.
    unsafe { field(o, 0).write(n as u64) };
}

pub fn addr(o: *mut Obj) -> *mut Actor {
    // SAFETY: a live object of the test image, whose third field is an address or null.
    unsafe { field(o, 2).read() as *mut Actor }
}

pub fn set_addr(o: *mut Obj, a: *mut Actor) {
    // SAFETY: a live object of the test image; its third field held null, and the caller gives `a`'s count with it.
    unsafe { field(o, 2).write(a as u64) };
}

/// A new object of a class with its Int and a text of its own.
pub fn obj(c: &mut Ctx, class: u32, n: i64) -> *mut Obj {
    let o = object::new(c, class);
    let t = values::text::new(c, b"a text of some length, on the heap");
    // SAFETY: made above, with null in the field that gets the text.
    unsafe {
        field(o, 0).write(n as u64);
        field(o, 1).write(t as u64);
    }
    o
}

/// The same holding an address too (counted).
pub fn obj_with(c: &mut Ctx, class: u32, n: i64, a: *mut Actor) -> *mut Obj {
    let o = obj(c, class, n);
    actor::retain(a);
    // SAFETY: made by `obj`, with null in its third field; `a` was counted for it.
    unsafe { field(o, 2).write(a as u64) };
    o
}

pub fn spawn(c: &mut Ctx, i: u32) -> *mut Actor {
    let state = obj(c, FIRST_ACTOR + i, 0);
    actor::spawn(c, FIRST_ACTOR + i, state)
}

pub fn send(c: &mut Ctx, a: *mut Actor, n: i64) {
    let m = obj(c, MSG, n);
    actor::send(c, a, m);
}

/// Reply, or `None` when the deadline passed or a trap is pending.
pub fn call(c: &mut Ctx, a: *mut Actor, n: i64, ms: i64) -> Option<i64> {
    let m = obj(c, MSG, n);
    match actor::call(c, a, m, ms) {
        Answer::One(w) | Answer::Pair(1, w) => Some(w as i64),
        _ => None,
    }
}

/// A loop of `k` back-edges, as generated code has it. False: it must unwind.
pub fn spin(c: &mut Ctx, k: i64) -> bool {
    for _ in 0..k {
        c.budget -= 1;
        if c.budget < 0 {
            sched::park::yield_now(c);
            if c.trap != 0 {
                return false;
            }
        }
    }
    true
}

/// Code and text of the pending trap, which is dropped, as a `catch` does.
pub fn catch(c: &mut Ctx) -> String {
    // SAFETY: a pending trap owns a live text.
    let text = String::from_utf8_lossy(unsafe { values::text::bytes(c.trap_msg) }).into_owned();
    let code = std::mem::replace(&mut c.trap, 0);
    let msg = std::mem::replace(&mut c.trap_msg, std::ptr::null_mut());
    // SAFETY: taken out of the context, which owned it.
    unsafe { object::release(c, msg) };
    format!("{code}: {text}")
}

/// In the child: runs the case and exits with its result. Else the command that starts the child.
pub fn child(case: &str, body: fn() -> i32) -> Command {
    if std::env::var("WO_CASE").as_deref() == Ok(case) {
        std::process::exit(body());
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let _ = command.args(["--exact", case, "--nocapture", "--test-threads=1"]).env("WO_CASE", case);
    command
}

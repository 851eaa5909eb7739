//! Actors, slices, the program's arguments.

use super::{Pair, Ptr, shim};
use sched::actor::{self, Actor, Answer};
use values::ctx::{Ctx, entry};
use values::object::Obj;

extern "C" fn retain_actor(_ctx: *mut Ctx, a: *mut Actor) {
    actor::retain(a);
}

extern "C" fn release_actor(ctx: *mut Ctx, a: *mut Actor) {
    entry(ctx, |_| actor::release(a));
}

extern "C" fn args(ctx: *mut Ctx) -> *mut Obj {
    entry(ctx, |ctx| {
        // SAFETY: the image lives as long as the process.
        let image = unsafe { &*ctx.image };
        Ptr(shim::list_of_texts(ctx, &image.args))
    })
    .0
}

extern "C" fn yield_(ctx: *mut Ctx) {
    entry(ctx, sched::park::yield_now);
}

extern "C" fn overflow(ctx: *mut Ctx) {
    entry(ctx, |ctx| ctx.raise(abi::trap::STACK, abi::trap::STACK_OVERFLOW));
}

extern "C" fn spawn(ctx: *mut Ctx, class: i64, state: *mut Obj) -> *mut Obj {
    entry(ctx, |ctx| Ptr(actor::spawn(ctx, u32::try_from(class).unwrap_or(u32::MAX), state).cast())).0
}

extern "C" fn send(ctx: *mut Ctx, a: *mut Actor, msg: *mut Obj) {
    entry(ctx, |ctx| actor::send(ctx, a, msg));
}

extern "C" fn call(ctx: *mut Ctx, a: *mut Actor, msg: *mut Obj) -> Pair {
    entry(ctx, |ctx| match actor::call(ctx, a, msg, 0) {
        Answer::One(word) => Pair(word, 0),
        Answer::Pair(tag, word) => Pair(tag, word),
        Answer::None | Answer::Trap => Pair::default(),
    })
}

extern "C" fn call_dl(ctx: *mut Ctx, a: *mut Actor, msg: *mut Obj, ms: i64) -> Pair {
    entry(ctx, |ctx| match actor::call(ctx, a, msg, ms) {
        Answer::One(word) => Pair(1, word),
        Answer::Pair(tag, word) => Pair(tag, word),
        Answer::None | Answer::Trap => Pair::default(),
    })
}

extern "C" fn monitor(ctx: *mut Ctx, watched: *mut Actor, observer: *mut Actor, notice: *mut Obj) {
    entry(ctx, |ctx| actor::monitor(ctx, watched, observer, notice));
}

extern "C" fn after(ctx: *mut Ctx, ms: i64, a: *mut Actor, msg: *mut Obj) {
    entry(ctx, |ctx| actor::after(ctx, ms, a, msg));
}

pub fn functions() -> Vec<(&'static str, *const u8)> {
    vec![
        ("rt.retain_actor", retain_actor as *const u8),
        ("rt.release_actor", release_actor as *const u8),
        ("rt.args", args as *const u8),
        ("sched.yield", yield_ as *const u8),
        ("sched.overflow", overflow as *const u8),
        ("actor.spawn", spawn as *const u8),
        ("actor.send", send as *const u8),
        ("actor.call", call as *const u8),
        ("actor.call_dl", call_dl as *const u8),
        ("actor.monitor", monitor as *const u8),
        ("actor.after", after as *const u8),
    ]
}

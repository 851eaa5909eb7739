//! Making and freeing objects.

use super::symbol_table;
use values::ctx::Ctx;
use values::cycles;
use values::object::{self, Obj};

symbol_table! {
    "rt.new" = new,
    "rt.released" = released,
}

/// Outside `entry`: looks up the class with `get` and calls the allocator and the cycle collector, none of which panics.
pub(super) extern "C" fn new(ctx: *mut Ctx, class: u64) -> *mut Obj {
    // SAFETY: generated code passes the context of the running fiber.
    let ctx = unsafe { &mut *ctx };
    cycles::poll(ctx);
    cycles::with_relief(ctx, |ctx| object::new(ctx, class as u32))
}

/// Outside `entry`: releasing indexes nothing, and its lists report failure to grow instead of panicking.
pub(super) extern "C" fn released(ctx: *mut Ctx, obj: *mut Obj) {
    // SAFETY: generated code passes the context of the running fiber and an object as the function asks for.
    unsafe { object::released(&mut *ctx, obj) };
}

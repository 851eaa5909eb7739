//! Making and freeing objects.

use super::symbol_table;
use values::ctx::Ctx;
use values::object::{self, Obj};

symbol_table! {
    "rt.new" = new,
    "rt.free" = free,
}

/// Outside `entry`: looks up the class with `get` and calls the allocator, neither of which panics.
pub(super) extern "C" fn new(ctx: *mut Ctx, class: u64) -> *mut Obj {
    // SAFETY: generated code passes the context of the running fiber.
    object::new(unsafe { &mut *ctx }, class as u32)
}

/// Outside `entry`: releasing indexes nothing, and its list reports failure to grow instead of panicking.
pub(super) extern "C" fn free(ctx: *mut Ctx, obj: *mut Obj) {
    // SAFETY: generated code passes the context of the running fiber and an object whose count has reached zero.
    unsafe { object::free(&mut *ctx, obj) };
}

//! What an object graph holds of actors' addresses.

use crate::copy::each_slot;
use crate::ctx::Ctx;
use crate::object::{self, Obj, Slot, plans};
use abi::layout::KIND_BYTES;
use std::ffi::c_void;

/// How many slots of the graph behind `root` hold `address`. Objects that something else refers to as well are left out
/// with all below them: their addresses are not the root's alone.
///
/// # Safety
/// `root` is null or a live object of this shard that nothing changes meanwhile.
#[must_use]
pub unsafe fn addresses(ctx: &mut Ctx, root: *mut Obj, address: *const c_void) -> i64 {
    let plans = plans(ctx);
    let mut found = 0;
    let mut pending = vec![root];
    // SAFETY: the caller's promise; what a slot of a live object holds is null or live.
    unsafe {
        while let Some(owner) = pending.pop() {
            if owner.is_null() || object::count(owner) < 0 {
                continue;
            }
            let _ = each_slot(plans, owner, |slot, place| {
                let word = *place;
                match slot {
                    Slot::Scalar => {}
                    Slot::Actor => found += i64::from(word == address.expose_provenance() as u64),
                    Slot::Counted => {
                        let child = word as *mut Obj;
                        if !child.is_null() && (*child).kind > KIND_BYTES && object::count(child) == 1 {
                            pending.push(child);
                        }
                    }
                }
                true
            });
        }
    }
    found
}

//! Results of runtime functions, as generated code takes them.

use values::object::Obj;

/// Two result words, returned in two registers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pair(pub u64, pub u64);

/// An owned result pointer: null stands for "none", and for "nothing" beside a pending trap.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Ptr(pub *mut Obj);

impl Default for Ptr {
    fn default() -> Ptr {
        Ptr(std::ptr::null_mut())
    }
}

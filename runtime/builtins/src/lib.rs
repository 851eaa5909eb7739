//! The functions of `abi::symbols`: arguments checked, then one of the runtime's crates.
#![allow(unsafe_code, reason = "generated code passes raw objects")]

mod io;
mod pure;

/// Name and address of every runtime function.
pub fn functions() -> impl Iterator<Item = (&'static str, *const u8)> {
    pure::functions().into_iter().chain(io::functions())
}

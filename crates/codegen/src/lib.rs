//! MIR to machine code in memory, by Cranelift: the image that the runtime loads. Follows the instructions of
//! `mir::ir` one to one and knows no rule of the language. Code, literals and dispatch tables are leaked: they live
//! as long as the process.
#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stderr, clippy::print_stdout)
)]
#![allow(unsafe_code, reason = "addresses of generated code become function pointers")]
#![allow(
    clippy::indexing_slicing,
    reason = "dense tables, indexed by blocks and locals that were checked against them"
)]

mod dump;
mod frame;
mod literals;
mod lower;
mod sites;
#[cfg(test)]
mod tests;
mod unit;

use std::collections::HashMap;
use std::hash::BuildHasher;

use mir::ir::Program;
use values::ctx::Image;

pub use dump::{dump_asm, dump_clif};

/// How to compile, and what the image says besides code.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Cranelift's `speed` level; else its fastest compilation.
    pub optimize: bool,
    /// Runs Cranelift's verifier on every function.
    pub verify: bool,
    /// Paths as stack traces print them, by `ir::Func::file`.
    pub files: Vec<String>,
    /// Arguments of the program.
    pub args: Vec<Vec<u8>>,
}

/// Compiles everything. The error names the function and the cause: a runtime function without an address, malformed
/// MIR, or a failure of Cranelift.
pub fn compile(program: &Program, options: &Options) -> Result<&'static Image, String> {
    let functions: HashMap<&str, *const u8> = builtins::functions().collect();
    compile_with(program, options, &functions)
}

/// `compile` with another table of runtime functions: names of `abi::symbols` to addresses of `extern "C"` functions
/// with the signatures given there.
pub fn compile_with<S: BuildHasher>(
    program: &Program,
    options: &Options,
    functions: &HashMap<&str, *const u8, S>,
) -> Result<&'static Image, String> {
    unit::image(program, options, &functions.iter().map(|(name, at)| (*name, *at)).collect())
}

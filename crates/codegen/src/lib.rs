//! MIR to machine code by Cranelift, and machine code into memory: the image that the runtime runs. `compile` follows
//! the instructions of `mir::ir` one to one, knows no rule of the language, and gives data; `load` makes addresses of
//! it. Whoever runs a program does both, at once or with a file between.
#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stderr, clippy::print_stdout)
)]
#![allow(unsafe_code, reason = "memory for code, whose addresses become function pointers")]
#![allow(
    clippy::indexing_slicing,
    reason = "dense tables, indexed by blocks and locals that were checked against them"
)]

mod code;
mod compile;
mod dump;
mod link;
mod literals;
mod load;
mod lower;
mod machine;
mod memory;
mod stubs;
mod target;
#[cfg(test)]
mod tests;
mod unit;

use std::collections::HashMap;
use std::hash::BuildHasher;

use mir::ir::Program;
use values::ctx::Image;

pub use code::{Code, Symbol};
pub use dump::{dump_asm, dump_clif};
pub use machine::{Machine, missing_features};

/// How to compile, and what the code says besides instructions.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Cranelift's `speed` level; else its fastest compilation.
    pub optimize: bool,
    /// Runs Cranelift's verifier on every function.
    pub verify: bool,
    pub machine: Machine,
    /// Paths as stack traces print them, by `ir::Func::file`.
    pub files: Vec<String>,
}

/// Compiles everything. The result depends on the arguments only, byte for byte, and for `Machine::Host` on the
/// machine. The error names the function and the cause: malformed MIR, or a failure of Cranelift.
pub fn compile(program: &Program, options: &Options) -> Result<Code<'static>, String> {
    let _small = memory::SmallPages::new();
    let unit = unit::Unit::new(program, options)?;
    let (jobs, entry) = compile::jobs(&unit)?;
    let functions = compile::all(&unit, &jobs)?;
    link::link(&unit, options, &functions, entry)
}

/// Places `code` in memory as a program with these arguments.
pub fn load(code: Code, args: Vec<Vec<u8>>) -> Result<&'static Image, String> {
    let functions: HashMap<&str, *const u8> = builtins::functions().collect();
    load_with(code, &functions, args)
}

/// `load` with another table of runtime functions: names of `abi::symbols` to addresses of `extern "C"` functions with
/// the signatures given there.
pub fn load_with<S: BuildHasher>(
    code: Code,
    functions: &HashMap<&str, *const u8, S>,
    args: Vec<Vec<u8>>,
) -> Result<&'static Image, String> {
    load::load(code, |name| functions.get(name).copied(), args)
}

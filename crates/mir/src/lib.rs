//! HIR to MIR: control flow made explicit, and with it every retain, release, unwind path and safepoint.
//!
//! Positions: the HIR knows byte offsets only, so `lower` leaves the offset of an operation's source in `Inst::line` and
//! `Func::line`; `resolve_lines` turns them into lines.
#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stderr, clippy::print_stdout)
)]

mod builder;
mod dump;
mod effects;
mod graph;
pub mod ir;
mod lower;
mod opt;
mod passes;
mod plan;
mod quiet;
mod reach;
mod shapes;
mod tables;
mod verify;

pub use dump::dump;
pub use graph::{reverse_postorder, targets};
pub use passes::{Pass, Passes};
pub use reach::keep_reachable;
pub use verify::verify;

/// Lowers a checked program and optimises it with these passes (`true`: all); what the program does is the same.
#[must_use]
pub fn lower(program: &analysis::hir::Program, passes: impl Into<Passes>) -> ir::Program {
    lower_part(program, passes, |_| {})
}

/// `lower`, with `select` in front of the optimisations: what it takes out is not worked on.
#[must_use]
pub fn lower_part(
    program: &analysis::hir::Program,
    passes: impl Into<Passes>,
    select: impl FnOnce(&mut ir::Program),
) -> ir::Program {
    let passes = passes.into();
    let mut out = lower::lower_program(program, passes);
    select(&mut out);
    opt::optimize(&mut out, passes);
    debug_assert_eq!(verify(&out), Ok(()), "{}", dump(&out));
    out
}

/// Replaces the byte offsets in `Func::line` and `Inst::line` by what `line_of(file, offset)` says, a 1-based line.
/// To be called once, before code generation.
pub fn resolve_lines(program: &mut ir::Program, line_of: impl Fn(u32, u32) -> u32) {
    for plan in &mut program.plans {
        plan.line = line_of(plan.file, plan.line);
    }
    for func in &mut program.funcs {
        let file = func.file;
        func.line = line_of(file, func.line);
        for inst in func.blocks.iter_mut().flat_map(|b| &mut b.insts) {
            inst.line = line_of(file, inst.line);
        }
    }
}

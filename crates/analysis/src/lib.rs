//! Names, types and ownership: trees in, a typed program out. Pure: no file, clock or network access.
//!
//! `decls` reads all declarations into an `Env`; `bodies` checks function bodies against it and fills the HIR;
//! `ownership` checks moves and borrows in it.
#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stderr, clippy::print_stdout)
)]

pub mod bodies;
pub mod decls;
mod dump;
pub mod env;
pub mod gc;
mod graph;
mod habits;
pub mod hir;
pub mod ownership;
mod satisfy;
mod scope;
pub mod show;
pub mod types;

pub use dump::dump_hir;
pub use gc::dump_gc;
pub use scope::nearest;

use diagnostics::Diagnostic;
use diagnostics::span::FileId;
use syntax::ast;

/// A program to check.
pub struct Input {
    pub files: Vec<InputFile>,
    /// A library has no entry; everything is checked all the same.
    pub is_library: bool,
}

/// One file. `test` blocks in it are checked; commands that drop them take `ast::Decl::Test` out first.
pub struct InputFile {
    pub id: FileId,
    /// `None` for the project itself, else the key of the dependency in `[deps]`.
    pub package: Option<String>,
    /// Directory relative to the package's root; empty for the root itself.
    pub module: Vec<String>,
    /// As diagnostics print it.
    pub display: String,
    pub ast: ast::File,
}

pub struct Output {
    /// Present when there is no error.
    pub program: Option<hir::Program>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Checks a program: declarations, then bodies. Diagnostics are sorted by position.
#[must_use]
pub fn check(input: &Input) -> Output {
    check_with(input, bodies::check_bodies)
}

/// All stages of the checker over a program; `bodies` checks function bodies. Diagnostics are sorted by position.
fn check_with(input: &Input, bodies: impl FnOnce(&mut env::Env<'_>, &mut Vec<Diagnostic>)) -> Output {
    let mut diagnostics = Vec::new();
    let mut env = decls::collect(input, &mut diagnostics);
    bodies(&mut env, &mut diagnostics);
    decls::columns::check_inserted(&env, &mut diagnostics);
    decls::limits::check(&env, &mut diagnostics);
    decls::columns::mark_declared(&mut env);
    let skip = not_for_ownership(&env, &diagnostics);
    env.program.ownership = ownership::check(&env.program, &skip, &mut diagnostics);
    decls::modules::report_unused(&env, &mut diagnostics);
    diagnostics.sort_by_key(|d| (d.span.file, d.span.start));
    let failed = diagnostics.iter().any(Diagnostic::is_error);
    Output { program: (!failed).then_some(env.program), diagnostics }
}

/// Functions whose HIR is not all of their source: those with an error or something unread in them. Adapters have no
/// source at all.
fn not_for_ownership(env: &env::Env<'_>, diagnostics: &[Diagnostic]) -> Vec<bool> {
    let mut errors: Vec<(FileId, u32)> =
        diagnostics.iter().filter(|d| d.is_error()).map(|d| (d.span.file, d.span.start)).collect();
    errors.sort_unstable();
    let bodies = env.bodies.iter().map(Option::is_some).chain(std::iter::repeat(false));
    env.program
        .funcs
        .iter()
        .zip(bodies)
        .enumerate()
        .map(|(index, (func, has_body))| {
            let id = hir::FuncId(u32::try_from(index).unwrap_or(u32::MAX));
            let start = (func.span.file, func.span.start);
            let end = (func.span.file, func.body.end.end.max(func.span.end));
            let first = errors.partition_point(|e| *e < start);
            !has_body || env.incomplete.contains(&id) || errors.get(first).is_some_and(|e| *e <= end)
        })
        .collect()
}

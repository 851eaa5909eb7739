//! Optimisation of finished MIR, function by function: `inline`, then `counts`, then `checks`. Each pass leaves MIR that
//! the verifier accepts, and none changes what a program does. All take time linear in the size of a function, or leave
//! large functions alone.

mod checks;
mod counts;
mod edges;
mod effects;
mod facts;
mod inline;
mod owed;
mod region;

use crate::graph;
use crate::ir::{Func, Program};
use crate::passes::{Pass, Passes};

/// Runs the passes that are on, after recursive functions have been marked.
pub fn optimize(program: &mut Program, passes: Passes) {
    if passes.has(Pass::Inline) {
        let templates = inline::Templates::of(program);
        run(program, |func| inline::expand(func, &templates));
    }
    if !passes.has(Pass::Counts) && !passes.has(Pass::Checks) {
        return;
    }
    let effects = effects::Effects::of(program);
    if passes.has(Pass::Counts) {
        run(program, |func| counts::elide(func, &effects));
    }
    if passes.has(Pass::Checks) {
        run(program, |func| checks::remove(func, &effects));
    }
}

/// Runs a pass on each function. Where it has changed ways, blocks without one go, and those with a single one join what
/// leads there.
fn run(program: &mut Program, pass: impl Fn(&mut Func) -> bool) {
    for func in &mut program.funcs {
        if pass(func) {
            graph::clean(func);
            graph::join_blocks(func);
            graph::clean(func);
        }
    }
    debug_assert_eq!(crate::verify(program), Ok(()), "{}", crate::dump(program));
}

/// A value per local or block; what does not exist reads as the default.
struct Table<T>(Vec<T>);

impl<T: Copy + Default> Table<T> {
    fn new(len: usize) -> Table<T> {
        Table(vec![T::default(); len])
    }

    fn get(&self, at: u32) -> T {
        self.0.get(at as usize).copied().unwrap_or_default()
    }

    fn set(&mut self, at: u32, value: T) {
        if let Some(slot) = self.0.get_mut(at as usize) {
            *slot = value;
        }
    }
}

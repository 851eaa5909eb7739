//! Ownership (language specification, section 7) over the typed program: which classes are traced, and the errors of
//! moves and borrows (`WO-E222`, `WO-E301` to `WO-E305`).
//!
//! Bodies are walked for demands until no class becomes traced any more, each body again only when a class it asked for
//! did; then all bodies once more for diagnostics. The run time counts references and is safe whatever is found here.

mod classes;
mod closed;
mod place;
mod report;
mod state;
mod value;
mod walk;

pub use classes::{Facts, Why};

use crate::hir::{ClassId, Program};
use diagnostics::Diagnostic;
use rustc_hash::FxHashMap;
use walk::Walk;

/// Infers the traced classes and checks all bodies. Functions of `skip` (in step with `program.funcs`) have errors, or
/// no source of their own, and are left out.
pub fn check(program: &Program, skip: &[bool], diags: &mut Vec<Diagnostic>) -> Facts {
    let structure = crate::gc::traced_by_structure(program);
    let mut facts = Facts { traced: structure.into_iter().map(|cycle| cycle.then_some(Why::Cycle)).collect() };
    let wanted: Vec<usize> = (0..program.funcs.len()).filter(|at| !skip.get(*at).copied().unwrap_or(false)).collect();
    let mut writes_self = vec![false; program.funcs.len()];
    let mut asked: FxHashMap<ClassId, Vec<usize>> = FxHashMap::default();
    let mut round = wanted.clone();
    while !round.is_empty() {
        let mut found = Vec::new();
        for at in std::mem::take(&mut round) {
            let Some(func) = program.funcs.get(at) else { continue };
            let mut walk = Walk::new(program, &facts, &writes_self, func, false);
            walk.run();
            let Walk { demands, consulted, writes, .. } = walk;
            if let Some(slot) = writes_self.get_mut(at) {
                *slot = writes;
            }
            for class in consulted {
                asked.entry(class).or_default().push(at);
            }
            found.extend(demands);
        }
        for (class, span) in found {
            let Some(slot @ None) = facts.traced.get_mut(class.0 as usize) else { continue };
            *slot = Some(Why::Demand(span));
            round.extend(asked.remove(&class).into_iter().flatten());
        }
        round.sort_unstable();
        round.dedup();
    }
    let mut crossings = Vec::new();
    for at in wanted {
        let Some(func) = program.funcs.get(at) else { continue };
        let mut walk = Walk::new(program, &facts, &writes_self, func, true);
        walk.run();
        crossings.extend(walk.crossings);
        diags.extend(walk.diags);
    }
    closed::check(program, &facts, &crossings, diags);
    facts
}

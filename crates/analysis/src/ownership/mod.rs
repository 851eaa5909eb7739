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
#[cfg(test)]
mod tests;
mod value;
mod walk;

pub use classes::{Facts, Why};

use crate::hir::{Arm, ArmTest, ClassId, ExprKind, Program};
use classes::Kind;
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
    let mut last_use: Vec<Vec<u32>> = vec![Vec::new(); program.funcs.len()];
    let mut round = wanted.clone();
    while !round.is_empty() {
        let mut found = Vec::new();
        for at in std::mem::take(&mut round) {
            let Some(func) = program.funcs.get(at) else { continue };
            let mut walk = Walk::new(program, &facts, &writes_self, func, false);
            walk.run();
            let Walk { demands, consulted, writes, last_use: uses, .. } = walk;
            if let (Some(slot), Some(last)) = (writes_self.get_mut(at), last_use.get_mut(at)) {
                *slot = writes;
                *last = uses;
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
        walk.last_use = last_use.get_mut(at).map(std::mem::take).unwrap_or_default();
        walk.run();
        crossings.extend(walk.crossings);
        diags.extend(walk.diags);
    }
    crossings.sort_by_key(|c: &walk::Crossing| c.span());
    closed::check(program, &facts, &crossings, diags);
    closed::check_columns(program, &facts, diags);
    facts
}

/// The payload that the value of an arm moves out of the union's object (7.3): the position of its binding.
#[must_use]
pub fn moved_payload(program: &Program, arm: &Arm) -> Option<usize> {
    let ArmTest::Variants(_, _, bindings) = &arm.test else { return None };
    let value = value::inner(arm.body.value.as_ref()?);
    let ExprKind::Local(local) = value.kind else { return None };
    let owned = matches!(classes::kind(program, &program.ownership, value.ty), Kind::Object(_) | Kind::Container);
    if owned { bindings.iter().position(|b| *b == local) } else { None }
}

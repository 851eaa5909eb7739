//! The state of a body's locals while it is walked. Branches are undone through a trail of old values, so a branch and a
//! join cost what the branch changed, not what the function declares.

use super::place::{Place, Source};
use crate::hir::LocalId;
use diagnostics::span::Span;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// How a place is used up or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Assign,
    Mut,
    Move,
}

/// A borrowed place was changed or moved: an error if the borrow is used afterwards.
#[derive(Debug)]
pub(super) struct Broken {
    pub access: Access,
    pub source: Source,
    /// Where it happened: the argument or the target.
    pub span: Span,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Var {
    pub declared: bool,
    /// Possibly moved, there.
    pub moved: Option<Span>,
    /// Possibly a borrow (7.2), of what stands there.
    pub borrowed: Option<Span>,
    /// Owned places of other locals that it may borrow.
    pub loans: Option<Rc<[Place]>>,
    pub broken: Option<Rc<Broken>>,
}

impl Var {
    pub fn live() -> Var {
        Var { declared: true, ..Var::default() }
    }

    fn join(&self, other: &Var) -> Var {
        let loans = match (&self.loans, &other.loans) {
            (Some(a), Some(b)) if a != b => {
                let new = b.iter().filter(|p| !a.contains(p)).cloned().collect::<Vec<_>>();
                if new.is_empty() { Some(a.clone()) } else { Some(a.iter().cloned().chain(new).collect()) }
            }
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        Var {
            declared: self.declared && other.declared,
            moved: self.moved.or(other.moved),
            borrowed: self.borrowed.or(other.borrowed),
            loans,
            broken: self.broken.clone().or_else(|| other.broken.clone()),
        }
    }

    /// Whether a join of `other` into this state gave more than this state.
    fn grew(&self, joined: &Var) -> bool {
        self.moved.is_none() != joined.moved.is_none()
            || self.borrowed.is_none() != joined.borrowed.is_none()
            || self.broken.is_none() != joined.broken.is_none()
            || self.loans.as_ref().map_or(0, |l| l.len()) != joined.loans.as_ref().map_or(0, |l| l.len())
    }
}

/// What a piece of the body changed, relative to the state in front of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Delta {
    pub reachable: bool,
    pub changes: Vec<(LocalId, Var)>,
}

/// A point to go back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    len: usize,
    reachable: bool,
}

pub(super) struct State {
    vars: Vec<Var>,
    trail: Vec<(LocalId, Var)>,
    pub reachable: bool,
}

impl State {
    pub fn new(locals: usize) -> State {
        State { vars: vec![Var::default(); locals], trail: Vec::new(), reachable: true }
    }

    pub fn var(&self, local: LocalId) -> Var {
        self.vars.get(local.0 as usize).cloned().unwrap_or_default()
    }

    pub fn get(&self, local: LocalId) -> Option<&Var> {
        self.vars.get(local.0 as usize)
    }

    /// A state that is reached with nothing changed.
    pub fn unchanged(&self) -> Delta {
        Delta { reachable: self.reachable, changes: Vec::new() }
    }

    pub fn set(&mut self, local: LocalId, var: Var) {
        if let Some(slot) = self.vars.get_mut(local.0 as usize) {
            self.trail.push((local, std::mem::replace(slot, var)));
        }
    }

    pub fn mark(&self) -> Mark {
        Mark { len: self.trail.len(), reachable: self.reachable }
    }

    /// What changed since `mark`, of locals that were declared then.
    pub fn snapshot(&self, mark: Mark) -> Delta {
        let mut changes: Vec<(LocalId, Var)> = Vec::new();
        if self.reachable {
            let mut seen = rustc_hash::FxHashSet::default();
            for (local, old) in self.trail.get(mark.len..).unwrap_or_default() {
                if seen.insert(*local) && old.declared {
                    changes.push((*local, self.var(*local)));
                }
            }
        }
        Delta { reachable: self.reachable, changes }
    }

    /// The same, and goes back to the state of `mark`.
    pub fn undo(&mut self, mark: Mark) -> Delta {
        let delta = self.snapshot(mark);
        while self.trail.len() > mark.len {
            let Some((local, old)) = self.trail.pop() else { break };
            if let Some(slot) = self.vars.get_mut(local.0 as usize) {
                *slot = old;
            }
        }
        self.reachable = mark.reachable;
        delta
    }

    /// The state after any one of `deltas`, all relative to the present one.
    pub fn merge(&mut self, deltas: &[Delta]) {
        let reachable = deltas.iter().filter(|d| d.reachable).count();
        self.reachable = reachable > 0;
        let mut joined: FxHashMap<LocalId, (Var, usize)> = FxHashMap::default();
        let mut order = Vec::new();
        for (local, var) in deltas.iter().filter(|d| d.reachable).flat_map(|d| &d.changes) {
            match joined.get_mut(local) {
                Some((at, count)) => {
                    *at = at.join(var);
                    *count += 1;
                }
                None => {
                    order.push(*local);
                    let _ = joined.insert(*local, (var.clone(), 1));
                }
            }
        }
        for local in order {
            let Some((mut var, count)) = joined.remove(&local) else { continue };
            if count < reachable {
                var = self.var(local).join(&var);
            }
            self.set(local, var);
        }
    }

    /// Joins a state that may also come to this point; what it added.
    pub fn widen(&mut self, delta: &Delta) -> Vec<(LocalId, Var)> {
        let mut added = Vec::new();
        if !delta.reachable {
            return added;
        }
        for (local, var) in &delta.changes {
            let before = self.var(*local);
            let joined = before.join(var);
            if before.grew(&joined) {
                added.push((*local, joined.clone()));
                self.set(*local, joined);
            }
        }
        added
    }
}

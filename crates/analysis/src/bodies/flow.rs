//! What is known about nullable locals at a point of a body (language 6.2, 6.3), and whether the point is reached.
//!
//! Invariant: a local in state `Value` holds no nil on any path that reaches the point; reads of it are not checked at
//! run time. Everything that may store nil therefore goes through `Cx::assigned`.

use super::Cx;
use crate::hir::LocalId;
use crate::types::TyKind;

/// What a nullable local is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Narrowed: a `T`.
    Value,
    /// A `T~`.
    Maybe { noisy: bool },
    /// A strict `?T`.
    Strict,
}

/// The state of a point. Locals that are not listed are as declared; the list is sorted by local.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    pub reachable: bool,
    known: Vec<(LocalId, State)>,
}

impl Flow {
    pub fn start() -> Flow {
        Flow { reachable: true, known: Vec::new() }
    }

    fn get(&self, local: LocalId) -> Option<State> {
        let at = self.known.binary_search_by_key(&local, |k| k.0).ok()?;
        self.known.get(at).map(|k| k.1)
    }

    pub fn set(&mut self, local: LocalId, state: State) {
        match self.known.binary_search_by_key(&local, |k| k.0) {
            Ok(at) => {
                if let Some(slot) = self.known.get_mut(at) {
                    slot.1 = state;
                }
            }
            Err(at) => self.known.insert(at, (local, state)),
        }
    }

    /// Forgets locals from `first` on: their scope ended.
    pub fn trim(&mut self, first: LocalId) {
        let keep = self.known.partition_point(|k| k.0 < first);
        self.known.truncate(keep);
    }

    pub fn narrow(&mut self, locals: &[LocalId]) {
        for local in locals {
            self.set(*local, State::Value);
        }
    }

    pub fn demote_all(&mut self) {
        for known in &mut self.known {
            if known.1 == State::Value {
                known.1 = State::Maybe { noisy: true };
            }
        }
    }

    pub fn is_narrowed(&self, local: LocalId) -> bool {
        self.get(local) == Some(State::Value)
    }
}

/// Locals that a condition proves to be non-nil.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub when_true: Vec<LocalId>,
    pub when_false: Vec<LocalId>,
}

impl Facts {
    pub fn swapped(self) -> Facts {
        Facts { when_true: self.when_false, when_false: self.when_true }
    }
}

fn join_states(a: State, b: State) -> State {
    match (a, b) {
        (State::Value, State::Value) => State::Value,
        (State::Strict, _) | (_, State::Strict) => State::Strict,
        (State::Maybe { noisy: x }, State::Maybe { noisy: y }) => State::Maybe { noisy: x || y },
        (State::Value, State::Maybe { .. }) | (State::Maybe { .. }, State::Value) => State::Maybe { noisy: true },
    }
}

impl Cx<'_, '_> {
    /// The state of a nullable local as its declaration says it.
    pub(super) fn declared_state(&self, local: LocalId) -> State {
        match self.kind(self.local_ty(local)) {
            TyKind::Nullable(_) => State::Strict,
            TyKind::Maybe { noisy, .. } => State::Maybe { noisy },
            _ => State::Value,
        }
    }

    pub(super) fn state(&self, local: LocalId) -> State {
        self.flow.get(local).unwrap_or_else(|| self.declared_state(local))
    }

    /// Where two paths meet.
    pub(super) fn join(&self, a: Flow, b: Flow) -> Flow {
        self.join_with(a, b, false)
    }

    /// Where the branches of an `if` with `else` meet: what only the `else` side narrowed becomes `T~`.
    pub(super) fn join_else(&self, then: Flow, otherwise: Flow) -> Flow {
        self.join_with(then, otherwise, true)
    }

    fn join_with(&self, a: Flow, b: Flow, is_else: bool) -> Flow {
        if !a.reachable {
            return b;
        }
        if !b.reachable {
            return a;
        }
        if a.known.is_empty() && b.known.is_empty() {
            return a;
        }
        let mut known = Vec::with_capacity(a.known.len().max(b.known.len()));
        let (mut left, mut right) = (a.known.iter().peekable(), b.known.iter().peekable());
        loop {
            let local = match (left.peek(), right.peek()) {
                (Some(x), Some(y)) => x.0.min(y.0),
                (Some(x), None) => x.0,
                (None, Some(y)) => y.0,
                (None, None) => break,
            };
            let default = self.declared_state(local);
            let from_a = left.next_if(|k| k.0 == local).map_or(default, |k| k.1);
            let from_b = right.next_if(|k| k.0 == local).map_or(default, |k| k.1);
            let state = match (from_a, from_b) {
                (State::Strict, State::Value) if is_else => State::Maybe { noisy: true },
                _ => join_states(from_a, from_b),
            };
            if state != default {
                known.push((local, state));
            }
        }
        Flow { reachable: true, known }
    }
}

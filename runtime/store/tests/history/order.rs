//! Whether a history has an order: operations of several actors on two rows, each between its begin and its end, of which
//! each tells what those before it have left. It is looked for in the way of Wing and Gong: one operation after the
//! other that may come next, without trying twice what was tried.

use std::collections::HashSet;

/// The values of the two rows.
pub type State = [i64; 2];

/// What an operation does, or what it has told. Rows are 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Read(usize, i64),
    /// One statement over both rows.
    ReadBoth(State),
    Write(usize, i64),
    Add(usize, i64),
    Multiply(usize, i64),
}

impl Action {
    /// The state after it; none if it cannot have told what it has.
    fn after(self, mut state: State) -> Option<State> {
        match self {
            Action::Read(row, told) => return (state[row] == told).then_some(state),
            Action::ReadBoth(told) => return (state == told).then_some(state),
            Action::Write(row, value) => state[row] = value,
            Action::Add(row, value) => state[row] = state[row].wrapping_add(value),
            Action::Multiply(row, value) => state[row] = state[row].wrapping_mul(value),
        }
        Some(state)
    }

    pub fn is_a_write(self) -> bool {
        !matches!(self, Action::Read(..) | Action::ReadBoth(_))
    }
}

/// An operation with times of one clock.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub begin: u64,
    /// None if it never came back: it has happened or not.
    pub end: Option<u64>,
    pub action: Action,
}

#[derive(Clone, Debug)]
pub struct History {
    pub start: State,
    /// What each actor did, one operation after the other.
    pub actors: Vec<Vec<Operation>>,
    /// What a start has found after a crash: the rows as they were at some moment of the order that comes after all writes
    /// that came back.
    pub found: Option<State>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Moment {
    /// How many operations of each actor have happened.
    done: Vec<usize>,
    state: State,
    /// The moment of `found` is behind.
    found: bool,
}

impl History {
    pub fn has_an_order(&self) -> bool {
        let mut tried = HashSet::new();
        let mut ahead =
            vec![Moment { done: vec![0; self.actors.len()], state: self.start, found: self.found.is_none() }];
        while let Some(moment) = ahead.pop() {
            if moment.found && self.left(&moment).all(|operation| operation.end.is_none()) {
                return true;
            }
            if tried.insert(moment.clone()) {
                self.steps(&moment, &mut ahead);
            }
        }
        false
    }

    fn left<'h>(&'h self, moment: &'h Moment) -> impl Iterator<Item = &'h Operation> {
        self.actors.iter().zip(&moment.done).flat_map(|(operations, done)| &operations[*done..])
    }

    /// Adds what may come after a moment.
    fn steps(&self, moment: &Moment, ahead: &mut Vec<Moment>) {
        let acknowledged = |operation: &Operation| operation.end.is_some() && operation.action.is_a_write();
        if !moment.found && self.found == Some(moment.state) && !self.left(moment).any(acknowledged) {
            ahead.push(Moment { found: true, ..moment.clone() });
        }
        let next = |actor: usize| self.actors[actor].get(moment.done[actor]);
        let ends = (0..self.actors.len()).filter_map(next).filter_map(|operation| operation.end);
        // What has ended before another began comes before it.
        let first_end = ends.min().unwrap_or(u64::MAX);
        for actor in 0..self.actors.len() {
            let Some(operation) = next(actor).filter(|operation| operation.begin <= first_end) else { continue };
            if let Some(state) = operation.action.after(moment.state) {
                let mut done = moment.done.clone();
                done[actor] += 1;
                ahead.push(Moment { done, state, found: moment.found });
            }
        }
    }

    /// How often operations of two actors were under way at once, one of them a write.
    pub fn meetings(&self) -> usize {
        let end = |operation: &Operation| operation.end.unwrap_or(u64::MAX);
        let meet = |one: &Operation, other: &Operation| {
            one.begin < end(other) && other.begin < end(one) && (one.action.is_a_write() || other.action.is_a_write())
        };
        let pairs = self.actors.iter().enumerate().flat_map(|(i, one)| self.actors[..i].iter().map(move |o| (one, o)));
        pairs.map(|(one, other)| one.iter().map(|a| other.iter().filter(|b| meet(a, b)).count()).sum::<usize>()).sum()
    }
}

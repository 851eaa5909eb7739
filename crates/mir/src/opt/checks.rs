//! Checks whose outcome is known: null checks and bounds checks go, branches become jumps, counts of null and of
//! literals go, words that a local holds already are not loaded again, constants are folded.
//!
//! Facts flow forward along all edges until they hold on every way into each block; then each block is rewritten.

use std::collections::BTreeSet;

use super::effects::Effects;
use super::facts::{Entry, Fact, Null, State, Word, null_test, range};
use crate::graph::{reverse_postorder, targets};
use crate::ir::{Block, BlockId, Callee, CheckedOp, FloatOp, Func, InstKind, IntOp, Local, Rep, Term};
use abi::layout;

/// Functions with more instructions than this are left alone, and those with more facts to keep, one per block and local.
const LARGE: usize = 5_000;
const FACTS: usize = 1_000_000;
/// From this visit of a loop's head on, bounds that still move do so in large steps.
const PATIENCE: u32 = 3;
/// Constants that such steps stop at.
const MARKS: usize = 12;

/// Rewrites `func`. True if blocks have changed.
pub fn remove(func: &mut Func, effects: &Effects) -> bool {
    let size: usize = func.blocks.iter().map(|b| b.insts.len()).sum();
    if size > LARGE || func.blocks.len() * func.locals.len() > FACTS {
        return false;
    }
    let entries = Flow::run(func, effects);
    let mut blocks = std::mem::take(&mut func.blocks);
    let mut changed = false;
    let mut state = State::new(func);
    for (block, entry) in blocks.iter_mut().zip(&entries) {
        let Some(entry) = entry else { continue };
        state.load(entry);
        block.insts.retain_mut(|inst| {
            let new = rewritten(&state, &inst.kind);
            step(&mut state, &inst.kind, effects);
            match new {
                New::Same => {}
                New::Nothing => {
                    changed = true;
                    return false;
                }
                New::Kind(kind) => {
                    changed |= inst.kind.unwind().is_some();
                    inst.kind = kind;
                }
            }
            true
        });
        if let Some(term) = known_end(&mut state, &block.term) {
            block.term = term;
            changed = true;
        }
    }
    func.blocks = blocks;
    changed
}

/// What an instruction becomes.
enum New {
    Same,
    Nothing,
    Kind(InstKind),
}

struct Flow<'f> {
    effects: &'f Effects,
    entries: Vec<Option<Entry>>,
    visits: Vec<u32>,
    /// Per block its place in reverse postorder, and back.
    place: Vec<usize>,
    order: Vec<usize>,
    work: BTreeSet<usize>,
    /// Locals that some block reads before it assigns them.
    carried: Vec<bool>,
    /// Per block whether it is the head of a loop.
    heads: Vec<bool>,
    /// Where bounds are likely to rest: beside the constants of comparisons, and before the largest Int.
    marks: Vec<i64>,
}

impl<'f> Flow<'f> {
    fn run(func: &'f Func, effects: &'f Effects) -> Vec<Option<Entry>> {
        let order = reverse_postorder(func);
        let mut place = vec![usize::MAX; func.blocks.len()];
        for (at, block) in order.iter().enumerate() {
            place.get_mut(*block).into_iter().for_each(|slot| *slot = at);
        }
        let mut flow = Flow {
            effects,
            entries: vec![None; func.blocks.len()],
            visits: vec![0; func.blocks.len()],
            place,
            order,
            work: BTreeSet::new(),
            carried: carried(func),
            heads: Vec::new(),
            marks: marks(func),
        };
        flow.heads = flow.heads(func);
        for to in [Some(BlockId(0)), func.entry_unwind].into_iter().flatten() {
            flow.enter(to, Entry::default());
        }
        let mut state = State::new(func);
        while let Some(at) = flow.work.pop_first() {
            let block = flow.order.get(at).copied();
            if let Some((block, id)) = block.and_then(|id| Some((func.blocks.get(id)?, id))) {
                flow.block(id, block, &mut state);
            }
        }
        flow.entries
    }

    /// Every cycle leads against the order into one of these blocks.
    fn heads(&self, func: &Func) -> Vec<bool> {
        let mut heads = vec![false; func.blocks.len()];
        let place = |block: usize| self.place.get(block).copied().unwrap_or(usize::MAX);
        for id in 0..func.blocks.len() {
            for to in targets(func, id).into_iter().filter(|to| place(*to) <= place(id)) {
                heads.get_mut(to).into_iter().for_each(|head| *head = true);
            }
        }
        heads
    }

    fn block(&mut self, id: usize, block: &Block, state: &mut State<'f>) {
        self.visits.get_mut(id).into_iter().for_each(|n| *n += 1);
        if let Some(Some(entry)) = self.entries.get(id) {
            state.load(entry);
        }
        for inst in &block.insts {
            if let Some(unwind) = inst.kind.unwind()
                && !self.entries.get(unwind.0 as usize).is_some_and(|e| e.as_ref().is_some_and(Entry::is_empty))
            {
                let nulls = if state.has_nulls() { state.nulls() } else { Entry::default() };
                self.enter(unwind, nulls);
            }
            step(state, &inst.kind, self.effects);
        }
        let carried = std::mem::take(&mut self.carried);
        let wanted = |local: Local| carried.get(local.0 as usize).copied().unwrap_or(false);
        match &block.term {
            Term::Branch { cond, then, otherwise } if then != otherwise => {
                for (to, holds) in [(then, true), (otherwise, false)] {
                    if let Some(entry) = state.suppose(*cond, holds, |state| state.save(wanted)) {
                        self.enter(*to, entry);
                    }
                }
            }
            Term::Switch { on, .. } if state.fact(*on).constant().is_some() => {
                if let Some(Term::Jump(to)) = known_end(state, &block.term) {
                    self.enter(to, state.save(wanted));
                }
            }
            term => {
                let entry = state.save(wanted);
                term.each_target(|to| self.enter(to, entry.clone()));
            }
        }
        self.carried = carried;
    }

    fn enter(&mut self, to: BlockId, entry: Entry) {
        let to = to.0 as usize;
        let late = self.visits.get(to).is_some_and(|n| *n >= PATIENCE) && self.heads.get(to) == Some(&true);
        let marks = late.then_some(self.marks.as_slice());
        let changed = match self.entries.get_mut(to) {
            Some(Some(known)) => known.join(&entry, marks),
            Some(slot) => {
                *slot = Some(entry);
                true
            }
            None => false,
        };
        if changed && let Some(place) = self.place.get(to) {
            let _ = self.work.insert(*place);
        }
    }
}

fn marks(func: &Func) -> Vec<i64> {
    let mut constants = vec![None; func.locals.len()];
    let mut marks = BTreeSet::new();
    for inst in func.blocks.iter().flat_map(|b| &b.insts) {
        match &inst.kind {
            InstKind::Int(dst, v) => constants.get_mut(dst.0 as usize).into_iter().for_each(|slot| *slot = Some(*v)),
            InstKind::IntOp(_, IntOp::Lt | IntOp::Le | IntOp::Gt | IntOp::Ge, lhs, rhs) if marks.len() < MARKS => {
                let constant = |local: &Local| constants.get(local.0 as usize).copied().flatten();
                marks.extend([lhs, rhs].into_iter().filter_map(constant));
            }
            _ => {}
        }
    }
    let around = |v: i64| [v.saturating_sub(1), v, v.saturating_add(1)];
    let all: BTreeSet<i64> = marks.into_iter().chain([0, i64::MAX]).flat_map(around).collect();
    all.into_iter().collect()
}

/// The locals that some block reads before it assigns them.
fn carried(func: &Func) -> Vec<bool> {
    let mut out = vec![false; func.locals.len()];
    let mut assigned_in = vec![u32::MAX; func.locals.len()];
    for (block, id) in func.blocks.iter().zip(0..) {
        let mut read = |assigned_in: &[u32], local: Local| {
            if assigned_in.get(local.0 as usize) != Some(&id) {
                out.get_mut(local.0 as usize).into_iter().for_each(|slot| *slot = true);
            }
        };
        for inst in &block.insts {
            inst.kind.each_read(|local| read(&assigned_in, local));
            for local in inst.kind.writes() {
                assigned_in.get_mut(local.0 as usize).into_iter().for_each(|slot| *slot = id);
            }
        }
        match &block.term {
            Term::Branch { cond: local, .. } | Term::Switch { on: local, .. } => read(&assigned_in, *local),
            Term::Return(values) => values.iter().for_each(|local| read(&assigned_in, *local)),
            Term::Jump(_) | Term::Resume | Term::Unreachable => {}
        }
    }
    out
}

/// What is known after an instruction.
fn step(state: &mut State, kind: &InstKind, effects: &Effects) {
    match kind {
        InstKind::Int(dst, v) => state.assign(*dst, Fact::int(*v, *v)),
        InstKind::Float(dst, v) => state.assign(*dst, Fact { bits: Some(v.to_bits()), ..Fact::default() }),
        InstKind::Text(dst, _) => state.assign(*dst, Fact { literal: true, ..Fact::of_null(Null::No) }),
        InstKind::Null(dst) => state.assign(*dst, Fact::of_null(Null::Yes)),
        InstKind::Copy(dst, src) => copy(state, *dst, *src),
        InstKind::IntOp(dst, op, lhs, rhs) => {
            let fact = int_fact(state, *op, *lhs, *rhs);
            state.assign(*dst, fact);
            state.compare(*dst, *op, *lhs, *rhs);
        }
        InstKind::FloatOp(dst, ..) | InstKind::FloatNeg(dst, _) => {
            let fact = float_fact(state, kind);
            state.assign(*dst, fact);
        }
        InstKind::Kind(dst, src) => {
            state.not_null(*src);
            state.assign(*dst, Fact::int(0, i64::from(u32::MAX)));
        }
        InstKind::Load { dst, base, offset } => load(state, *dst, *base, *offset),
        InstKind::Store { base, offset, src } => {
            state.not_null(*base);
            if state.rep(*base) == Rep::Obj {
                state.forget_words(|word| word.offset == *offset);
                state.remember(Word { base: state.first(*base), offset: *offset, value: *src });
            }
        }
        InstKind::Element { dst, multi, index, .. } => {
            element(state, *multi, *index);
            state.forget(*dst);
        }
        InstKind::Push { multi, .. } => grown(state, *multi, state.fact(*multi).least.saturating_add(1)),
        InstKind::Init { multi, at, .. } => grown(state, *multi, i64::from(*at) + 1),
        InstKind::Release { local, .. } => state.forget(*local),
        InstKind::TrapIfNull { local, .. } => state.not_null(*local),
        InstKind::Call { dsts, callee, .. } => {
            let effect = effects.call(callee);
            if effect.writes {
                state.forget_words(|_| true);
            }
            if effect.shrinks {
                state.forget_lengths();
            }
            let made = matches!(callee, Callee::Runtime("rt.new" | "multi.new" | "map.new"));
            let fact = Fact::of_null(if made { Null::No } else { Null::Unknown });
            dsts.iter().for_each(|dst| state.assign(*dst, fact));
        }
        InstKind::Concat { dst, into, .. } => {
            if into.is_some() {
                state.forget_words(|word| word.offset == layout::TEXT_LEN);
            }
            state.assign(*dst, Fact::of_null(Null::No));
        }
        InstKind::Retain { .. } | InstKind::Safepoint { .. } => {}
        _ => kind.writes().iter().for_each(|dst| state.forget(*dst)),
    }
}

fn copy(state: &mut State, dst: Local, src: Local) {
    if dst == src {
        return;
    }
    state.forget(dst);
    let first = state.first(src);
    let same = Some(first).filter(|first| *first != dst);
    let fact = Fact { same, ..state.fact(src) };
    state.put(dst, fact);
}

fn load(state: &mut State, dst: Local, base: Local, offset: i32) {
    state.not_null(base);
    let object = state.first(base);
    if let Some(value) = state.word(object, offset, state.rep(dst)) {
        copy(state, dst, value);
        return;
    }
    let is_length = offset == layout::MULTI_LEN && state.rep(dst) == Rep::Int && state.rep(base) == Rep::Obj;
    state.forget(dst);
    if dst == base || dst == object || state.rep(base) != Rep::Obj {
        return;
    }
    state.remember(Word { base: object, offset, value: dst });
    if is_length {
        // Only if the object is a `multi`; a class's field is never asked for as one.
        state.put(dst, Fact { upto: Some(object), ..Fact::default() });
    }
}

/// The index has been found to be in range.
fn element(state: &mut State, multi: Local, index: Local) {
    state.not_null(multi);
    let object = state.first(multi);
    let fact = state.fact(index);
    if let Some(at) = fact.constant() {
        let known = state.fact(object);
        state.put(object, Fact { least: known.least.max(at.saturating_add(1)), ..known });
    } else {
        state.put(index, Fact { low: fact.low.max(0), below: fact.below.or(Some(object)), ..fact });
    }
}

/// The `multi` has at least this many elements now.
fn grown(state: &mut State, multi: Local, least: i64) {
    state.forget_words(|word| word.offset == layout::MULTI_LEN);
    state.not_null(multi);
    for local in [multi, state.first(multi)] {
        let fact = state.fact(local);
        state.put(local, Fact { least: fact.least.max(least), ..fact });
    }
}

fn int_fact(state: &State, op: IntOp, lhs: Local, rhs: Local) -> Fact {
    let (l, r) = (state.fact(lhs), state.fact(rhs));
    match null_test(op, l, r) {
        Some(known) => Fact::int(i64::from(known), i64::from(known)),
        None => range(op, l, r),
    }
}

/// A NaN is left to the machine: its bits are not those of every way to compute it.
fn float_fact(state: &State, kind: &InstKind) -> Fact {
    let value = |local: Local| state.fact(local).bits.map(f64::from_bits);
    let float = |v: f64| Fact { bits: (!v.is_nan()).then_some(v.to_bits()), ..Fact::default() };
    let truth = |v: bool| Fact::int(i64::from(v), i64::from(v));
    match kind {
        InstKind::FloatNeg(_, src) => value(*src).map_or(Fact::default(), |v| float(-v)),
        InstKind::FloatOp(_, op, lhs, rhs) => {
            let Some((l, r)) = value(*lhs).zip(value(*rhs)) else { return Fact::default() };
            match op {
                FloatOp::Add => float(l + r),
                FloatOp::Sub => float(l - r),
                FloatOp::Mul => float(l * r),
                FloatOp::Div => float(l / r),
                FloatOp::Eq => truth(l == r),
                FloatOp::Ne => truth(l != r),
                FloatOp::Lt => truth(l < r),
                FloatOp::Le => truth(l <= r),
                FloatOp::Gt => truth(l > r),
                FloatOp::Ge => truth(l >= r),
            }
        }
        _ => Fact::default(),
    }
}

/// What the instruction becomes, given what is known before it.
fn rewritten(state: &State, kind: &InstKind) -> New {
    match kind {
        InstKind::TrapIfNull { local, .. } if state.fact(*local).null == Null::No => New::Nothing,
        InstKind::Retain { local, nonnull } | InstKind::Release { local, nonnull } => {
            let local = *local;
            if state.fact(local).is_uncounted() {
                return New::Nothing;
            }
            if *nonnull || !is_nonnull(state, local) {
                return New::Same;
            }
            New::Kind(match kind {
                InstKind::Retain { .. } => InstKind::Retain { local, nonnull: true },
                _ => InstKind::Release { local, nonnull: true },
            })
        }
        InstKind::Element { dst, multi, index, words, checked: true, unwind } if in_range(state, *multi, *index) => {
            let (dst, multi, index, words, unwind) = (*dst, *multi, *index, *words, *unwind);
            New::Kind(InstKind::Element { dst, multi, index, words, checked: false, unwind })
        }
        InstKind::IntOp(dst, op, lhs, rhs) => {
            let constant = int_fact(state, *op, *lhs, *rhs).constant();
            constant.map_or(New::Same, |v| New::Kind(InstKind::Int(*dst, v)))
        }
        InstKind::FloatOp(dst, ..) | InstKind::FloatNeg(dst, _) => {
            let fact = float_fact(state, kind);
            match (fact.bits, fact.constant()) {
                (Some(bits), _) => New::Kind(InstKind::Float(*dst, f64::from_bits(bits))),
                (None, Some(v)) => New::Kind(InstKind::Int(*dst, v)),
                (None, None) => New::Same,
            }
        }
        InstKind::Checked { dst, op: op @ (CheckedOp::Shl | CheckedOp::Shr), lhs, rhs, .. } => {
            let count = state.fact(*rhs);
            let op = if *op == CheckedOp::Shl { IntOp::Shl } else { IntOp::Shr };
            let plain = count.low >= 0 && count.high <= 63;
            if plain { New::Kind(InstKind::IntOp(*dst, op, *lhs, *rhs)) } else { New::Same }
        }
        InstKind::Load { dst, base, offset } => {
            let held = state.word(state.first(*base), *offset, state.rep(*dst)).filter(|value| value != dst);
            held.map_or(New::Same, |value| New::Kind(InstKind::Copy(*dst, value)))
        }
        _ => New::Same,
    }
}

fn is_nonnull(state: &State, local: Local) -> bool {
    state.fact(local).null == Null::No && state.rep(local) == Rep::Obj
}

fn in_range(state: &State, multi: Local, index: Local) -> bool {
    let (fact, object) = (state.fact(index), state.first(multi));
    let least = state.fact(object).least.max(state.fact(multi).least);
    fact.low >= 0 && (fact.below == Some(object) || fact.high < least)
}

/// The jump that the end of a block is if it leads to one block only.
fn known_end(state: &mut State, term: &Term) -> Option<Term> {
    match term {
        Term::Branch { cond, then, otherwise } => {
            let mut may = |holds: bool| state.suppose(*cond, holds, |_| ()).is_some();
            match (may(true), may(false)) {
                (true, false) => Some(Term::Jump(*then)),
                (false, true) => Some(Term::Jump(*otherwise)),
                _ => None,
            }
        }
        Term::Switch { on, cases, default } => {
            let v = state.fact(*on).constant()?;
            Some(Term::Jump(cases.iter().find(|(case, _)| *case == v).map_or(*default, |(_, to)| *to)))
        }
        _ => None,
    }
}

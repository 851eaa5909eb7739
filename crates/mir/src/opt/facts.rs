//! What is known of the values of locals at a place: whether they are null, between which Ints they lie, which of them
//! are valid indexes of which `multi`, and which words of objects they are.

use super::Table;
use super::effects::is_counted;
use crate::ir::{Func, IntOp, Local, Rep};

/// Whether a word is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Null {
    #[default]
    Unknown,
    Yes,
    No,
}

/// What is known of one local.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fact {
    pub null: Null,
    /// A text literal, which is not counted.
    pub literal: bool,
    /// The bits of a Float.
    pub bits: Option<u64>,
    pub low: i64,
    pub high: i64,
    /// Below the length of the `multi` in this local.
    pub below: Option<Local>,
    /// At most that length.
    pub upto: Option<Local>,
    /// A `multi` with at least that many elements.
    pub least: i64,
    /// The same value as this local's.
    pub same: Option<Local>,
}

impl Default for Fact {
    fn default() -> Fact {
        Fact {
            null: Null::Unknown,
            literal: false,
            bits: None,
            low: i64::MIN,
            high: i64::MAX,
            below: None,
            upto: None,
            least: 0,
            same: None,
        }
    }
}

impl Fact {
    pub fn int(low: i64, high: i64) -> Fact {
        let null = match (low, high) {
            (0, 0) => Null::Yes,
            _ if low > 0 || high < 0 => Null::No,
            _ => Null::Unknown,
        };
        Fact { null, low, high, ..Fact::default() }
    }

    pub fn of_null(null: Null) -> Fact {
        if null == Null::Yes { Fact::int(0, 0) } else { Fact { null, ..Fact::default() } }
    }

    /// The Int it is known to be.
    pub fn constant(&self) -> Option<i64> {
        (self.low == self.high).then_some(self.low)
    }

    /// Null or a literal: a count of it is none.
    pub fn is_uncounted(&self) -> bool {
        self.null == Null::Yes || self.literal
    }

    /// What holds for both. With `marks`, ascending, a bound that moved goes on to the next of them, so that loops come
    /// to an end.
    fn join(&self, other: &Fact, marks: Option<&[i64]>) -> Fact {
        let same = |a: Option<Local>, b: Option<Local>| if a == b { a } else { None };
        let (mut low, mut high) = (self.low.min(other.low), self.high.max(other.high));
        if let Some(marks) = marks {
            if low < self.low {
                low = marks.iter().rev().find(|mark| **mark <= low).copied().unwrap_or(i64::MIN);
            }
            if high > self.high {
                high = marks.iter().find(|mark| **mark >= high).copied().unwrap_or(i64::MAX);
            }
        }
        Fact {
            null: if self.null == other.null { self.null } else { Null::Unknown },
            literal: self.literal && other.literal,
            bits: if self.bits == other.bits { self.bits } else { None },
            low,
            high,
            below: same(self.below, other.below),
            upto: same(self.upto, other.upto),
            least: self.least.min(other.least),
            same: same(self.same, other.same),
        }
    }

    fn relates_to(&self, local: Local) -> bool {
        [self.below, self.upto, self.same].contains(&Some(local))
    }
}

/// A word of an object that a local is known to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    pub base: Local,
    pub offset: i32,
    pub value: Local,
}

/// What is known where control enters a block.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// By local, ascending; only what says something.
    facts: Vec<(Local, Fact)>,
    words: Vec<Word>,
}

impl Entry {
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty() && self.words.is_empty()
    }

    /// Keeps what `other` says too. True if that is less than before.
    pub fn join(&mut self, other: &Entry, marks: Option<&[i64]>) -> bool {
        let mut changed = false;
        let mut theirs = other.facts.iter().peekable();
        self.facts.retain_mut(|(local, fact)| {
            while theirs.next_if(|(l, _)| *l < *local).is_some() {}
            let both = match theirs.peek() {
                Some((l, f)) if l == local => fact.join(f, marks),
                _ => Fact::default(),
            };
            changed |= both != *fact;
            *fact = both;
            both != Fact::default()
        });
        let before = self.words.len();
        self.words.retain(|word| other.words.contains(word));
        changed || self.words.len() < before
    }
}

/// What is known at a place inside a block.
pub struct State<'f> {
    func: &'f Func,
    facts: Table<Fact>,
    /// Locals with a fact, those whose facts name other locals, and those that are not counted for their value; some
    /// have lost it again.
    known: Vec<Local>,
    related: Vec<Local>,
    uncounted: Vec<Local>,
    marks: Table<Marks>,
    words: Vec<Word>,
    /// Results of comparisons in this block with their operands.
    compared: Vec<(Local, IntOp, Local, Local)>,
    /// While something is supposed: the facts that were replaced.
    before: Option<Vec<(Local, Fact)>>,
}

/// Where else a local stands, so that most of them are forgotten at once.
#[derive(Clone, Copy, Default)]
struct Marks {
    /// In `known`, in `related`.
    known: bool,
    related: bool,
    /// In a fact of another local, a word or a comparison.
    named: bool,
}

/// Words and comparisons that are kept in mind.
const WORDS: usize = 24;
const COMPARED: usize = 4;

impl<'f> State<'f> {
    pub fn new(func: &'f Func) -> State<'f> {
        State {
            func,
            facts: Table::new(func.locals.len()),
            marks: Table::new(func.locals.len()),
            known: Vec::new(),
            related: Vec::new(),
            uncounted: Vec::new(),
            words: Vec::new(),
            compared: Vec::new(),
            before: None,
        }
    }

    pub fn load(&mut self, entry: &Entry) {
        for local in self.known.drain(..) {
            self.facts.set(local.0, Fact::default());
            self.marks.set(local.0, Marks::default());
        }
        self.related.clear();
        self.uncounted.clear();
        self.compared.clear();
        self.words.clear();
        entry.words.iter().for_each(|word| self.remember(*word));
        for (local, fact) in &entry.facts {
            self.put(*local, *fact);
        }
    }

    /// What is known of the locals that `wanted` lets through, for the blocks that follow.
    pub fn save(&self, wanted: impl Fn(Local) -> bool) -> Entry {
        let facts = self.sorted(&self.known, |local, fact| wanted(local) && *fact != Fact::default());
        Entry { facts, words: self.words.iter().filter(|w| wanted(w.base)).copied().collect() }
    }

    /// Whether `nulls` has something to say.
    pub fn has_nulls(&self) -> bool {
        !self.uncounted.is_empty()
    }

    /// What matters where a trap leads: the counted locals that hold nothing to count.
    pub fn nulls(&self) -> Entry {
        Entry { facts: self.sorted(&self.uncounted, |_, fact| fact.is_uncounted()), words: Vec::new() }
    }

    fn sorted(&self, locals: &[Local], keep: impl Fn(Local, &Fact) -> bool) -> Vec<(Local, Fact)> {
        let all = locals.iter().map(|l| (*l, self.fact(*l)));
        let mut facts: Vec<(Local, Fact)> = all.filter(|(local, fact)| keep(*local, fact)).collect();
        facts.sort_unstable_by_key(|(local, _)| *local);
        facts.dedup_by_key(|(local, _)| *local);
        facts
    }

    pub fn fact(&self, local: Local) -> Fact {
        self.facts.get(local.0)
    }

    /// Adds to what is known of a local's present value.
    pub fn put(&mut self, local: Local, fact: Fact) {
        let old = self.fact(local);
        if let Some(before) = &mut self.before {
            before.push((local, old));
        }
        self.mark(local, |_| {});
        let related = [fact.below, fact.upto, fact.same];
        if related.iter().any(Option::is_some) {
            if !self.marks.get(local.0).related {
                self.related.push(local);
            }
            self.mark(local, |marks| marks.related = true);
            related.into_iter().flatten().for_each(|other| self.name(other));
        }
        if is_counted(self.func, local) && fact.is_uncounted() {
            self.uncounted.push(local);
        }
        self.facts.set(local.0, fact);
    }

    /// The local has a new value, of which this is known.
    pub fn assign(&mut self, local: Local, fact: Fact) {
        self.forget(local);
        self.put(local, fact);
    }

    /// Puts the local among the known ones and changes its marks.
    fn mark(&mut self, local: Local, change: impl FnOnce(&mut Marks)) {
        let mut marks = self.marks.get(local.0);
        if !marks.known {
            self.known.push(local);
        }
        marks.known = true;
        change(&mut marks);
        self.marks.set(local.0, marks);
    }

    fn name(&mut self, local: Local) {
        self.mark(local, |marks| marks.named = true);
    }

    /// Nothing that was known of the local's value holds any more.
    pub fn forget(&mut self, local: Local) {
        self.facts.set(local.0, Fact::default());
        if !self.marks.get(local.0).named {
            return;
        }
        self.mark(local, |marks| marks.named = false);
        self.compared.retain(|(cond, _, l, r)| ![*cond, *l, *r].contains(&local));
        self.words.retain(|word| word.base != local && word.value != local);
        for i in 0..self.related.len() {
            let Some(other) = self.related.get(i).copied() else { break };
            let mut fact = self.fact(other);
            if fact.relates_to(local) {
                let keep = |l: Option<Local>| l.filter(|l| *l != local);
                (fact.below, fact.upto, fact.same) = (keep(fact.below), keep(fact.upto), keep(fact.same));
                self.facts.set(other.0, fact);
            }
        }
    }

    /// Lengths may have fallen.
    pub fn forget_lengths(&mut self) {
        for local in self.known.clone() {
            let fact = Fact { below: None, upto: None, least: 0, ..self.fact(local) };
            self.facts.set(local.0, fact);
        }
    }

    pub fn forget_words(&mut self, which: impl Fn(&Word) -> bool) {
        self.words.retain(|word| !which(word));
    }

    pub fn remember(&mut self, word: Word) {
        if self.words.len() == WORDS {
            let _ = self.words.remove(0);
        }
        self.name(word.base);
        self.name(word.value);
        self.words.push(word);
    }

    /// The local that holds the word at `base + offset`.
    pub fn word(&self, base: Local, offset: i32, rep: Rep) -> Option<Local> {
        let fits = |w: &&Word| w.base == base && w.offset == offset && self.rep(w.value) == rep;
        self.words.iter().find(fits).map(|w| w.value)
    }

    pub fn rep(&self, local: Local) -> Rep {
        self.func.locals.get(local.0 as usize).map_or(Rep::Int, |l| l.rep)
    }

    /// The local that was first known to hold this local's value.
    pub fn first(&self, local: Local) -> Local {
        self.fact(local).same.unwrap_or(local)
    }

    pub fn not_null(&mut self, local: Local) {
        for local in [local, self.first(local)] {
            let fact = self.fact(local);
            if fact.null == Null::Unknown {
                self.put(local, Fact { null: Null::No, ..fact });
            }
        }
    }

    pub fn compare(&mut self, cond: Local, op: IntOp, lhs: Local, rhs: Local) {
        if negated(op).is_some() && ![lhs, rhs].contains(&cond) {
            self.compared.truncate(COMPARED);
            [cond, lhs, rhs].into_iter().for_each(|local| self.name(local));
            self.compared.insert(0, (cond, op, lhs, rhs));
        }
    }

    /// What `see` makes of the state in which `cond` is nonzero, or zero; `None` if it cannot be.
    pub fn suppose<T>(&mut self, cond: Local, holds: bool, see: impl FnOnce(&State) -> T) -> Option<T> {
        self.before = Some(Vec::new());
        let seen = self.assume(cond, holds).then(|| see(self));
        for (local, fact) in self.before.take().into_iter().flatten().rev() {
            self.facts.set(local.0, fact);
        }
        seen
    }

    /// Adds what follows from `cond` being nonzero, or zero. False if it cannot be.
    fn assume(&mut self, cond: Local, holds: bool) -> bool {
        let fact = self.fact(cond);
        if fact.null == if holds { Null::Yes } else { Null::No } {
            return false;
        }
        let known = if holds { Fact { null: Null::No, ..fact } } else { Fact::int(0, 0) };
        self.put(cond, known);
        let found = self.compared.iter().find(|(c, ..)| *c == cond).copied();
        let Some((_, op, lhs, rhs)) = found else { return true };
        let op = if holds { Some(op) } else { negated(op) };
        op.is_none_or(|op| self.relate(op, lhs, rhs))
    }

    /// Adds what follows from `lhs op rhs`. False if it cannot be.
    fn relate(&mut self, op: IntOp, lhs: Local, rhs: Local) -> bool {
        match op {
            IntOp::Lt => self.less(lhs, rhs, true),
            IntOp::Le => self.less(lhs, rhs, false),
            IntOp::Gt => self.less(rhs, lhs, true),
            IntOp::Ge => self.less(rhs, lhs, false),
            IntOp::Eq => {
                let (l, r) = (self.fact(lhs), self.fact(rhs));
                let (low, high) = (l.low.max(r.low), l.high.min(r.high));
                for (local, fact) in [(lhs, l), (rhs, r)] {
                    let null = if (low, high) == (0, 0) { Null::Yes } else { fact.null };
                    self.put(local, Fact { low, high, null, ..fact });
                }
                low <= high
            }
            IntOp::Ne => {
                for (local, other) in [(lhs, rhs), (rhs, lhs)] {
                    if self.fact(other).constant() == Some(0) {
                        if self.fact(local).null == Null::Yes {
                            return false;
                        }
                        self.not_null(local);
                    }
                }
                true
            }
            _ => true,
        }
    }

    /// `low < high`, or `low <= high`.
    fn less(&mut self, low: Local, high: Local, strict: bool) -> bool {
        let (l, h) = (self.fact(low), self.fact(high));
        let step = i64::from(strict);
        let (Some(most), Some(least)) = (h.high.checked_sub(step), l.low.checked_add(step)) else { return false };
        let below = if strict { h.upto.or(h.below) } else { h.below };
        let upto = if strict { None } else { h.upto };
        let (l_high, h_low) = (l.high.min(most), h.low.max(least));
        let bound = |fact: Fact| {
            let range = Fact::int(fact.low, fact.high);
            Fact { null: if range.null == Null::Unknown { fact.null } else { range.null }, ..fact }
        };
        self.put(low, bound(Fact { high: l_high, below: l.below.or(below), upto: l.upto.or(upto), ..l }));
        self.put(high, bound(Fact { low: h_low, ..self.fact(high) }));
        l.low <= l_high && h_low <= h.high
    }
}

fn negated(op: IntOp) -> Option<IntOp> {
    Some(match op {
        IntOp::Eq => IntOp::Ne,
        IntOp::Ne => IntOp::Eq,
        IntOp::Lt => IntOp::Ge,
        IntOp::Le => IntOp::Gt,
        IntOp::Gt => IntOp::Le,
        IntOp::Ge => IntOp::Lt,
        _ => return None,
    })
}

/// The Ints that `lhs op rhs` may give.
pub fn range(op: IntOp, l: Fact, r: Fact) -> Fact {
    let whole = (i64::MIN, i64::MAX);
    let both = |low: Option<i64>, high: Option<i64>| low.zip(high).unwrap_or(whole);
    let truth = |yes: bool, no: bool| {
        if yes {
            (1, 1)
        } else if no {
            (0, 0)
        } else {
            (0, 1)
        }
    };
    if let (Some(a), Some(b)) = (l.constant(), r.constant()) {
        let v = crate::lower::fold(op, a, b);
        return Fact::int(v, v);
    }
    let (low, high) = match op {
        // What may wrap may be anything.
        IntOp::Add => both(l.low.checked_add(r.low), l.high.checked_add(r.high)),
        IntOp::Sub => both(l.low.checked_sub(r.high), l.high.checked_sub(r.low)),
        IntOp::Mul if l.low >= 0 && r.low >= 0 => both(l.low.checked_mul(r.low), l.high.checked_mul(r.high)),
        IntOp::And if l.low >= 0 && r.low >= 0 => (0, l.high.min(r.high)),
        IntOp::And if l.low >= 0 => (0, l.high),
        IntOp::And if r.low >= 0 => (0, r.high),
        IntOp::Or | IntOp::Xor if l.low >= 0 && r.low >= 0 => {
            let bits = i64::BITS - (l.high | r.high).leading_zeros();
            (0, if bits >= 63 { i64::MAX } else { (1 << bits) - 1 })
        }
        IntOp::Shr if l.low >= 0 => match r.constant() {
            Some(by @ 0..=63) => (l.low >> by, l.high >> by),
            _ => (0, l.high),
        },
        IntOp::Eq => truth(false, l.high < r.low || r.high < l.low),
        IntOp::Ne => truth(l.high < r.low || r.high < l.low, false),
        IntOp::Lt => truth(l.high < r.low, l.low >= r.high),
        IntOp::Le => truth(l.high <= r.low, l.low > r.high),
        IntOp::Gt => truth(l.low > r.high, l.high <= r.low),
        IntOp::Ge => truth(l.low >= r.high, l.high < r.low),
        IntOp::Mul | IntOp::And | IntOp::Or | IntOp::Xor | IntOp::Shl | IntOp::Shr => whole,
    };
    Fact::int(low, high)
}

/// Whether the comparison with null has one outcome.
pub fn null_test(op: IntOp, l: Fact, r: Fact) -> Option<bool> {
    let tested = match (l.null, r.null) {
        (Null::Yes, other) | (other, Null::Yes) => other,
        _ => return None,
    };
    match (op, tested) {
        (IntOp::Eq, Null::Yes) | (IntOp::Ne, Null::No) => Some(true),
        (IntOp::Eq, Null::No) | (IntOp::Ne, Null::Yes) => Some(false),
        _ => None,
    }
}

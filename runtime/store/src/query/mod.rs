//! Queries: candidates by the access path of the plan, the conditions it does not guarantee, order, `skip` and `take`,
//! and the values of paths. All of it is one statement.

mod span;

use crate::key;
use crate::lock::Reading;
use crate::order::{Sorter, put_key};
use crate::rows::Row;
use crate::store::{Refusal, Store, reference};
use crate::table::{Table, kind};
use crate::value::Cell;
use abi::tables::{Access, ColumnKind, CompareOp, Condition, Ordering, Path, PathEnd, QueryDesc, TableDesc};
use smallvec::SmallVec;
use span::Span;
use std::cell::{Cell as Counter, RefCell};
use std::ops::ControlFlow;

/// What a query is asked with.
#[derive(Debug, Default)]
pub struct Operands<'a> {
    /// By field of the operands' object.
    pub values: &'a [Cell<'a>],
    /// The ids of a list that is the source.
    pub list: &'a [u64],
    /// The row whose backlink is the source.
    pub row: u64,
    pub skip: u64,
    pub take: Option<u64>,
}

/// Takes the result of a query in.
pub trait Sink {
    /// Asks for memory that the query needs while it runs; false: there is none.
    fn room(&mut self, bytes: usize) -> bool;
    /// A row of the result and the values of the outputs; false: there is no memory for it.
    fn row(&mut self, id: u64, cells: &[Cell<'_>]) -> bool;
}

/// Entries with equal values that a walk backwards keeps until it has met the first of them.
const NEIGHBOURS: usize = 16;

/// How a walk over rows ends: `None` where memory is short.
type Outcome = Result<Option<()>, Refusal>;

/// Ends a walk early, also where enough was seen.
type Step = ControlFlow<Outcome>;

/// A condition with its operand.
struct Test<'q> {
    path: &'q Path,
    op: CompareOp,
    kind: ColumnKind,
    operand: Cell<'q>,
}

struct Run<'q> {
    store: &'q Store,
    query: &'q QueryDesc,
    desc: &'q TableDesc,
    locks: Reading<'q>,
    operands: &'q Operands<'q>,
    tests: Vec<Test<'q>>,
    /// Only the number of rows is asked for: they may come in any order.
    counts: bool,
    /// Rows and index entries that it has looked at.
    seen: Counter<u64>,
}

impl Store {
    /// Evaluates the query of this number; `None`: `sink` has run out of memory. Adds the rows and index entries that it
    /// has looked at to `seen`.
    pub fn query(
        &self,
        query: u32,
        operands: &Operands<'_>,
        sink: &mut dyn Sink,
        seen: &mut u64,
    ) -> Result<Option<()>, Refusal> {
        self.evaluate(self.queries.get(query as usize).ok_or(Refusal::NoRow)?, operands, sink, seen)
    }

    /// How many rows the query of this number would give; `seen` as for `query`.
    pub fn count(&self, query: u32, operands: &Operands<'_>, seen: &mut u64) -> Result<u64, Refusal> {
        self.count_rows(self.queries.get(query as usize).ok_or(Refusal::NoRow)?, operands, seen)
    }

    /// `query` with a description that asks for the order of no unique index unless one of the store's queries does.
    pub fn evaluate(
        &self,
        query: &QueryDesc,
        operands: &Operands<'_>,
        sink: &mut dyn Sink,
        seen: &mut u64,
    ) -> Result<Option<()>, Refusal> {
        let run = self.start(query, operands, false).ok_or(Refusal::NoRow)?;
        if operands.take == Some(0) {
            return run.check_source().map(Some);
        }
        let result = match query.ordering {
            Ordering::None | Ordering::Index { .. } => run.stream(sink),
            Ordering::Heap | Ordering::Sort => run.sort(sink),
        };
        *seen += run.seen.get();
        result
    }

    /// `count` as `evaluate`.
    pub fn count_rows(&self, query: &QueryDesc, operands: &Operands<'_>, seen: &mut u64) -> Result<u64, Refusal> {
        let run = self.start(query, operands, true).ok_or(Refusal::NoRow)?;
        let limit = operands.take.map_or(u64::MAX, |take| take.saturating_add(operands.skip));
        let found = if operands.take == Some(0) {
            run.check_source().map(|()| 0)
        } else if run.tests.is_empty() {
            run.count_candidates(limit)
        } else {
            run.count_rows(limit)
        };
        *seen += run.seen.get();
        Ok(found?.min(limit).saturating_sub(operands.skip))
    }

    fn start<'q>(&'q self, query: &'q QueryDesc, operands: &'q Operands<'q>, counts: bool) -> Option<Run<'q>> {
        let desc = &self.slots.get(query.table as usize)?.desc;
        let test = |condition: &'q Condition| Test {
            path: &condition.path,
            op: condition.op,
            kind: self.path_kind(query.table as usize, &condition.path),
            operand: operand(operands, condition),
        };
        let tests = query.conditions.iter().filter(|c| !c.binds).map(test).collect();
        let locks = Reading::new(&self.slots, query.tables.iter().map(|t| *t as usize));
        Some(Run { store: self, query, desc, locks, operands, tests, counts, seen: Counter::new(0) })
    }

    /// The kind of the values at the end of a path.
    fn path_kind(&self, table: usize, path: &Path) -> ColumnKind {
        let mut desc = self.slots.get(table).map(|slot| &slot.desc);
        for step in &path.steps {
            let target = desc.and_then(|d| d.columns.get(*step as usize)).and_then(|c| c.refers);
            desc = target.and_then(|t| self.slots.get(t as usize)).map(|slot| &slot.desc);
        }
        match (&path.end, desc) {
            (PathEnd::Column(column), Some(desc)) => kind(desc, *column as usize),
            _ => ColumnKind::Int,
        }
    }
}

fn operand<'q>(operands: &'q Operands<'q>, condition: &Condition) -> Cell<'q> {
    condition.operand.and_then(|at| operands.values.get(at as usize)).copied().unwrap_or(Cell::Nil)
}

/// The index of its table that a query goes through in order, which a lookup of one value does not need.
pub(crate) fn walked_index(query: &QueryDesc, table: &TableDesc) -> Option<usize> {
    match query.access {
        Access::Walk { index } | Access::Backlink { index } => Some(index as usize),
        Access::Index { index, equal, .. } => {
            let columns = table.indexes.get(index as usize)?.columns.len();
            ((equal as usize) < columns).then_some(index as usize)
        }
        Access::Scan | Access::List => None,
    }
}

impl<'q> Run<'q> {
    fn table(&self) -> Result<&Table, Refusal> {
        self.locks.get(self.query.table as usize).ok_or(Refusal::NoRow)
    }

    /// The row whose referrers the query is over exists, however many of them are taken.
    fn check_source(&self) -> Result<(), Refusal> {
        let Access::Backlink { index } = self.query.access else { return Ok(()) };
        let target = self.store.target(self.query.table as usize, index as usize);
        let found = target.and_then(|t| self.locks.get(t)).is_some_and(|t| t.rows.contains(self.operands.row));
        if found { Ok(()) } else { Err(Refusal::NoRow) }
    }

    /// The value at the end of a path from a row, which is looked up where it is not at hand.
    fn value<'r>(&'r self, id: u64, row: Option<Row<'r>>, path: &Path) -> Result<Cell<'r>, Refusal> {
        let mut number = self.query.table as usize;
        let (mut id, mut row) = (id, row);
        for step in &path.steps {
            let here = self.row(number, id, row)?;
            let column = self.store.slots.get(number).and_then(|slot| slot.desc.columns.get(*step as usize));
            let (Some(target), Cell::Word(next)) = (column.and_then(|c| c.refers), here.cell(*step as usize)) else {
                return Err(Refusal::NoRow);
            };
            (number, id, row) = (target as usize, next, None);
        }
        match path.end {
            PathEnd::Id => Ok(Cell::Word(id)),
            PathEnd::Column(column) => Ok(self.row(number, id, row)?.cell(column as usize)),
            PathEnd::Referrers { table, index } => {
                let _ = self.row(number, id, row)?;
                let referring = self.locks.get(table as usize).ok_or(Refusal::NoRow)?;
                let count = referring.beginning(index as usize, &reference(id)).count() as u64;
                self.seen.set(self.seen.get() + count);
                Ok(Cell::Word(count))
            }
        }
    }

    fn row<'r>(&'r self, table: usize, id: u64, row: Option<Row<'r>>) -> Result<Row<'r>, Refusal> {
        row.or_else(|| self.locks.get(table)?.rows.get(id)).ok_or(Refusal::NoRow)
    }

    /// The row of a candidate, looked up once for all that is asked of it; `None` where a list names one that is gone.
    fn at_hand<'r>(&'r self, id: u64, row: Option<Row<'r>>) -> Option<Row<'r>> {
        row.or_else(|| self.table().ok()?.rows.get(id))
    }

    fn fulfils<'r>(&'r self, id: u64, row: Option<Row<'r>>) -> Result<bool, Refusal> {
        for test in &self.tests {
            if !holds(test.kind, self.value(id, row, test.path)?, test.op, test.operand) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Calls `visit` with the rows that fulfil all conditions, in the order of the access; `room` as `Sink::room`.
    fn each_row<'r>(
        &'r self,
        room: impl FnMut(usize) -> bool,
        mut visit: impl FnMut(u64, Option<Row<'r>>) -> Step,
    ) -> Outcome {
        let walk = self.each_candidate(room, |id, row| {
            self.seen.set(self.seen.get() + 1);
            let row = if self.tests.is_empty() { row } else { self.at_hand(id, row) };
            match self.fulfils(id, row) {
                Ok(true) => visit(id, row),
                Ok(false) => Step::Continue(()),
                Err(refusal) => Step::Break(Err(refusal)),
            }
        });
        match walk {
            Step::Continue(()) => Ok(Some(())),
            Step::Break(outcome) => outcome,
        }
    }

    fn each_candidate<'r>(
        &'r self,
        mut room: impl FnMut(usize) -> bool,
        mut visit: impl FnMut(u64, Option<Row<'r>>) -> Step,
    ) -> Step {
        let table = match self.table() {
            Ok(table) => table,
            Err(refusal) => return Step::Break(Err(refusal)),
        };
        if let Some(found) = self.lookup(table) {
            return found.map_or(Step::Continue(()), |row| visit(row.id(), Some(row)));
        }
        let Span { index, start, end } = match &self.query.access {
            Access::Scan => return table.rows.iter().try_for_each(|(id, row)| visit(id, Some(row))),
            Access::List => return self.operands.list.iter().try_for_each(|id| visit(*id, None)),
            _ => match self.span() {
                Ok(Some(span)) => span,
                Ok(None) => return Step::Continue(()),
                Err(refusal) => return Step::Break(Err(refusal)),
            },
        };
        match self.query.ordering {
            Ordering::Index { desc: false } => {
                table.entries(index, &start, &end).try_for_each(|key| visit(key.id(), None))
            }
            Ordering::Index { desc: true } => backwards(table, index, &start, end, |id| visit(id, None)),
            Ordering::None if !self.counts && !self.all_equal(index) => {
                let mut ids = Vec::new();
                for key in table.entries(index, &start, &end) {
                    if ids.len() == ids.capacity() {
                        let more = ids.len().max(64);
                        if !room(more * size_of::<u64>()) {
                            return Step::Break(Ok(None));
                        }
                        ids.reserve_exact(more);
                    }
                    ids.push(key.id());
                }
                ids.sort_unstable();
                ids.into_iter().try_for_each(|id| visit(id, None))
            }
            // Equal values, so by ascending id; or in any order.
            Ordering::None | Ordering::Heap | Ordering::Sort => {
                table.entries(index, &start, &end).try_for_each(|key| visit(key.id(), None))
            }
        }
    }

    /// The row, if there is one, where the access binds a unique column to a value other than nil.
    fn lookup<'r>(&'r self, table: &'r Table) -> Option<Option<Row<'r>>> {
        let Access::Index { index, equal: 1, .. } = self.query.access else { return None };
        let column = table.unique_column(index as usize)?;
        let value = self.bound(column)?;
        let is_nan = is_nan(kind(self.desc, column), value);
        (value != Cell::Nil).then(|| table.find(index as usize, value).filter(|_| !is_nan))
    }

    /// How many rows the access finds; where it has to count them, only up to `limit`.
    fn count_candidates(&self, limit: u64) -> Result<u64, Refusal> {
        let table = self.table()?;
        let found = match (self.lookup(table), &self.query.access) {
            (Some(found), _) => u64::from(found.is_some()),
            (None, Access::Scan) => return Ok(table.rows.len()),
            (None, Access::List) => return Ok(self.operands.list.len() as u64),
            (None, _) => {
                let Some(Span { index, start, end }) = self.span()? else { return Ok(0) };
                let entries = table.entries(index, &start, &end);
                // Counting all of them is one loop; with a limit it is a step each.
                let limit = usize::try_from(limit).unwrap_or(usize::MAX);
                (if limit == usize::MAX { entries.count() } else { entries.take(limit).count() }) as u64
            }
        };
        self.seen.set(found);
        Ok(found)
    }

    /// How many rows fulfil all conditions, up to `limit`.
    fn count_rows(&self, limit: u64) -> Result<u64, Refusal> {
        let mut found = 0;
        // Nothing is kept of rows that are counted.
        let walk = self.each_row(
            |_| true,
            |_, _| {
                found += 1;
                if found < limit { Step::Continue(()) } else { Step::Break(Ok(Some(()))) }
            },
        );
        walk.map(|_| found)
    }

    /// Gives `sink` the row and its outputs. False: there is no memory.
    fn emit<'r>(
        &'r self,
        id: u64,
        row: Option<Row<'r>>,
        cells: &mut SmallVec<[Cell<'r>; 4]>,
        sink: &mut dyn Sink,
    ) -> Result<bool, Refusal> {
        cells.clear();
        let row = if self.query.outputs.is_empty() { row } else { self.at_hand(id, row) };
        for path in &self.query.outputs {
            cells.push(self.value(id, row, path)?);
        }
        Ok(sink.row(id, cells))
    }

    fn stream(&self, sink: &mut dyn Sink) -> Outcome {
        let (mut skip, mut left) = (self.operands.skip, self.operands.take.unwrap_or(u64::MAX));
        let mut cells = SmallVec::new();
        let sink = RefCell::new(sink);
        let room = |bytes| sink.borrow_mut().room(bytes);
        self.each_row(room, |id, row| {
            if skip > 0 {
                skip -= 1;
                return Step::Continue(());
            }
            match self.emit(id, row, &mut cells, &mut **sink.borrow_mut()) {
                Ok(true) => left -= 1,
                Ok(false) => return Step::Break(Ok(None)),
                Err(refusal) => return Step::Break(Err(refusal)),
            }
            if left > 0 { Step::Continue(()) } else { Step::Break(Ok(Some(()))) }
        })
    }

    fn sort(&self, sink: &mut dyn Sink) -> Outcome {
        let skip = usize::try_from(self.operands.skip).unwrap_or(usize::MAX);
        let take = self.operands.take.map(|take| usize::try_from(take).unwrap_or(usize::MAX));
        let mut sorter = Sorter::new(take.map(|take| take.saturating_add(skip)));
        let listed = self.query.access == Access::List;
        let kinds: Vec<ColumnKind> =
            self.query.order.iter().map(|(p, _)| self.store.path_kind(self.query.table as usize, p)).collect();
        let mut seen = 0;
        let mut key = Vec::with_capacity(64);
        let sink = RefCell::new(sink);
        let room = |bytes| sink.borrow_mut().room(bytes);
        let walk = self.each_row(room, |id, row| {
            key.clear();
            let row = self.at_hand(id, row);
            for ((path, desc), kind) in self.query.order.iter().zip(&kinds) {
                match self.value(id, row, path) {
                    Ok(cell) => put_key(&mut key, *kind, cell, *desc),
                    Err(refusal) => return Step::Break(Err(refusal)),
                }
            }
            let tie = if listed { seen } else { id };
            seen += 1;
            let grown = sorter.push(&key, tie, id);
            if grown == 0 || room(grown) { Step::Continue(()) } else { Step::Break(Ok(None)) }
        })?;
        if walk.is_none() {
            return Ok(None);
        }
        let (sink, mut cells) = (sink.into_inner(), SmallVec::new());
        for item in sorter.finish().into_iter().skip(skip).take(take.unwrap_or(usize::MAX)) {
            if !self.emit(item.id, None, &mut cells, sink)? {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }
}

/// Visits the rows of an index from the last key on; those with equal values by ascending id all the same.
fn backwards(table: &Table, index: usize, start: &[u8], mut end: Vec<u8>, mut visit: impl FnMut(u64) -> Step) -> Step {
    let mut equal: SmallVec<[u64; NEIGHBOURS]> = SmallVec::new();
    loop {
        let mut keys = table.entries(index, start, &end).rev().peekable();
        let values = loop {
            let Some(key) = keys.next() else { return Step::Continue(()) };
            equal.push(key.id());
            if keys.peek().is_some_and(|next| next.values() == key.values()) {
                if equal.len() < NEIGHBOURS {
                    continue;
                }
                break key.values();
            }
            equal.drain(..).rev().try_for_each(&mut visit)?;
        };
        // Too many to be walked over for the sake of the few that may be wanted.
        equal.clear();
        table.beginning(index, values).map(key::Key::id).try_for_each(&mut visit)?;
        end = values.to_vec();
    }
}

fn is_nan(kind: ColumnKind, cell: Cell<'_>) -> bool {
    kind == ColumnKind::Float && matches!(cell, Cell::Word(bits) if f64::from_bits(bits).is_nan())
}

/// `left op right` as the language has it: nil equals nil alone and has no order, Floats compare by IEEE.
fn holds(kind: ColumnKind, left: Cell<'_>, op: CompareOp, right: Cell<'_>) -> bool {
    let order = match (left, right) {
        (Cell::Nil, Cell::Nil) => return op == CompareOp::Eq,
        (Cell::Word(l), Cell::Word(r)) if kind == ColumnKind::Float => {
            f64::from_bits(l).partial_cmp(&f64::from_bits(r))
        }
        (Cell::Word(l), Cell::Word(r)) => Some((l as i64).cmp(&(r as i64))),
        (Cell::Bytes(l), Cell::Bytes(r)) => Some(l.cmp(r)),
        _ => None,
    };
    match op {
        CompareOp::Eq => order.is_some_and(|o| o.is_eq()),
        CompareOp::Ne => order.is_none_or(|o| o.is_ne()),
        CompareOp::Lt => order.is_some_and(|o| o.is_lt()),
        CompareOp::Le => order.is_some_and(|o| o.is_le()),
        CompareOp::Gt => order.is_some_and(|o| o.is_gt()),
        CompareOp::Ge => order.is_some_and(|o| o.is_ge()),
    }
}

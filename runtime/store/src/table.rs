//! One table: its rows, their entries in its indexes, the next id. Checks nothing; statements do.

use crate::hash::{self, Hash, Places};
use crate::jobs;
use crate::key::{self, Key};
use crate::rows::{self, Row, Rows};
use crate::value::{Cell, Value};
use abi::tables::{ColumnKind, IndexDesc, TableDesc};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::{Mutex, PoisonError};

/// Memory of an index entry: itself, and its part of the tree's nodes, which are little more than half full where keys
/// come in order.
const ENTRY_COST: usize = 64;

#[derive(Debug)]
pub(crate) struct Table {
    pub rows: Rows,
    indexes: Vec<Index>,
    /// The id of the next row; 0 is no id.
    pub next: u64,
}

/// Finds rows by their values. Values of a unique column are found by their hash; in the tree are all of them if the
/// program ever asks for their order, else those that are nil, which several rows may be.
#[derive(Debug)]
struct Index {
    columns: Box<[(usize, ColumnKind)]>,
    places: Option<Places>,
    ordered: bool,
    tree: BTreeSet<Key>,
}

/// The entry of a row in an index.
struct Entry {
    hash: Option<Hash>,
    key: Option<Key>,
}

/// A row that cannot be added yet, with its entries.
pub(crate) struct Draft {
    values: Vec<Value>,
    entries: Vec<Entry>,
}

/// A new value of a column that is not stored yet, with the indexes whose entries it changes.
pub(crate) struct Change {
    column: usize,
    value: Value,
    moved: Vec<(usize, Entry, Entry)>,
}

impl Entry {
    fn cost(&self) -> usize {
        self.hash.map_or(0, |_| hash::ENTRY_COST) + self.key.as_ref().map_or(0, |key| ENTRY_COST + key.heap())
    }
}

impl Index {
    fn new(desc: &TableDesc, index: &IndexDesc, ordered: bool) -> Index {
        Index {
            columns: index.columns.iter().map(|c| (*c as usize, kind(desc, *c as usize))).collect(),
            places: index.unique.then(Places::default),
            ordered: ordered || !index.unique,
            tree: BTreeSet::new(),
        }
    }

    /// The entry of a row whose columns `cell` gives.
    fn entry<'a>(&self, id: u64, cell: impl Fn(usize) -> Cell<'a>) -> Entry {
        let unique = self.places.as_ref().zip(self.columns.first());
        let hash = unique.and_then(|(places, (column, kind))| places.hash(*kind, cell(*column)));
        let key = (self.ordered || hash.is_none()).then(|| {
            let mut bytes = Vec::with_capacity(40);
            for (column, kind) in &self.columns {
                key::put(&mut bytes, *kind, cell(*column));
            }
            key::put_id(&mut bytes, id);
            Key::new(&bytes)
        });
        Entry { hash, key }
    }

    fn add(&mut self, entry: Entry, place: u32) {
        if let (Some(places), Some(hash)) = (&mut self.places, entry.hash) {
            places.insert(hash, place);
        }
        if let Some(key) = entry.key {
            let _ = self.tree.insert(key);
        }
    }

    fn remove(&mut self, entry: &Entry, place: u32) {
        if let (Some(places), Some(hash)) = (&mut self.places, entry.hash) {
            places.remove(hash, place);
        }
        if let Some(key) = &entry.key {
            let _ = self.tree.remove(key);
        }
    }

    /// Takes in the entries of all rows; as `Table::fill`.
    fn fill(&mut self, rows: &Rows) -> (u64, Option<u64>) {
        let (mut cost, mut twin, mut keys) = (0, None, Vec::new());
        for (id, row) in rows.iter() {
            let entry = self.entry(id, |c| row.cell(c));
            cost += entry.cost() as u64;
            keys.extend(entry.key);
            if let (Some(places), Some(hash), Some((column, kind))) =
                (&mut self.places, entry.hash, self.columns.first().copied())
            {
                let is_same =
                    |place| rows.at(place).is_some_and(|other| key::same(kind, other.cell(column), row.cell(column)));
                if places.find(hash, is_same).is_some() {
                    twin = twin.or(Some(id));
                }
                places.insert(hash, rows.place(id).unwrap_or_default());
            }
        }
        // A tree is built from sorted entries at once.
        self.tree = keys.into_iter().collect();
        (cost, twin)
    }
}

impl Table {
    /// `logged`: its rows are in the log; `ordered` says of an index whether the program asks for its order.
    pub fn new(desc: &TableDesc, logged: bool, ordered: impl Fn(usize) -> bool) -> Table {
        let indexes = desc.indexes.iter().enumerate().map(|(i, index)| Index::new(desc, index, ordered(i)));
        Table {
            rows: Rows::new(desc.columns.iter().map(|c| (c.kind, c.nullable)), logged),
            indexes: indexes.collect(),
            next: 1,
        }
    }

    /// The entries of `index`, whose order the program asks for, from `start` up to `end`, `end` left out; an empty
    /// `end` is none.
    pub fn entries(&self, index: usize, start: &[u8], end: &[u8]) -> impl DoubleEndedIterator<Item = &Key> + use<'_> {
        // The set refuses bounds in the wrong order.
        let end =
            if end.is_empty() { Bound::Unbounded } else { Bound::Excluded(if end < start { start } else { end }) };
        let range: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Included(start), end);
        self.indexes.get(index).map(|index| index.tree.range::<[u8], _>(range)).into_iter().flatten()
    }

    /// The entries of `index` that begin with `prefix`.
    pub fn beginning(&self, index: usize, prefix: &[u8]) -> impl DoubleEndedIterator<Item = &Key> + use<'_> {
        let mut end = prefix.to_vec();
        key::step_over(&mut end);
        self.entries(index, prefix, &end)
    }

    /// The column of an index that is unique.
    pub fn unique_column(&self, index: usize) -> Option<usize> {
        let index = self.indexes.get(index)?;
        Some(index.columns.first().filter(|_| index.places.is_some())?.0)
    }

    /// The row with this value in the column of a unique index; none for nil.
    pub fn find(&self, index: usize, cell: Cell<'_>) -> Option<Row<'_>> {
        let index = self.indexes.get(index)?;
        let (column, kind) = *index.columns.first()?;
        let places = index.places.as_ref()?;
        let mut found = None;
        let _ = places.find(places.hash(kind, cell)?, |place| {
            found = self.rows.at(place).filter(|row| key::same(kind, row.cell(column), cell));
            found.is_some()
        })?;
        found
    }

    /// A row of these values as it would be added next, and the memory that it takes.
    pub fn draft(&self, values: Vec<Value>) -> (Draft, usize) {
        let cell = |column: usize| values.get(column).map_or(Cell::Nil, Value::cell);
        let entries: Vec<Entry> = self.indexes.iter().map(|index| index.entry(self.next, cell)).collect();
        let cost = self.rows.cost(values.iter().map(Value::cell)) + entries.iter().map(Entry::cost).sum::<usize>();
        (Draft { values, entries }, cost)
    }

    /// Adds a row that was drafted last; its id.
    pub fn insert(&mut self, draft: Draft) -> u64 {
        let id = self.next;
        self.next += 1;
        let place = self.rows.insert(id, draft.values);
        for (index, entry) in self.indexes.iter_mut().zip(draft.entries) {
            index.add(entry, place);
        }
        id
    }

    /// A row with a new value as it would be, and the memory by which it grows.
    pub fn change(&self, row: Row<'_>, column: usize, value: Value) -> (Change, i64) {
        let (id, new) = (row.id(), value.cell());
        let mut growth = signed(rows::long_cost(new)) - signed(rows::long_cost(row.cell(column)));
        let touched = self.indexes.iter().enumerate().filter(|(_, index)| index.columns.iter().any(|c| c.0 == column));
        let moved = touched.map(|(number, index)| {
            let before = index.entry(id, |c| row.cell(c));
            let after = index.entry(id, |c| if c == column { new } else { row.cell(c) });
            growth += signed(after.cost()) - signed(before.cost());
            (number, before, after)
        });
        let moved = moved.collect();
        (Change { column, value, moved }, growth)
    }

    /// Changes a row as `change` has said.
    pub fn apply(&mut self, id: u64, change: Change) {
        let Some(place) = self.rows.place(id) else { return };
        for (number, before, after) in change.moved {
            if let Some(index) = self.indexes.get_mut(number) {
                index.remove(&before, place);
                index.add(after, place);
            }
        }
        self.rows.set(id, change.column, change.value);
    }

    /// Removes a row; the memory that it took.
    pub fn remove(&mut self, id: u64) -> usize {
        let Some(place) = self.rows.place(id) else { return 0 };
        let Some(row) = self.rows.at(place) else { return 0 };
        let mut cost = self.rows.cost(row.cells());
        let entries: Vec<Entry> = self.indexes.iter().map(|index| index.entry(id, |c| row.cell(c))).collect();
        for (index, entry) in self.indexes.iter_mut().zip(entries) {
            cost += entry.cost();
            index.remove(&entry, place);
        }
        self.rows.remove(id);
        cost
    }

    /// The memory that rows and their entries would take.
    pub fn weigh(&self, rows: &Rows) -> u64 {
        let entries =
            |id, row: Row<'_>| self.indexes.iter().map(|i| i.entry(id, |c| row.cell(c)).cost()).sum::<usize>();
        rows.iter().map(|(id, row)| (rows.cost(row.cells()) + entries(id, row)) as u64).sum()
    }

    /// No less than what rows and their entries would take, without looking at them.
    pub fn weighs_at_most(&self, rows: &Rows) -> u64 {
        let indexes = self.indexes.len();
        let each = rows.cost(std::iter::empty()) + indexes * (2 * ENTRY_COST + hash::ENTRY_COST);
        rows.len() * each as u64 + rows.encoded() * 3 * (1 + indexes as u64)
    }

    /// Gives an empty table its rows; the memory that they take, and a row that has the value of another one in a unique
    /// column, if there is one.
    pub fn fill(&mut self, rows: Rows, next: u64, threads: usize) -> (u64, Option<u64>) {
        debug_assert_eq!(self.rows.len(), 0);
        (self.rows, self.next) = (rows, next);
        let rows = &self.rows;
        let indexes: Vec<Mutex<&mut Index>> = self.indexes.iter_mut().map(Mutex::new).collect();
        let done = jobs::run(threads, indexes.len() + 1, |number| match indexes.get(number) {
            Some(index) => index.lock().unwrap_or_else(PoisonError::into_inner).fill(rows),
            None => (rows.iter().map(|(_, row)| rows.cost(row.cells()) as u64).sum(), None),
        });
        done.into_iter().fold((0, None), |(cost, twin), (more, id)| (cost + more, twin.or(id)))
    }
}

pub(crate) fn kind(desc: &TableDesc, column: usize) -> ColumnKind {
    desc.columns.get(column).map_or(ColumnKind::Int, |c| c.kind)
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

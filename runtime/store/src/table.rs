//! One table: its rows, their entries in its indexes, the next id. Checks nothing; statements do.

use crate::key::{self, Key};
use crate::rows::{Row, Rows};
use crate::value::{Cell, Value};
use abi::tables::{ColumnKind, TableDesc};
use std::collections::BTreeSet;
use std::ops::Bound;

/// Memory of an index entry: itself, and its part of the tree's nodes, which are little more than half full where keys
/// come in order.
const ENTRY_COST: usize = 64;

#[derive(Debug)]
pub(crate) struct Table {
    pub rows: Rows,
    pub indexes: Vec<BTreeSet<Key>>,
    /// The id of the next row; 0 is no id.
    pub next: u64,
}

/// The part of an index between two keys.
pub(crate) type Between<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

impl Table {
    /// `logged`: its rows are in the log.
    pub fn new(desc: &TableDesc, logged: bool) -> Table {
        Table {
            rows: Rows::new(desc.columns.iter().map(|c| (c.kind, c.nullable)), logged),
            indexes: desc.indexes.iter().map(|_| BTreeSet::new()).collect(),
            next: 1,
        }
    }

    /// The entries of `index` from `start` up to `end`, `end` left out; an empty `end` is none.
    pub fn entries(&self, index: usize, start: &[u8], end: &[u8]) -> impl DoubleEndedIterator<Item = &Key> + use<'_> {
        // The set refuses bounds in the wrong order.
        let end =
            if end.is_empty() { Bound::Unbounded } else { Bound::Excluded(if end < start { start } else { end }) };
        let range: Between = (Bound::Included(start), end);
        self.indexes.get(index).map(|set| set.range::<[u8], _>(range)).into_iter().flatten()
    }

    /// The entries of `index` that begin with `prefix`.
    pub fn beginning(&self, index: usize, prefix: &[u8]) -> impl DoubleEndedIterator<Item = &Key> + use<'_> {
        let mut end = prefix.to_vec();
        key::step_over(&mut end);
        self.entries(index, prefix, &end)
    }

    pub fn insert(&mut self, desc: &TableDesc, id: u64, values: Vec<Value>, keys: Vec<Key>) {
        debug_assert_eq!(desc.indexes.len(), keys.len());
        for (set, key) in self.indexes.iter_mut().zip(keys) {
            let _ = set.insert(key);
        }
        self.rows.insert(id, values);
    }

    pub fn remove(&mut self, desc: &TableDesc, id: u64) {
        for key in self.keys(desc, id) {
            if let Some(set) = self.indexes.get_mut(key.0) {
                let _ = set.remove(key.1.bytes());
            }
        }
        self.rows.remove(id);
    }

    /// The index entries of a row, with the numbers of their indexes.
    pub fn keys(&self, desc: &TableDesc, id: u64) -> Vec<(usize, Key)> {
        let Some(row) = self.rows.get(id) else { return Vec::new() };
        desc.indexes
            .iter()
            .enumerate()
            .map(|(i, index)| (i, entry(desc, &index.columns, id, |c| row.cell(c))))
            .collect()
    }

    /// Memory of the row and its index entries.
    pub fn cost(&self, desc: &TableDesc, id: u64) -> usize {
        let cells = |row: Row<'_>| self.rows.cost((0..desc.columns.len()).map(|c| row.cell(c)));
        let keys: usize = self.keys(desc, id).iter().map(|(_, key)| entry_cost(key)).sum();
        self.rows.get(id).map_or(0, cells) + keys
    }
}

/// An index entry of a row whose columns `cell` gives.
pub(crate) fn entry<'a>(desc: &TableDesc, columns: &[u32], id: u64, cell: impl Fn(usize) -> Cell<'a>) -> Key {
    let mut bytes = Vec::with_capacity(40);
    for column in columns {
        let column = *column as usize;
        key::put(&mut bytes, kind(desc, column), cell(column));
    }
    key::put_id(&mut bytes, id);
    Key::new(&bytes)
}

pub(crate) fn kind(desc: &TableDesc, column: usize) -> ColumnKind {
    desc.columns.get(column).map_or(ColumnKind::Int, |c| c.kind)
}

pub(crate) fn entry_cost(key: &Key) -> usize {
    ENTRY_COST + key.heap()
}

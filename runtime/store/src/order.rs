//! `order by`: rows with the keys they are sorted by, all of them or the first few.

use crate::key::{self, Key};
use crate::value::Cell;
use abi::tables::ColumnKind;
use std::collections::BinaryHeap;

/// Appends a value to the key of an item; `desc` turns its order round.
pub fn put_key(out: &mut Vec<u8>, kind: ColumnKind, cell: Cell<'_>, desc: bool) {
    let start = out.len();
    key::put(out, kind, cell);
    if desc {
        out.iter_mut().skip(start).for_each(|b| *b = !*b);
    }
}

/// A row and what orders it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    key: Key,
    /// Breaks ties: position in a list, else the id.
    tie: u64,
    pub id: u64,
}

impl Item {
    fn new(key: &[u8], tie: u64, id: u64) -> Item {
        Item { key: Key::new(key), tie, id }
    }

    /// Memory of an item.
    fn cost(&self) -> usize {
        size_of::<Item>() + self.key.heap()
    }
}

/// The first `limit` items of those given, in order.
pub struct Sorter {
    limit: usize,
    /// Used where there is a limit: the largest item on top.
    heap: BinaryHeap<Item>,
    all: Vec<Item>,
}

impl Sorter {
    #[must_use]
    pub fn new(limit: Option<usize>) -> Sorter {
        Sorter { limit: limit.unwrap_or(usize::MAX), heap: BinaryHeap::new(), all: Vec::new() }
    }

    /// Takes a row in with its key and what breaks ties; the bytes by which that made the sorter larger.
    pub fn push(&mut self, key: &[u8], tie: u64, id: u64) -> usize {
        let unlimited = self.limit == usize::MAX;
        if unlimited || self.heap.len() < self.limit {
            let item = Item::new(key, tie, id);
            let cost = item.cost();
            if unlimited { self.all.push(item) } else { self.heap.push(item) }
            return cost;
        }
        // Most rows are behind those that are kept, and are not to be copied for that.
        let is_kept = |last: &Item| (key, tie) < (last.key.bytes(), last.tie);
        let Some(mut last) = self.heap.peek_mut() else { return 0 };
        if !is_kept(&last) {
            return 0;
        }
        let before = last.cost();
        *last = Item::new(key, tie, id);
        last.cost().saturating_sub(before)
    }

    #[must_use]
    pub fn finish(mut self) -> Vec<Item> {
        if self.limit == usize::MAX {
            self.all.sort_unstable();
            return self.all;
        }
        self.heap.into_sorted_vec()
    }
}

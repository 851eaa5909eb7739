//! `order by`: rows with the keys they are sorted by, all of them or the first few.

use crate::key;
use crate::value::Cell;
use abi::tables::ColumnKind;
use std::cmp::Ordering;
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
#[derive(Debug)]
pub struct Item {
    pub key: Box<[u8]>,
    /// Breaks ties: position in a list, else the id.
    pub tie: u64,
    pub id: u64,
}

impl Item {
    /// Memory of an item, roughly.
    pub fn cost(&self) -> usize {
        size_of::<Item>() + self.key.len() + 16
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Item) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Item {}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Item) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Item) -> Ordering {
        self.key.cmp(&other.key).then(self.tie.cmp(&other.tie))
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

    /// Takes an item in; the bytes by which that made the sorter larger.
    pub fn push(&mut self, item: Item) -> usize {
        let cost = item.cost();
        if self.limit == usize::MAX {
            self.all.push(item);
            return cost;
        }
        if self.heap.len() < self.limit {
            self.heap.push(item);
            return cost;
        }
        if let Some(mut last) = self.heap.peek_mut()
            && item < *last
        {
            let before = last.cost();
            *last = item;
            return cost.saturating_sub(before);
        }
        0
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

//! `order by`: rows with the keys they are sorted by, all of them or the first few.

use crate::key;
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

/// Bytes of a key that are compared as numbers: two Ints or a short text.
const HEAD: usize = 24;

/// A row and what orders it. No key is a prefix of another, so what a short one lacks of the head may be zeros.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    head: [u64; HEAD / 8],
    rest: Box<[u8]>,
    /// Breaks ties: position in a list, else the id.
    tie: u64,
    pub id: u64,
}

impl Item {
    fn new(key: &[u8], tie: u64, id: u64) -> Item {
        let (head, rest) = split(key);
        Item { head, rest: rest.into(), tie, id }
    }

    /// Memory of an item.
    fn cost(&self) -> usize {
        size_of::<Item>() + self.rest.len() + if self.rest.is_empty() { 0 } else { 16 }
    }
}

fn split(key: &[u8]) -> ([u64; HEAD / 8], &[u8]) {
    let (start, rest) = key.split_at(key.len().min(HEAD));
    let mut head = [0; HEAD];
    head.iter_mut().zip(start).for_each(|(to, from)| *to = *from);
    let (words, _) = head.as_chunks();
    let mut numbers = [0; HEAD / 8];
    numbers.iter_mut().zip(words).for_each(|(number, word)| *number = u64::from_be_bytes(*word));
    (numbers, rest)
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
            if unlimited {
                self.all.push(item)
            } else {
                self.heap.push(item)
            }
            return cost;
        }
        // Most rows are behind those that are kept, and are not to be copied for that.
        let (head, rest) = split(key);
        let is_kept = |last: &Item| (head, rest, tie) < (last.head, &*last.rest, last.tie);
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

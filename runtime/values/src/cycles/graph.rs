//! What a collection has seen: objects with numbers, and the references among them. A table leads from objects to
//! numbers by linear hashing, which grows by one bucket at a time.

use super::chunks::{Chunks, push, shrink};
use crate::ctx::Heap;
use crate::object::Obj;

/// An object that a collection has met.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Null once the object has been freed.
    pub obj: *mut Obj,
    /// References from other nodes that have been recorded; or `SEED` or `LIVE`.
    pub within: u32,
    /// The next node of the bucket plus one, 0 for none; later the next one of the pile that `spread` works off.
    pub next: u32,
    /// Where the node's references begin in the list of all.
    pub edges: u64,
}

/// Something else refers to the node, or has done since it was met.
pub(super) const SEED: u32 = u32::MAX - 1;
/// The node can be reached from a seed.
pub(super) const LIVE: u32 = u32::MAX;
/// Most nodes: numbers plus one fit, and `SEED` is no count of references.
const MOST: usize = u32::MAX as usize - 2;

#[derive(Debug, Default)]
pub(super) struct Graph {
    pub nodes: Chunks<Node>,
    /// Numbers of the nodes referred to, in the order of the nodes that refer.
    pub edges: Chunks<u32>,
    /// First node of each bucket plus one; as many buckets as nodes.
    heads: Chunks<u32>,
}

/// Objects near to each other get hashes near to each other, because collections come upon them in about that order:
/// only the number of their region (64 KiB) is mixed, and shifts them within it too, lest all of a size share buckets.
#[inline]
fn hash(obj: *mut Obj) -> usize {
    const REGION: u32 = 12;
    let granule = obj as u64 >> 4;
    let mixed = (granule >> REGION).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let within = (granule ^ mixed >> 20) & ((1 << REGION) - 1);
    (mixed >> 40 << REGION | within) as usize
}

/// The bucket of `hash` among `n` (not 0): buckets beyond the power of two below `n` have been split off those before.
#[inline]
fn bucket(hash: usize, n: usize) -> usize {
    let half = 1 << n.ilog2();
    let wide = hash & (2 * half - 1);
    if wide < n { wide } else { hash & (half - 1) }
}

impl Graph {
    /// The number of an object that is a node.
    #[inline]
    pub fn number(&self, obj: *mut Obj) -> Option<u32> {
        let buckets = self.heads.len();
        if buckets == 0 {
            return None;
        }
        let mut next = self.heads.get(bucket(hash(obj), buckets))?;
        while let Some(number) = next.checked_sub(1) {
            let node = self.nodes.get(number as usize)?;
            if node.obj == obj {
                return Some(number);
            }
            next = node.next;
        }
        None
    }

    /// Where the number of the first node of a bucket's rest stands, plus one: in the bucket's head, or in the node
    /// before it.
    fn link(&mut self, bucket: usize, before: Option<u32>) -> Option<&mut u32> {
        match before {
            None => self.heads.get_mut(bucket),
            Some(node) => self.nodes.get_mut(node as usize).map(|node| &mut node.next),
        }
    }

    /// Takes an object that is freed out of the table.
    pub fn forget(&mut self, obj: *mut Obj) {
        let buckets = self.heads.len();
        if buckets == 0 {
            return;
        }
        let bucket = bucket(hash(obj), buckets);
        let mut before = None;
        while let Some(number) = self.link(bucket, before).and_then(|link| link.checked_sub(1)) {
            let Some(node) = self.nodes.get_mut(number as usize) else { return };
            if node.obj == obj {
                node.obj = std::ptr::null_mut();
                let next = node.next;
                if let Some(link) = self.link(bucket, before) {
                    *link = next;
                }
                return;
            }
            before = Some(number);
        }
    }

    /// Moves the nodes that belong to the last bucket there, from the one that it has been split off.
    fn split(&mut self) {
        let n = self.heads.len();
        let last = n - 1;
        if last == 0 {
            return;
        }
        let old = last - (1 << last.ilog2());
        let (mut before, mut moved) = (None, 0);
        while let Some(number) = self.link(old, before).and_then(|link| link.checked_sub(1)) {
            let Some(node) = self.nodes.get_mut(number as usize) else { return };
            if bucket(hash(node.obj), n) == old {
                before = Some(number);
                continue;
            }
            let next = std::mem::replace(&mut node.next, moved);
            moved = number + 1;
            if let Some(link) = self.link(old, before) {
                *link = next;
            }
        }
        if let Some(head) = self.heads.get_mut(last) {
            *head = moved;
        }
    }

    /// The references of node `number`, all of which have been recorded: their range in `edges`.
    pub fn range(&self, number: usize) -> (u64, u64) {
        let from = self.nodes.get(number).map_or(0, |node| node.edges);
        (from, self.nodes.get(number + 1).map_or(self.edges.len() as u64, |node| node.edges))
    }
}

fn graph(heap: &mut Heap) -> &mut Graph {
    &mut heap.cycles.graph
}

/// Makes a node of an object that is none. `None`: no memory.
pub(super) fn add(heap: &mut Heap, obj: *mut Obj) -> Option<u32> {
    let number = u32::try_from(graph(heap).nodes.len()).ok().filter(|n| (*n as usize) < MOST)?;
    if !push(heap, |heap| &mut graph(heap).heads, 0) {
        return None;
    }
    graph(heap).split();
    let n = graph(heap).heads.len();
    let next = graph(heap).heads.get(bucket(hash(obj), n)).unwrap_or(0);
    if !push(heap, |heap| &mut graph(heap).nodes, Node { obj, within: 0, next, edges: 0 }) {
        return None;
    }
    if let Some(head) = graph(heap).heads.get_mut(bucket(hash(obj), n)) {
        *head = number + 1;
    }
    Some(number)
}

/// Records a reference to node `number`. False: no memory.
pub(super) fn refer(heap: &mut Heap, number: u32) -> bool {
    if let Some(node) = graph(heap).nodes.get_mut(number as usize) {
        node.within = (node.within + 1).min(SEED - 1);
    }
    push(heap, |heap| &mut graph(heap).edges, number)
}

/// Frees a chunk; false when there is none left.
pub(super) fn retire(heap: &mut Heap) -> bool {
    shrink(heap, |heap| &mut graph(heap).edges, 0)
        || shrink(heap, |heap| &mut graph(heap).nodes, 0)
        || shrink(heap, |heap| &mut graph(heap).heads, 0)
}

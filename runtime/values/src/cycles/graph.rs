//! What a collection has seen: objects with numbers, and the references among them.
//!
//! The way from an object to its number: memory is divided into regions of a page, and each in which a node lies has a
//! table with a place for every address where an object can begin. Regions are found by linear hashing, which grows by
//! one bucket at a time. The tables are a quarter as large as the pages.

use super::chunks::{Chunks, push, shrink};
use crate::ctx::Heap;
use crate::object::{self, Obj, TABLE_DEBT};

/// An object that a collection has met.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Null once the object has been freed.
    pub obj: *mut Obj,
    /// References from other nodes that have been recorded. Or `SEED`; or `LIVE` with the next node, plus one, of the
    /// pile that `spread` works off.
    pub within: u32,
    /// Where the node's references begin in the list of all.
    pub edges: u32,
}

/// The node can be reached from a seed.
pub(super) const LIVE: u32 = 1 << 31;
/// Something else refers to the node, or has done since it was met.
pub(super) const SEED: u32 = u32::MAX;
/// Most nodes: a number plus one and `LIVE` make no `SEED`.
const MOST: usize = i32::MAX as usize - 2;

/// Bytes of memory that share a table.
const REGION: usize = 4096;
/// Objects that can be on a cycle have a header and a field at least, so no two begin in the same bytes of this many.
const GRANULE: usize = 16;
const TABLE_BYTES: usize = REGION / GRANULE * size_of::<u32>();

#[derive(Clone, Copy, Debug)]
struct Region {
    /// Address by `REGION`.
    number: usize,
    /// Per granule the number of the node that begins there plus one, or 0.
    table: *mut u32,
    /// The next region of the bucket plus one, 0 for none.
    next: u32,
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    pub nodes: Chunks<Node>,
    /// Numbers of the nodes referred to, in the order of the nodes that refer.
    pub edges: Chunks<u32>,
    regions: Chunks<Region>,
    /// First region of each bucket plus one; as many buckets as regions.
    heads: Chunks<u32>,
    /// The region found last.
    recent: Option<Region>,
}

/// The upper bits of golden-section hashing spread rows of numbers evenly; buckets are chosen by the lower ones.
#[inline]
fn hash(number: usize) -> usize {
    ((number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32).reverse_bits() as usize
}

/// The bucket of a region among `n` (not 0): buckets beyond the power of two below `n` have been split off those before.
#[inline]
fn bucket(number: usize, n: usize) -> usize {
    let half = 1 << n.ilog2();
    let wide = hash(number) & (2 * half - 1);
    if wide < n { wide } else { wide & (half - 1) }
}

impl Graph {
    /// Where the number of an object stands, plus one; `None` when its region has no table.
    #[inline]
    fn place(&mut self, obj: *mut Obj) -> Option<&mut u32> {
        let number = obj as usize / REGION;
        if self.recent.is_none_or(|region| region.number != number) {
            self.recent = self.region(number);
        }
        // SAFETY: a table has a place for each granule of its region, and lives as long as the region is known.
        self.recent.map(|region| unsafe { &mut *region.table.add(obj as usize % REGION / GRANULE) })
    }

    fn region(&self, number: usize) -> Option<Region> {
        let mut next = match self.heads.len() {
            0 => return None,
            n => self.heads.get(bucket(number, n))?,
        };
        while let Some(i) = next.checked_sub(1) {
            let region = self.regions.get(i as usize)?;
            if region.number == number {
                return Some(region);
            }
            next = region.next;
        }
        None
    }

    /// Moves the regions that belong to the last bucket there, from the one that it has been split off.
    fn split(&mut self) {
        let n = self.heads.len();
        let last = n - 1;
        if last == 0 {
            return;
        }
        let old = last - (1 << last.ilog2());
        let mut next = self.heads.get(old).unwrap_or(0);
        let (mut stay, mut moved) = (0, 0);
        while let Some(i) = next.checked_sub(1) {
            let Some(region) = self.regions.get_mut(i as usize) else { return };
            let chain = if bucket(region.number, n) == old { &mut stay } else { &mut moved };
            next = std::mem::replace(&mut region.next, *chain);
            *chain = i + 1;
        }
        for (bucket, chain) in [(old, stay), (last, moved)] {
            if let Some(head) = self.heads.get_mut(bucket) {
                *head = chain;
            }
        }
    }

    /// The number of an object that is a node.
    #[inline]
    pub fn number(&mut self, obj: *mut Obj) -> Option<u32> {
        self.place(obj)?.checked_sub(1)
    }

    /// Takes an object that is freed out of its table.
    pub fn forget(&mut self, obj: *mut Obj) {
        if let Some(place) = self.place(obj)
            && let Some(number) = std::mem::take(place).checked_sub(1)
            && let Some(node) = self.nodes.get_mut(number as usize)
        {
            node.obj = std::ptr::null_mut();
        }
    }

    /// The references of node `number`, all of which have been recorded: their range in `edges`.
    pub fn range(&self, number: usize) -> (u32, u32) {
        let from = self.nodes.get(number).map_or(0, |node| node.edges);
        (from, self.nodes.get(number + 1).map_or(self.edges.len() as u32, |node| node.edges))
    }
}

fn graph(heap: &mut Heap) -> &mut Graph {
    &mut heap.cycles.graph
}

/// Gives the region of an object a table. `None`: no memory.
#[cold]
fn add_region(heap: &mut Heap, obj: *mut Obj) -> Option<()> {
    let number = obj as usize / REGION;
    let i = u32::try_from(graph(heap).regions.len()).ok()?;
    // A bucket too many does no harm.
    if !push(heap, |heap| &mut graph(heap).heads, 0, TABLE_DEBT) {
        return None;
    }
    graph(heap).split();
    let n = graph(heap).heads.len();
    let table = object::alloc_table(heap, TABLE_BYTES, TABLE_DEBT);
    if table.is_null() {
        return None;
    }
    // SAFETY: fresh memory of this size.
    unsafe { table.write_bytes(0, TABLE_BYTES) };
    let next = graph(heap).heads.get(bucket(number, n)).unwrap_or(0);
    if !push(heap, |heap| &mut graph(heap).regions, Region { number, table: table.cast(), next }, TABLE_DEBT) {
        // SAFETY: allocated above.
        unsafe { object::give_back(heap, table, TABLE_BYTES) };
        return None;
    }
    if let Some(head) = graph(heap).heads.get_mut(bucket(number, n)) {
        *head = i + 1;
    }
    Some(())
}

/// Makes a node of an object that is none. `None`: no memory.
pub(super) fn add(heap: &mut Heap, obj: *mut Obj) -> Option<u32> {
    let number = u32::try_from(graph(heap).nodes.len()).ok().filter(|n| (*n as usize) < MOST)?;
    if graph(heap).place(obj).is_none() {
        add_region(heap, obj)?;
    }
    if !push(heap, |heap| &mut graph(heap).nodes, Node { obj, within: 0, edges: 0 }, TABLE_DEBT) {
        return None;
    }
    *graph(heap).place(obj)? = number + 1;
    Some(number)
}

/// Records a reference to node `number`. False: no memory, or too many references.
pub(super) fn refer(heap: &mut Heap, number: u32) -> bool {
    if graph(heap).edges.len() >= u32::MAX as usize {
        return false;
    }
    if let Some(node) = graph(heap).nodes.get_mut(number as usize) {
        node.within = (node.within + 1).min(LIVE - 1);
    }
    push(heap, |heap| &mut graph(heap).edges, number, TABLE_DEBT)
}

/// Frees a table or a chunk; false when there is none left.
pub(super) fn retire(heap: &mut Heap) -> bool {
    graph(heap).recent = None;
    let last = graph(heap).regions.len().wrapping_sub(1);
    if let Some(region) = graph(heap).regions.get(last) {
        graph(heap).regions.swap_remove(last);
        // SAFETY: allocated with the region, which is known no more.
        unsafe { object::give_back(heap, region.table.cast(), TABLE_BYTES) };
        return true;
    }
    shrink(heap, |heap| &mut graph(heap).edges, 0)
        || shrink(heap, |heap| &mut graph(heap).nodes, 0)
        || shrink(heap, |heap| &mut graph(heap).regions, 0)
        || shrink(heap, |heap| &mut graph(heap).heads, 0)
}

//! The code between a retain and the releases that give its reference back: on every way from the retain, up to the
//! first release of a local that holds the object.
//!
//! Without the retain and these releases every object has the count that it had, but for this one inside the region,
//! whose count is one less there.

use super::edges::{END, Edges, Place};
use crate::ir::{BlockId, Func, InstKind, Local, Term};

/// Instructions that are looked at for one retain.
const BUDGET: usize = 600;
/// Cold blocks that one region may need for itself, and instructions in each.
const COPIES: usize = 8;
const COPIED: usize = 2;

/// Instructions `from..to` of a block; with `ends` the one at `to` is a release that ends the region.
#[derive(Clone, Copy)]
pub struct Segment {
    pub block: BlockId,
    pub from: u32,
    pub to: u32,
    pub ends: bool,
}

pub struct Region {
    start: Place,
    /// The first one follows the retain, the others begin with their block.
    segments: Vec<Segment>,
    /// Locals that hold the object at the beginning of each segment.
    holders: Vec<Vec<Local>>,
    left: usize,
    /// Cold blocks that other code leads to as well: the region gets copies.
    shared: Vec<BlockId>,
}

impl Region {
    /// The region of the retain of `local` at `start`. `None` if a way leaves it without a release, or if there is one
    /// into it past the retain.
    pub fn of(func: &Func, edges: &Edges, start: Place, local: Local) -> Option<Region> {
        let first = Segment { block: start.block, from: start.at + 1, to: 0, ends: false };
        let mut region =
            Region { start, segments: vec![first], holders: vec![vec![local]], left: BUDGET, shared: Vec::new() };
        let mut work = vec![0];
        while let Some(segment) = work.pop() {
            region.follow(func, segment, &mut work)?;
        }
        region.close(func, edges)?;
        Some(region)
    }

    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The instructions of a segment, without a release that ends it.
    pub fn insts<'f>(func: &'f Func, segment: &Segment) -> impl Iterator<Item = (u32, &'f InstKind)> {
        let insts = func.blocks.get(segment.block.0 as usize).map_or(&[][..], |b| b.insts.as_slice());
        let range = segment.from..segment.to;
        range.filter_map(|at| Some((at, &insts.get(at as usize)?.kind)))
    }

    /// Whether control at `place` has come through the retain.
    pub fn contains(&self, place: Place) -> bool {
        self.segments.iter().any(|s| {
            s.block == place.block
                && !self.shared.contains(&s.block)
                && if place.at == END { !s.ends } else { s.from <= place.at && place.at < s.to }
        })
    }

    /// Walks one segment to its end and enters the blocks that it leads to.
    fn follow(&mut self, func: &Func, segment: usize, work: &mut Vec<usize>) -> Option<()> {
        let Segment { block: id, from, .. } = *self.segments.get(segment)?;
        let mut holders = self.holders.get(segment)?.clone();
        let block = func.blocks.get(id.0 as usize)?;
        self.left = self.left.checked_sub(block.insts.len() + 1)?;
        let mut at = from;
        for inst in block.insts.iter().skip(from as usize) {
            if (Place { block: id, at }) == self.start {
                return None;
            }
            match &inst.kind {
                InstKind::Release { local, .. } if holders.contains(local) => {
                    self.set_end(segment, at, true);
                    return Some(());
                }
                InstKind::Copy(dst, src) if holders.contains(src) => {
                    if !holders.contains(dst) {
                        holders.push(*dst);
                    }
                }
                kind => {
                    kind.unwind().into_iter().for_each(|to| self.enter(to, &holders, work));
                    holders.retain(|held| !kind.writes().contains(held));
                }
            }
            if holders.is_empty() {
                return None;
            }
            at += 1;
        }
        self.set_end(segment, at, false);
        if matches!(block.term, Term::Return(_) | Term::Resume) {
            return None;
        }
        block.term.each_target(|to| self.enter(to, &holders, work));
        Some(())
    }

    fn set_end(&mut self, segment: usize, to: u32, ends: bool) {
        if let Some(segment) = self.segments.get_mut(segment) {
            (segment.to, segment.ends) = (to, ends);
        }
    }

    /// What holds the object at the beginning of a block is what does on every way to it.
    fn enter(&mut self, block: BlockId, holders: &[Local], work: &mut Vec<usize>) {
        let known = self.segments.iter().skip(1).position(|s| s.block == block).map(|at| at + 1);
        if let Some(at) = known {
            if let Some(old) = self.holders.get_mut(at) {
                let before = old.len();
                old.retain(|local| holders.contains(local));
                if old.len() < before {
                    work.push(at);
                }
            }
            return;
        }
        work.push(self.segments.len());
        self.segments.push(Segment { block, from: 0, to: 0, ends: false });
        self.holders.push(holders.to_vec());
    }

    /// Finds the blocks that other code leads to: they must be small and cold.
    fn close(&mut self, func: &Func, edges: &Edges) -> Option<()> {
        let outside = |region: &Region, block: BlockId| {
            block == BlockId(0)
                || func.entry_unwind == Some(block)
                || edges.into(block).iter().any(|from| !region.contains(*from))
        };
        loop {
            let mut more = Vec::new();
            for segment in self.segments.iter().skip(1) {
                let id = segment.block;
                if self.shared.contains(&id) || !outside(self, id) {
                    continue;
                }
                let block = func.blocks.get(id.0 as usize)?;
                if !block.cold || block.insts.len() > COPIED || id == self.start.block {
                    return None;
                }
                more.push(id);
            }
            if more.is_empty() {
                return Some(());
            }
            self.shared.extend(more);
            if self.shared.len() > COPIES {
                return None;
            }
        }
    }

    /// Takes the retain and the releases out. Places stay what they are: copies of a local to itself remain. True if
    /// blocks were added.
    pub fn take_out(&self, func: &mut Func) -> bool {
        let old = func.blocks.len();
        let copy_of = |block: BlockId| {
            let at = self.shared.iter().position(|shared| *shared == block)?;
            Some(BlockId(u32::try_from(old + at).unwrap_or(u32::MAX)))
        };
        for shared in &self.shared {
            let copy = func.blocks.get(shared.0 as usize).cloned();
            func.blocks.extend(copy);
        }
        blank(func, self.start);
        for segment in &self.segments {
            let id = copy_of(segment.block).unwrap_or(segment.block);
            if segment.ends {
                blank(func, Place { block: id, at: segment.to });
            }
            let Some(block) = func.blocks.get_mut(id.0 as usize) else { continue };
            for inst in block.insts.iter_mut().take(segment.to as usize).skip(segment.from as usize) {
                if let Some(unwind) = inst.kind.unwind_mut() {
                    *unwind = copy_of(*unwind).unwrap_or(*unwind);
                }
            }
            if !segment.ends {
                block.term.each_target_mut(|to| *to = copy_of(*to).unwrap_or(*to));
            }
        }
        !self.shared.is_empty()
    }
}

fn blank(func: &mut Func, place: Place) {
    let inst = func.blocks.get_mut(place.block.0 as usize).and_then(|b| b.insts.get_mut(place.at as usize));
    if let Some(inst) = inst
        && let InstKind::Retain { local, .. } | InstKind::Release { local, .. } = inst.kind
    {
        inst.kind = InstKind::Copy(local, local);
    }
}

//! Counts that need not be kept: a retain goes together with the releases that give its reference back.
//!
//! Two reasons make that right. Either somebody else holds the object for as long: a parameter's caller or a local with
//! a reference of its own, from which the object was read through places that nothing overwrites meanwhile. Or the
//! reference is handed over where the local that has one of its own is read last: that one is handed over instead.

use super::Table;
use super::edges::{Edges, Place};
use super::effects::{Effects, is_counted, taken};
use super::owed::Owed;
use super::region::{Region, Segment};
use crate::ir::{Block, BlockId, Callee, Func, InstKind, Local, Rep};

/// Functions with more instructions than this are left alone, and no more pairs go than this: after each, what the
/// locals owe is found anew.
const LARGE: usize = 3_000;
const MOST: usize = 64;
/// Instructions that are looked at above a retain to see where the object was read from.
const ABOVE: usize = 64;

/// Takes out the pairs of `func` that may go. True if there were any.
pub fn elide(func: &mut Func, effects: &Effects) -> bool {
    let retains = candidates(func);
    let size: usize = func.blocks.iter().map(|b| b.insts.len()).sum();
    if retains.is_empty() || size > LARGE {
        return false;
    }
    let mut edges = Edges::of(func);
    let written = Written::of(func);
    let Some(mut owed) = Owed::of(func, effects) else { return false };
    let mut gone = 0;
    for place in retains {
        let Some(region) = (Try { func, effects, edges: &edges, owed: &owed, written: &written }).region(place) else {
            continue;
        };
        gone += 1;
        if region.take_out(func) {
            edges = Edges::of(func);
        }
        match Owed::of(func, effects) {
            Some(new) if gone < MOST => owed = new,
            _ => break,
        }
    }
    if gone > 0 {
        func.blocks.iter_mut().for_each(|b| b.insts.retain(|i| !is_blank(&i.kind)));
    }
    gone > 0
}

/// Retains outside of cold code.
fn candidates(func: &Func) -> Vec<Place> {
    let mut out = Vec::new();
    for (block, id) in func.blocks.iter().zip(0..).filter(|(b, _)| !b.cold) {
        let retains = block.insts.iter().zip(0..).filter(|(i, _)| matches!(i.kind, InstKind::Retain { .. }));
        out.extend(retains.map(|(_, at)| Place { block: BlockId(id), at }));
    }
    out
}

/// Where locals are assigned. Removed retains and releases change nothing here.
struct Written {
    /// Per local: how often, up to two, and the last place.
    defs: Table<(u8, Place)>,
    /// Parameters that the caller holds.
    borrowed: u32,
    taken: Vec<Local>,
}

impl Written {
    fn of(func: &Func) -> Written {
        let mut defs: Table<(u8, Place)> = Table::new(func.locals.len());
        for (block, id) in func.blocks.iter().zip(0..) {
            for (inst, at) in block.insts.iter().zip(0..) {
                for local in inst.kind.writes() {
                    let (times, _) = defs.get(local.0);
                    defs.set(local.0, ((times + 1).min(2), Place { block: BlockId(id), at }));
                }
            }
        }
        Written { defs, borrowed: func.params, taken: taken(func) }
    }

    /// A parameter that the caller holds for as long as the function runs.
    fn is_lent(&self, local: Local) -> bool {
        local.0 < self.borrowed && self.defs.get(local.0).0 == 0 && !self.taken.contains(&local)
    }
}

struct Try<'a> {
    func: &'a Func,
    effects: &'a Effects,
    edges: &'a Edges,
    owed: &'a Owed<'a>,
    written: &'a Written,
}

impl Try<'_> {
    /// The region of the retain at `place`, if it may go.
    fn region(&self, place: Place) -> Option<Region> {
        let inst = self.block(place.block)?.insts.get(place.at as usize)?;
        let InstKind::Retain { local, .. } = inst.kind else { return None };
        if self.func.locals.get(local.0 as usize)?.rep != Rep::Obj {
            return None;
        }
        let region = Region::of(self.func, self.edges, place, local)?;
        let held = self.holder(place, local).is_some_and(|holder| self.holds(&region, holder));
        (held || self.moves(&region, place, local)).then_some(region)
    }

    fn block(&self, id: BlockId) -> Option<&Block> {
        self.func.blocks.get(id.0 as usize)
    }

    /// The local that holds what `local` was read from, with a reference of its own at `place`.
    fn holder(&self, place: Place, local: Local) -> Option<Local> {
        let (mut of, mut block, mut at) = (local, place.block, place.at);
        // Locals that have another value at `place` than above.
        let mut later = Vec::new();
        let mut fresh = true;
        for _ in 0..ABOVE {
            if fresh && !later.contains(&of) && is_counted(self.func, of) {
                let owes = || self.owed.at(self.func, place.block, place.at, of) > 0;
                if self.written.is_lent(of) || owes() {
                    return Some(of);
                }
            }
            fresh = false;
            let Some(above) = at.checked_sub(1) else {
                block = self.edges.only(block)?;
                at = u32::try_from(self.block(block)?.insts.len()).ok()?;
                continue;
            };
            at = above;
            let kind = &self.block(block)?.insts.get(at as usize)?.kind;
            if is_blank(kind) {
                continue;
            }
            if self.unlinks(kind, None) {
                return None;
            }
            if kind.writes().contains(&of) {
                of = read_from(kind)?;
                fresh = true;
            }
            later.extend_from_slice(kind.writes());
        }
        None
    }

    /// Whether `holder` keeps its reference throughout, and nothing loses one that a place holds.
    fn holds(&self, region: &Region, holder: Local) -> bool {
        let segments = region.segments();
        let mut insts = segments.iter().flat_map(|s| Region::insts(self.func, s));
        if self.written.is_lent(holder) {
            return insts.all(|(_, kind)| !self.unlinks(kind, Some(region)));
        }
        let quiet = insts.all(|(_, kind)| {
            let counted = match kind {
                InstKind::Retain { local, .. } | InstKind::Release { local, .. } => *local == holder,
                _ => false,
            };
            let mut kept = !counted && (is_blank(kind) || !kind.writes().contains(&holder));
            self.effects.each_consumed(self.func, kind, |local| kept &= local != holder);
            kept && !self.unlinks(kind, Some(region))
        });
        // Copies may have moved its reference: what is left to it at the end was there throughout.
        quiet
            && segments.iter().filter(|s| s.ends).all(|s| {
                let end = self.block(s.block).and_then(|b| b.insts.get(s.to as usize));
                let own = end.is_some_and(|i| matches!(i.kind, InstKind::Release { local, .. } if local == holder));
                self.owed.at(self.func, s.block, s.to, holder) > u8::from(own)
            })
    }

    /// Whether the instruction may take a reference from a place that was there before the region.
    fn unlinks(&self, kind: &InstKind, region: Option<&Region>) -> bool {
        match kind {
            InstKind::Store { base, src, .. } => {
                let (times, place) = self.written.defs.get(base.0);
                let made = times == 1
                    && base.0 >= self.written.borrowed
                    && region.is_some_and(|r| r.contains(place))
                    && self
                        .block(place.block)
                        .and_then(|b| b.insts.get(place.at as usize))
                        .is_some_and(|i| matches!(i.kind, InstKind::Call { callee: Callee::Runtime("rt.new"), .. }));
                is_counted(self.func, *src) && !made
            }
            InstKind::Call { callee, .. } => self.effects.call(callee).unlinks,
            _ => false,
        }
    }

    /// Whether the reference is handed over in what follows the retain, and the local, which has one of its own, is not
    /// read afterwards, nor what was read through it.
    fn moves(&self, region: &Region, place: Place, local: Local) -> bool {
        if self.owed.at(self.func, place.block, place.at, local) == 0 {
            return false;
        }
        let Some((first, rest)) = region.segments().split_first() else { return false };
        let mut handed = None;
        for (at, kind) in Region::insts(self.func, first) {
            self.effects.each_consumed(self.func, kind, |l| handed = handed.or((l == local).then_some(at)));
            if handed.is_some() || kind.writes().contains(&local) {
                break;
            }
        }
        let Some(handed) = handed else { return false };
        let through = self.reached_from(local);
        let reads = |kind: &InstKind| {
            let mut times = 0;
            kind.each_read(|l| times += u32::from(through.contains(&l)));
            times
        };
        let unread = |segment: &Segment| {
            let mut insts = Region::insts(self.func, segment);
            insts.all(|(_, kind)| reads(kind) == 0 || is_blank(kind))
        };
        let here = Segment { from: handed, to: handed + 1, ..*first };
        let once = Region::insts(self.func, &here).all(|(_, kind)| reads(kind) == 1);
        once && unread(&Segment { from: handed + 1, ..*first }) && rest.iter().all(unread)
    }

    /// `local`, and locals that may hold what it holds or what is reached through it without references of their own.
    fn reached_from(&self, local: Local) -> Vec<Local> {
        let mut out = vec![local];
        let mut known = 0;
        while known < out.len() {
            known = out.len();
            for inst in self.func.blocks.iter().flat_map(|b| &b.insts) {
                let through = read_from(&inst.kind).is_some_and(|from| out.contains(&from));
                let scalar = matches!(inst.kind, InstKind::Load { dst, .. } if !is_counted(self.func, dst));
                for dst in inst.kind.writes().iter().filter(|_| through && !scalar) {
                    if !out.contains(dst) {
                        out.push(*dst);
                    }
                }
            }
        }
        out
    }
}

/// What stands where a retain or release was.
fn is_blank(kind: &InstKind) -> bool {
    matches!(kind, InstKind::Copy(dst, src) if dst == src)
}

/// What the instruction's result was read through.
fn read_from(kind: &InstKind) -> Option<Local> {
    match kind {
        InstKind::Copy(_, from) | InstKind::Load { base: from, .. } | InstKind::Element { multi: from, .. } => {
            Some(*from)
        }
        InstKind::Call { callee: Callee::Runtime("map.find" | "map.slot" | "map.entry"), args, .. } => {
            args.first().copied()
        }
        _ => None,
    }
}

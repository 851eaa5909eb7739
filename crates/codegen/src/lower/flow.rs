//! What lowering wants to know of a function's control flow: an order in which definitions come before the code they
//! dominate, and the locals that need no SSA construction. A local with one definition that lies on every path to each
//! of its uses is its definition's value. Most temporaries are such; left to Cranelift's frontend, those that unwind
//! chains release would cost a block parameter per block of the chain each.

use mir::ir::{BlockId, Func, Inst, InstKind, Local, Term};

pub(super) struct Flow {
    /// Reachable blocks in reverse postorder.
    pub order: Vec<usize>,
    /// Per block: whether all edges into it come from blocks earlier in `order`.
    pub forward: Vec<bool>,
    /// Per local: one definition (parameters: none but the call), which dominates every use.
    pub single: Vec<bool>,
}

/// Analyses `func`; edges to blocks and locals that do not exist are left for lowering to report.
pub(super) fn analyse(func: &Func) -> Flow {
    let order = reverse_postorder(func);
    // The entry, which lies before all blocks, leads to the first one and to `entry_unwind`.
    let mut place = vec![usize::MAX; func.blocks.len()];
    for (at, block) in order.iter().enumerate() {
        place[*block] = at;
    }
    let mut forward = vec![true; func.blocks.len()];
    for (at, block) in order.iter().enumerate() {
        for target in edges(func, *block) {
            if place[target] <= at {
                forward[target] = false;
            }
        }
    }
    let single = single_definitions(func, &order);
    Flow { order, forward, single }
}

fn reverse_postorder(func: &Func) -> Vec<usize> {
    let mut seen = vec![false; func.blocks.len()];
    let mut post = Vec::with_capacity(func.blocks.len());
    // The entry's targets: what is walked last comes first in the order.
    let unwind = func.entry_unwind.map(|to| to.0 as usize).filter(|to| *to < func.blocks.len());
    for root in unwind.into_iter().chain([0]) {
        if seen[root] {
            continue;
        }
        let mut stack = vec![(root, edges(func, root))];
        seen[root] = true;
        while let Some((block, targets)) = stack.last_mut() {
            match targets.pop() {
                Some(target) if !seen[target] => {
                    seen[target] = true;
                    stack.push((target, edges(func, target)));
                }
                Some(_) => {}
                None => {
                    post.push(*block);
                    let _ = stack.pop();
                }
            }
        }
    }
    post.reverse();
    post
}

/// Blocks that `block` may go to, by its instructions' traps and by its end.
fn edges(func: &Func, block: usize) -> Vec<usize> {
    let block = &func.blocks[block];
    let unwinds = block.insts.iter().filter_map(|inst| unwind(&inst.kind));
    let mut last = None;
    let mut out: Vec<usize> = Vec::new();
    for target in unwinds.chain(successors(&block.term)) {
        let target = target.0 as usize;
        if last != Some(target) && target < func.blocks.len() {
            out.push(target);
        }
        last = Some(target);
    }
    out
}

fn single_definitions(func: &Func, order: &[usize]) -> Vec<bool> {
    let locals = func.locals.len();
    let params = func.params as usize;
    let mut definitions = vec![0u32; locals];
    for inst in order.iter().flat_map(|block| &func.blocks[*block].insts) {
        for local in defs(&inst.kind) {
            if let Some(n) = definitions.get_mut(local.0 as usize) {
                *n += 1;
            }
        }
    }
    let mut single: Vec<bool> =
        definitions.iter().enumerate().map(|(i, n)| if i < params { *n == 0 } else { *n == 1 }).collect();

    // Locals that have been assigned on every path to a block's start. The edge of a trap leaves before the
    // instruction's destinations are assigned.
    let words = locals / 64 + 1;
    let mut at_start = vec![vec![u64::MAX; words]; func.blocks.len()];
    let mut entry = vec![0; words];
    for param in 0..params {
        entry[param / 64] |= 1 << (param % 64);
    }
    if let Some(state) = func.entry_unwind.and_then(|to| at_start.get_mut(to.0 as usize)) {
        state.clone_from(&entry);
    }
    at_start[0] = entry;
    loop {
        let mut changed = false;
        for block in order {
            let mut assigned = at_start[*block].clone();
            let mut meet = |target: BlockId, assigned: &[u64]| {
                for (have, new) in at_start.get_mut(target.0 as usize).into_iter().flatten().zip(assigned) {
                    changed |= *have & !*new != 0;
                    *have &= *new;
                }
            };
            for inst in &func.blocks[*block].insts {
                if let Some(target) = unwind(&inst.kind) {
                    meet(target, &assigned);
                }
                assign(&mut assigned, inst);
            }
            for target in successors(&func.blocks[*block].term) {
                meet(target, &assigned);
            }
        }
        if !changed {
            break;
        }
    }
    for block in order {
        let mut assigned = at_start[*block].clone();
        let mut check = |local: Local, assigned: &[u64]| {
            let at = local.0 as usize;
            if at < locals && assigned[at / 64] & (1 << (at % 64)) == 0 {
                single[at] = false;
            }
        };
        for inst in &func.blocks[*block].insts {
            uses(&inst.kind, |local| check(local, &assigned));
            assign(&mut assigned, inst);
        }
        match &func.blocks[*block].term {
            Term::Branch { cond: local, .. } | Term::Switch { on: local, .. } => check(*local, &assigned),
            Term::Return(locals) => locals.iter().for_each(|local| check(*local, &assigned)),
            Term::Jump(_) | Term::Resume | Term::Unreachable => {}
        }
    }
    single
}

fn assign(assigned: &mut [u64], inst: &Inst) {
    for local in defs(&inst.kind) {
        if let Some(word) = assigned.get_mut(local.0 as usize / 64) {
            *word |= 1 << (local.0 % 64);
        }
    }
}

fn successors(term: &Term) -> Vec<BlockId> {
    match term {
        Term::Jump(to) => vec![*to],
        Term::Branch { then, otherwise, .. } => vec![*then, *otherwise],
        Term::Switch { cases, default, .. } => cases.iter().map(|(_, to)| *to).chain([*default]).collect(),
        Term::Return(_) | Term::Resume | Term::Unreachable => Vec::new(),
    }
}

fn unwind(kind: &InstKind) -> Option<BlockId> {
    match kind {
        InstKind::Checked { unwind, .. }
        | InstKind::Element { unwind, .. }
        | InstKind::TrapIfNull { unwind, .. }
        | InstKind::Concat { unwind, .. }
        | InstKind::Safepoint { unwind } => Some(*unwind),
        InstKind::Call { unwind, .. } => *unwind,
        _ => None,
    }
}

fn defs(kind: &InstKind) -> &[Local] {
    match kind {
        InstKind::Int(dst, _)
        | InstKind::Float(dst, _)
        | InstKind::Text(dst, _)
        | InstKind::Null(dst)
        | InstKind::Copy(dst, _)
        | InstKind::IntOp(dst, ..)
        | InstKind::FloatOp(dst, ..)
        | InstKind::FloatNeg(dst, _)
        | InstKind::ToBits(dst, _)
        | InstKind::FromBits(dst, _)
        | InstKind::Checked { dst, .. }
        | InstKind::Load { dst, .. }
        | InstKind::Kind(dst, _)
        | InstKind::Element { dst, .. }
        | InstKind::Concat { dst, .. } => std::slice::from_ref(dst),
        InstKind::Call { dsts, .. } => dsts,
        InstKind::Store { .. }
        | InstKind::Retain { .. }
        | InstKind::Release { .. }
        | InstKind::TrapIfNull { .. }
        | InstKind::Safepoint { .. } => &[],
    }
}

fn uses(kind: &InstKind, mut see: impl FnMut(Local)) {
    match kind {
        InstKind::Int(..)
        | InstKind::Float(..)
        | InstKind::Text(..)
        | InstKind::Null(_)
        | InstKind::Safepoint { .. } => {}
        InstKind::Copy(_, src)
        | InstKind::FloatNeg(_, src)
        | InstKind::ToBits(_, src)
        | InstKind::FromBits(_, src)
        | InstKind::Kind(_, src)
        | InstKind::Load { base: src, .. }
        | InstKind::Retain { local: src, .. }
        | InstKind::Release { local: src, .. }
        | InstKind::TrapIfNull { local: src, .. } => see(*src),
        InstKind::IntOp(_, _, lhs, rhs)
        | InstKind::FloatOp(_, _, lhs, rhs)
        | InstKind::Checked { lhs, rhs, .. }
        | InstKind::Store { base: lhs, src: rhs, .. }
        | InstKind::Element { multi: lhs, index: rhs, .. } => {
            see(*lhs);
            see(*rhs);
        }
        InstKind::Call { args, .. } => args.iter().for_each(|local| see(*local)),
        InstKind::Concat { into, parts, .. } => {
            into.iter().for_each(|local| see(*local));
            parts.iter().for_each(|(_, local)| see(*local));
        }
    }
}

//! Graph facts of finished MIR: successors, an order of blocks, removal of unreachable blocks, and which functions lie on
//! a cycle of the call graph.

use crate::ir::{Block, BlockId, Callee, Func, InstKind, Local, Program, Term};

impl Term {
    /// Calls `f` with every block that this terminator leads to.
    pub fn each_target(&self, mut f: impl FnMut(BlockId)) {
        match self {
            Term::Jump(to) => f(*to),
            Term::Branch { then, otherwise, .. } => {
                f(*then);
                f(*otherwise);
            }
            Term::Switch { cases, default, .. } => {
                cases.iter().for_each(|(_, to)| f(*to));
                f(*default);
            }
            Term::Return(_) | Term::Resume | Term::Unreachable => {}
        }
    }

    pub fn each_target_mut(&mut self, mut f: impl FnMut(&mut BlockId)) {
        match self {
            Term::Jump(to) => f(to),
            Term::Branch { then, otherwise, .. } => {
                f(then);
                f(otherwise);
            }
            Term::Switch { cases, default, .. } => {
                cases.iter_mut().for_each(|(_, to)| f(to));
                f(default);
            }
            Term::Return(_) | Term::Resume | Term::Unreachable => {}
        }
    }
}

impl InstKind {
    /// The locals it assigns.
    #[must_use]
    pub fn writes(&self) -> &[Local] {
        match self {
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
            | InstKind::Push { .. }
            | InstKind::Init { .. }
            | InstKind::Retain { .. }
            | InstKind::Release { .. }
            | InstKind::TrapIfNull { .. }
            | InstKind::Safepoint { .. } => &[],
        }
    }

    /// The locals it reads, in the order of its fields.
    pub fn each_read(&self, mut see: impl FnMut(Local)) {
        match self {
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
            InstKind::Push { multi, first, second, .. } | InstKind::Init { multi, first, second, .. } => {
                see(*multi);
                see(*first);
                second.iter().for_each(|local| see(*local));
            }
            InstKind::Call { args, .. } => args.iter().for_each(|local| see(*local)),
            InstKind::Concat { into, parts, .. } => {
                into.iter().for_each(|local| see(*local));
                parts.iter().for_each(|(_, local)| see(*local));
            }
        }
    }

    /// The unwind block of an instruction that may trap.
    #[must_use]
    pub fn unwind(&self) -> Option<BlockId> {
        match self {
            InstKind::Checked { unwind, .. }
            | InstKind::Element { unwind, .. }
            | InstKind::TrapIfNull { unwind, .. }
            | InstKind::Concat { unwind, .. }
            | InstKind::Push { unwind, .. }
            | InstKind::Safepoint { unwind } => Some(*unwind),
            InstKind::Call { unwind, .. } => *unwind,
            _ => None,
        }
    }

    pub fn unwind_mut(&mut self) -> Option<&mut BlockId> {
        match self {
            InstKind::Checked { unwind, .. }
            | InstKind::Element { unwind, .. }
            | InstKind::TrapIfNull { unwind, .. }
            | InstKind::Concat { unwind, .. }
            | InstKind::Push { unwind, .. }
            | InstKind::Safepoint { unwind } => Some(unwind),
            InstKind::Call { unwind, .. } => unwind.as_mut(),
            _ => None,
        }
    }
}

/// Drops blocks that nothing leads to and follows jumps to empty blocks that only jump on. Ids become dense.
pub fn clean(func: &mut Func) {
    thread_jumps(func);
    let mut seen = vec![false; func.blocks.len()];
    let mut stack = vec![BlockId(0)];
    stack.extend(func.entry_unwind);
    while let Some(id) = stack.pop() {
        let Some(slot) = seen.get_mut(id.0 as usize) else { continue };
        if std::mem::replace(slot, true) {
            continue;
        }
        let Some(block) = func.blocks.get(id.0 as usize) else { continue };
        block.insts.iter().filter_map(|i| i.kind.unwind()).for_each(|b| stack.push(b));
        block.term.each_target(|b| stack.push(b));
    }
    let mut ids = Vec::with_capacity(seen.len());
    let mut next = 0;
    for seen in &seen {
        ids.push(BlockId(next));
        next += u32::from(*seen);
    }
    let mut at = 0;
    func.blocks.retain(|_| {
        at += 1;
        seen.get(at - 1).copied().unwrap_or(false)
    });
    rename(func, |id| ids.get(id.0 as usize).copied().unwrap_or(id));
}

/// Blocks that block number `block` may go to, by its instructions' traps and by its end; none for one that does not
/// exist.
#[must_use]
pub fn targets(func: &Func, block: usize) -> Vec<usize> {
    let mut out: Vec<usize> = Vec::new();
    if let Some(block) = func.blocks.get(block) {
        let mut see = |to: BlockId| {
            let to = to.0 as usize;
            if out.last() != Some(&to) && to < func.blocks.len() {
                out.push(to);
            }
        };
        block.insts.iter().filter_map(|inst| inst.kind.unwind()).for_each(&mut see);
        block.term.each_target(see);
    }
    out
}

/// The blocks that the function's entry leads to, each before those that only it leads to.
#[must_use]
pub fn reverse_postorder(func: &Func) -> Vec<usize> {
    let mut seen = vec![false; func.blocks.len()];
    let mut post = Vec::with_capacity(func.blocks.len());
    let mut first = |block: usize| seen.get_mut(block).is_some_and(|seen| !std::mem::replace(seen, true));
    // The entry's targets: what is walked last comes first in the order.
    for root in func.entry_unwind.map(|to| to.0 as usize).into_iter().chain([0]) {
        let mut stack = Vec::new();
        if first(root) {
            stack.push((root, targets(func, root)));
        }
        while let Some((block, next)) = stack.last_mut() {
            match next.pop() {
                Some(to) if first(to) => stack.push((to, targets(func, to))),
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

/// A block that is left by a jump goes on with its target where nothing else leads there. The targets stay without a way
/// to them. Cold blocks stay apart: unwind edges enter their chains anywhere.
pub fn join_blocks(func: &mut Func) {
    let mut ways = vec![0u32; func.blocks.len()];
    let mut count = |to: BlockId| {
        if let Some(n) = ways.get_mut(to.0 as usize) {
            *n += 1;
        }
    };
    count(BlockId(0));
    func.entry_unwind.iter().for_each(|to| count(*to));
    for block in &func.blocks {
        block.insts.iter().filter_map(|i| i.kind.unwind()).for_each(&mut count);
        block.term.each_target(&mut count);
    }
    let next = |block: &Block| match block.term {
        Term::Jump(to) if !block.cold && ways.get(to.0 as usize) == Some(&1) => Some(to.0 as usize),
        _ => None,
    };
    let mut inner = vec![false; func.blocks.len()];
    for to in func.blocks.iter().filter_map(next) {
        inner.get_mut(to).into_iter().for_each(|slot| *slot = true);
    }
    // From the first block of each chain, so that an instruction moves once.
    for first in (0..func.blocks.len()).filter(|at| inner.get(*at) == Some(&false)) {
        while let Some(to) = func.blocks.get(first).and_then(next)
            && func.blocks.get(to).is_some_and(|block| !block.cold)
        {
            let Some(block) = func.blocks.get_mut(to) else { break };
            let (insts, term) =
                (std::mem::take(&mut block.insts), std::mem::replace(&mut block.term, Term::Unreachable));
            let Some(block) = func.blocks.get_mut(first) else { break };
            block.insts.extend(insts);
            block.term = term;
        }
    }
}

/// An edge to an empty block that jumps on leads where that block leads. Cold and warm blocks are not mixed, so that
/// unwind edges keep leading to cold blocks.
fn thread_jumps(func: &mut Func) {
    let mut to: Vec<BlockId> = (0..func.blocks.len()).map(|i| BlockId(u32::try_from(i).unwrap_or(u32::MAX))).collect();
    for i in 0..func.blocks.len() {
        let mut at = i;
        // A cycle of empty blocks cannot arise (loops have safepoints); the bound keeps the walk finite regardless.
        for _ in 0..64 {
            let Some(block) = func.blocks.get(at) else { break };
            let Term::Jump(next) = block.term else { break };
            let cold = func.blocks.get(next.0 as usize).is_some_and(|b| b.cold);
            if !block.insts.is_empty() || block.cold != cold {
                break;
            }
            at = next.0 as usize;
        }
        if let Some(slot) = to.get_mut(i) {
            *slot = BlockId(u32::try_from(at).unwrap_or(u32::MAX));
        }
    }
    rename(func, |id| to.get(id.0 as usize).copied().unwrap_or(id));
}

fn rename(func: &mut Func, map: impl Fn(BlockId) -> BlockId) {
    if let Some(unwind) = &mut func.entry_unwind {
        *unwind = map(*unwind);
    }
    for block in &mut func.blocks {
        for inst in &mut block.insts {
            if let Some(unwind) = inst.kind.unwind_mut() {
                *unwind = map(*unwind);
            }
        }
        block.term.each_target_mut(|id| *id = map(*id));
    }
}

/// Marks every function that can reach itself through calls, those through dispatch tables included.
pub fn mark_recursive(program: &mut Program) {
    let funcs = program.funcs.len();
    // Nodes: the functions, then the tables.
    let mut edges: Vec<Vec<usize>> = Vec::with_capacity(funcs + program.tables.len());
    for func in &program.funcs {
        let mut out = Vec::new();
        for inst in func.blocks.iter().flat_map(|b| &b.insts) {
            match &inst.kind {
                InstKind::Call { callee: Callee::Func(id), .. } => out.push(id.0 as usize),
                InstKind::Call { callee: Callee::Table(t), .. } => out.push(funcs + *t as usize),
                _ => {}
            }
        }
        out.sort_unstable();
        out.dedup();
        edges.push(out);
    }
    for table in &program.tables {
        edges.push(table.rows.iter().map(|(_, f)| f.0 as usize).collect());
    }
    let cyclic = on_cycle(&edges);
    for (func, cyclic) in program.funcs.iter_mut().zip(cyclic) {
        func.recursive = cyclic;
    }
}

/// Tarjan's strongly connected components, without recursion: true for nodes of a component with a cycle.
fn on_cycle(edges: &[Vec<usize>]) -> Vec<bool> {
    const NEW: usize = usize::MAX;
    let n = edges.len();
    let (mut order, mut low) = (vec![NEW; n], vec![0; n]);
    let (mut on_stack, mut out) = (vec![false; n], vec![false; n]);
    let mut stack: Vec<usize> = Vec::new();
    let mut next = 0;
    let get = |v: &[usize], i: usize| v.get(i).copied().unwrap_or(0);
    let set = |v: &mut [usize], i: usize, x: usize| {
        if let Some(slot) = v.get_mut(i) {
            *slot = x;
        }
    };
    let flag = |v: &mut [bool], i: usize, x: bool| {
        if let Some(slot) = v.get_mut(i) {
            *slot = x;
        }
    };
    for root in 0..n {
        if get(&order, root) != NEW {
            continue;
        }
        let mut work = vec![(root, 0usize)];
        while let Some((node, edge)) = work.pop() {
            if edge == 0 {
                set(&mut order, node, next);
                set(&mut low, node, next);
                next += 1;
                stack.push(node);
                flag(&mut on_stack, node, true);
            }
            let succ = edges.get(node).and_then(|e| e.get(edge)).copied();
            match succ {
                Some(to) => {
                    work.push((node, edge + 1));
                    if get(&order, to) == NEW {
                        work.push((to, 0));
                    } else if on_stack.get(to).copied().unwrap_or(false) {
                        let l = get(&low, node).min(get(&order, to));
                        set(&mut low, node, l);
                    }
                    if to == node {
                        flag(&mut out, node, true);
                    }
                }
                None => {
                    if get(&low, node) == get(&order, node) {
                        let mut members = Vec::new();
                        while let Some(m) = stack.pop() {
                            flag(&mut on_stack, m, false);
                            members.push(m);
                            if m == node {
                                break;
                            }
                        }
                        if members.len() > 1 {
                            members.iter().for_each(|m| flag(&mut out, *m, true));
                        }
                    }
                    if let Some((parent, _)) = work.last().copied() {
                        let l = get(&low, parent).min(get(&low, node));
                        set(&mut low, parent, l);
                    }
                }
            }
        }
    }
    out
}

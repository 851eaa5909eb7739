//! What lowering wants to know of a function's control flow: an order in which definitions come before the code they
//! dominate, and the locals that need no SSA construction. A local with one definition that lies on every path to each
//! of its uses is its definition's value. Most temporaries are such; left to Cranelift's frontend, those that unwind
//! chains release would cost a block parameter per block of the chain each.

use mir::ir::{BlockId, Func, Local, Term};
use mir::{reverse_postorder, targets};

use super::dominators::{Dominators, Edges};
use super::regions;

pub(super) struct Flow {
    /// Reachable blocks in reverse postorder.
    pub order: Vec<usize>,
    /// Per block: whether all edges into it come from blocks earlier in `order`.
    pub forward: Vec<bool>,
    /// Per local: one definition (parameters: none but the call), which dominates every use.
    pub single: Vec<bool>,
    /// Per block: see `regions`.
    pub regions: Vec<u32>,
}

/// Analyses `func`; edges to blocks and locals that do not exist are left for lowering to report.
pub(super) fn analyse(func: &Func, huge: bool) -> Flow {
    let order = reverse_postorder(func);
    // The entry, which lies before all blocks, leads to the first one and to `entry_unwind`.
    let mut place = vec![usize::MAX; func.blocks.len()];
    for (at, block) in order.iter().enumerate() {
        place[*block] = at;
    }
    let mut forward = vec![true; func.blocks.len()];
    for (at, block) in order.iter().enumerate() {
        for target in targets(func, *block) {
            if place[target] <= at {
                forward[target] = false;
            }
        }
    }
    let single = single_definitions(func, &order, huge);
    let regions = if huge { vec![regions::NONE; func.blocks.len()] } else { regions::regions(func, &order) };
    Flow { order, forward, single, regions }
}

/// `huge`: of the locals that are used beyond the next instruction that may trap, none counts, so that few values live
/// across blocks.
fn single_definitions(func: &Func, order: &[usize], huge: bool) -> Vec<bool> {
    let params = func.params as usize;
    // Nodes: the entry, then pieces of blocks. A piece ends where an instruction may trap: the edge of a trap leaves
    // before the instruction's destinations are assigned.
    let mut first = vec![0u32; func.blocks.len()];
    let mut pieces = 1u32;
    for block in order {
        first[*block] = pieces;
        pieces += 1 + func.blocks[*block].insts.iter().filter(|inst| inst.kind.unwind().is_some()).count() as u32;
    }
    let mut edges = Edges::default();
    let piece = |to: BlockId| first.get(to.0 as usize).copied().filter(|to| *to != 0);
    edges.node();
    [Some(BlockId(0)), func.entry_unwind].into_iter().flatten().filter_map(piece).for_each(|to| edges.push(to));
    let mut defined: Vec<Option<Definition>> = vec![None; func.locals.len()];
    let mut definitions = vec![0u32; func.locals.len()];
    let (mut node, mut at) = (0u32, 0u32);
    for block in order {
        let block = &func.blocks[*block];
        node += 1;
        edges.node();
        for inst in &block.insts {
            at += 1;
            if let Some(target) = inst.kind.unwind() {
                piece(target).into_iter().for_each(|to| edges.push(to));
                node += 1;
                edges.push(node);
                edges.node();
            }
            for local in inst.kind.writes() {
                if let Some(n) = definitions.get_mut(local.0 as usize) {
                    *n += 1;
                    defined[local.0 as usize] = Some(Definition { node, at });
                }
            }
        }
        block.term.each_target(|to| piece(to).into_iter().for_each(|to| edges.push(to)));
    }
    let mut single: Vec<bool> = Vec::with_capacity(definitions.len());
    for (i, n) in definitions.iter().enumerate() {
        single.push(if i < params { *n == 0 } else { *n == 1 });
        if i < params {
            defined[i] = Some(Definition { node: 0, at: 0 });
        }
    }

    let dominators = Dominators::new(&edges);
    let mut check = |local: Local, node: u32, at: u32| {
        let Some(flag) = single.get_mut(local.0 as usize).filter(|flag| **flag) else { return };
        *flag = defined[local.0 as usize].is_some_and(|def| {
            if def.node == node { def.at < at } else { !huge && dominators.dominates(def.node as usize, node as usize) }
        });
    };
    let (mut node, mut at) = (0u32, 0u32);
    for block in order {
        let block = &func.blocks[*block];
        node += 1;
        for inst in &block.insts {
            at += 1;
            inst.kind.each_read(|local| check(local, node, at));
            node += u32::from(inst.kind.unwind().is_some());
        }
        at += 1;
        match &block.term {
            Term::Branch { cond: local, .. } | Term::Switch { on: local, .. } => check(*local, node, at),
            Term::Return(locals) => locals.iter().for_each(|local| check(*local, node, at)),
            Term::Jump(_) | Term::Resume | Term::Unreachable => {}
        }
    }
    single
}

/// Where a local is assigned: piece, and position among all instructions.
#[derive(Clone, Copy)]
struct Definition {
    node: u32,
    at: u32,
}

//! Loops that call nothing: there the budget of the slice stays in a register, because nobody else looks at it. It is
//! loaded where control enters and stored where it leaves, also by a trap.

use mir::ir::{Callee, Func, InstKind, Rep};
use mir::targets;

/// No region.
pub(super) const NONE: u32 = 0;

/// Per block: the number of its region, or `NONE`. A region is entered through one block only.
pub(super) fn regions(func: &Func, order: &[usize]) -> Vec<u32> {
    let mut place = vec![usize::MAX; func.blocks.len()];
    for (at, block) in order.iter().enumerate() {
        place[*block] = at;
    }
    let mut preds: Vec<Vec<usize>> = vec![Vec::new(); func.blocks.len()];
    let mut backs = Vec::new();
    for block in order {
        for to in targets(func, *block) {
            preds[to].push(*block);
            if place[to] <= place[*block] {
                backs.push((to, *block));
            }
        }
    }
    let mut out = vec![NONE; func.blocks.len()];
    let mut quiet: Vec<bool> =
        func.blocks.iter().map(|block| block.insts.iter().all(|i| is_quiet(func, &i.kind))).collect();
    // Traps do not lead into regions: their way has no place for a load.
    for inst in func.blocks.iter().flat_map(|block| &block.insts) {
        if let Some(slot) = inst.kind.unwind().and_then(|to| quiet.get_mut(to.0 as usize)) {
            *slot = false;
        }
    }
    // Outer loops begin before the loops in them.
    backs.sort_unstable_by_key(|(head, latch)| (place[*head], std::cmp::Reverse(place[*latch])));
    let mut region = NONE;
    for (head, latch) in backs {
        if out[head] == NONE
            && out[latch] == NONE
            && let Some(body) = body(head, latch, &preds, &quiet)
            && body.iter().all(|block| out[*block] == NONE)
        {
            region += 1;
            body.iter().for_each(|block| out[*block] = region);
        }
    }
    out
}

/// The blocks of the loop, if all of them are quiet and the only way in is its head.
fn body(head: usize, latch: usize, preds: &[Vec<usize>], quiet: &[bool]) -> Option<Vec<usize>> {
    let mut body = vec![head];
    let mut next = vec![latch];
    if !quiet[head] || head == 0 {
        return None;
    }
    while let Some(block) = next.pop() {
        if body.contains(&block) {
            continue;
        }
        // The entry is reached without passing the head: this is no loop with one way in.
        if !quiet[block] || block == 0 || body.len() >= 64 {
            return None;
        }
        body.push(block);
        next.extend(&preds[block]);
    }
    Some(body)
}

/// Makes no call but to trap.
fn is_quiet(func: &Func, kind: &InstKind) -> bool {
    match kind {
        InstKind::Call { callee, .. } => matches!(callee, Callee::Runtime("sqrt" | "byte_at")),
        InstKind::Concat { .. } | InstKind::Push { .. } | InstKind::Release { .. } => false,
        InstKind::Retain { local, .. } => func.locals.get(local.0 as usize).is_some_and(|l| l.rep == Rep::Obj),
        _ => true,
    }
}

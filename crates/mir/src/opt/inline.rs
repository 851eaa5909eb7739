//! Calls of functions that often return after a few instructions: the way from the entry to those returns is repeated
//! at the call, which remains for the other ways. Only what can neither trap nor change anything is repeated, so stack
//! traces stay as they are; a return that is taken at the call costs the reduction that the callee's entry would.

use crate::ir::{Block, BlockId, Callee, Func, FuncId, Inst, InstKind, Local, LocalDecl, Program, Term};
use rustc_hash::FxHashMap;

/// Instructions and blocks of a callee that are worth repeating.
const INSTS: usize = 16;
const BLOCKS: usize = 6;
/// Instructions that one function may grow by.
const GROWTH: usize = 600;
/// Functions with more instructions than this are left alone: the rest of a block moves with each call in it.
const LARGE: usize = 5_000;

/// The part of a function that calls may repeat.
struct Template {
    locals: Vec<LocalDecl>,
    params: u32,
    /// In the order of discovery, the entry first. Targets are places in this list; `None` leads to the call itself.
    blocks: Vec<(Vec<InstKind>, Next)>,
    recursive: bool,
    insts: usize,
}

enum Next {
    Jump(Option<usize>),
    Branch(Local, Option<usize>, Option<usize>),
    Return(Vec<Local>),
}

/// What can be repeated of a program's functions, once recursive ones are marked.
pub struct Templates(FxHashMap<FuncId, Template>);

impl Templates {
    pub fn of(program: &Program) -> Templates {
        let funcs = program.funcs.iter().enumerate();
        Templates(funcs.filter_map(|(i, func)| Some((FuncId(u32::try_from(i).ok()?), template(func)?))).collect())
    }
}

fn template(func: &Func) -> Option<Template> {
    // Parameters that the callee owns would have to be released when the reduction traps.
    if func.entry_unwind.is_some() {
        return None;
    }
    let mut found = vec![BlockId(0)];
    let mut blocks = Vec::new();
    let mut insts = 0;
    let mut returns = false;
    while let Some(id) = found.get(blocks.len()).copied() {
        let block = func.blocks.get(id.0 as usize)?;
        let mut target = |to: BlockId| place(func, &mut found, to);
        let next = match &block.term {
            Term::Jump(to) => Next::Jump(target(*to)),
            Term::Branch { cond, then, otherwise } => {
                let then = target(*then);
                Next::Branch(*cond, then, target(*otherwise))
            }
            Term::Return(values) => {
                returns = true;
                Next::Return(values.clone())
            }
            _ => return None,
        };
        if !is_pure(block) {
            return None;
        }
        insts += block.insts.len() + 1;
        blocks.push((block.insts.iter().map(|i| i.kind.clone()).collect(), next));
    }
    let (locals, params, recursive) = (func.locals.clone(), func.params, func.recursive);
    (returns && insts <= INSTS && locals.len() <= 4 * INSTS).then_some(Template {
        locals,
        params,
        blocks,
        recursive,
        insts,
    })
}

/// The place of `to` in `found`, where it joins if it can; a way back to the entry or to too much code is no way.
fn place(func: &Func, found: &mut Vec<BlockId>, to: BlockId) -> Option<usize> {
    if let Some(at) = found.iter().position(|id| *id == to) {
        return (at > 0).then_some(at);
    }
    let block = func.blocks.get(to.0 as usize)?;
    let ends = matches!(block.term, Term::Jump(_) | Term::Branch { .. } | Term::Return(_));
    if block.cold || !ends || !is_pure(block) || found.len() >= BLOCKS {
        return None;
    }
    found.push(to);
    Some(found.len() - 1)
}

/// Neither traps nor changes anything. A count may rise where the function is left next.
fn is_pure(block: &Block) -> bool {
    let last = matches!(block.term, Term::Return(_));
    block.insts.iter().all(|inst| match &inst.kind {
        InstKind::Int(..)
        | InstKind::Float(..)
        | InstKind::Text(..)
        | InstKind::Null(_)
        | InstKind::Copy(..)
        | InstKind::IntOp(..)
        | InstKind::FloatOp(..)
        | InstKind::FloatNeg(..)
        | InstKind::ToBits(..)
        | InstKind::FromBits(..)
        | InstKind::Load { .. }
        | InstKind::Kind(..) => true,
        InstKind::Retain { .. } => last,
        _ => false,
    })
}

/// Repeats short ways through callees at their calls. True if there are any.
pub fn expand(func: &mut Func, templates: &Templates) -> bool {
    if func.blocks.iter().map(|block| block.insts.len()).sum::<usize>() > LARGE {
        return false;
    }
    let mut grown = 0;
    for first in 0..func.blocks.len() {
        // What follows a call goes on in a new block.
        let mut next = Some(first);
        while let Some(at) = next {
            next = expand_block(func, at, &templates.0, &mut grown);
        }
    }
    grown > 0
}

/// Expands the first call of block `at` that has a template.
fn expand_block(
    func: &mut Func,
    at: usize,
    templates: &FxHashMap<FuncId, Template>,
    grown: &mut usize,
) -> Option<usize> {
    let block = func.blocks.get(at).filter(|block| !block.cold)?;
    let (i, template, unwind, args, dsts) = block.insts.iter().enumerate().find_map(|(i, inst)| {
        let InstKind::Call { callee: Callee::Func(id), unwind: Some(unwind), args, dsts } = &inst.kind else {
            return None;
        };
        let fits = |t: &&Template| t.params as usize == args.len() && *grown + t.insts <= GROWTH;
        Some((i, templates.get(id).filter(fits)?, *unwind, args.clone(), dsts.clone()))
    })?;
    *grown += template.insts + args.len();
    Some(split(func, at, i, template, unwind, &args, &dsts))
}

/// Puts `template` in place of the call `i` of block `at`; the block where the code after the call goes on.
fn split(
    func: &mut Func,
    at: usize,
    i: usize,
    template: &Template,
    unwind: BlockId,
    args: &[Local],
    dsts: &[Local],
) -> usize {
    let first_local = func.locals.len();
    func.locals.extend(template.locals.iter().map(|l| LocalDecl { rep: l.rep, name: String::new() }));
    let local = |l: Local| Local(l.0 + u32::try_from(first_local).unwrap_or(u32::MAX));
    let id = |n: usize| BlockId(u32::try_from(n).unwrap_or(u32::MAX));
    // New blocks: the template's but for the entry, then the call, then the rest.
    let first_block = func.blocks.len();
    let slow = first_block + template.blocks.len() - 1;
    let rest = slow + 1;
    let target = |to: Option<usize>| match to {
        Some(to) => id(first_block + to - 1),
        None => id(slow),
    };
    let Some(block) = func.blocks.get_mut(at) else { return rest };
    let after = block.insts.split_off(i + 1);
    let Some(call) = block.insts.pop() else { return rest };
    let line = call.line;
    for (param, arg) in (0..template.params).zip(args) {
        block.insts.push(Inst { kind: InstKind::Copy(local(Local(param)), *arg), line });
    }
    let term = std::mem::replace(&mut block.term, Term::Unreachable);
    for (n, (insts, next)) in template.blocks.iter().enumerate() {
        let mut out: Vec<Inst> = insts.iter().map(|kind| Inst { kind: renamed(kind, local), line }).collect();
        let term = match next {
            Next::Jump(to) => Term::Jump(target(*to)),
            Next::Branch(cond, then, otherwise) => {
                Term::Branch { cond: local(*cond), then: target(*then), otherwise: target(*otherwise) }
            }
            Next::Return(values) => {
                if template.recursive {
                    out.insert(0, Inst { kind: InstKind::Safepoint { unwind }, line });
                }
                for (dst, value) in dsts.iter().zip(values) {
                    out.push(Inst { kind: InstKind::Copy(*dst, local(*value)), line });
                }
                Term::Jump(id(rest))
            }
        };
        if n == 0 {
            if let Some(block) = func.blocks.get_mut(at) {
                block.insts.extend(out);
                block.term = term;
            }
        } else {
            func.blocks.push(Block { insts: out, term, cold: false });
        }
    }
    func.blocks.push(Block { insts: vec![call], term: Term::Jump(id(rest)), cold: false });
    func.blocks.push(Block { insts: after, term, cold: false });
    rest
}

/// The instruction, one of those that `is_pure` lets through, on other locals.
fn renamed(kind: &InstKind, local: impl Fn(Local) -> Local) -> InstKind {
    match kind {
        InstKind::Int(d, v) => InstKind::Int(local(*d), *v),
        InstKind::Float(d, v) => InstKind::Float(local(*d), *v),
        InstKind::Text(d, t) => InstKind::Text(local(*d), *t),
        InstKind::Null(d) => InstKind::Null(local(*d)),
        InstKind::Copy(d, s) => InstKind::Copy(local(*d), local(*s)),
        InstKind::IntOp(d, op, l, r) => InstKind::IntOp(local(*d), *op, local(*l), local(*r)),
        InstKind::FloatOp(d, op, l, r) => InstKind::FloatOp(local(*d), *op, local(*l), local(*r)),
        InstKind::FloatNeg(d, s) => InstKind::FloatNeg(local(*d), local(*s)),
        InstKind::ToBits(d, s) => InstKind::ToBits(local(*d), local(*s)),
        InstKind::FromBits(d, s) => InstKind::FromBits(local(*d), local(*s)),
        InstKind::Load { dst, base, offset } => {
            InstKind::Load { dst: local(*dst), base: local(*base), offset: *offset }
        }
        InstKind::Kind(d, s) => InstKind::Kind(local(*d), local(*s)),
        InstKind::Retain { local: l, nonnull } => InstKind::Retain { local: local(*l), nonnull: *nonnull },
        other => other.clone(),
    }
}

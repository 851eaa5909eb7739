//! One function under construction: its blocks, the stack of references it owns, and the unwind blocks that follow
//! from that stack. Knows nothing of the HIR.
//!
//! Invariant: at every instruction that may trap, `live` lists exactly the locals that own a reference then, innermost
//! last. The unwind block of a stack is a chain of cold blocks, one per entry, shared between stacks with equal bottoms.

use crate::ir::{Block, BlockId, Callee, FuncId, Inst, InstKind, IntOp, Local, LocalDecl, Rep, Term, TextId};
use rustc_hash::FxHashMap;

/// Up to this many releases are repeated at each early exit.
const SHARED_EXIT: usize = 8;

/// An entry of the stack of owned references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    Ref(Local),
    /// A `try` region begins here: unwinding goes to this block.
    Handler(BlockId),
}

pub struct Builder {
    pub locals: Vec<LocalDecl>,
    nonnull: Vec<bool>,
    pub blocks: Vec<Block>,
    /// Blocks that an edge from live code leads to.
    reached: Vec<bool>,
    /// `None` where control cannot come: instructions are dropped.
    cur: Option<BlockId>,
    live: Vec<Live>,
    /// Unwind block of each prefix of `live`, as far as known.
    chain: Vec<Option<BlockId>>,
    nodes: FxHashMap<(Local, BlockId), BlockId>,
    /// Shared releases on early exits.
    exits: FxHashMap<(Local, BlockId), BlockId>,
    shared_return: Option<(BlockId, Vec<Local>)>,
    resume: Option<BlockId>,
    /// Source position given to new instructions.
    pub line: u32,
}

impl Builder {
    pub fn new() -> Builder {
        let mut b = Builder {
            locals: Vec::new(),
            nonnull: Vec::new(),
            blocks: Vec::new(),
            reached: Vec::new(),
            cur: None,
            live: Vec::new(),
            chain: Vec::new(),
            nodes: FxHashMap::default(),
            exits: FxHashMap::default(),
            shared_return: None,
            resume: None,
            line: 0,
        };
        let entry = b.block();
        b.cur = Some(entry);
        b
    }

    /// `nonnull`: a managed local that is never null while it is live.
    pub fn local(&mut self, rep: Rep, name: &str, nonnull: bool) -> Local {
        let id = Local(u32::try_from(self.locals.len()).unwrap_or(u32::MAX));
        self.locals.push(LocalDecl { rep, name: name.to_string() });
        self.nonnull.push(nonnull && rep == Rep::Obj);
        id
    }

    pub fn temp(&mut self, rep: Rep) -> Local {
        self.local(rep, "", false)
    }

    pub fn rep(&self, local: Local) -> Rep {
        self.locals.get(local.0 as usize).map_or(Rep::Int, |l| l.rep)
    }

    pub fn is_nonnull(&self, local: Local) -> bool {
        self.nonnull.get(local.0 as usize).copied().unwrap_or(false)
    }

    // -- blocks ------------------------------------------------------------------------------------------------

    pub fn block(&mut self) -> BlockId {
        self.new_block(false)
    }

    pub fn cold_block(&mut self) -> BlockId {
        self.new_block(true)
    }

    fn new_block(&mut self, cold: bool) -> BlockId {
        let id = BlockId(u32::try_from(self.blocks.len()).unwrap_or(u32::MAX));
        self.blocks.push(Block { insts: Vec::new(), term: Term::Unreachable, cold });
        self.reached.push(false);
        id
    }

    /// Continues in `block`, if an edge leads there; else the code that follows is dead.
    pub fn start(&mut self, block: BlockId) {
        let reached = self.reached.get(block.0 as usize).copied().unwrap_or(false);
        self.cur = if reached { Some(block) } else { None };
    }

    /// Continues in the entry of a handler, which is reached by unwinding only.
    pub fn start_handler(&mut self, block: BlockId) {
        self.cur = Some(block);
    }

    pub fn dead(&self) -> bool {
        self.cur.is_none()
    }

    pub fn emit(&mut self, kind: InstKind) {
        let line = self.line;
        if let Some(block) = self.cur.and_then(|id| self.blocks.get_mut(id.0 as usize)) {
            block.insts.push(Inst { kind, line });
        }
    }

    /// Ends the current block.
    pub fn end(&mut self, term: Term) {
        let Some(block) = self.cur.take().and_then(|id| self.blocks.get_mut(id.0 as usize)) else { return };
        let reached = &mut self.reached;
        term.each_target(|to| {
            if let Some(slot) = reached.get_mut(to.0 as usize) {
                *slot = true;
            }
        });
        block.term = term;
    }

    pub fn jump(&mut self, to: BlockId) {
        self.end(Term::Jump(to));
    }

    pub fn branch(&mut self, cond: Local, then: BlockId, otherwise: BlockId) {
        self.end(Term::Branch { cond, then, otherwise });
    }

    // -- the stack of owned references -------------------------------------------------------------------------

    pub fn depth(&self) -> usize {
        self.live.len()
    }

    pub fn push_live(&mut self, entry: Live) {
        self.live.push(entry);
        self.chain.push(None);
    }

    pub fn own(&mut self, local: Local) {
        self.push_live(Live::Ref(local));
    }

    /// Whether the local's reference stands on the stack at `depth` or above.
    pub fn owns_above(&self, local: Local, depth: usize) -> bool {
        self.live.iter().skip(depth).any(|e| *e == Live::Ref(local))
    }

    /// The reference leaves the stack: somebody else owns it now, or it has been released.
    pub fn disown(&mut self, local: Local) {
        if let Some(at) = self.live.iter().rposition(|e| *e == Live::Ref(local)) {
            let _ = self.live.remove(at);
            self.chain.truncate(at);
            self.chain.resize(self.live.len(), None);
        }
    }

    pub fn pop_live(&mut self) {
        let _ = self.live.pop();
        let _ = self.chain.pop();
    }

    pub fn truncate_live(&mut self, depth: usize) {
        self.live.truncate(depth);
        self.chain.truncate(depth);
    }

    pub fn retain(&mut self, local: Local) {
        let nonnull = self.is_nonnull(local);
        self.emit(InstKind::Retain { local, nonnull });
    }

    pub fn release(&mut self, local: Local) {
        let nonnull = self.is_nonnull(local);
        self.emit(InstKind::Release { local, nonnull });
    }

    /// Releases what lies above `depth`, innermost first, but keeps it on the stack: for edges that leave a scope early.
    pub fn release_above(&mut self, depth: usize, except: Option<Local>) {
        for i in (depth..self.live.len()).rev() {
            if let Some(Live::Ref(local)) = self.live.get(i).copied()
                && Some(local) != except
            {
                self.release(local);
            }
        }
    }

    fn refs_above(&self, depth: usize) -> usize {
        self.live.iter().skip(depth).filter(|e| matches!(e, Live::Ref(_))).count()
    }

    /// Leaves scopes early: releases what lies above `depth` and jumps to `to`. Long lists of releases are shared
    /// between the places that leave the same way, so that code stays linear in the size of its source.
    pub fn leave(&mut self, depth: usize, to: BlockId) {
        if self.dead() || self.refs_above(depth) <= SHARED_EXIT {
            self.release_above(depth, None);
            self.jump(to);
            return;
        }
        let mut block = to;
        for i in depth..self.live.len() {
            if let Some(Live::Ref(local)) = self.live.get(i).copied() {
                block = self.exit_node(local, block);
            }
        }
        self.jump(block);
    }

    fn exit_node(&mut self, local: Local, next: BlockId) -> BlockId {
        if let Some(block) = self.exits.get(&(local, next)) {
            return *block;
        }
        let cur = self.cur;
        let block = self.block();
        self.cur = Some(block);
        self.release(local);
        self.jump(next);
        self.cur = cur;
        let _ = self.exits.insert((local, next), block);
        block
    }

    /// Returns the operands' locals, which own what they refer to; `keep` is left out of the releases.
    pub fn ret(&mut self, values: Vec<Local>, keep: Option<Local>) {
        if self.dead() || self.refs_above(0) <= SHARED_EXIT {
            self.release_above(0, keep);
            self.end(Term::Return(values));
            return;
        }
        if let Some(kept) = keep {
            self.retain(kept);
        }
        let (block, results) = match self.shared_return.clone() {
            Some(shared) => shared,
            None => {
                let results: Vec<Local> = values.iter().map(|v| self.temp(self.rep(*v))).collect();
                let block = self.block();
                if let Some(b) = self.blocks.get_mut(block.0 as usize) {
                    b.term = Term::Return(results.clone());
                }
                self.shared_return = Some((block, results.clone()));
                (block, results)
            }
        };
        for (dst, src) in results.iter().zip(&values) {
            self.copy(*dst, *src);
        }
        self.leave(0, block);
    }

    /// Ends a scope: releases what lies above `depth` and forgets it.
    pub fn close(&mut self, depth: usize) {
        self.release_above(depth, None);
        self.truncate_live(depth);
    }

    /// The unwind block for the current stack.
    pub fn unwind(&mut self) -> BlockId {
        let known = (0..self.live.len()).rev().find(|i| self.chain.get(*i).copied().flatten().is_some());
        let (mut at, mut block) = match known {
            Some(i) => (i + 1, self.chain.get(i).copied().flatten()),
            None => (0, None),
        };
        // A handler hides everything below it, so nothing below the topmost one needs a block.
        if let Some(h) = self.live.iter().rposition(|e| matches!(e, Live::Handler(_)))
            && h >= at
        {
            at = h;
        }
        let mut block = match block.take() {
            Some(b) => b,
            None => self.resume_block(),
        };
        while at < self.live.len() {
            block = match self.live.get(at).copied() {
                Some(Live::Handler(handler)) => handler,
                Some(Live::Ref(local)) => self.node(local, block),
                None => block,
            };
            if let Some(slot) = self.chain.get_mut(at) {
                *slot = Some(block);
            }
            at += 1;
        }
        block
    }

    fn resume_block(&mut self) -> BlockId {
        if let Some(block) = self.resume {
            return block;
        }
        let block = self.cold_block();
        if let Some(b) = self.blocks.get_mut(block.0 as usize) {
            b.term = Term::Resume;
        }
        self.resume = Some(block);
        block
    }

    fn node(&mut self, local: Local, parent: BlockId) -> BlockId {
        if let Some(block) = self.nodes.get(&(local, parent)) {
            return *block;
        }
        let block = self.cold_block();
        let nonnull = self.is_nonnull(local);
        let line = self.line;
        if let Some(b) = self.blocks.get_mut(block.0 as usize) {
            b.insts.push(Inst { kind: InstKind::Release { local, nonnull }, line });
            b.term = Term::Jump(parent);
        }
        let _ = self.nodes.insert((local, parent), block);
        block
    }

    // -- instructions ------------------------------------------------------------------------------------------

    pub fn int(&mut self, value: i64) -> Local {
        let dst = self.temp(Rep::Int);
        self.emit(InstKind::Int(dst, value));
        dst
    }

    pub fn text(&mut self, id: TextId) -> Local {
        let dst = self.local(Rep::Obj, "", true);
        self.emit(InstKind::Text(dst, id));
        dst
    }

    pub fn copy(&mut self, dst: Local, src: Local) {
        if dst != src {
            self.emit(InstKind::Copy(dst, src));
        }
    }

    pub fn int_op(&mut self, op: IntOp, lhs: Local, rhs: Local) -> Local {
        let dst = self.temp(Rep::Int);
        self.emit(InstKind::IntOp(dst, op, lhs, rhs));
        dst
    }

    pub fn load(&mut self, rep: Rep, nonnull: bool, base: Local, offset: i32) -> Local {
        let dst = self.local(rep, "", nonnull);
        self.emit(InstKind::Load { dst, base, offset });
        dst
    }

    pub fn store(&mut self, base: Local, offset: i32, src: Local) {
        self.emit(InstKind::Store { base, offset, src });
    }

    pub fn trap_if_null(&mut self, local: Local, code: i64, text: TextId) {
        let unwind = self.unwind();
        self.emit(InstKind::TrapIfNull { local, code, text, unwind });
    }

    /// Calls the runtime function `name`; its table says whether it may trap.
    pub fn runtime(&mut self, name: &str, args: Vec<Local>, dsts: Vec<Local>) {
        let Some(symbol) = abi::symbols::find(name) else { return };
        let unwind = if symbol.traps { Some(self.unwind()) } else { None };
        self.emit(InstKind::Call { dsts, callee: Callee::Runtime(symbol.name), args, unwind });
    }

    /// `runtime` with one result.
    pub fn runtime1(&mut self, name: &str, args: Vec<Local>, rep: Rep) -> Local {
        let dst = self.local(rep, "", rep == Rep::Obj);
        self.runtime(name, args, vec![dst]);
        dst
    }

    pub fn call(&mut self, func: FuncId, args: Vec<Local>, dsts: Vec<Local>) {
        let unwind = Some(self.unwind());
        self.emit(InstKind::Call { dsts, callee: Callee::Func(func), args, unwind });
    }

    pub fn safepoint(&mut self) {
        let unwind = self.unwind();
        self.emit(InstKind::Safepoint { unwind });
    }
}

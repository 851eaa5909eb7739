//! One MIR function to Cranelift IR: blocks, variables, calls, and the cold paths that traps take. The instructions are
//! in `inst`, functions without MIR in `glue`.

mod dominators;
mod flow;
mod glue;
mod inst;
mod regions;

use abi::layout;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self as clif, Block, FuncRef, GlobalValue, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, Signature,
    SourceLoc, StackSlot, StackSlotData, StackSlotKind, Type, UserFuncName, Value, ValueDef, types,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Switch, Variable};
use mir::ir::{BlockId, Callee, Func, InstKind, Local, Term};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::target::Target;
use crate::unit::{self, SITE, Unit, func_signature, signature, ty};

use flow::Flow;
pub(crate) use glue::{hole, main, overflow, receive, release};

/// Functions with at most this many locals and no call of generated code need no stack check of their own: their frame
/// fits into the reserve that their caller's check left.
const SMALL_LEAF: usize = 32;

/// Memory of the fiber context, of objects and of containers: always mapped and aligned.
fn mem() -> MemFlagsData {
    MemFlagsData::trusted()
}

/// Where control goes with a pending trap: an unwind block, or (`None`) straight out of the function.
type Unwind = Option<BlockId>;

/// What stands for a local.
#[derive(Clone, Copy)]
enum Slot {
    /// Cranelift's frontend finds the definition that reaches a use.
    Var(Variable),
    /// The value of the only definition; `None` until that is lowered.
    Single(Option<Value>),
    /// Memory in the frame, at this offset of `Lower::homes`.
    Home(i32),
}

struct Lower<'u, 'p, 'b> {
    unit: &'u Unit<'p>,
    b: FunctionBuilder<'b>,
    func: &'p Func,
    /// The fiber context.
    ctx: Value,
    slots: Vec<Slot>,
    blocks: Vec<Block>,
    /// Line of the instruction at hand.
    line: u32,
    huge: bool,
    /// The block at hand is cold, or the function huge: small code counts more than fast code.
    cold: bool,
    /// Per block, and of the block at hand: where the budget is in `budget` instead of memory.
    regions: Vec<u32>,
    region: u32,
    budget: Variable,
    /// Blocks that record a pending trap's stack and unwind, shared by line, region and target.
    sites: FxHashMap<(u32, u32, Unwind), Block>,
    /// Blocks that raise a trap (code, text) and go on to a site block.
    traps: FxHashMap<(u32, u32, i64, Target, BlockId), Block>,
    callees: FxHashMap<Target, FuncRef>,
    addresses: FxHashMap<Target, GlobalValue>,
    /// Memory of the locals that have a home.
    homes: Option<StackSlot>,
    /// Parts of concatenations; the largest decides.
    parts: Option<StackSlot>,
}

/// Lowers function `index` of the program into the empty `out`.
pub(crate) fn function(
    unit: &Unit,
    out: &mut clif::Function,
    builder: &mut FunctionBuilderContext,
    index: u32,
) -> Result<(), String> {
    let (func, target) = unit.func(index)?;
    if func.params as usize > func.locals.len() || func.blocks.is_empty() {
        return Err("malformed MIR: parameters without locals, or no block".to_string());
    }
    out.signature = func_signature(func);
    out.name = UserFuncName::User(target.name());
    let mut b = FunctionBuilder::new(out, builder);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    b.seal_block(entry);
    let params = b.block_params(entry).to_vec();
    let (ctx, params) = params.split_first().ok_or("signature without context")?;
    let huge = is_huge(func);
    let mut flow = flow::analyse(func, huge);
    let (mut slots, homes) = slots(&mut b, func, &flow.single, huge);
    for (slot, value) in slots.iter_mut().zip(params) {
        match (slot, homes) {
            (Slot::Var(var), _) => b.def_var(*var, *value),
            (Slot::Single(only), _) => *only = Some(*value),
            (Slot::Home(at), Some(homes)) => {
                let _ = b.ins().stack_store(types::I64, *value, homes, *at);
            }
            (Slot::Home(_), None) => return Err("local without memory".to_string()),
        }
    }
    let blocks: Vec<Block> = func.blocks.iter().map(|_| b.create_block()).collect();
    for (block, clif_block) in func.blocks.iter().zip(&blocks) {
        if block.cold {
            b.set_cold_block(*clif_block);
        }
    }
    let parts = largest_concat(func)
        .map(|n| b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 16 * n.max(1), 3)));
    let budget = b.declare_var(types::I64);
    let mut lower = Lower {
        unit,
        b,
        func,
        ctx: *ctx,
        slots,
        blocks,
        line: func.line,
        huge,
        cold: false,
        regions: std::mem::take(&mut flow.regions),
        region: regions::NONE,
        budget,
        sites: FxHashMap::default(),
        traps: FxHashMap::default(),
        callees: FxHashMap::default(),
        addresses: FxHashMap::default(),
        homes,
        parts,
    };
    lower.entry()?;
    lower.body(&flow)?;
    lower.b.seal_all_blocks();
    lower.b.finalize(lower.unit.config());
    Ok(())
}

/// Where each local is kept, and the memory for those that have their home there. In a `huge` function all but single
/// ones have: SSA construction takes quadratic time where many variables live across many unwind blocks.
fn slots(b: &mut FunctionBuilder, func: &Func, single: &[bool], huge: bool) -> (Vec<Slot>, Option<StackSlot>) {
    let mut slots: Vec<Slot> = Vec::with_capacity(func.locals.len());
    let mut size = 0;
    for (local, single) in func.locals.iter().zip(single) {
        // Variables not defined on some path read as zero there: Cranelift's frontend sees to that.
        slots.push(if *single {
            Slot::Single(None)
        } else if huge {
            size += 8;
            Slot::Home(size - 8)
        } else {
            Slot::Var(b.declare_var(ty(local.rep.abi())))
        });
    }
    let homes = u32::try_from(size).ok().filter(|size| *size > 0);
    let homes = homes.map(|size| b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, size, 3)));
    if let Some(homes) = homes {
        // So do homes.
        let zero = b.ins().iconst(types::I64, 0);
        for at in (0..size).step_by(8) {
            let _ = b.ins().stack_store(types::I64, zero, homes, at);
        }
    }
    (slots, homes)
}

/// Whether the function is so large that it is compiled in the fastest way: algorithms that are worse than linear, in
/// Cranelift's optimiser and its better register allocator, would take seconds.
pub(crate) fn is_huge(func: &Func) -> bool {
    const BLOCKS: usize = 2_000;
    const INSTS: usize = 10_000;
    let edges = |block: &mir::ir::Block| block.insts.iter().filter(|inst| inst.kind.unwind().is_some()).count();
    func.blocks.iter().map(|block| 1 + edges(block)).sum::<usize>() > BLOCKS
        || func.blocks.iter().map(|block| block.insts.len()).sum::<usize>() > INSTS
}

/// Whether the next thing that happens to anything in memory is that `multi` gets another element.
fn inits_next(insts: &[mir::ir::Inst], multi: Local) -> bool {
    for inst in insts {
        match &inst.kind {
            InstKind::Int(..)
            | InstKind::Float(..)
            | InstKind::Text(..)
            | InstKind::Null(_)
            | InstKind::Copy(..)
            | InstKind::ToBits(..)
            | InstKind::FromBits(..) => {}
            InstKind::Init { multi: next, .. } => return *next == multi,
            _ => return false,
        }
    }
    false
}

/// Parts of the largest concatenation.
fn largest_concat(func: &Func) -> Option<u32> {
    let insts = func.blocks.iter().flat_map(|block| &block.insts);
    insts
        .filter_map(|inst| match &inst.kind {
            InstKind::Concat { parts, .. } => u32::try_from(parts.len()).ok(),
            _ => None,
        })
        .max()
}

/// Whether the function calls generated code, or may have a frame of more than some hundred bytes.
fn needs_stack_check(func: &Func) -> bool {
    let calls =
        |inst: &mir::ir::Inst| matches!(&inst.kind, InstKind::Call { callee: Callee::Func(_) | Callee::Table(_), .. });
    func.locals.len() > SMALL_LEAF
        || largest_concat(func).is_some_and(|n| n > SMALL_LEAF as u32)
        || func.blocks.iter().flat_map(|block| &block.insts).any(calls)
}

impl Lower<'_, '_, '_> {
    /// Stack check and reduction of the entry, then the jump to the first block.
    fn entry(&mut self) -> Result<(), String> {
        self.at(self.func.line);
        if needs_stack_check(self.func) {
            // The frame has been made already: the stack pointer accounts for it.
            let sp = self.b.ins().get_stack_pointer(types::I64);
            let limit = self.b.ins().load(types::I64, mem(), self.ctx, layout::CTX_STACK_LIMIT);
            let over = self.b.ins().icmp(IntCC::UnsignedLessThan, sp, limit);
            let (cold, ok) = (self.cold_block(), self.b.create_block());
            let _ = self.b.ins().brif(over, cold, &[], ok, &[]);
            self.start(cold);
            self.b.seal_block(cold);
            let _ = self.runtime("sched.overflow", &[])?;
            self.site(self.func.entry_unwind, |b, site| {
                let _ = b.ins().jump(site, &[]);
            })?;
            self.start(ok);
            self.b.seal_block(ok);
        }
        if self.func.recursive {
            self.reduction(self.func.entry_unwind)?;
        }
        let first = self.block(BlockId(0))?;
        let _ = self.b.ins().jump(first, &[]);
        Ok(())
    }

    /// The block for an edge to `to`: one in between where the budget moves between register and memory.
    fn edge(&mut self, to: BlockId, between: &mut Vec<(BlockId, Block)>) -> Result<Block, String> {
        let target = self.block(to)?;
        if self.regions.get(to.0 as usize) == Some(&self.region) {
            return Ok(target);
        }
        if let Some((_, found)) = between.iter().find(|(known, _)| *known == to) {
            return Ok(*found);
        }
        let block = self.b.create_block();
        between.push((to, block));
        Ok(block)
    }

    /// Fills the blocks that `edge` made.
    fn finish_edges(&mut self, between: Vec<(BlockId, Block)>) -> Result<(), String> {
        for (to, block) in between {
            let target = self.block(to)?;
            self.start(block);
            self.b.seal_block(block);
            self.store_budget();
            if self.regions.get(to.0 as usize).is_some_and(|region| *region != regions::NONE) {
                self.load_budget();
            }
            let _ = self.b.ins().jump(target, &[]);
        }
        Ok(())
    }

    /// Where the budget is in a register: writes it to memory.
    fn store_budget(&mut self) {
        if self.region != regions::NONE {
            let budget = self.b.use_var(self.budget);
            let _ = self.b.ins().store(mem(), budget, self.ctx, layout::CTX_BUDGET);
        }
    }

    fn load_budget(&mut self) {
        let budget = self.b.ins().load(types::I64, mem(), self.ctx, layout::CTX_BUDGET);
        self.b.def_var(self.budget, budget);
    }

    fn body(&mut self, flow: &Flow) -> Result<(), String> {
        let func = self.func;
        for i in &flow.order {
            let block = &func.blocks[*i];
            let clif_block = self.blocks[*i];
            self.start(clif_block);
            self.cold = block.cold || self.huge;
            self.region = self.regions.get(*i).copied().unwrap_or(regions::NONE);
            if flow.forward[*i] {
                self.b.seal_block(clif_block);
            }
            for (at, inst) in block.insts.iter().enumerate() {
                self.at(inst.line);
                if let InstKind::Init { multi, at: index, first, second } = &inst.kind {
                    let last = !inits_next(&block.insts[at + 1..], *multi);
                    self.init(*multi, *index, *first, *second, last)?;
                } else {
                    self.inst(&inst.kind)?;
                }
            }
            self.term(&block.term)?;
        }
        Ok(())
    }

    fn term(&mut self, term: &Term) -> Result<(), String> {
        let mut between = Vec::new();
        match term {
            Term::Jump(to) => {
                let to = self.edge(*to, &mut between)?;
                let _ = self.b.ins().jump(to, &[]);
            }
            Term::Branch { cond, then, otherwise } => {
                let cond = self.word(*cond)?;
                let (then, otherwise) = (self.edge(*then, &mut between)?, self.edge(*otherwise, &mut between)?);
                let _ = self.b.ins().brif(cond, then, &[], otherwise, &[]);
            }
            Term::Switch { on, cases, default } => {
                let on = self.word(*on)?;
                let mut switch = Switch::new();
                let mut seen = FxHashSet::default();
                for (value, to) in cases {
                    // The first of equal cases counts.
                    if seen.insert(*value) {
                        switch.set_entry(u128::from(*value as u64), self.edge(*to, &mut between)?);
                    }
                }
                let default = self.edge(*default, &mut between)?;
                switch.emit(&mut self.b, on, default);
            }
            Term::Return(locals) => {
                if locals.len() != self.func.results.len() {
                    return Err("malformed MIR: wrong number of results".to_string());
                }
                let mut values = Vec::with_capacity(locals.len());
                for (local, rep) in locals.iter().zip(&self.func.results) {
                    let value = self.get(*local)?;
                    values.push(self.coerce(value, ty(rep.abi())));
                }
                let _ = self.b.ins().return_(&values);
            }
            Term::Resume => self.return_zeros(),
            Term::Unreachable => {
                let _ = self.b.ins().trap(clif::TrapCode::unwrap_user(1));
            }
        }
        self.finish_edges(between)
    }

    // -- positions ------------------------------------------------------------------------------------------------

    fn at(&mut self, line: u32) {
        self.line = line;
        self.b.set_srcloc(SourceLoc::new(line));
    }

    fn start(&mut self, block: Block) {
        self.b.switch_to_block(block);
    }

    fn cold_block(&mut self) -> Block {
        let block = self.b.create_block();
        self.b.set_cold_block(block);
        block
    }

    fn block(&self, id: BlockId) -> Result<Block, String> {
        self.blocks.get(id.0 as usize).copied().ok_or_else(|| format!("malformed MIR: no block {}", id.0))
    }

    // -- values ---------------------------------------------------------------------------------------------------

    fn get(&mut self, local: Local) -> Result<Value, String> {
        match self.slots.get(local.0 as usize) {
            Some(Slot::Var(var)) => Ok(self.b.use_var(*var)),
            Some(Slot::Single(Some(value))) => Ok(*value),
            Some(Slot::Home(at)) => {
                let at = *at;
                let (ty, homes) = (self.ty(local)?, self.homes.ok_or("local without memory")?);
                Ok(self.b.ins().stack_load(types::I64, ty, homes, at))
            }
            Some(Slot::Single(None)) => Err(format!("local {} used before its definition", local.0)),
            None => Err(format!("malformed MIR: no local {}", local.0)),
        }
    }

    /// The local as a word; a Float by its bits.
    fn word(&mut self, local: Local) -> Result<Value, String> {
        let value = self.get(local)?;
        Ok(self.coerce(value, types::I64))
    }

    fn float(&mut self, local: Local) -> Result<Value, String> {
        let value = self.get(local)?;
        Ok(self.coerce(value, types::F64))
    }

    fn ty(&self, local: Local) -> Result<Type, String> {
        let decl = self.func.locals.get(local.0 as usize);
        decl.map(|decl| ty(decl.rep.abi())).ok_or_else(|| format!("malformed MIR: no local {}", local.0))
    }

    fn set(&mut self, local: Local, value: Value) -> Result<(), String> {
        let ty = self.ty(local)?;
        let value = self.coerce(value, ty);
        match &mut self.slots[local.0 as usize] {
            Slot::Var(var) => self.b.def_var(*var, value),
            Slot::Single(only) => *only = Some(value),
            Slot::Home(at) => {
                let at = *at;
                let homes = self.homes.ok_or("local without memory")?;
                let _ = self.b.ins().stack_store(types::I64, value, homes, at);
            }
        }
        Ok(())
    }

    /// Bits move between the two machine types unchanged.
    fn coerce(&mut self, value: Value, to: Type) -> Value {
        if self.b.func.dfg.value_type(value) == to {
            value
        } else {
            self.b.ins().bitcast(to, MemFlagsData::new(), value)
        }
    }

    /// The constant that a word is known to be.
    fn constant(&self, value: Value) -> Option<i64> {
        let dfg = &self.b.func.dfg;
        match dfg.value_def(dfg.resolve_aliases(value)) {
            ValueDef::Result(inst, _) => match dfg.insts[inst] {
                InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => Some(imm.bits()),
                _ => None,
            },
            _ => None,
        }
    }

    fn return_zeros(&mut self) {
        let func = self.func;
        let zeros: Vec<Value> = func.results.iter().map(|rep| zero(&mut self.b, ty(rep.abi()))).collect();
        let _ = self.b.ins().return_(&zeros);
    }

    // -- calls ----------------------------------------------------------------------------------------------------

    fn callee(&mut self, target: Target, signature: impl FnOnce() -> Signature) -> FuncRef {
        let func = &mut *self.b.func;
        *self.callees.entry(target).or_insert_with(|| unit::import(func, target, signature()))
    }

    /// The address of a text or a dispatch table.
    fn address(&mut self, target: Target) -> Value {
        let func = &mut *self.b.func;
        let address = *self.addresses.entry(target).or_insert_with(|| unit::address(func, target));
        self.b.ins().symbol_value(types::I64, address)
    }

    /// Calls a runtime function; the flag says whether it may leave a trap.
    fn runtime(&mut self, name: &str, args: &[Value]) -> Result<(Inst, bool), String> {
        let (target, symbol) = self.unit.runtime(name)?;
        if args.len() != symbol.params.len() {
            return Err(format!("malformed MIR: `{name}` called with {} arguments", args.len()));
        }
        let mut values = Vec::with_capacity(args.len() + 1);
        values.push(self.ctx);
        for (value, rep) in args.iter().zip(symbol.params) {
            values.push(self.coerce(*value, ty(*rep)));
        }
        let params = || symbol.params.iter().copied();
        let callee = self.callee(target, || signature(params(), symbol.results.iter().copied()));
        Ok((self.b.ins().call(callee, &values), symbol.traps))
    }

    // -- traps ----------------------------------------------------------------------------------------------------

    /// Leaves by the unwind path when a trap is pending.
    fn trap_test(&mut self, unwind: Unwind) -> Result<(), String> {
        let trap = self.b.ins().load(types::I64, mem(), self.ctx, layout::CTX_TRAP);
        let ok = self.b.create_block();
        self.site(unwind, |b, site| {
            let _ = b.ins().brif(trap, site, &[], ok, &[]);
        })?;
        self.start(ok);
        self.b.seal_block(ok);
        Ok(())
    }

    /// Ends the current block through `branch`, which is given the site block of the current line.
    fn site(&mut self, unwind: Unwind, branch: impl FnOnce(&mut FunctionBuilder, Block)) -> Result<(), String> {
        let key = (self.line, self.region, unwind);
        if let Some(site) = self.sites.get(&key).copied() {
            branch(&mut self.b, site);
            return Ok(());
        }
        let site = self.cold_block();
        let _ = self.sites.insert(key, site);
        branch(&mut self.b, site);
        self.start(site);
        self.store_budget();
        // The table of call sites knows the line.
        let callee = self.callee(self.unit.glue(SITE), || signature([], []));
        let _ = self.b.ins().call(callee, &[self.ctx]);
        match unwind {
            Some(unwind) => {
                let unwind = self.block(unwind)?;
                let _ = self.b.ins().jump(unwind, &[]);
            }
            None => self.return_zeros(),
        }
        Ok(())
    }

    /// Ends the current block through `branch`, which is given a block that raises the trap and unwinds.
    fn raise(
        &mut self,
        code: i64,
        text: Target,
        unwind: BlockId,
        branch: impl FnOnce(&mut FunctionBuilder, Block),
    ) -> Result<(), String> {
        let key = (self.line, self.region, code, text, unwind);
        if let Some(trap) = self.traps.get(&key).copied() {
            branch(&mut self.b, trap);
            return Ok(());
        }
        let trap = self.cold_block();
        let _ = self.traps.insert(key, trap);
        branch(&mut self.b, trap);
        self.start(trap);
        let code = self.b.ins().iconst(types::I64, code);
        let text = self.address(text);
        let _ = self.runtime("trap.raise", &[code, text])?;
        self.site(Some(unwind), |b, site| {
            let _ = b.ins().jump(site, &[]);
        })
    }

    /// Traps when `bad` is not zero.
    fn trap_if(&mut self, bad: Value, code: i64, text: Target, unwind: BlockId) -> Result<(), String> {
        let ok = self.b.create_block();
        self.raise(code, text, unwind, |b, trap| {
            let _ = b.ins().brif(bad, trap, &[], ok, &[]);
        })?;
        self.start(ok);
        self.b.seal_block(ok);
        Ok(())
    }

    /// Takes one reduction; at the end of the slice other fibers run.
    fn reduction(&mut self, unwind: Unwind) -> Result<(), String> {
        let in_register = self.region != regions::NONE;
        if !in_register {
            self.load_budget();
        }
        let budget = self.b.use_var(self.budget);
        let left = self.b.ins().iadd_imm_s(budget, -1);
        self.b.def_var(self.budget, left);
        if !in_register {
            let _ = self.b.ins().store(mem(), left, self.ctx, layout::CTX_BUDGET);
        }
        let over = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, left, 0);
        let (cold, ok) = (self.cold_block(), self.b.create_block());
        let _ = self.b.ins().brif(over, cold, &[], ok, &[]);
        self.start(cold);
        self.b.seal_block(cold);
        self.store_budget();
        let _ = self.runtime("sched.yield", &[])?;
        if in_register {
            self.load_budget();
        }
        let trap = self.b.ins().load(types::I64, mem(), self.ctx, layout::CTX_TRAP);
        self.site(unwind, |b, site| {
            let _ = b.ins().brif(trap, site, &[], ok, &[]);
        })?;
        self.start(ok);
        self.b.seal_block(ok);
        Ok(())
    }
}

fn zero(b: &mut FunctionBuilder, ty: Type) -> Value {
    if ty == types::F64 { b.ins().f64const(0.0) } else { b.ins().iconst(types::I64, 0) }
}

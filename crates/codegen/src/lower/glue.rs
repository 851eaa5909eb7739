//! Functions that no MIR stands for: entries from the runtime, and targets of calls that only trap.

use abi::{layout, trap};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self as clif, InstBuilder, MemFlagsData, Signature, Value, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use super::zero;
use crate::target;
use crate::unit::{self, RELEASE, SITE, Unit, func_signature, signature};
use abi::symbols::Rep;
use mir::ir::{Func, InstKind, Rep as MirRep, Term};

struct Glue<'u, 'p, 'b> {
    unit: &'u Unit<'p>,
    b: FunctionBuilder<'b>,
    params: Vec<Value>,
}

fn glue<'u, 'p, 'b>(
    unit: &'u Unit<'p>,
    out: &'b mut clif::Function,
    builder: &'b mut FunctionBuilderContext,
    sig: Signature,
) -> Glue<'u, 'p, 'b> {
    out.signature = sig;
    let mut b = FunctionBuilder::new(out, builder);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    b.seal_block(entry);
    let params = b.block_params(entry).to_vec();
    Glue { unit, b, params }
}

impl Glue<'_, '_, '_> {
    fn runtime(&mut self, name: &str, args: &[Value]) -> Result<(), String> {
        let (target, symbol) = self.unit.runtime(name)?;
        let sig = signature(symbol.params.iter().copied(), symbol.results.iter().copied());
        let callee = unit::import(self.b.func, target, sig);
        let values: Vec<Value> = self.params.iter().take(1).chain(args).copied().collect();
        let _ = self.b.ins().call(callee, &values);
        Ok(())
    }

    /// Calls MIR function `index` with the first parameters of this one.
    fn call(&mut self, index: u32) -> Result<Vec<Value>, String> {
        let (func, target) = self.unit.func(index)?;
        let sig = func_signature(func);
        let args = self.params.get(..sig.params.len()).ok_or("malformed MIR: entry with too many parameters")?.to_vec();
        if sig.params.iter().any(|param| param.value_type != types::I64) {
            return Err("malformed MIR: entry with a Float parameter".to_string());
        }
        let callee = unit::import(self.b.func, target, sig);
        let inst = self.b.ins().call(callee, &args);
        Ok(self.b.inst_results(inst).to_vec())
    }

    fn finish(self) {
        self.b.finalize(self.unit.config());
    }
}

/// `main` without a result: returns 0.
pub(crate) fn main(
    unit: &Unit,
    out: &mut clif::Function,
    builder: &mut FunctionBuilderContext,
    index: u32,
) -> Result<(), String> {
    let mut glue = glue(unit, out, builder, signature([], [Rep::W]));
    let _ = glue.call(index)?;
    let status = zero(&mut glue.b, types::I64);
    let _ = glue.b.ins().return_(&[status]);
    glue.finish();
    Ok(())
}

/// `values::ctx::ReceiveFn` around `receive` of an actor class: stores the reply's words.
pub(crate) fn receive(
    unit: &Unit,
    out: &mut clif::Function,
    builder: &mut FunctionBuilderContext,
    index: u32,
) -> Result<(), String> {
    let mut glue = glue(unit, out, builder, signature([Rep::W; 3], []));
    let reply = glue.params.last().copied().ok_or("glue without parameters")?;
    let words = glue.call(index)?;
    let mut offset = 0;
    for word in words {
        let _ = glue.b.ins().store(MemFlagsData::trusted(), word, reply, offset);
        offset += 8;
    }
    let _ = glue.b.ins().return_(&[]);
    glue.finish();
    Ok(())
}

/// What a function with a large frame does in place of its body when the frame does not fit: traps.
pub(crate) fn overflow(
    unit: &Unit,
    out: &mut clif::Function,
    builder: &mut FunctionBuilderContext,
    sig: Signature,
    index: u32,
) -> Result<(), String> {
    let returns = sig.returns.clone();
    let (func, _) = unit.func(index)?;
    let owned = owned_params(func)?;
    let mut glue = glue(unit, out, builder, sig);
    glue.runtime("sched.overflow", &[])?;
    let site = unit::import(glue.b.func, unit.glue(SITE), signature([], []));
    let args: Vec<Value> = glue.params.iter().take(1).copied().collect();
    let _ = glue.b.ins().call(site, &args);
    for (param, rep) in owned {
        let value = glue.params.get(param + 1).copied().ok_or("malformed MIR: release of no parameter")?;
        match rep {
            MirRep::Actor => glue.runtime("rt.release_actor", &[value])?,
            _ => {
                let release = unit::import(glue.b.func, unit.glue(RELEASE), signature([Rep::W], []));
                let args: Vec<Value> = glue.params.iter().take(1).copied().chain([value]).collect();
                let _ = glue.b.ins().call(release, &args);
            }
        }
    }
    let zeros: Vec<Value> = returns.iter().map(|result| zero(&mut glue.b, result.value_type)).collect();
    let _ = glue.b.ins().return_(&zeros);
    glue.finish();
    Ok(())
}

/// What the unwind path of a function's entry releases: parameters, by their position.
fn owned_params(func: &Func) -> Result<Vec<(usize, MirRep)>, String> {
    let mut out = Vec::new();
    let mut next = func.entry_unwind;
    while let Some(at) = next {
        let block = func.blocks.get(at.0 as usize).ok_or("malformed MIR: entry unwinds to no block")?;
        for inst in &block.insts {
            let InstKind::Release { local, .. } = &inst.kind else {
                return Err("malformed MIR: entry unwinds through code".to_string());
            };
            let decl = func.locals.get(local.0 as usize).ok_or("malformed MIR: no such local")?;
            out.push((local.0 as usize, decl.rep));
        }
        next = match block.term {
            Term::Jump(to) if out.len() <= func.params as usize => Some(to),
            Term::Resume => None,
            _ => return Err("malformed MIR: entry unwinds without end".to_string()),
        };
    }
    Ok(out)
}

/// Releases an object or null, out of line: unwind paths are many and rarely run.
pub(crate) fn release(
    unit: &Unit,
    out: &mut clif::Function,
    builder: &mut FunctionBuilderContext,
) -> Result<(), String> {
    let mut glue = glue(unit, out, builder, signature([Rep::W], []));
    let object = glue.params.last().copied().ok_or("glue without parameters")?;
    let [live, counted, free, done] = std::array::from_fn(|_| glue.b.create_block());
    let mem = MemFlagsData::trusted();
    let _ = glue.b.ins().brif(object, live, &[], done, &[]);
    glue.b.switch_to_block(live);
    let count = glue.b.ins().load(types::I32, mem, object, layout::COUNT);
    let immortal = glue.b.ins().icmp_imm_s(IntCC::SignedLessThan, count, 0);
    let _ = glue.b.ins().brif(immortal, done, &[], counted, &[]);
    glue.b.switch_to_block(counted);
    let left = glue.b.ins().iadd_imm_s(count, -1);
    let _ = glue.b.ins().store(mem, left, object, layout::COUNT);
    let quiet = glue.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, left, i64::from(layout::QUIET));
    let _ = glue.b.ins().brif(quiet, done, &[], free, &[]);
    glue.b.switch_to_block(free);
    glue.runtime("rt.released", &[object])?;
    let _ = glue.b.ins().jump(done, &[]);
    glue.b.switch_to_block(done);
    let _ = glue.b.ins().return_(&[]);
    glue.b.seal_all_blocks();
    glue.finish();
    Ok(())
}

/// Entry of classes that lack a table's method. It leaves a trap, and thus results that mean nothing, whatever the
/// method's signature.
pub(crate) fn hole(unit: &Unit, out: &mut clif::Function, builder: &mut FunctionBuilderContext) -> Result<(), String> {
    let mut glue = glue(unit, out, builder, signature([], []));
    let code = glue.b.ins().iconst(types::I64, trap::EXPLICIT);
    let text = unit::address(glue.b.func, target::NO_METHOD);
    let text = glue.b.ins().symbol_value(types::I64, text);
    glue.runtime("trap.raise", &[code, text])?;
    let _ = glue.b.ins().return_(&[]);
    glue.finish();
    Ok(())
}

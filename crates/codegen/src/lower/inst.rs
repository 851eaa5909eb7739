//! The instructions of MIR.

use abi::symbols::Rep as AbiRep;
use abi::{layout, trap};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{Inst, InstBuilder, MemFlagsData, Signature, Value, types};
use mir::ir::{BlockId, Callee, CheckedOp, FloatOp, InstKind, IntOp, Local, Rep, TextId};

use super::{Lower, mem, zero};
use crate::target::{self, Target};
use crate::unit::{RELEASE, func_signature, signature};

impl Lower<'_, '_, '_> {
    pub(super) fn inst(&mut self, kind: &InstKind) -> Result<(), String> {
        match kind {
            InstKind::Int(dst, value) => {
                let value = self.b.ins().iconst(types::I64, *value);
                self.set(*dst, value)
            }
            InstKind::Float(dst, value) => {
                let value = self.b.ins().f64const(*value);
                self.set(*dst, value)
            }
            InstKind::Text(dst, text) => {
                let text = self.text(*text)?;
                let value = self.address(text);
                self.set(*dst, value)
            }
            InstKind::Null(dst) => {
                let ty = self.ty(*dst)?;
                let value = zero(&mut self.b, ty);
                self.set(*dst, value)
            }
            InstKind::Copy(dst, src) | InstKind::ToBits(dst, src) | InstKind::FromBits(dst, src) => {
                let value = self.get(*src)?;
                self.set(*dst, value)
            }
            InstKind::IntOp(dst, op, lhs, rhs) => {
                let (lhs, rhs) = (self.word(*lhs)?, self.word(*rhs)?);
                let value = self.int_op(*op, lhs, rhs);
                self.set(*dst, value)
            }
            InstKind::FloatOp(dst, op, lhs, rhs) => {
                let (lhs, rhs) = (self.float(*lhs)?, self.float(*rhs)?);
                let value = self.float_op(*op, lhs, rhs);
                self.set(*dst, value)
            }
            InstKind::FloatNeg(dst, src) => {
                let value = self.float(*src)?;
                let value = self.b.ins().fneg(value);
                self.set(*dst, value)
            }
            InstKind::Checked { dst, op, lhs, rhs, unwind } => {
                let (lhs, rhs) = (self.word(*lhs)?, self.word(*rhs)?);
                let value = match op {
                    CheckedOp::Div | CheckedOp::Rem => self.division(*op, lhs, rhs, *unwind)?,
                    CheckedOp::Shl | CheckedOp::Shr => self.shift(*op, lhs, rhs, *unwind)?,
                };
                self.set(*dst, value)
            }
            InstKind::Load { dst, base, offset } => {
                let (base, ty) = (self.word(*base)?, self.ty(*dst)?);
                let value = self.b.ins().load(ty, mem(), base, *offset);
                self.set(*dst, value)
            }
            InstKind::Store { base, offset, src } => {
                let (base, src) = (self.word(*base)?, self.get(*src)?);
                let _ = self.b.ins().store(mem(), src, base, *offset);
                Ok(())
            }
            InstKind::Kind(dst, src) => {
                let object = self.word(*src)?;
                let kind = self.b.ins().uload32(mem(), object, layout::KIND);
                self.set(*dst, kind)
            }
            InstKind::Element { dst, multi, index, words, checked, unwind } => {
                let value = self.element(*multi, *index, *words, *checked, *unwind)?;
                self.set(*dst, value)
            }
            InstKind::Push { multi, first, second, unwind } => self.push(*multi, *first, *second, *unwind),
            InstKind::Init { multi, at, first, second } => self.init(*multi, *at, *first, *second, true),
            InstKind::Retain { local, nonnull } => self.retain(*local, *nonnull),
            InstKind::Release { local, nonnull } => self.release(*local, *nonnull),
            InstKind::TrapIfNull { local, code, text, unwind } => {
                let (text, value) = (self.text(*text)?, self.word(*local)?);
                let null = self.b.ins().icmp_imm_s(IntCC::Equal, value, 0);
                self.trap_if(null, *code, text, *unwind)
            }
            InstKind::Call { dsts, callee, args, unwind } => self.call(dsts, callee, args, *unwind),
            InstKind::Concat { dst, into, parts, unwind } => self.concat(*dst, *into, parts, *unwind),
            InstKind::Safepoint { unwind } => self.reduction(Some(*unwind)),
        }
    }

    fn text(&self, id: TextId) -> Result<Target, String> {
        let text = self.unit.program.texts.get(id.0 as usize).map(|_| Target::Text(id.0));
        text.ok_or_else(|| format!("malformed MIR: no text {}", id.0))
    }

    fn int_op(&mut self, op: IntOp, lhs: Value, rhs: Value) -> Value {
        let cc = match op {
            IntOp::Add => return self.b.ins().iadd(lhs, rhs),
            IntOp::Sub => return self.b.ins().isub(lhs, rhs),
            IntOp::Mul => return self.b.ins().imul(lhs, rhs),
            IntOp::And => return self.b.ins().band(lhs, rhs),
            IntOp::Or => return self.b.ins().bor(lhs, rhs),
            IntOp::Xor => return self.b.ins().bxor(lhs, rhs),
            IntOp::Shl => return self.b.ins().ishl(lhs, rhs),
            IntOp::Shr => return self.b.ins().sshr(lhs, rhs),
            IntOp::Eq => IntCC::Equal,
            IntOp::Ne => IntCC::NotEqual,
            IntOp::Lt => IntCC::SignedLessThan,
            IntOp::Le => IntCC::SignedLessThanOrEqual,
            IntOp::Gt => IntCC::SignedGreaterThan,
            IntOp::Ge => IntCC::SignedGreaterThanOrEqual,
        };
        let flag = self.b.ins().icmp(cc, lhs, rhs);
        self.b.ins().uextend(types::I64, flag)
    }

    fn float_op(&mut self, op: FloatOp, lhs: Value, rhs: Value) -> Value {
        // `NotEqual` is true for NaN, the others are false, as IEEE 754 says.
        let cc = match op {
            FloatOp::Add => return self.b.ins().fadd(lhs, rhs),
            FloatOp::Sub => return self.b.ins().fsub(lhs, rhs),
            FloatOp::Mul => return self.b.ins().fmul(lhs, rhs),
            FloatOp::Div => return self.b.ins().fdiv(lhs, rhs),
            FloatOp::Eq => FloatCC::Equal,
            FloatOp::Ne => FloatCC::NotEqual,
            FloatOp::Lt => FloatCC::LessThan,
            FloatOp::Le => FloatCC::LessThanOrEqual,
            FloatOp::Gt => FloatCC::GreaterThan,
            FloatOp::Ge => FloatCC::GreaterThanOrEqual,
        };
        let flag = self.b.ins().fcmp(cc, lhs, rhs);
        self.b.ins().uextend(types::I64, flag)
    }

    /// `/` and `%`: the divisors 0 and -1 take a cold path, which traps unless the quotient by -1 exists.
    fn division(&mut self, op: CheckedOp, lhs: Value, rhs: Value, unwind: BlockId) -> Result<Value, String> {
        if !self.constant(rhs).is_some_and(|rhs| rhs != 0 && rhs != -1) {
            let shifted = self.b.ins().iadd_imm_s(rhs, 1);
            let special = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, shifted, 2);
            let (cold, ok) = (self.cold_block(), self.b.create_block());
            let _ = self.b.ins().brif(special, cold, &[], ok, &[]);
            self.start(cold);
            self.b.seal_block(cold);
            let zero = self.b.ins().icmp_imm_s(IntCC::Equal, rhs, 0);
            self.trap_if(zero, trap::DIV0, target::DIVISION_BY_ZERO, unwind)?;
            let min = self.b.ins().icmp_imm_s(IntCC::Equal, lhs, i64::MIN);
            self.raise(trap::DIV0, target::MIN_BY_MINUS_ONE, unwind, |b, trap| {
                let _ = b.ins().brif(min, trap, &[], ok, &[]);
            })?;
            self.start(ok);
            self.b.seal_block(ok);
        }
        Ok(if op == CheckedOp::Div { self.b.ins().sdiv(lhs, rhs) } else { self.b.ins().srem(lhs, rhs) })
    }

    fn shift(&mut self, op: CheckedOp, lhs: Value, rhs: Value, unwind: BlockId) -> Result<Value, String> {
        if !self.constant(rhs).is_some_and(|rhs| (0..64).contains(&rhs)) {
            let bad = self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, rhs, 63);
            self.trap_if(bad, trap::SHIFT, target::SHIFT_COUNT, unwind)?;
        }
        Ok(if op == CheckedOp::Shl { self.b.ins().ishl(lhs, rhs) } else { self.b.ins().sshr(lhs, rhs) })
    }

    fn element(
        &mut self,
        multi: Local,
        index: Local,
        words: u32,
        checked: bool,
        unwind: BlockId,
    ) -> Result<Value, String> {
        let (multi, index) = (self.word(multi)?, self.word(index)?);
        if checked {
            let len = self.b.ins().load(types::I64, mem(), multi, layout::MULTI_LEN);
            let bad = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, len);
            self.trap_if(bad, trap::BOUNDS, target::MULTI_INDEX, unwind)?;
        }
        let data = self.b.ins().load(types::I64, mem(), multi, layout::MULTI_DATA);
        let offset = match words {
            1 => self.b.ins().ishl_imm_u(index, 3),
            2 => self.b.ins().ishl_imm_u(index, 4),
            _ => self.b.ins().imul_imm_s(index, 8 * i64::from(words)),
        };
        Ok(self.b.ins().iadd(data, offset))
    }

    /// `multi.push`: inline where there is room.
    fn push(&mut self, multi: Local, first: Local, second: Option<Local>, unwind: BlockId) -> Result<(), String> {
        let (object, value) = (self.word(multi)?, self.word(first)?);
        let second = second.map(|second| self.word(second)).transpose()?;
        let done = self.b.create_block();
        if !self.huge {
            let len = self.b.ins().load(types::I64, mem(), object, layout::MULTI_LEN);
            let capacity = self.b.ins().load(types::I64, mem(), object, layout::MULTI_CAP);
            let room = self.b.ins().icmp(IntCC::UnsignedLessThan, len, capacity);
            let (fast, slow) = (self.b.create_block(), self.cold_block());
            let _ = self.b.ins().brif(room, fast, &[], slow, &[]);
            self.start(fast);
            self.b.seal_block(fast);
            let data = self.b.ins().load(types::I64, mem(), object, layout::MULTI_DATA);
            let offset = self.b.ins().ishl_imm_u(len, if second.is_some() { 4 } else { 3 });
            let at = self.b.ins().iadd(data, offset);
            let _ = self.b.ins().store(mem(), value, at, 0);
            if let Some(second) = second {
                let _ = self.b.ins().store(mem(), second, at, 8);
            }
            let more = self.b.ins().iadd_imm_s(len, 1);
            let _ = self.b.ins().store(mem(), more, object, layout::MULTI_LEN);
            let _ = self.b.ins().jump(done, &[]);
            self.start(slow);
            self.b.seal_block(slow);
        }
        let second = match second {
            Some(second) => second,
            None => zero(&mut self.b, types::I64),
        };
        let _ = self.runtime("multi.push", &[object, value, second])?;
        self.trap_test(Some(unwind))?;
        let _ = self.b.ins().jump(done, &[]);
        self.start(done);
        self.b.seal_block(done);
        Ok(())
    }

    /// Stores element `at`; with `last`, the length too.
    pub(super) fn init(
        &mut self,
        multi: Local,
        at: u32,
        first: Local,
        second: Option<Local>,
        last: bool,
    ) -> Result<(), String> {
        let object = self.word(multi)?;
        let words = if second.is_some() { 2 } else { 1 };
        let data = self.b.ins().load(types::I64, mem(), object, layout::MULTI_DATA);
        let mut offset = i64::from(at) * 8 * words;
        for local in [Some(first), second].into_iter().flatten() {
            let value = self.word(local)?;
            let (base, small) = match i32::try_from(offset) {
                Ok(small) => (data, small),
                Err(_) => (self.b.ins().iadd_imm_s(data, offset), 0),
            };
            let _ = self.b.ins().store(mem(), value, base, small);
            offset += 8;
        }
        if last {
            let len = self.b.ins().iconst(types::I64, i64::from(at) + 1);
            let _ = self.b.ins().store(mem(), len, object, layout::MULTI_LEN);
        }
        Ok(())
    }

    // -- counts ---------------------------------------------------------------------------------------------------

    fn rep(&self, local: Local) -> Result<Rep, String> {
        let decl = self.func.locals.get(local.0 as usize);
        decl.map(|decl| decl.rep).ok_or_else(|| format!("malformed MIR: no local {}", local.0))
    }

    fn retain(&mut self, local: Local, nonnull: bool) -> Result<(), String> {
        let object = self.word(local)?;
        match self.rep(local)? {
            Rep::Obj => {
                let done = self.b.create_block();
                let count = self.count_unless_immortal(object, nonnull, done);
                // A count that overflows turns negative: the object is immortal from then on.
                let more = self.b.ins().iadd_imm_s(count, 1);
                let _ = self.b.ins().store(mem(), more, object, layout::COUNT);
                let _ = self.b.ins().jump(done, &[]);
                self.start(done);
                self.b.seal_block(done);
                Ok(())
            }
            Rep::Actor => self.runtime("rt.retain_actor", &[object]).map(|_| ()),
            Rep::Int | Rep::Float => Err("malformed MIR: retain of a scalar".to_string()),
        }
    }

    fn release(&mut self, local: Local, nonnull: bool) -> Result<(), String> {
        let object = self.word(local)?;
        match self.rep(local)? {
            Rep::Obj if self.cold => {
                let release = self.callee(self.unit.glue(RELEASE), || signature([AbiRep::W], []));
                let _ = self.b.ins().call(release, &[self.ctx, object]);
                Ok(())
            }
            Rep::Obj => {
                let done = self.b.create_block();
                let count = self.count_unless_immortal(object, nonnull, done);
                let left = self.b.ins().iadd_imm_s(count, -1);
                let _ = self.b.ins().store(mem(), left, object, layout::COUNT);
                let free = self.cold_block();
                let quiet = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, left, i64::from(layout::QUIET));
                let _ = self.b.ins().brif(quiet, done, &[], free, &[]);
                self.start(free);
                self.b.seal_block(free);
                let _ = self.runtime("rt.released", &[object])?;
                let _ = self.b.ins().jump(done, &[]);
                self.start(done);
                self.b.seal_block(done);
                Ok(())
            }
            Rep::Actor => self.runtime("rt.release_actor", &[object]).map(|_| ()),
            Rep::Int | Rep::Float => Err("malformed MIR: release of a scalar".to_string()),
        }
    }

    /// The object's count, in a block that null (unless `nonnull`) and immortal objects do not reach: they go to `done`.
    fn count_unless_immortal(&mut self, object: Value, nonnull: bool, done: cranelift_codegen::ir::Block) -> Value {
        if !nonnull {
            let live = self.b.create_block();
            let _ = self.b.ins().brif(object, live, &[], done, &[]);
            self.start(live);
            self.b.seal_block(live);
        }
        let count = self.b.ins().load(types::I32, mem(), object, layout::COUNT);
        let immortal = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, count, 0);
        let counted = self.b.create_block();
        let _ = self.b.ins().brif(immortal, done, &[], counted, &[]);
        self.start(counted);
        self.b.seal_block(counted);
        count
    }

    // -- calls ----------------------------------------------------------------------------------------------------

    fn call(&mut self, dsts: &[Local], callee: &Callee, args: &[Local], unwind: Option<BlockId>) -> Result<(), String> {
        let mut values = Vec::with_capacity(args.len() + 1);
        for arg in args {
            values.push(self.get(*arg)?);
        }
        let (inst, traps) = match callee {
            Callee::Runtime("sqrt") if let ([dst], [value]) = (dsts, values.as_slice()) => {
                let value = self.coerce(*value, types::F64);
                let root = self.b.ins().sqrt(value);
                return self.set(*dst, root);
            }
            Callee::Runtime("byte_at")
                if !self.huge
                    && let ([dst], [text, index]) = (dsts, values.as_slice()) =>
            {
                return self.byte_at(*dst, *text, *index, unwind);
            }
            Callee::Runtime(name) => self.runtime(name, &values)?,
            Callee::Func(id) => {
                let (func, target) = self.unit.func(id.0)?;
                let sig = func_signature(func);
                let values = self.arguments(&sig, &values)?;
                let callee = self.callee(target, || sig);
                (self.b.ins().call(callee, &values), true)
            }
            Callee::Table(table) => (self.dispatch(*table, dsts, args, &values)?, true),
        };
        // Results mean nothing when a trap is pending, so they are defined on the other path only. Generated code may
        // always trap (by its stack check): without an unwind block the trap leaves this function too.
        let results = self.b.inst_results(inst).to_vec();
        if traps {
            self.trap_test(unwind)?;
        }
        if dsts.len() > results.len() {
            return Err("malformed MIR: more destinations than results".to_string());
        }
        for (dst, result) in dsts.iter().zip(results) {
            self.set(*dst, result)?;
        }
        Ok(())
    }

    /// `byte_at` inline where the index is in range; else the runtime function traps.
    fn byte_at(&mut self, dst: Local, text: Value, index: Value, unwind: Option<BlockId>) -> Result<(), String> {
        let len = self.b.ins().load(types::I64, mem(), text, layout::TEXT_LEN);
        let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, index, len);
        let (fast, slow, done) = (self.b.create_block(), self.cold_block(), self.b.create_block());
        let byte = self.b.append_block_param(done, types::I64);
        let _ = self.b.ins().brif(inside, fast, &[], slow, &[]);
        self.start(fast);
        self.b.seal_block(fast);
        let at = self.b.ins().iadd(text, index);
        let value = self.b.ins().uload8(types::I64, mem(), at, layout::TEXT_DATA);
        let _ = self.b.ins().jump(done, &[value.into()]);
        self.start(slow);
        self.b.seal_block(slow);
        let (inst, _) = self.runtime("byte_at", &[text, index])?;
        let result = self.b.inst_results(inst).first().copied().ok_or("byte_at without result")?;
        self.trap_test(unwind)?;
        let _ = self.b.ins().jump(done, &[result.into()]);
        self.start(done);
        self.b.seal_block(done);
        self.set(dst, byte)
    }

    /// The context and the arguments, each as the callee takes it.
    fn arguments(&mut self, sig: &Signature, args: &[Value]) -> Result<Vec<Value>, String> {
        if sig.params.len() != args.len() + 1 {
            return Err(format!("malformed MIR: call with {} arguments for {}", args.len(), sig.params.len() - 1));
        }
        let mut values = Vec::with_capacity(args.len() + 1);
        values.push(self.ctx);
        for (value, param) in args.iter().zip(sig.params.iter().skip(1)) {
            values.push(self.coerce(*value, param.value_type));
        }
        Ok(values)
    }

    /// Calls the entry for the first argument's class in a dispatch table.
    fn dispatch(&mut self, table: u32, dsts: &[Local], args: &[Local], values: &[Value]) -> Result<Inst, String> {
        let program = self.unit.program;
        let rows = program.tables.get(table as usize).ok_or("malformed MIR: no such dispatch table")?;
        let method = rows.rows.first().and_then(|(_, id)| program.funcs.get(id.0 as usize));
        let sig = match method {
            Some(func) => func_signature(func),
            None => {
                let mut reps = Vec::with_capacity(args.len() + dsts.len());
                for local in args.iter().chain(dsts) {
                    reps.push(self.rep(*local)?.abi());
                }
                signature(reps.iter().take(args.len()).copied(), reps.iter().skip(args.len()).copied())
            }
        };
        let object = values.first().copied().ok_or("malformed MIR: dispatch without receiver")?;
        let values = self.arguments(&sig, values)?;
        let kind = self.b.ins().uload32(mem(), object, layout::KIND);
        let offset = self.b.ins().ishl_imm_u(kind, 3);
        let base = self.address(Target::Table(table));
        let entry = self.b.ins().iadd(base, offset);
        // A table's entries begin with that of the first class. They do not change once code runs.
        let first = -8 * layout::FIRST_CLASS as i32;
        let code = self.b.ins().load(types::I64, MemFlagsData::trusted().with_readonly(), entry, first);
        let sig = self.b.import_signature(sig);
        Ok(self.b.ins().call_indirect(sig, code, &values))
    }

    fn concat(
        &mut self,
        dst: Local,
        into: Option<Local>,
        parts: &[(i64, Local)],
        unwind: BlockId,
    ) -> Result<(), String> {
        let slot = self.parts.ok_or("malformed MIR: concatenation without parts")?;
        let mut offset = 0;
        for (kind, local) in parts {
            let value = self.word(*local)?;
            let kind = self.b.ins().iconst(types::I64, *kind);
            let _ = self.b.ins().stack_store(types::I64, kind, slot, offset);
            let _ = self.b.ins().stack_store(types::I64, value, slot, offset + 8);
            offset += 16;
        }
        let at = self.b.ins().stack_addr(types::I64, slot, 0);
        let number = self.b.ins().iconst(types::I64, parts.len() as i64);
        let (inst, _) = match into {
            Some(into) => {
                let into = self.word(into)?;
                self.runtime("text.append", &[into, at, number])?
            }
            None => self.runtime("text.concat", &[at, number])?,
        };
        let result = self.b.inst_results(inst).first().copied().ok_or("concatenation without result")?;
        self.trap_test(Some(unwind))?;
        self.set(dst, result)
    }
}

//! The verifier: reps of operands and results, block and text ids, arities of calls, unwind edges, and that every local
//! is written before it is read on every path.

use crate::ir::{BlockId, Callee, FloatOp, Func, Inst, InstKind, IntOp, Local, Program, Rep, Term};
use crate::lower::callee_signature;

/// Checks every function.
///
/// # Errors
/// The first violation, with function, block and instruction.
pub fn verify(program: &Program) -> Result<(), String> {
    for (i, func) in program.funcs.iter().enumerate() {
        Verifier { program, func }.func().map_err(|e| format!("f{i} {}: {e}", func.display))?;
    }
    for (i, table) in program.tables.iter().enumerate() {
        let mut signatures = table.rows.iter().map(|(_, f)| callee_signature(program, &Callee::Func(*f)));
        let first = signatures.next();
        if let Some(first) = first
            && (first.is_none() || signatures.any(|s| s != first))
        {
            return Err(format!("table {i} {}: rows of different signatures", table.name));
        }
    }
    if let Some(main) = program.main
        && callee_signature(program, &Callee::Func(main)) != Some((Vec::new(), vec![Rep::Int]))
    {
        return Err("main: wrong signature".to_string());
    }
    Ok(())
}

struct Verifier<'a> {
    program: &'a Program,
    func: &'a Func,
}

type Check = Result<(), String>;

impl Verifier<'_> {
    fn func(&self) -> Check {
        if self.func.params as usize > self.func.locals.len() || self.func.blocks.is_empty() {
            return Err("no body".to_string());
        }
        for (n, block) in self.func.blocks.iter().enumerate() {
            for (k, inst) in block.insts.iter().enumerate() {
                self.inst(&inst.kind).map_err(|e| format!("b{n} inst {k}: {e}"))?;
                if let Some(unwind) = inst.kind.unwind() {
                    self.unwind(unwind).map_err(|e| format!("b{n} inst {k}: {e}"))?;
                }
            }
            self.term(&block.term).map_err(|e| format!("b{n} end: {e}"))?;
        }
        if let Some(unwind) = self.func.entry_unwind {
            self.unwind(unwind).map_err(|e| format!("entry: {e}"))?;
            self.entry_unwind(unwind).map_err(|e| format!("entry: {e}"))?;
        }
        self.defined()
    }

    fn rep(&self, local: Local) -> Result<Rep, String> {
        self.func.locals.get(local.0 as usize).map(|l| l.rep).ok_or_else(|| format!("no local %{}", local.0))
    }

    fn is(&self, local: Local, rep: Rep) -> Check {
        match self.rep(local)? {
            r if r == rep => Ok(()),
            r => Err(format!("%{} is {r:?}, not {rep:?}", local.0)),
        }
    }

    fn all(&self, locals: &[Local], rep: Rep) -> Check {
        locals.iter().try_for_each(|l| self.is(*l, rep))
    }

    fn managed(&self, local: Local) -> Check {
        match self.rep(local)? {
            Rep::Obj | Rep::Actor => Ok(()),
            r => Err(format!("%{} is {r:?}, not counted", local.0)),
        }
    }

    fn word(&self, local: Local) -> Check {
        match self.rep(local)? {
            Rep::Float => Err(format!("%{} is a Float, not a word", local.0)),
            _ => Ok(()),
        }
    }

    fn block(&self, id: BlockId) -> Check {
        if (id.0 as usize) < self.func.blocks.len() { Ok(()) } else { Err(format!("no block b{}", id.0)) }
    }

    fn unwind(&self, id: BlockId) -> Check {
        match self.func.blocks.get(id.0 as usize) {
            Some(b) if b.cold => Ok(()),
            Some(_) => Err(format!("unwind block b{} is not cold", id.0)),
            None => Err(format!("no block b{}", id.0)),
        }
    }

    /// Code generation repeats this path in front of functions with large frames.
    fn entry_unwind(&self, mut at: BlockId) -> Check {
        for _ in 0..=self.func.params {
            let Some(block) = self.func.blocks.get(at.0 as usize) else { break };
            let releases = |i: &Inst| matches!(&i.kind, InstKind::Release { local, .. } if local.0 < self.func.params);
            if !block.insts.iter().all(releases) {
                return Err(format!("b{} does more than releasing parameters", at.0));
            }
            match block.term {
                Term::Jump(next) => at = next,
                Term::Resume => return Ok(()),
                _ => break,
            }
        }
        Err("unwinding does not resume".to_string())
    }

    fn inst(&self, inst: &InstKind) -> Check {
        match inst {
            InstKind::Int(d, _) => self.is(*d, Rep::Int),
            InstKind::Float(d, _) => self.is(*d, Rep::Float),
            InstKind::Text(d, id) => {
                self.is(*d, Rep::Obj)?;
                self.text(id.0)
            }
            InstKind::Null(d) => self.managed(*d),
            InstKind::Copy(d, s) => self.is(*s, self.rep(*d)?),
            InstKind::IntOp(d, op, l, r) => {
                self.is(*d, Rep::Int)?;
                if matches!(op, IntOp::Eq | IntOp::Ne) {
                    self.word(*l)?;
                    return self.word(*r);
                }
                self.all(&[*l, *r], Rep::Int)
            }
            InstKind::FloatOp(d, op, l, r) => {
                let arithmetic = matches!(op, FloatOp::Add | FloatOp::Sub | FloatOp::Mul | FloatOp::Div);
                self.is(*d, if arithmetic { Rep::Float } else { Rep::Int })?;
                self.all(&[*l, *r], Rep::Float)
            }
            InstKind::FloatNeg(d, s) => self.all(&[*d, *s], Rep::Float),
            InstKind::ToBits(d, s) => {
                self.is(*d, Rep::Int)?;
                self.is(*s, Rep::Float)
            }
            InstKind::FromBits(d, s) => {
                self.is(*d, Rep::Float)?;
                self.is(*s, Rep::Int)
            }
            InstKind::Checked { dst, lhs, rhs, .. } => self.all(&[*dst, *lhs, *rhs], Rep::Int),
            InstKind::Load { dst, base, .. } => {
                let _ = self.rep(*dst)?;
                self.word(*base)
            }
            InstKind::Store { base, src, .. } => {
                let _ = self.rep(*src)?;
                self.word(*base)
            }
            InstKind::Kind(d, s) => {
                self.is(*d, Rep::Int)?;
                self.is(*s, Rep::Obj)
            }
            InstKind::Element { dst, multi, index, words, .. } => {
                self.all(&[*dst, *index], Rep::Int)?;
                if !(1..=2).contains(words) {
                    return Err(format!("elements of {words} words"));
                }
                self.is(*multi, Rep::Obj)
            }
            InstKind::Push { multi, first, second, .. } | InstKind::Init { multi, first, second, .. } => {
                self.is(*multi, Rep::Obj)?;
                self.word(*first)?;
                second.map_or(Ok(()), |second| self.word(second))
            }
            InstKind::Retain { local, .. } | InstKind::Release { local, .. } => self.managed(*local),
            InstKind::TrapIfNull { local, text, .. } => {
                self.word(*local)?;
                self.text(text.0)
            }
            InstKind::Call { dsts, callee, args, unwind } => self.call(dsts, callee, args, unwind.is_some()),
            InstKind::Concat { dst, into, parts, .. } => {
                self.is(*dst, Rep::Obj)?;
                if let Some(into) = into {
                    self.is(*into, Rep::Obj)?;
                }
                for (kind, part) in parts {
                    let rep = match *kind {
                        abi::symbols::PART_TEXT => Rep::Obj,
                        abi::symbols::PART_FLOAT => Rep::Float,
                        abi::symbols::PART_INT | abi::symbols::PART_BOOL => Rep::Int,
                        other => return Err(format!("part of kind {other}")),
                    };
                    self.is(*part, rep)?;
                }
                Ok(())
            }
            InstKind::Safepoint { .. } => Ok(()),
        }
    }

    fn text(&self, id: u32) -> Check {
        if (id as usize) < self.program.texts.len() { Ok(()) } else { Err(format!("no text {id}")) }
    }

    fn call(&self, dsts: &[Local], callee: &Callee, args: &[Local], unwinds: bool) -> Check {
        if let Callee::Runtime(name) = callee {
            let symbol = abi::symbols::find(name).ok_or_else(|| format!("no runtime function {name}"))?;
            if symbol.traps != unwinds {
                return Err(format!("{name}: unwind edge and `traps` disagree"));
            }
            let abi =
                |locals: &[Local]| locals.iter().map(|l| Ok(self.rep(*l)?.abi())).collect::<Result<Vec<_>, String>>();
            if abi(args)? != symbol.params || abi(dsts)? != symbol.results {
                return Err(format!("{name}: wrong arguments or results"));
            }
            return Ok(());
        }
        if !unwinds {
            return Err("call without unwind edge".to_string());
        }
        if let Callee::Table(t) = callee {
            let table = self.program.tables.get(*t as usize).ok_or_else(|| format!("no table {t}"))?;
            let receiver = args.first().ok_or("dispatch without receiver")?;
            self.is(*receiver, Rep::Obj)?;
            if table.rows.is_empty() {
                return Ok(());
            }
        }
        let (params, results) = callee_signature(self.program, callee).ok_or("call of an unknown function")?;
        let reps = |locals: &[Local]| locals.iter().map(|l| self.rep(*l)).collect::<Result<Vec<_>, String>>();
        if reps(args)? != params || reps(dsts)? != results {
            return Err(format!("wrong arguments or results for {callee:?}"));
        }
        Ok(())
    }

    fn term(&self, term: &Term) -> Check {
        let mut result = Ok(());
        term.each_target(|b| {
            if result.is_ok() {
                result = self.block(b);
            }
        });
        result?;
        match term {
            Term::Branch { cond, .. } => self.is(*cond, Rep::Int),
            Term::Switch { on, .. } => self.is(*on, Rep::Int),
            Term::Return(values) => {
                if values.len() != self.func.results.len() {
                    return Err("wrong number of results".to_string());
                }
                values.iter().zip(&self.func.results).try_for_each(|(v, r)| self.is(*v, *r))
            }
            Term::Jump(_) | Term::Resume | Term::Unreachable => Ok(()),
        }
    }

    /// Forward data flow: which locals are written on every path to a block. Skipped for functions whose tables would
    /// be too large; code generation reads an unwritten local as zero.
    fn defined(&self) -> Check {
        let words = self.func.locals.len().div_ceil(64);
        let edges = self.func.blocks.iter().flat_map(|b| &b.insts).filter(|i| i.kind.unwind().is_some()).count();
        if words.saturating_mul(self.func.blocks.len() + edges) > 4_000_000 {
            return Ok(());
        }
        let mut entry: Vec<Option<Vec<u64>>> = vec![None; self.func.blocks.len()];
        let mut start = vec![0u64; words];
        (0..self.func.params).for_each(|p| write(&mut start, Local(p)));
        let mut work = Vec::new();
        for to in std::iter::once(BlockId(0)).chain(self.func.entry_unwind) {
            merge(&mut entry, &mut work, to, &start);
        }
        while let Some(id) = work.pop() {
            let Some(block) = self.func.blocks.get(id.0 as usize) else { continue };
            let Some(mut state) = entry.get(id.0 as usize).cloned().flatten() else { continue };
            for (k, inst) in block.insts.iter().enumerate() {
                let mut early = None;
                inst.kind.each_read(|read| early = early.or((!has(&state, read)).then_some(read)));
                if let Some(read) = early {
                    return Err(format!("b{} inst {k}: %{} is read before it is written", id.0, read.0));
                }
                if let Some(unwind) = inst.kind.unwind() {
                    merge(&mut entry, &mut work, unwind, &state);
                }
                inst.kind.writes().iter().for_each(|w| write(&mut state, *w));
            }
            let read = match &block.term {
                Term::Branch { cond, .. } => vec![*cond],
                Term::Switch { on, .. } => vec![*on],
                Term::Return(values) => values.clone(),
                _ => Vec::new(),
            };
            if let Some(bad) = read.iter().find(|r| !has(&state, **r)) {
                return Err(format!("b{} end: %{} is read before it is written", id.0, bad.0));
            }
            block.term.each_target(|to| merge(&mut entry, &mut work, to, &state));
        }
        Ok(())
    }
}

fn has(state: &[u64], local: Local) -> bool {
    state.get(local.0 as usize / 64).is_some_and(|w| w >> (local.0 % 64) & 1 == 1)
}

fn write(state: &mut [u64], local: Local) {
    if let Some(w) = state.get_mut(local.0 as usize / 64) {
        *w |= 1 << (local.0 % 64);
    }
}

/// Intersects `state` into what is known at the entry of `to`, which is visited again when that changes.
fn merge(entry: &mut [Option<Vec<u64>>], work: &mut Vec<BlockId>, to: BlockId, state: &[u64]) {
    let Some(slot) = entry.get_mut(to.0 as usize) else { return };
    match slot {
        None => {
            *slot = Some(state.to_vec());
            work.push(to);
        }
        Some(known) => {
            let mut changed = false;
            for (k, s) in known.iter_mut().zip(state) {
                changed |= *k & !s != 0;
                *k &= s;
            }
            if changed {
                work.push(to);
            }
        }
    }
}

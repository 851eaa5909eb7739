//! Calls of user code: functions, methods, interface methods.

use super::FnLower;
use super::value::Value;
use crate::ir::{Callee, FuncId, InstKind, Local, Term};
use analysis::hir::{self, Expr, IfaceId, Ty, Types};
use syntax::ast::Mode;

impl<'a> FnLower<'_, 'a> {
    pub fn call_func(&mut self, id: hir::FuncId, args: &'a [Expr]) -> Value {
        let program = self.program;
        let Some(func) = program.funcs.get(id.0 as usize) else { return Value::none() };
        let exprs: Vec<&Expr> = args.iter().collect();
        let params: Vec<Ty> = func.locals.iter().take(func.params.len()).map(|l| l.ty).collect();
        let values = self.arguments(&exprs, &params);
        let result = self.fresh(self.cx.result(id), func.ret);
        let kept = self.hand_over(&values, func.params.iter().copied());
        self.b.call(FuncId(id.0), flatten(&values), result.locals());
        self.drop_all(&kept);
        if func.never_returns {
            self.b.end(Term::Unreachable);
        }
        self.owned(result)
    }

    pub fn call_iface(&mut self, iface: IfaceId, slot: u32, recv: &'a Expr, args: &'a [Expr]) -> Value {
        let program = self.program;
        let sig = program.interfaces.get(iface.0 as usize).and_then(|i| i.sigs.get(slot as usize));
        let Some(sig) = sig else { return Value::none() };
        let table = self.cx.tables.get(iface.0 as usize).copied().unwrap_or(0) + slot;
        let exprs: Vec<&Expr> = std::iter::once(recv).chain(args).collect();
        let params: Vec<Ty> = std::iter::once(recv.ty).chain(sig.params.iter().map(|(_, ty)| *ty)).collect();
        let values = self.arguments(&exprs, &params);
        let result = self.fresh(self.shape(sig.ret), sig.ret);
        let kept = self.hand_over(&values, std::iter::once(Mode::Borrow).chain(sig.params.iter().map(|(m, _)| *m)));
        let unwind = Some(self.b.unwind());
        let args = flatten(&values);
        self.b.emit(InstKind::Call { dsts: result.locals(), callee: Callee::Table(table), args, unwind });
        self.drop_all(&kept);
        self.owned(result)
    }

    /// Takes a reference out of each argument of a `take` parameter, for the callee; the others stay with the caller.
    fn hand_over(&mut self, values: &[Value], modes: impl Iterator<Item = Mode>) -> Vec<Value> {
        let mut kept = Vec::with_capacity(values.len());
        for (value, mode) in values.iter().zip(modes) {
            if mode == Mode::Take {
                self.consume(*value);
            } else {
                kept.push(*value);
            }
        }
        kept
    }

    /// Arguments of user code in the shapes of the parameters, each kept alive through the call.
    fn arguments(&mut self, exprs: &[&'a Expr], params: &[Ty]) -> Vec<Value> {
        let values = self.operands(exprs);
        let mut out = Vec::with_capacity(values.len());
        for (i, value) in values.into_iter().enumerate() {
            let shape = self.shape(params.get(i).copied().unwrap_or(Types::INT));
            let value = self.coerce(value, shape);
            out.push(self.for_call(value));
        }
        out
    }
}

/// Words of operands, in order.
pub fn flatten(values: &[Value]) -> Vec<Local> {
    values.iter().flat_map(Value::locals).collect()
}

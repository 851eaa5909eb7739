//! Expressions. Each yields an operand (`Value`): owned, or borrowed from a local or an object.

use super::FnLower;
use super::value::{Own, Value};
use crate::effects::{Effects, effects};
use crate::ir::{InstKind, IntOp, Local, Rep};
use crate::passes::Pass;
use crate::shapes::Shape;
use abi::{symbols, trap};
use analysis::hir::{Expr, ExprKind, LocalId, OnNil, Ty, TyKind};

impl<'a> FnLower<'_, 'a> {
    /// Evaluates `e`.
    pub fn expr(&mut self, e: &'a Expr) -> Value {
        let line = self.b.line;
        self.b.line = e.span.start;
        let value = match self.gathered_value(e) {
            Some(value) => value,
            None => self.expr_kind(e),
        };
        self.b.line = line;
        value
    }

    /// Evaluates the value of a block or function, whose variables end here: one of them is not moved to a temporary
    /// first.
    pub fn last_expr(&mut self, e: &'a Expr) -> Value {
        match e.kind {
            ExprKind::Local(local) => self.read_var(local),
            _ => self.expr(e),
        }
    }

    fn read_var(&self, local: LocalId) -> Value {
        let var = self.var(local);
        Value { shape: var.shape, a: var.a, b: var.b, own: Own::Var(local), cst: None }
    }

    /// Evaluates `e` to an operand of its own type's shape, whatever its form.
    fn expr_as(&mut self, e: &'a Expr, shape: Shape) -> Value {
        let value = self.expr(e);
        self.coerce(value, shape)
    }

    fn expr_kind(&mut self, e: &'a Expr) -> Value {
        match &e.kind {
            ExprKind::Int(v) => self.int_value(*v),
            ExprKind::Bool(v) => self.int_value(i64::from(*v)),
            ExprKind::Ordinal { variant, .. } => self.int_value(i64::from(*variant)),
            ExprKind::Float(v) => {
                let dst = self.b.temp(Rep::Float);
                self.b.emit(InstKind::Float(dst, *v));
                Value::one(Rep::Float, dst, Own::Owned)
            }
            ExprKind::Text(bytes) => self.literal(bytes),
            ExprKind::Nil => {
                let shape = match self.shape(e.ty) {
                    Shape::None => Shape::One(Rep::Obj),
                    shape => shape,
                };
                self.zero(shape)
            }
            ExprKind::Local(local) => self.local(*local, e.ty),
            ExprKind::IntNeg(inner) => {
                let v = self.expr_as(inner, Shape::One(Rep::Int));
                if let Some(c) = v.cst.filter(|_| self.cx.passes.has(Pass::Fold)) {
                    return self.int_value(c.wrapping_neg());
                }
                let zero = self.b.int(0);
                Value::int(self.b.int_op(IntOp::Sub, zero, v.a))
            }
            ExprKind::FloatNeg(inner) => {
                let v = self.expr_as(inner, Shape::One(Rep::Float));
                let dst = self.b.temp(Rep::Float);
                self.b.emit(InstKind::FloatNeg(dst, v.a));
                Value::one(Rep::Float, dst, Own::Owned)
            }
            ExprKind::Not(inner) => {
                let v = self.expr_as(inner, Shape::One(Rep::Int));
                let zero = self.b.int(0);
                Value::int(self.b.int_op(IntOp::Eq, v.a, zero))
            }
            ExprKind::Binary(op, lhs, rhs) => self.binary(*op, lhs, rhs),
            ExprKind::And(..) | ExprKind::Or(..) => self.short_circuit(e),
            ExprKind::NullableEq { eq, negated, lhs, rhs } => self.nullable_eq(*eq, *negated, lhs, rhs),
            ExprKind::IsNil { operand, negated } => self.is_nil(operand, *negated),
            ExprKind::Concat(parts) => self.concat(parts),
            ExprKind::Wrap(inner) | ExprKind::Convert(inner) => {
                let v = self.expr(inner);
                self.coerce(v, self.shape(e.ty))
            }
            ExprKind::Unwrap(inner, on_nil) => self.unwrap(inner, *on_nil, e.ty),
            ExprKind::VoidAsInt(inner) => {
                let v = self.expr(inner);
                self.drop_value(v);
                self.int_value(0)
            }
            ExprKind::Field(base, class, field) => {
                let base = self.expr(base);
                let offset = self.cx.layouts.field_offset(*class, *field);
                let v = self.load_value(e.ty, base.a, offset);
                self.out_of(base, v)
            }
            ExprKind::Element(multi, index) => self.element(multi, index, e.ty),
            ExprKind::Entry(map, key) => self.entry(map, key, e.ty),
            ExprKind::New { class, fields, defaults } => self.new_object(*class, fields, defaults),
            ExprKind::NewVariant { union, variant, args } => self.new_variant(*union, *variant, args),
            ExprKind::List(items) => self.list(items, e.ty),
            ExprKind::EmptyMap => self.new_map(e.ty),
            ExprKind::Call(func, args) => self.call_func(*func, args),
            ExprKind::CallIface { iface, slot, recv, args } => self.call_iface(*iface, *slot, recv, args),
            ExprKind::Builtin(builtin, args) => self.builtin(builtin, args, e),
            ExprKind::Spawn { class, fields, defaults } => {
                let state = self.new_object(*class, fields, defaults);
                let index = self.b.int(i64::from(class.0));
                self.consume(state);
                let dst = self.b.runtime1("actor.spawn", vec![index, state.a], Rep::Actor);
                self.owned(Value::one(Rep::Actor, dst, Own::Owned))
            }
            ExprKind::JsonDecode(text) => self.json_decode(text, e.ty),
            ExprKind::Store(op) => self.store_op(op, e.ty),
            ExprKind::Switch(switch) => self.switch(switch, e.ty),
            ExprKind::Try { body, var, handler } => self.try_catch(body, *var, handler, e.ty),
        }
    }

    /// A local; one that is read only here gives its reference away.
    fn local(&mut self, local: LocalId, ty: Ty) -> Value {
        let var = self.var(local);
        let bound_at = self.bound_at.get(local.0 as usize).copied();
        if !(var.shape.is_managed()
            && self.read_once(local)
            && bound_at == Some(self.nesting)
            && self.b.owns_above(var.a, 0))
        {
            return self.read_var(local);
        }
        let rep = self.b.rep(var.a);
        let taken = self.temp_of(rep, ty);
        self.b.copy(taken, var.a);
        self.b.emit(InstKind::Null(var.a));
        self.owned(Value::one(rep, taken, Own::Owned))
    }

    fn is_nil(&mut self, operand: &'a Expr, negated: bool) -> Value {
        let v = self.expr(operand);
        let zero = self.b.int(0);
        let op = if negated { IntOp::Ne } else { IntOp::Eq };
        // A value that cannot be nil (the shape has no room for it) compares as a constant.
        let out = match v.shape {
            Shape::Pair(_) | Shape::One(Rep::Obj | Rep::Actor) => self.b.int_op(op, v.a, zero),
            _ => self.b.int(i64::from(negated)),
        };
        self.drop_value(v);
        Value::int(out)
    }

    fn json_decode(&mut self, text: &'a Expr, ty: Ty) -> Value {
        let text = self.expr_as(text, Shape::One(Rep::Obj));
        let target = self.program.types.strip(ty);
        let index = self.cx.layouts.ty(target);
        let index = self.b.int(i64::from(index));
        let dst = self.b.temp(Rep::Obj);
        self.b.runtime("json.decode", vec![index, text.a], vec![dst]);
        self.drop_value(text);
        self.owned(Value::one(Rep::Obj, dst, Own::Owned))
    }

    pub fn int_value(&mut self, v: i64) -> Value {
        let local = self.b.int(v);
        Value { cst: Some(v), ..Value::int(local) }
    }

    pub fn literal(&mut self, bytes: &[u8]) -> Value {
        let id = self.cx.text(bytes);
        let local = self.b.text(id);
        Value::one(Rep::Obj, local, Own::Literal)
    }

    /// `value` was read out of `base`: where `base` is a temporary it ends here, and a managed value outlives it.
    pub fn out_of(&mut self, base: Value, value: Value) -> Value {
        if base.own != Own::Owned || !base.shape.is_managed() {
            return value;
        }
        let value = if value.shape.is_managed() && value.own == Own::Proj {
            self.b.retain(value.a);
            self.owned(value)
        } else {
            value
        };
        self.drop_value(base);
        value
    }

    fn unwrap(&mut self, inner: &'a Expr, on_nil: OnNil, ty: Ty) -> Value {
        let v = self.expr(inner);
        match (v.shape, on_nil) {
            (Shape::Pair(rep), OnNil::Zero) => self.or_zero(v, rep),
            // -1, the ordinal of no variant, until the message is boxed.
            (Shape::Pair(Rep::Int), OnNil::Message) => {
                let one = self.b.int(1);
                let absent = self.b.int_op(IntOp::Sub, v.a, one);
                Value::int(self.b.int_op(IntOp::Or, v.b, absent))
            }
            (Shape::Pair(_) | Shape::One(Rep::Obj | Rep::Actor), OnNil::TrapText | OnNil::TrapReceiver) => {
                let text = if on_nil == OnNil::TrapText { trap::NULL_TEXT } else { trap::NULL_RECEIVER };
                let text = self.text_id(text);
                self.b.trap_if_null(v.a, trap::BOUNDS, text);
                self.coerce(v, self.shape(ty))
            }
            // A nil object has no zero value to stand for it; the checker asks for a trap there.
            (Shape::One(Rep::Obj), OnNil::Zero) => {
                let text = self.text_id(trap::NULL_RECEIVER);
                self.b.trap_if_null(v.a, trap::BOUNDS, text);
                v
            }
            _ => self.coerce(v, self.shape(ty)),
        }
    }

    /// The value of a pair, zero for nil.
    fn or_zero(&mut self, v: Value, rep: Rep) -> Value {
        if rep == Rep::Int {
            let zero = self.b.int(0);
            let mask = self.b.int_op(IntOp::Sub, zero, v.a);
            return Value::int(self.b.int_op(IntOp::And, v.b, mask));
        }
        let dst = self.b.temp(rep);
        let (nil, join) = (self.b.block(), self.b.block());
        self.b.copy(dst, v.b);
        self.b.branch(v.a, join, nil);
        self.b.start(nil);
        self.b.emit(InstKind::Float(dst, 0.0));
        self.b.jump(join);
        self.b.start(join);
        Value::one(rep, dst, Own::Owned)
    }

    fn short_circuit(&mut self, e: &'a Expr) -> Value {
        let dst = self.b.temp(Rep::Int);
        let (yes, no, join) = (self.b.block(), self.b.block(), self.b.block());
        self.cond(e, yes, no);
        for (block, v) in [(yes, 1), (no, 0)] {
            self.b.start(block);
            self.b.emit(InstKind::Int(dst, v));
            self.b.jump(join);
        }
        self.b.start(join);
        Value::int(dst)
    }

    // -- containers --------------------------------------------------------------------------------------------

    pub fn element(&mut self, multi: &'a Expr, index: &'a Expr, ty: Ty) -> Value {
        let values = self.operands(&[multi, index]);
        let (Some(m), Some(i)) = (values.first().copied(), values.get(1).copied()) else { return Value::none() };
        let addr = self.element_addr(m.a, i.a, ty);
        let v = self.load_value(ty, addr, 0);
        self.out_of(m, v)
    }

    /// Address of a multi's element of type `ty`, bounds checked.
    pub fn element_addr(&mut self, multi: Local, index: Local, ty: Ty) -> Local {
        let dst = self.b.temp(Rep::Int);
        let words = self.shape(ty).words();
        let unwind = self.b.unwind();
        self.b.emit(InstKind::Element { dst, multi, index, words, checked: true, unwind });
        dst
    }

    /// `m[k]`, nil where the key is missing.
    fn entry(&mut self, map: &'a Expr, key: &'a Expr, ty: Ty) -> Value {
        let value_ty = self.entry_types(map.ty).1;
        let values = self.operands(&[map, key]);
        let (Some(m), Some(k)) = (values.first().copied(), values.get(1).copied()) else { return Value::none() };
        let word = self.word(k.a);
        let addr = self.b.runtime1("map.find", vec![m.a, word], Rep::Int);
        let out = self.fresh(self.shape(ty), ty);
        let (found, missing, join) = (self.b.block(), self.b.block(), self.b.block());
        self.b.branch(addr, found, missing);
        self.b.start(found);
        let v = self.load_value(value_ty, addr, 0);
        let v = self.coerce(v, out.shape);
        self.move_into(out.a, out.b, v);
        self.b.jump(join);
        self.b.start(missing);
        let nil = self.zero(out.shape);
        self.move_into(out.a, out.b, nil);
        self.b.jump(join);
        self.b.start(join);
        let own = if out.shape.is_managed() { Own::Proj } else { Own::Owned };
        let out = self.out_of(m, Value { own, ..out });
        self.drop_value(k);
        out
    }

    // -- text --------------------------------------------------------------------------------------------------

    pub fn part_kind(&self, ty: Ty) -> i64 {
        match self.kind(self.program.types.strip(ty)) {
            TyKind::Float => symbols::PART_FLOAT,
            TyKind::Bool => symbols::PART_BOOL,
            TyKind::Int | TyKind::Row(_) | TyKind::Union(_) => symbols::PART_INT,
            _ => symbols::PART_TEXT,
        }
    }

    /// Constant neighbours become one piece, empty ones go.
    pub fn pieces(parts: &'a [Expr]) -> Vec<Piece<'a>> {
        let mut out: Vec<Piece<'a>> = Vec::new();
        for part in parts {
            let constant = match &part.kind {
                ExprKind::Text(bytes) => Some(bytes.clone()),
                ExprKind::Int(v) => Some(v.to_string().into_bytes()),
                _ => None,
            };
            match (constant, out.last_mut()) {
                (Some(bytes), _) if bytes.is_empty() => {}
                (Some(bytes), Some(Piece::Constant(last))) => last.extend_from_slice(&bytes),
                (Some(bytes), _) => out.push(Piece::Constant(bytes)),
                (None, _) => out.push(Piece::Expr(part)),
            }
        }
        out
    }

    /// Evaluates pieces to `(kind, operand)`.
    pub fn parts(&mut self, pieces: &[Piece<'a>]) -> Vec<(i64, Value)> {
        let mut later = vec![Effects::default(); pieces.len()];
        let mut acc = Effects::default();
        for (slot, piece) in later.iter_mut().zip(pieces).rev() {
            *slot = acc;
            if let Piece::Expr(e) = piece {
                acc = acc.or(effects(e));
            }
        }
        let mut out = Vec::with_capacity(pieces.len());
        for (piece, later) in pieces.iter().zip(later) {
            match piece {
                Piece::Constant(bytes) => out.push((symbols::PART_TEXT, self.literal(bytes))),
                Piece::Expr(e) => {
                    let kind = self.part_kind(e.ty);
                    let value = self.expr(e);
                    let rep = match kind {
                        symbols::PART_TEXT => Rep::Obj,
                        symbols::PART_FLOAT => Rep::Float,
                        _ => Rep::Int,
                    };
                    let value = self.coerce(value, Shape::One(rep));
                    out.push((kind, self.protect(value, later)));
                }
            }
        }
        out
    }

    fn concat(&mut self, parts: &'a [Expr]) -> Value {
        let pieces = Self::pieces(parts);
        match pieces.as_slice() {
            [] => return self.literal(b""),
            [Piece::Constant(bytes)] => return self.literal(bytes),
            [Piece::Expr(e)] if self.part_kind(e.ty) == symbols::PART_TEXT => return self.expr(e),
            _ => {}
        }
        let parts = self.parts(&pieces);
        let dst = self.emit_concat(None, &parts);
        let values: Vec<Value> = parts.iter().map(|(_, v)| *v).collect();
        self.drop_all(&values);
        self.owned(Value::one(Rep::Obj, dst, Own::Owned))
    }

    /// `text.concat`, or `text.append` to `into`, which is consumed.
    pub fn emit_concat(&mut self, into: Option<Local>, parts: &[(i64, Value)]) -> Local {
        let dst = self.b.local(Rep::Obj, "", true);
        let unwind = self.b.unwind();
        let parts = parts.iter().map(|(kind, v)| (*kind, v.a)).collect();
        self.b.emit(InstKind::Concat { dst, into, parts, unwind });
        dst
    }
}

/// A part of a concatenation.
pub enum Piece<'a> {
    Constant(Vec<u8>),
    Expr(&'a Expr),
}

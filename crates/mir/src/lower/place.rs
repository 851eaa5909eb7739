//! Assignment. Base and index of the place come first, then the value, then the store; the old value goes last.

use super::FnLower;
use super::value::{Own, Value};
use crate::effects::effects;
use crate::ir::{InstKind, Rep};
use crate::shapes::Shape;
use abi::symbols;
use analysis::hir::{BinaryOp, Expr, ExprKind, LocalId, Place, Ty};

impl<'a> FnLower<'_, 'a> {
    pub fn assign(&mut self, place: &'a Place, value: &'a Expr) {
        if self.append(place, value) {
            return;
        }
        match place {
            Place::Local(local) => {
                let v = self.expr(value);
                self.set_local(*local, v);
            }
            Place::Field(base, class, field) => {
                let values = self.operands(&[base, value]);
                let (Some(base), Some(v)) = (values.first().copied(), values.get(1).copied()) else { return };
                let offset = self.cx.layouts.field_offset(*class, *field);
                let v = self.coerce(v, self.shape(self.field_type(*class, *field)));
                self.replace_words(base.a, offset, v);
                self.drop_value(base);
            }
            Place::Element(multi, index) => {
                let elem = self.elem(multi.ty);
                let values = self.operands(&[multi, index, value]);
                let [m, i, v] = values.as_slice() else { return };
                let v = self.coerce(*v, self.shape(elem));
                let addr = self.element_addr(m.a, i.a, elem);
                self.replace_words(addr, 0, v);
                self.drop_value(*m);
            }
            Place::Entry(map, key) => self.set_entry(map, key, value),
            Place::Column(row, class, field) => self.set_column(row, *class, *field, value),
        }
    }

    /// `m[k] = v` and `set(m, k, v)`.
    pub fn set_entry(&mut self, map: &'a Expr, key: &'a Expr, value: &'a Expr) {
        let shape = self.shape(self.entry_types(map.ty).1);
        let values = self.operands(&[map, key, value]);
        let [m, k, v] = values.as_slice() else { return };
        let v = self.coerce(*v, shape);
        self.store_entry(*m, *k, v);
        self.drop_value(*k);
        self.drop_value(*m);
    }

    fn store_entry(&mut self, map: Value, key: Value, value: Value) {
        let word = self.word(key.a);
        let addr = self.b.runtime1("map.slot", vec![map.a, word], Rep::Int);
        self.replace_words(addr, 0, value);
    }

    /// Gives a variable a new value and destroys the old one.
    pub fn set_local(&mut self, local: LocalId, value: Value) {
        let var = self.var(local);
        let value = self.coerce(value, var.shape);
        if !var.shape.is_managed() {
            self.move_into(var.a, var.b, value);
            return;
        }
        self.consume(value);
        let rep = self.b.rep(var.a);
        let old = self.b.temp(rep);
        self.b.copy(old, var.a);
        self.b.copy(var.a, value.a);
        self.b.release(old);
    }

    // -- append in place ---------------------------------------------------------------------------------------

    /// `s = s .. x` and `o.f = o.f .. x`: the text leaves its place while it is appended to, so that it may be the
    /// only reference. The place holds the empty text meanwhile, and keeps it where the append traps.
    fn append(&mut self, place: &'a Place, value: &'a Expr) -> bool {
        let ExprKind::Concat(parts) = &value.kind else { return false };
        let Some((first, rest)) = parts.split_first() else { return false };
        let mut all = crate::effects::Effects::default();
        for part in rest {
            all = all.or(effects(part));
        }
        match place {
            Place::Local(local) => {
                let same = matches!(first.kind, ExprKind::Local(l) if l == *local);
                let var = self.var(*local);
                if !same || all.blocks || var.shape != Shape::One(Rep::Obj) || !self.is_text(first) {
                    return false;
                }
                let parts = self.stable_parts(rest, |own| own == Own::Var(*local));
                let taken = self.b.temp(Rep::Obj);
                self.b.copy(taken, var.a);
                let empty = self.cx.text(b"");
                self.b.emit(InstKind::Text(var.a, empty));
                let dst = self.emit_concat(Some(taken), &parts);
                self.b.copy(var.a, dst);
                let values: Vec<Value> = parts.iter().map(|(_, v)| *v).collect();
                self.drop_all(&values);
                true
            }
            Place::Field(base, class, field) => {
                let ExprKind::Local(owner) = base.kind else { return false };
                let same = match &first.kind {
                    ExprKind::Field(b, c, f) => {
                        *c == *class && *f == *field && matches!(b.kind, ExprKind::Local(l) if l == owner)
                    }
                    _ => false,
                };
                if !same || all.runs || !self.is_text(first) {
                    return false;
                }
                let object = self.var(owner).a;
                let offset = self.cx.layouts.field_offset(*class, *field);
                let parts = self.stable_parts(rest, |own| own == Own::Proj);
                let taken = self.b.load(Rep::Obj, false, object, offset);
                let empty = self.literal(b"");
                self.b.store(object, offset, empty.a);
                let dst = self.emit_concat(Some(taken), &parts);
                self.b.store(object, offset, dst);
                let values: Vec<Value> = parts.iter().map(|(_, v)| *v).collect();
                self.drop_all(&values);
                true
            }
            Place::Element(..) | Place::Entry(..) | Place::Column(..) => false,
        }
    }

    fn is_text(&self, e: &Expr) -> bool {
        self.part_kind(e.ty) == symbols::PART_TEXT && self.kind(e.ty) == self.kind(self.program.types.strip(e.ty))
    }

    /// The parts of an append. Those that live in the place itself are retained: the text then has two references and
    /// is copied, not overwritten while it is read.
    fn stable_parts(&mut self, rest: &'a [Expr], in_place: impl Fn(Own) -> bool) -> Vec<(i64, Value)> {
        let pieces = Self::pieces(rest);
        let mut parts = self.parts(&pieces);
        for (_, value) in &mut parts {
            if value.shape.is_managed() && in_place(value.own) {
                let hold = self.b.temp(Rep::Obj);
                self.b.retain(value.a);
                self.b.copy(hold, value.a);
                *value = self.owned(Value { a: hold, b: hold, ..*value });
            }
        }
        parts
    }

    // -- compound assignment -----------------------------------------------------------------------------------

    pub fn op_assign(&mut self, place: &'a Place, op: BinaryOp, value: &'a Expr) {
        let later = effects(value);
        match place {
            Place::Local(local) => {
                let var = self.var(*local);
                let old = Value { shape: var.shape, a: var.a, b: var.b, own: Own::Var(*local), cst: None };
                let old = self.protect(old, later);
                let new = self.combine(op, old, value);
                self.set_local(*local, new);
            }
            Place::Field(base, class, field) => {
                let ty = self.field_type(*class, *field);
                let base = self.expr(base);
                let base = self.protect(base, later);
                let offset = self.cx.layouts.field_offset(*class, *field);
                let old = self.load_value(ty, base.a, offset);
                let new = self.combine(op, old, value);
                self.replace_words(base.a, offset, new);
                self.drop_value(base);
            }
            Place::Element(multi, index) => {
                let elem = self.elem(multi.ty);
                let values = self.operands(&[multi, index]);
                let [m, i] = values.as_slice() else { return };
                let (m, i) = (self.protect(*m, later), self.protect(*i, later));
                let addr = self.element_addr(m.a, i.a, elem);
                let old = self.load_value(elem, addr, 0);
                let new = self.combine(op, old, value);
                // The value may have changed the container: the element is looked up again.
                let addr = if later.runs { self.element_addr(m.a, i.a, elem) } else { addr };
                self.replace_words(addr, 0, new);
                self.drop_value(m);
            }
            Place::Entry(map, key) => {
                let value_ty = self.entry_types(map.ty).1;
                let values = self.operands(&[map, key]);
                let [m, k] = values.as_slice() else { return };
                let (m, k) = (self.protect(*m, later), self.protect(*k, later));
                let old = self.entry_or_zero(m, k, value_ty);
                let new = self.combine(op, old, value);
                self.store_entry(m, k, new);
                self.drop_value(k);
                self.drop_value(m);
            }
            Place::Column(row, class, field) => self.update_column(row, *class, *field, op, value),
        }
    }

    /// `old op value`, in the shape of `old`.
    fn combine(&mut self, op: BinaryOp, old: Value, value: &'a Expr) -> Value {
        let shape = old.shape;
        let scalar = match shape {
            Shape::Pair(rep) => Shape::One(rep),
            other => other,
        };
        let old = self.coerce(old, scalar);
        let v = self.expr(value);
        let v = self.coerce(v, scalar);
        let new = self.apply(op, old, v);
        self.coerce(new, shape)
    }

    fn entry_or_zero(&mut self, map: Value, key: Value, ty: Ty) -> Value {
        let word = self.word(key.a);
        let addr = self.b.runtime1("map.find", vec![map.a, word], Rep::Int);
        let shape = self.shape(ty);
        let out = self.fresh(shape, ty);
        let (found, missing, join) = (self.b.block(), self.b.block(), self.b.block());
        self.b.branch(addr, found, missing);
        self.b.start(found);
        let v = self.load_value(ty, addr, 0);
        self.move_into(out.a, out.b, v);
        self.b.jump(join);
        self.b.start(missing);
        let zero = self.zero(shape);
        self.move_into(out.a, out.b, zero);
        self.b.jump(join);
        self.b.start(join);
        out
    }

    pub fn field_type(&self, class: analysis::hir::ClassId, field: u32) -> Ty {
        let class = self.program.classes.get(class.0 as usize);
        let field = class.and_then(|c| c.fields.get(field as usize));
        field.map_or(analysis::hir::Types::INT, |f| f.ty)
    }
}

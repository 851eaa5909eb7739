//! `switch` and `try … catch`: expressions with blocks inside.

use super::FnLower;
use super::value::{Own, Value};
use crate::builder::Live;
use crate::ir::{BlockId, InstKind, Local, Rep, Term};
use crate::shapes::Shape;
use abi::{layout, trap};
use analysis::hir::{ArmTest, BlockExpr, ClassId, Expr, LocalId, Switch, Ty, TyKind, UnionId};
use analysis::ownership::moved_payload;
use rustc_hash::FxHashSet;

impl<'a> FnLower<'_, 'a> {
    pub fn switch(&mut self, switch: &'a Switch, ty: Ty) -> Value {
        let depth = self.b.depth();
        let subject = self.expr(&switch.subject);
        self.bind(switch.subject_local, subject);
        let on = self.var(switch.subject_local).a;
        let out = self.fresh(self.shape(ty), ty);
        let join = self.b.block();
        let entries: Vec<BlockId> = switch.arms.iter().map(|_| self.b.block()).collect();
        let fallback = self.b.block();
        self.dispatch(switch, on, &entries, fallback);
        for (arm, entry) in switch.arms.iter().zip(&entries) {
            self.b.start(*entry);
            self.b.line = arm.span.start;
            let inner = self.b.depth();
            if let ArmTest::Variants(union, variants, bindings) = &arm.test {
                self.bind_payload(*union, variants, bindings, on);
            }
            self.block_value(&arm.body, out, inner);
            if let ArmTest::Variants(union, variants, _) = &arm.test
                && let Some(at) = moved_payload(self.program, arm)
            {
                self.empty_payload(*union, variants, at, on);
            }
            self.b.close(inner);
            self.b.release_above(depth, None);
            self.b.jump(join);
        }
        self.b.start(fallback);
        self.fill(out);
        self.b.release_above(depth, None);
        self.b.jump(join);
        self.b.truncate_live(depth);
        self.b.start(join);
        self.owned(out)
    }

    /// Branches from the subject to the arms; `fallback` is reached when none fits.
    fn dispatch(&mut self, switch: &'a Switch, on: Local, entries: &[BlockId], fallback: BlockId) {
        let has_default = switch.arms.iter().any(|a| matches!(a.test, ArmTest::Default));
        // The arms of a complete switch need no last test.
        let otherwise = match (has_default, switch.exhaustive, entries.last()) {
            (false, true, Some(last)) => *last,
            _ => fallback,
        };
        let mut cases: Vec<(i64, BlockId)> = Vec::new();
        let mut seen = FxHashSet::default();
        let mut default = otherwise;
        let mut kind = None;
        for (arm, entry) in switch.arms.iter().zip(entries) {
            match &arm.test {
                ArmTest::Default => {
                    default = *entry;
                    break;
                }
                ArmTest::Any(tests) => {
                    self.flush(on, &mut kind, &mut cases);
                    let last = !has_default && switch.exhaustive && entries.last() == Some(entry);
                    if last {
                        self.b.jump(*entry);
                        continue;
                    }
                    for test in tests {
                        let next = self.b.block();
                        self.cond(test, *entry, next);
                        self.b.start(next);
                    }
                }
                ArmTest::Ordinals(ordinals) => {
                    kind = Some(on);
                    for o in ordinals {
                        if seen.insert(i64::from(*o)) {
                            cases.push((i64::from(*o), *entry));
                        }
                    }
                }
                ArmTest::Variants(union, variants, _) => {
                    if kind.is_none() {
                        let dst = self.b.temp(Rep::Int);
                        self.b.emit(InstKind::Kind(dst, on));
                        kind = Some(dst);
                    }
                    for v in variants {
                        let class = self.cx.layouts.variant_class(*union, *v);
                        let case = i64::from(layout::FIRST_CLASS) + i64::from(class);
                        if seen.insert(case) {
                            cases.push((case, *entry));
                        }
                    }
                }
            }
        }
        match kind {
            Some(on) => self.multiway(on, cases, default),
            None => self.b.jump(default),
        }
    }

    /// Tests of different kinds in one switch: the cases collected so far are tested before the next expression.
    fn flush(&mut self, _on: Local, kind: &mut Option<Local>, cases: &mut Vec<(i64, BlockId)>) {
        if let Some(on) = kind.take() {
            let next = self.b.block();
            self.multiway(on, std::mem::take(cases), next);
            self.b.start(next);
        }
    }

    fn multiway(&mut self, on: Local, mut cases: Vec<(i64, BlockId)>, default: BlockId) {
        cases.retain(|(_, to)| *to != default);
        if cases.is_empty() {
            self.b.jump(default);
        } else {
            self.b.end(Term::Switch { on, cases, default });
        }
    }

    fn bind_payload(&mut self, union: UnionId, variants: &[u32], bindings: &[LocalId], on: Local) {
        let Some(variant) = variants.first().copied() else { return };
        let program = self.program;
        let class = self.cx.layouts.variant_class(union, variant);
        let Some(decl) = program.unions.get(union.0 as usize) else { return };
        let Some(decl) = decl.variants.get(variant as usize) else { return };
        for (i, (local, (_, ty))) in bindings.iter().zip(&decl.fields).enumerate() {
            let offset = self.cx.layouts.offset(class, i);
            // What has one owner may be gone: the checker asks for a test at each reading.
            let owned =
                matches!(self.kind(*ty), TyKind::Class(_) | TyKind::Multi(_) | TyKind::Map(..) | TyKind::Union(_));
            let value = if owned && self.shape(*ty) == Shape::One(Rep::Obj) {
                Value::one(Rep::Obj, self.b.load(Rep::Obj, false, on, offset), Own::Proj)
            } else {
                self.load_value(*ty, on, offset)
            };
            self.bind(*local, value);
        }
    }

    /// Leaves nil in a payload that an arm's value moved out.
    fn empty_payload(&mut self, union: UnionId, variants: &[u32], at: usize, on: Local) {
        let Some(variant) = variants.first().copied() else { return };
        if self.b.dead() {
            return;
        }
        let class = self.cx.layouts.variant_class(union, variant);
        let offset = self.cx.layouts.offset(class, at);
        let old = self.b.load(Rep::Obj, false, on, offset);
        let nil = self.zero(Shape::One(Rep::Obj));
        self.init_words(on, offset, nil);
        self.b.release(old);
    }

    /// Runs a block and moves its value into `out`, whose reference the caller puts on the stack. The block's variables
    /// (above `depth` on the stack) are left to the caller's `close`, except for one that is the value: it is moved.
    fn block_value(&mut self, body: &'a BlockExpr, out: Value, depth: usize) {
        self.stmts(&body.block, body.value.as_ref());
        let Some(value) = &body.value else {
            self.fill(out);
            return;
        };
        if self.b.dead() {
            return;
        }
        let mut value = self.last_expr(value);
        if value.shape.is_managed() && matches!(value.own, Own::Var(_)) && self.b.owns_above(value.a, depth) {
            value.own = Own::Owned;
        }
        self.deliver(value, out);
    }

    fn deliver(&mut self, value: Value, out: Value) {
        if out.shape == Shape::None {
            self.drop_value(value);
            return;
        }
        let value = self.coerce(value, out.shape);
        self.consume(value);
        self.move_into(out.a, out.b, value);
    }

    /// No value where one has a shape: nil or zero. The checker has proved that an object is never missing; a trap
    /// keeps a wrong proof harmless.
    fn fill(&mut self, out: Value) {
        if self.b.is_nonnull(out.a) && out.shape == Shape::One(Rep::Obj) {
            let text = self.text_id("internal error: a block without value");
            self.raise(trap::EXPLICIT, text);
        } else {
            let zero = self.zero(out.shape);
            self.move_into(out.a, out.b, zero);
        }
    }

    // -- try ---------------------------------------------------------------------------------------------------

    pub fn try_catch(&mut self, body: &'a Expr, var: LocalId, handler: &'a BlockExpr, ty: Ty) -> Value {
        let out = self.fresh(self.shape(ty), ty);
        let join = self.b.block();
        let entry = self.b.cold_block();
        let before = self.b.dead();
        self.b.push_live(Live::Handler(entry));
        let value = self.expr(body);
        self.deliver(value, out);
        self.b.pop_live();
        self.b.jump(join);

        if !before {
            self.b.start_handler(entry);
        }
        let catchable = self.b.runtime1("trap.catchable", Vec::new(), Rep::Int);
        let caught = self.b.block();
        let outer = self.b.unwind();
        self.b.branch(catchable, caught, outer);
        self.b.start(caught);
        let depth = self.b.depth();
        let error = self.error_object();
        self.bind(var, error);
        self.block_value(handler, out, depth);
        self.b.close(depth);
        self.b.jump(join);
        self.b.start(join);
        self.owned(out)
    }

    /// The caught trap as an `Error`; the pending trap is dropped first, so that making the object may trap again.
    fn error_object(&mut self) -> Value {
        let program = self.program;
        let code = self.b.runtime1("trap.code", Vec::new(), Rep::Int);
        let line = self.b.runtime1("trap.line", Vec::new(), Rep::Int);
        let method = self.b.runtime1("trap.method", Vec::new(), Rep::Obj);
        let method = self.owned(Value::one(Rep::Obj, method, Own::Owned));
        let msg = self.b.runtime1("trap.msg", Vec::new(), Rep::Obj);
        let msg = self.owned(Value::one(Rep::Obj, msg, Own::Owned));
        self.b.runtime("trap.clear", Vec::new(), Vec::new());
        let class: ClassId = program.well_known.error;
        let index = self.b.int(i64::from(class.0));
        let object = self.b.runtime1("rt.new", vec![index], Rep::Obj);
        let mut rest = Vec::new();
        let fields = program.classes.get(class.0 as usize).map_or(&[][..], |c| c.fields.as_slice());
        let mut taken = Vec::new();
        for (i, field) in (0u32..).zip(fields) {
            let value = match field.name.as_str() {
                "code" => Value::int(code),
                "line" => Value::int(line),
                "method" => method,
                "msg" => msg,
                _ => {
                    rest.push(i);
                    continue;
                }
            };
            let offset = self.cx.layouts.field_offset(class, i);
            let value = self.coerce(value, self.shape(field.ty));
            self.consume(value);
            self.init_words(object, offset, value);
            taken.push(value.a);
        }
        for value in [msg, method] {
            if !taken.contains(&value.a) {
                self.drop_value(value);
            }
        }
        let object = self.owned(Value::one(Rep::Obj, object, Own::Owned));
        self.defaults(object, class, &rest);
        object
    }
}

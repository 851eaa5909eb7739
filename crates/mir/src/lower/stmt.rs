//! Statements and control flow. A loop's back-edge carries exactly one safepoint.

use super::value::{Own, Value};
use super::{FnLower, Loop};
use crate::effects::Effects;
use crate::ir::{BlockId, InstKind, IntOp, Local, Rep};
use crate::passes::Pass;
use crate::quiet::quiet;
use crate::shapes::Shape;
use abi::layout;
use analysis::hir::{Block, Expr, ExprKind, LocalId, Stmt, StmtKind};

impl<'a> FnLower<'_, 'a> {
    /// A block with its scope.
    pub fn block(&mut self, block: &'a Block) {
        let depth = self.b.depth();
        self.stmts(block, None);
        self.b.close(depth);
    }

    /// The statements of a block, whose variables stay alive; `value` comes after them.
    pub fn stmts(&mut self, block: &'a Block, value: Option<&'a Expr>) {
        for (i, stmt) in block.stmts.iter().enumerate() {
            if self.b.dead() {
                break;
            }
            if let StmtKind::Let(local, e) = &stmt.kind {
                self.b.line = stmt.span.start;
                let operand = self.expr(e);
                let rest = block.stmts.get(i + 1..).unwrap_or_default();
                if self.may_borrow(*local, operand) && self.is_rooted(e) && quiet(rest, value) {
                    self.borrow(*local, operand);
                } else {
                    self.bind(*local, operand);
                }
            } else {
                self.stmt(stmt);
            }
        }
    }

    /// Whether the variable could be a borrow of a place: it is never assigned, and it is given what was read there.
    fn may_borrow(&self, local: LocalId, value: Value) -> bool {
        let var = self.var(local);
        self.cx.passes.has(Pass::Borrow)
            && value.own == Own::Proj
            && value.shape.is_managed()
            && value.shape == var.shape
            && !self.is_assigned(local)
    }

    /// Whether `e` is a place below a variable that is never assigned, which thus holds what the place is part of.
    fn is_rooted(&self, e: &Expr) -> bool {
        let mut at = e;
        loop {
            at = match &at.kind {
                ExprKind::Local(local) => return !self.is_assigned(*local),
                ExprKind::Field(base, ..) | ExprKind::Element(base, _) => base,
                ExprKind::Convert(inner) | ExprKind::Unwrap(inner, _) | ExprKind::Wrap(inner) => inner,
                _ => return false,
            };
        }
    }

    /// Initialises a variable that does not own its value: its place holds it for as long.
    fn borrow(&mut self, local: LocalId, value: Value) {
        let var = self.var(local);
        if let Some(slot) = self.bound_at.get_mut(local.0 as usize) {
            *slot = self.nesting;
        }
        self.move_into(var.a, var.b, value);
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        self.b.line = stmt.span.start;
        match &stmt.kind {
            // `stmts` sees what follows.
            StmtKind::Let(local, value) => {
                let value = self.expr(value);
                self.bind(*local, value);
            }
            StmtKind::Assign(place, value) => self.assign(place, value),
            StmtKind::OpAssign(place, op, value) => self.op_assign(place, *op, value),
            StmtKind::Expr(e) => self.discard(e),
            StmtKind::If { arms, otherwise } => {
                let join = self.b.block();
                for (cond, body) in arms {
                    let then = self.b.block();
                    let next = self.b.block();
                    self.cond(cond, then, next);
                    self.b.start(then);
                    self.block(body);
                    self.b.jump(join);
                    self.b.start(next);
                }
                if let Some(body) = otherwise {
                    self.block(body);
                }
                self.b.jump(join);
                self.b.start(join);
            }
            StmtKind::While { cond, body } => self.while_loop(cond, body),
            StmtKind::DoWhile { body, cond } => self.do_while(body, cond),
            StmtKind::ForMulti { var, iter, body } => self.for_multi(*var, iter, body),
            StmtKind::ForMap { key, value, iter, body } => self.for_map(*key, *value, iter, body),
            StmtKind::Return(value) => self.ret(value.as_ref()),
            StmtKind::Break => {
                if let Some(l) = self.loops.last().copied() {
                    self.b.leave(l.depth, l.exit);
                }
            }
            StmtKind::Continue => {
                if let Some(l) = self.loops.last().copied() {
                    self.b.leave(l.depth, l.latch);
                }
            }
        }
    }

    fn discard(&mut self, e: &'a Expr) {
        let value = self.expr(e);
        self.drop_value(value);
    }

    /// Initialises a variable, which owns its value from here to the end of the scope.
    pub fn bind(&mut self, local: LocalId, value: Value) {
        let var = self.var(local);
        if let Some(slot) = self.bound_at.get_mut(local.0 as usize) {
            *slot = self.nesting;
        }
        let value = self.coerce(value, var.shape);
        if self.outlives(local, value) {
            self.move_into(var.a, var.b, value);
            return;
        }
        self.consume(value);
        self.move_into(var.a, var.b, value);
        if var.shape.is_managed() {
            self.b.own(var.a);
        }
    }

    /// A variable that is never assigned may borrow from another such variable: that one is in scope for longer, and
    /// holds its reference throughout.
    fn outlives(&self, local: LocalId, value: Value) -> bool {
        self.cx.passes.has(Pass::Borrow)
            && value.shape.is_managed()
            && !self.is_assigned(local)
            && matches!(value.own, Own::Var(source) if !self.is_assigned(source))
    }

    fn ret(&mut self, value: Option<&'a Expr>) {
        let Some(e) = value else {
            let value = self.zero(self.result);
            self.b.ret(value.locals(), None);
            return;
        };
        let value = self.last_expr(e);
        if self.b.dead() {
            self.drop_value(value);
            return;
        }
        let value = if self.result == Shape::None || (self.is_main && value.shape != self.result) {
            self.drop_value(value);
            self.zero(self.result)
        } else {
            self.coerce(value, self.result)
        };
        let moved = value.shape.is_managed() && matches!(value.own, Own::Var(_)) && self.b.owns_above(value.a, 0);
        if !moved {
            self.consume(value);
        }
        self.b.ret(value.locals(), if moved { Some(value.a) } else { None });
    }

    // -- conditions --------------------------------------------------------------------------------------------

    /// Jumps to `then` or `otherwise`; no temporary survives either edge.
    pub fn cond(&mut self, e: &'a Expr, then: BlockId, otherwise: BlockId) {
        match &e.kind {
            ExprKind::Bool(true) => self.b.jump(then),
            ExprKind::Bool(false) => self.b.jump(otherwise),
            ExprKind::Not(inner) => self.cond(inner, otherwise, then),
            ExprKind::And(lhs, rhs) => {
                let next = self.b.block();
                self.cond(lhs, next, otherwise);
                self.b.start(next);
                self.cond(rhs, then, otherwise);
            }
            ExprKind::Or(lhs, rhs) => {
                let next = self.b.block();
                self.cond(lhs, then, next);
                self.b.start(next);
                self.cond(rhs, then, otherwise);
            }
            _ => {
                let value = self.expr(e);
                let value = self.coerce(value, Shape::One(Rep::Int));
                self.b.branch(value.a, then, otherwise);
            }
        }
    }

    // -- loops -------------------------------------------------------------------------------------------------

    fn while_loop(&mut self, cond: &'a Expr, body: &'a Block) {
        let (head, inner, latch, exit) = (self.b.block(), self.b.block(), self.b.block(), self.b.block());
        self.b.jump(head);
        self.b.start(head);
        self.nesting += 1;
        self.cond(cond, inner, exit);
        self.b.start(inner);
        self.loop_body(body, exit, latch);
        self.b.start(latch);
        self.b.safepoint();
        self.b.jump(head);
        self.nesting -= 1;
        self.b.start(exit);
    }

    fn do_while(&mut self, body: &'a Block, cond: &'a Expr) {
        let (inner, latch, back, exit) = (self.b.block(), self.b.block(), self.b.block(), self.b.block());
        self.b.jump(inner);
        self.b.start(inner);
        self.nesting += 1;
        self.loop_body(body, exit, latch);
        self.b.start(latch);
        self.b.line = cond.span.start;
        self.cond(cond, back, exit);
        self.b.start(back);
        self.b.safepoint();
        self.b.jump(inner);
        self.nesting -= 1;
        self.b.start(exit);
    }

    fn loop_body(&mut self, body: &'a Block, exit: BlockId, latch: BlockId) {
        let line = self.b.line;
        let depth = self.b.depth();
        self.loops.push(Loop { exit, latch, depth });
        self.block(body);
        let _ = self.loops.pop();
        self.b.line = line;
        self.b.jump(latch);
    }

    /// The container of a `for`, kept alive through the loop.
    fn iterable(&mut self, iter: &'a Expr) -> Value {
        let value = self.expr(iter);
        match value.own {
            Own::Var(local) if self.cx.passes.has(Pass::Borrow) && !self.is_assigned(local) => value,
            Own::Var(_) => {
                let hold = self.temp_of(Rep::Obj, iter.ty);
                self.b.retain(value.a);
                self.b.copy(hold, value.a);
                self.owned(Value { a: hold, b: hold, ..value })
            }
            _ => self.protect(value, Effects { runs: true, blocks: true }),
        }
    }

    fn for_multi(&mut self, var: LocalId, iter: &'a Expr, body: &'a Block) {
        let elem = self.elem(iter.ty);
        let words = self.shape(elem).words();
        let multi = self.iterable(iter);
        let held = match multi.own {
            Own::Var(local) => !self.is_assigned(local),
            Own::Owned => true,
            Own::Proj | Own::Literal => false,
        };
        self.counted(multi, layout::MULTI_LEN, body, |f, index| {
            let dst = f.b.temp(Rep::Int);
            let unwind = f.b.unwind();
            f.b.emit(InstKind::Element { dst, multi: multi.a, index, words, checked: true, unwind });
            let value = f.load_value(elem, dst, 0);
            if f.may_borrow(var, value) && held && quiet(&body.stmts, None) {
                f.borrow(var, value);
            } else {
                f.bind(var, value);
            }
        });
    }

    fn for_map(&mut self, key: LocalId, value: LocalId, iter: &'a Expr, body: &'a Block) {
        let (key_ty, value_ty) = self.entry_types(iter.ty);
        let map = self.iterable(iter);
        self.counted(map, layout::MAP_LEN, body, |f, index| {
            let entry = f.b.runtime1("map.entry", vec![map.a, index], Rep::Int);
            let k = f.load_value(key_ty, entry, layout::ENTRY_KEY);
            f.bind(key, k);
            let v = f.load_value(value_ty, entry, layout::ENTRY_VALUE);
            f.bind(value, v);
        });
    }

    /// A loop over the positions of a container whose length is read once; `step` binds the cursors.
    fn counted(&mut self, container: Value, len: i32, body: &'a Block, step: impl FnOnce(&mut Self, Local)) {
        let line = self.b.line;
        let (head, inner, latch, exit) = (self.b.block(), self.b.block(), self.b.block(), self.b.block());
        let len = self.b.load(Rep::Int, false, container.a, len);
        let index = self.b.temp(Rep::Int);
        self.b.emit(InstKind::Int(index, 0));
        self.b.jump(head);
        self.b.start(head);
        let more = self.b.int_op(IntOp::Lt, index, len);
        self.b.branch(more, inner, exit);
        self.b.start(inner);
        let depth = self.b.depth();
        self.loops.push(Loop { exit, latch, depth });
        self.nesting += 1;
        step(self, index);
        self.stmts(body, None);
        self.nesting -= 1;
        self.b.close(depth);
        let _ = self.loops.pop();
        self.b.line = line;
        self.b.jump(latch);
        self.b.start(latch);
        let one = self.b.int(1);
        self.b.emit(InstKind::IntOp(index, IntOp::Add, index, one));
        self.b.safepoint();
        self.b.jump(head);
        self.b.start(exit);
        self.drop_value(container);
    }
}

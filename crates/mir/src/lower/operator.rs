//! Operators: arithmetic, comparison, equality of nullable values.

use super::FnLower;
use super::value::{Own, Value};
use crate::ir::{CheckedOp, FloatOp, InstKind, IntOp, Local, Rep};
use crate::passes::Pass;
use crate::shapes::Shape;
use analysis::hir::{BinaryOp, Expr};

/// How an operator is computed.
enum How {
    Int(IntOp),
    Checked(CheckedOp),
    Float(FloatOp),
    /// The operator applied to `text.cmp` and 0.
    Order(IntOp),
    /// `text.eq`, or its negation.
    Same(bool),
}

fn how(op: BinaryOp) -> How {
    match op {
        BinaryOp::IntAdd => How::Int(IntOp::Add),
        BinaryOp::IntSub => How::Int(IntOp::Sub),
        BinaryOp::IntMul => How::Int(IntOp::Mul),
        BinaryOp::IntDiv => How::Checked(CheckedOp::Div),
        BinaryOp::IntRem => How::Checked(CheckedOp::Rem),
        BinaryOp::BitAnd => How::Int(IntOp::And),
        BinaryOp::BitOr => How::Int(IntOp::Or),
        BinaryOp::BitXor => How::Int(IntOp::Xor),
        BinaryOp::Shl => How::Checked(CheckedOp::Shl),
        BinaryOp::Shr => How::Checked(CheckedOp::Shr),
        BinaryOp::IntLt => How::Int(IntOp::Lt),
        BinaryOp::IntLe => How::Int(IntOp::Le),
        BinaryOp::IntGt => How::Int(IntOp::Gt),
        BinaryOp::IntGe => How::Int(IntOp::Ge),
        BinaryOp::WordEq | BinaryOp::RefEq => How::Int(IntOp::Eq),
        BinaryOp::WordNe | BinaryOp::RefNe => How::Int(IntOp::Ne),
        BinaryOp::FloatAdd => How::Float(FloatOp::Add),
        BinaryOp::FloatSub => How::Float(FloatOp::Sub),
        BinaryOp::FloatMul => How::Float(FloatOp::Mul),
        BinaryOp::FloatDiv => How::Float(FloatOp::Div),
        BinaryOp::FloatLt => How::Float(FloatOp::Lt),
        BinaryOp::FloatLe => How::Float(FloatOp::Le),
        BinaryOp::FloatGt => How::Float(FloatOp::Gt),
        BinaryOp::FloatGe => How::Float(FloatOp::Ge),
        BinaryOp::FloatEq => How::Float(FloatOp::Eq),
        BinaryOp::FloatNe => How::Float(FloatOp::Ne),
        BinaryOp::TextLt => How::Order(IntOp::Lt),
        BinaryOp::TextLe => How::Order(IntOp::Le),
        BinaryOp::TextGt => How::Order(IntOp::Gt),
        BinaryOp::TextGe => How::Order(IntOp::Ge),
        BinaryOp::TextEq => How::Same(true),
        BinaryOp::TextNe => How::Same(false),
    }
}

/// Shape of both operands.
fn operand_shape(op: BinaryOp) -> Option<Shape> {
    match op {
        BinaryOp::RefEq | BinaryOp::RefNe => None,
        _ => Some(match how(op) {
            How::Int(_) | How::Checked(_) => Shape::One(Rep::Int),
            How::Float(_) => Shape::One(Rep::Float),
            How::Order(_) | How::Same(_) => Shape::One(Rep::Obj),
        }),
    }
}

impl<'a> FnLower<'_, 'a> {
    pub fn binary(&mut self, op: BinaryOp, lhs: &'a Expr, rhs: &'a Expr) -> Value {
        let values = self.operands(&[lhs, rhs]);
        let (Some(l), Some(r)) = (values.first().copied(), values.get(1).copied()) else { return Value::none() };
        let (l, r) = match operand_shape(op) {
            Some(shape) => (self.coerce(l, shape), self.coerce(r, shape)),
            None => (l, r),
        };
        let out = self.apply(op, l, r);
        self.drop_value(r);
        self.drop_value(l);
        out
    }

    /// The operator on two operands of its shape, which stay as they are.
    pub fn apply(&mut self, op: BinaryOp, l: Value, r: Value) -> Value {
        match how(op) {
            How::Int(op) => {
                if let (Some(a), Some(b), true) = (l.cst, r.cst, self.cx.passes.has(Pass::Fold)) {
                    return self.int_value(fold(op, a, b));
                }
                Value::int(self.b.int_op(op, l.a, r.a))
            }
            How::Checked(op) => self.checked(op, l, r),
            How::Float(op) => {
                let arithmetic = matches!(op, FloatOp::Add | FloatOp::Sub | FloatOp::Mul | FloatOp::Div);
                let rep = if arithmetic { Rep::Float } else { Rep::Int };
                let dst = self.b.temp(rep);
                self.b.emit(InstKind::FloatOp(dst, op, l.a, r.a));
                Value::one(rep, dst, Own::Owned)
            }
            How::Order(op) => {
                let cmp = self.b.runtime1("text.cmp", vec![l.a, r.a], Rep::Int);
                let zero = self.b.int(0);
                Value::int(self.b.int_op(op, cmp, zero))
            }
            How::Same(equal) => {
                let eq = self.b.runtime1("text.eq", vec![l.a, r.a], Rep::Int);
                Value::int(if equal { eq } else { self.invert(eq) })
            }
        }
    }

    fn checked(&mut self, op: CheckedOp, l: Value, r: Value) -> Value {
        let shift = match op {
            CheckedOp::Shl => Some(IntOp::Shl),
            CheckedOp::Shr => Some(IntOp::Shr),
            CheckedOp::Div | CheckedOp::Rem => None,
        };
        if let (Some(op), Some(0..=63)) = (shift, r.cst) {
            return Value::int(self.b.int_op(op, l.a, r.a));
        }
        if let (Some(a), Some(b), true) = (l.cst, r.cst, self.cx.passes.has(Pass::Fold)) {
            // Only what cannot trap: `checked_*` is `None` for 0 and for the smallest Int by -1.
            let folded = match op {
                CheckedOp::Div => a.checked_div(b),
                CheckedOp::Rem => a.checked_rem(b),
                CheckedOp::Shl | CheckedOp::Shr => None,
            };
            if let Some(v) = folded {
                return self.int_value(v);
            }
        }
        let dst = self.b.temp(Rep::Int);
        let unwind = self.b.unwind();
        self.b.emit(InstKind::Checked { dst, op, lhs: l.a, rhs: r.a, unwind });
        Value::int(dst)
    }

    fn invert(&mut self, bit: Local) -> Local {
        let zero = self.b.int(0);
        self.b.int_op(IntOp::Eq, bit, zero)
    }

    /// Nil equals nil only.
    pub fn nullable_eq(&mut self, eq: BinaryOp, negated: bool, lhs: &'a Expr, rhs: &'a Expr) -> Value {
        let values = self.operands(&[lhs, rhs]);
        let (Some(l), Some(r)) = (values.first().copied(), values.get(1).copied()) else { return Value::none() };
        let out = match (l.shape, r.shape) {
            (Shape::Pair(rep), Shape::Pair(other)) if rep == other => {
                let inner = |v: Value| Value::one(rep, v.b, Own::Owned);
                let same = self.apply(eq, inner(l), inner(r));
                let both = self.b.int_op(IntOp::And, l.a, r.a);
                let same = self.b.int_op(IntOp::And, same.a, both);
                let either = self.b.int_op(IntOp::Or, l.a, r.a);
                let neither = self.invert(either);
                self.b.int_op(IntOp::Or, same, neither)
            }
            (Shape::One(Rep::Obj), Shape::One(Rep::Obj)) if matches!(eq, BinaryOp::TextEq | BinaryOp::TextNe) => {
                self.nullable_text_eq(l, r)
            }
            (Shape::One(_), Shape::One(_)) => {
                let op = match eq {
                    BinaryOp::TextEq | BinaryOp::FloatEq => eq,
                    _ => BinaryOp::RefEq,
                };
                self.apply(op, l, r).a
            }
            _ => self.b.int(0),
        };
        self.drop_value(r);
        self.drop_value(l);
        Value::int(if negated { self.invert(out) } else { out })
    }

    /// Equal pointers (two nils among them), or two texts with equal content.
    fn nullable_text_eq(&mut self, l: Value, r: Value) -> Local {
        let dst = self.b.int_op(IntOp::Eq, l.a, r.a);
        let (left, both, join) = (self.b.block(), self.b.block(), self.b.block());
        let compare = self.b.block();
        self.b.branch(dst, join, left);
        self.b.start(left);
        let zero = self.b.int(0);
        let some = self.b.int_op(IntOp::Ne, l.a, zero);
        self.b.branch(some, both, join);
        self.b.start(both);
        let some = self.b.int_op(IntOp::Ne, r.a, zero);
        self.b.branch(some, compare, join);
        self.b.start(compare);
        self.b.runtime("text.eq", vec![l.a, r.a], vec![dst]);
        self.b.jump(join);
        self.b.start(join);
        dst
    }
}

/// The operation on constants, as the machine does it.
pub fn fold(op: IntOp, a: i64, b: i64) -> i64 {
    let shift = u32::try_from(b & 63).unwrap_or(0);
    match op {
        IntOp::Add => a.wrapping_add(b),
        IntOp::Sub => a.wrapping_sub(b),
        IntOp::Mul => a.wrapping_mul(b),
        IntOp::And => a & b,
        IntOp::Or => a | b,
        IntOp::Xor => a ^ b,
        IntOp::Shl => a.wrapping_shl(shift),
        IntOp::Shr => a.wrapping_shr(shift),
        IntOp::Eq => i64::from(a == b),
        IntOp::Ne => i64::from(a != b),
        IntOp::Lt => i64::from(a < b),
        IntOp::Le => i64::from(a <= b),
        IntOp::Gt => i64::from(a > b),
        IntOp::Ge => i64::from(a >= b),
    }
}

//! Operands: values in locals together with who owns what they refer to.

use super::FnLower;
use crate::effects::{Effects, effects};
use crate::ir::{InstKind, Local, Rep};
use crate::shapes::{Shape, never_null};
use analysis::hir::{Expr, LocalId, Ty};

/// Who keeps the object of an operand alive. Scalars carry `Var` or `Owned` only for uniformity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// A temporary that owns one reference and stands on the live stack; scalars that are temporaries.
    Owned,
    /// The local itself: valid until it is assigned.
    Var(LocalId),
    /// Read from an object: valid until user code runs or an object is changed.
    Proj,
    /// Immortal text, or null: nothing to own.
    Literal,
}

/// An evaluated operand.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    pub shape: Shape,
    /// The value; of a pair, the tag.
    pub a: Local,
    /// The value of a pair, else `a`.
    pub b: Local,
    pub own: Own,
    /// The Int it is known to be.
    pub cst: Option<i64>,
}

impl Value {
    pub fn none() -> Value {
        Value { shape: Shape::None, a: Local(0), b: Local(0), own: Own::Literal, cst: None }
    }

    pub fn one(rep: Rep, local: Local, own: Own) -> Value {
        Value { shape: Shape::One(rep), a: local, b: local, own, cst: None }
    }

    pub fn int(local: Local) -> Value {
        Value::one(Rep::Int, local, Own::Owned)
    }

    pub fn pair(rep: Rep, tag: Local, value: Local) -> Value {
        Value { shape: Shape::Pair(rep), a: tag, b: value, own: Own::Owned, cst: None }
    }

    pub fn locals(&self) -> Vec<Local> {
        match self.shape {
            Shape::None => Vec::new(),
            Shape::One(_) => vec![self.a],
            Shape::Pair(_) => vec![self.a, self.b],
        }
    }
}

impl<'a> FnLower<'_, 'a> {
    /// A local for values of `ty`'s single word.
    pub fn temp_of(&mut self, rep: Rep, ty: Ty) -> Local {
        let nonnull = never_null(self.program, ty);
        self.b.local(rep, "", nonnull)
    }

    /// Fresh locals of a shape; a managed one is not owned yet.
    pub fn fresh(&mut self, shape: Shape, ty: Ty) -> Value {
        match shape {
            Shape::None => Value::none(),
            Shape::One(rep) => {
                let a = self.temp_of(rep, ty);
                Value::one(rep, a, Own::Owned)
            }
            Shape::Pair(rep) => {
                let a = self.b.temp(Rep::Int);
                let b = self.b.temp(rep);
                Value::pair(rep, a, b)
            }
        }
    }

    /// A freshly made managed value: its reference goes onto the live stack.
    pub fn owned(&mut self, value: Value) -> Value {
        if value.shape.is_managed() {
            self.b.own(value.a);
        }
        Value { own: Own::Owned, ..value }
    }

    /// Makes the operand owned where `later`, evaluated before its use, could invalidate it.
    pub fn protect(&mut self, value: Value, later: Effects) -> Value {
        match value.own {
            Own::Proj if later.runs && value.shape.is_managed() => {
                self.b.retain(value.a);
                self.owned(value)
            }
            Own::Var(local) if later.blocks && self.is_assigned(local) => self.snapshot(value),
            _ => value,
        }
    }

    /// A copy of the operand that no assignment changes.
    fn snapshot(&mut self, value: Value) -> Value {
        if value.shape.is_managed() {
            self.b.retain(value.a);
        }
        let rep_a = self.b.rep(value.a);
        let a = self.b.temp(rep_a);
        self.b.copy(a, value.a);
        let b = match value.shape {
            Shape::Pair(rep) => {
                let b = self.b.temp(rep);
                self.b.copy(b, value.b);
                b
            }
            _ => a,
        };
        self.owned(Value { a, b, ..value })
    }

    /// The operand as an argument of user code, which may replace what it was read from.
    pub fn for_call(&mut self, value: Value) -> Value {
        self.protect(value, Effects { runs: true, blocks: false })
    }

    /// Evaluates operands from left to right, so that all are valid together afterwards.
    pub fn operands(&mut self, exprs: &[&'a Expr]) -> Vec<Value> {
        let later = suffix_effects(exprs);
        let mut out = Vec::with_capacity(exprs.len());
        for (e, later) in exprs.iter().zip(later) {
            let value = self.expr(e);
            out.push(self.protect(value, later));
        }
        out
    }

    /// Takes one reference out of the operand: the caller must store, move or pass it on at once.
    pub fn consume(&mut self, value: Value) {
        if !value.shape.is_managed() {
            return;
        }
        match value.own {
            Own::Owned => self.b.disown(value.a),
            Own::Var(_) | Own::Proj => self.b.retain(value.a),
            Own::Literal => {}
        }
    }

    /// Ends the operand's life.
    pub fn drop_value(&mut self, value: Value) {
        if value.shape.is_managed() && value.own == Own::Owned {
            self.b.release(value.a);
            self.b.disown(value.a);
        }
    }

    pub fn drop_all(&mut self, values: &[Value]) {
        for value in values.iter().rev() {
            self.drop_value(*value);
        }
    }

    /// The operand in another shape of the same type family: what a conversion, a missing value or dead code needs.
    pub fn coerce(&mut self, value: Value, shape: Shape) -> Value {
        match (value.shape, shape) {
            (a, b) if a == b => value,
            (Shape::One(Rep::Int), Shape::Pair(Rep::Int)) | (Shape::One(Rep::Float), Shape::Pair(Rep::Float)) => {
                let tag = self.b.int(1);
                Value { shape, a: tag, b: value.a, own: value.own, cst: None }
            }
            (Shape::Pair(Rep::Int), Shape::One(Rep::Int)) | (Shape::Pair(Rep::Float), Shape::One(Rep::Float)) => {
                Value { shape, a: value.b, b: value.b, own: value.own, cst: None }
            }
            _ => {
                self.drop_value(value);
                self.zero(shape)
            }
        }
    }

    /// Copies a consumed operand into variables of the same shape.
    pub fn move_into(&mut self, a: Local, b: Local, value: Value) {
        self.b.copy(a, value.a);
        if matches!(value.shape, Shape::Pair(_)) {
            self.b.copy(b, value.b);
        }
    }

    // -- words in memory ---------------------------------------------------------------------------------------

    /// Reads a value at `base + offset`; a managed one is a projection.
    pub fn load_value(&mut self, ty: Ty, base: Local, offset: i32) -> Value {
        let nonnull = never_null(self.program, ty);
        match self.shape(ty) {
            Shape::None => Value::none(),
            Shape::One(rep) => {
                let a = self.b.load(rep, nonnull, base, offset);
                let own = if matches!(rep, Rep::Obj | Rep::Actor) { Own::Proj } else { Own::Owned };
                Value::one(rep, a, own)
            }
            Shape::Pair(rep) => {
                let a = self.b.load(Rep::Int, false, base, offset);
                let b = self.b.load(rep, false, base, offset + 8);
                Value::pair(rep, a, b)
            }
        }
    }

    /// Writes a value that has been consumed (or is a scalar) at `base + offset`, into zeroed memory.
    pub fn init_words(&mut self, base: Local, offset: i32, value: Value) {
        match value.shape {
            Shape::None => {}
            Shape::One(_) => self.b.store(base, offset, value.a),
            Shape::Pair(_) => {
                self.b.store(base, offset, value.a);
                self.b.store(base, offset + 8, value.b);
            }
        }
    }

    /// Replaces what is stored at `base + offset` by the operand, then destroys the old value.
    pub fn replace_words(&mut self, base: Local, offset: i32, value: Value) {
        if value.shape.is_managed() {
            self.consume(value);
            let old = self.b.load(self.b.rep(value.a), false, base, offset);
            self.init_words(base, offset, value);
            self.b.release(old);
        } else {
            self.init_words(base, offset, value);
        }
    }

    /// A word for the runtime: bits of a Float, anything else as it is.
    pub fn word(&mut self, local: Local) -> Local {
        if self.b.rep(local) == Rep::Float {
            let dst = self.b.temp(Rep::Int);
            self.b.emit(InstKind::ToBits(dst, local));
            return dst;
        }
        local
    }

    /// The two words under which the runtime takes a value of any type.
    pub fn words(&mut self, value: Value) -> (Local, Local) {
        match value.shape {
            Shape::Pair(_) => (value.a, self.word(value.b)),
            Shape::One(_) => {
                let first = self.word(value.a);
                (first, self.b.int(0))
            }
            Shape::None => (self.b.int(0), self.b.int(0)),
        }
    }
}

/// For each operand the effects of the ones after it. The first one is not walked: long chains lean to the left, and a
/// walk at each level would take quadratic time.
pub fn suffix_effects(exprs: &[&Expr]) -> Vec<Effects> {
    let mut later = Effects::default();
    let mut out = vec![later; exprs.len()];
    for (i, (slot, e)) in out.iter_mut().zip(exprs).enumerate().rev() {
        *slot = later;
        if i > 0 && !(later.runs && later.blocks) {
            later = later.or(effects(e));
        }
    }
    out
}

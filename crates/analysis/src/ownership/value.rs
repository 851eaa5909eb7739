//! Expressions of the walk: places, calls and what their arguments do to each other.

use super::place::{Key, Place, Proj, Source, Val};
use super::state::Access;
use super::walk::{Crossing, Dest, Walk};
use crate::hir::{Builtin, ClassId, Expr, ExprKind, FuncId, LocalId};
use crate::types::{Ty, TyKind};
use diagnostics::span::Span;
use syntax::ast::Mode;

/// What one operand of a call does to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Shared,
    Exclusive,
    Move,
}

/// An operand of a call that is an owned place.
#[derive(Clone)]
pub(super) struct Operand {
    pub how: Use,
    pub source: Source,
    pub places: Vec<Place>,
}

/// The literal that an index is, if it is one.
pub(super) fn literal(index: &Expr) -> Option<Key> {
    match &index.kind {
        ExprKind::Int(n) => Some(Key::Int(*n)),
        ExprKind::Bool(b) => Some(Key::Bool(*b)),
        ExprKind::Text(t) => Some(Key::Text(t.as_slice().into())),
        ExprKind::Convert(inner) => literal(inner),
        _ => None,
    }
}

impl<'p> Walk<'p> {
    /// Walks an expression; what it gives, not used up yet.
    pub fn value(&mut self, e: &'p Expr) -> Val {
        match &e.kind {
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Text(_)
            | ExprKind::Nil
            | ExprKind::Ordinal { .. }
            | ExprKind::EmptyMap => Val::Fresh,
            ExprKind::Local(local) => {
                self.use_local(*local, e.span);
                Val::Place(self.source_of(*local, e.span))
            }
            ExprKind::Binary(..) => {
                // Long chains nest to the left.
                let mut rights = Vec::new();
                let mut at = e;
                while let ExprKind::Binary(_, lhs, rhs) = &at.kind {
                    rights.push(rhs);
                    at = lhs;
                }
                let mut left = self.value(at);
                for right in rights.into_iter().rev() {
                    let _ = self.value_beside(&left, right);
                    left = Val::Fresh;
                }
                Val::Fresh
            }
            ExprKind::And(..) | ExprKind::Or(..) => {
                let mut rights = Vec::new();
                let mut at = e;
                while let ExprKind::And(lhs, rhs) | ExprKind::Or(lhs, rhs) = &at.kind {
                    rights.push(rhs);
                    at = lhs;
                }
                let _ = self.value(at);
                for right in rights.into_iter().rev() {
                    let mark = self.state.mark();
                    let _ = self.value(right);
                    let ends = [self.state.undo(mark), self.state.unchanged()];
                    self.state.merge(&ends);
                }
                Val::Fresh
            }
            ExprKind::NullableEq { lhs, rhs, .. } => {
                let left = self.value(lhs);
                let _ = self.value_beside(&left, rhs);
                Val::Fresh
            }
            ExprKind::IntNeg(inner)
            | ExprKind::FloatNeg(inner)
            | ExprKind::Not(inner)
            | ExprKind::VoidAsInt(inner)
            | ExprKind::IsNil { operand: inner, .. }
            | ExprKind::JsonDecode(inner) => {
                let _ = self.value(inner);
                Val::Fresh
            }
            ExprKind::Wrap(inner) | ExprKind::Unwrap(inner, _) | ExprKind::Convert(inner) => self.value(inner),
            // Values cross the border of the store by copy, both ways.
            ExprKind::Store(op) => {
                for operand in op.operands() {
                    let _ = self.value(operand);
                }
                Val::Fresh
            }
            ExprKind::Concat(parts) => {
                for part in parts {
                    let _ = self.value(part);
                }
                Val::Fresh
            }
            ExprKind::Field(object, _, field) => {
                let base = self.value(object);
                self.project(base, Proj::Field(*field), e.ty, e.span)
            }
            ExprKind::Element(base, index) | ExprKind::Entry(base, index) => {
                let val = self.value(base);
                let _ = self.value_beside(&val, index);
                self.project(val, Proj::Index(literal(index)), e.ty, e.span)
            }
            ExprKind::New { class, fields, .. } => {
                self.fields(*class, fields);
                Val::Fresh
            }
            ExprKind::Spawn { class, fields, .. } => {
                self.fields(*class, fields);
                if let TyKind::Actor(message) = self.program.types.kind(e.ty) {
                    self.crossings.push(Crossing::Spawn { class: *class, message, span: e.span });
                }
                Val::Fresh
            }
            ExprKind::NewVariant { union, variant, args } => {
                for arg in args {
                    let val = self.value(arg);
                    self.consume(&val, &Dest::Variant(*union, *variant));
                }
                Val::Fresh
            }
            ExprKind::List(items) => {
                for item in items {
                    let val = self.value(item);
                    self.consume(&val, &Dest::List);
                }
                Val::Fresh
            }
            ExprKind::Call(func, args) => self.call(*func, args),
            ExprKind::CallIface { iface, slot, recv, args } => {
                let _ = self.value(recv);
                let sig = self.program.interfaces.get(iface.0 as usize).and_then(|i| i.sigs.get(*slot as usize));
                let mut operands = Operands::default();
                for (at, arg) in args.iter().enumerate() {
                    let mode = sig.and_then(|s| s.params.get(at)).map_or(Mode::Borrow, |p| p.0);
                    let name = sig.map(|s| s.name.to_string()).unwrap_or_default();
                    let dest = Dest::Take(format!("argument {}", at + 1), name);
                    self.operand(arg, use_of(mode), &dest, &mut operands);
                }
                self.finish(operands);
                Val::Fresh
            }
            ExprKind::Builtin(builtin, args) => self.builtin(builtin, args, e.ty, e.span),
            ExprKind::Switch(switch) => self.switch(switch),
            ExprKind::Try { body, var, handler } => self.try_catch(body, *var, handler),
        }
    }

    /// Walks an expression while a place that was read before it is still in use.
    pub fn value_beside(&mut self, base: &Val, e: &'p Expr) -> Val {
        let mark = self.held.len();
        if let Val::Place(source) = base
            && self.reporting
            && !is_leaf(e)
            && self.is_owned(source.ty)
        {
            self.held.push(Operand { how: Use::Shared, source: source.clone(), places: source.resolved() });
        }
        let val = self.value(e);
        self.held.truncate(mark);
        val
    }

    fn fields(&mut self, class: ClassId, fields: &'p [(u32, Expr)]) {
        for (field, value) in fields {
            let val = self.value(value);
            self.consume(&val, &Dest::Field(class, *field));
        }
    }

    /// A part of a place; a part of a temporary moves out of it.
    pub fn project(&mut self, base: Val, proj: Proj, ty: Ty, span: Span) -> Val {
        match base {
            Val::Fresh => Val::Fresh,
            Val::Place(mut source) => {
                source.place.proj.push(proj);
                source.ty = ty;
                source.span = span;
                Val::Place(source)
            }
            Val::Any(vals) => Val::join(vals.into_iter().map(|v| self.project(v, proj.clone(), ty, span)).collect()),
        }
    }

    fn call(&mut self, func: FuncId, args: &'p [Expr]) -> Val {
        let Some(callee) = self.program.funcs.get(func.0 as usize) else { return Val::Fresh };
        let method = callee.class.is_some() && !callee.is_static;
        let mut operands = Operands::default();
        for (at, arg) in args.iter().enumerate() {
            let how = if at == 0 && method {
                let writes = self.writes_self.get(func.0 as usize).copied().unwrap_or(false);
                if writes { Use::Exclusive } else { Use::Shared }
            } else {
                callee.params.get(at).map_or(Use::Shared, |mode| use_of(*mode))
            };
            let name = callee.locals.get(at).map(|l| l.name.to_string()).unwrap_or_default();
            let dest = Dest::Take(name, callee.display.to_string());
            operands.receiver = at == 0 && method;
            self.operand(arg, how, &dest, &mut operands);
        }
        self.finish(operands);
        if callee.never_returns {
            self.state.reachable = false;
        }
        Val::Fresh
    }

    fn builtin(&mut self, builtin: &Builtin, args: &'p [Expr], ty: Ty, span: Span) -> Val {
        let (at, dest) = match builtin {
            Builtin::GetMulti | Builtin::GetMap | Builtin::Latest | Builtin::KeyAt | Builtin::ValAt => {
                let mut args = args.iter();
                let base = args.next().map_or(Val::Fresh, |a| self.value(a));
                let mut key = None;
                for arg in args {
                    let _ = self.value_beside(&base, arg);
                    if matches!(builtin, Builtin::GetMulti | Builtin::GetMap) {
                        key = literal(arg);
                    }
                }
                return self.project(base, Proj::Index(key), ty, span);
            }
            Builtin::Push => (1, Dest::Container),
            Builtin::SetMap => (2, Dest::Container),
            Builtin::Send => (1, Dest::Message("send")),
            Builtin::Call => (1, Dest::Message("call")),
            Builtin::CallDl => (1, Dest::Message("call_dl")),
            Builtin::Monitor => (2, Dest::Message("monitor")),
            Builtin::After => (2, Dest::Message("time.after")),
            _ => (usize::MAX, Dest::Container),
        };
        let mut operands = Operands::default();
        for (i, arg) in args.iter().enumerate() {
            let how = if i == at { Use::Move } else { Use::Shared };
            if let (true, Dest::Message(name)) = (i == at, &dest) {
                self.crossings.push(Crossing::Send { message: arg.ty, span: arg.span, builtin: name });
            }
            self.operand(arg, how, &dest, &mut operands);
        }
        self.finish(operands);
        if *builtin == Builtin::Slice
            && let Some(multi) = args.first()
        {
            self.check_slice(multi);
        }
        if *builtin == Builtin::Trap {
            self.state.reachable = false;
        }
        Val::Fresh
    }

    /// One operand of a call. Moves of whole locals wait while only places follow, so that `f(a, a)` is one conflict
    /// of the call and not a use after a move.
    fn operand(&mut self, arg: &'p Expr, how: Use, dest: &Dest, operands: &mut Operands) {
        let direct = is_place(arg) && self.is_owned(place_type(arg));
        if !direct {
            self.flush(operands);
        }
        let val = if is_leaf(arg) || !self.reporting {
            self.value(arg)
        } else {
            // The operands before this one are in use until the call is made.
            let mark = self.held.len();
            self.held.append(&mut operands.list);
            let val = self.value(arg);
            operands.list = self.held.split_off(mark);
            val
        };
        let source = match (&val, direct) {
            (Val::Place(source), true) => Some(source.clone()),
            _ => None,
        };
        match source {
            Some(source) => {
                let takes = how == Use::Move;
                let whole = source.is_whole() && source.borrowed.is_none();
                if takes && whole {
                    operands.pending.push(source.clone());
                } else if takes {
                    let before = self.diags.len();
                    self.consume(&val, dest);
                    if self.diags.len() > before {
                        // What may not leave its place conflicts with nothing.
                        operands.receiver = false;
                        return;
                    }
                } else if how == Use::Exclusive && !operands.receiver {
                    operands.exclusive.push(source.clone());
                }
                let places = source.resolved();
                operands.list.push(Operand { how, source, places });
            }
            None if how == Use::Move => self.consume(&val, dest),
            None => {}
        }
        operands.receiver = false;
    }

    fn flush(&mut self, operands: &mut Operands) {
        for source in std::mem::take(&mut operands.pending) {
            self.move_out(&source);
        }
    }

    /// The call itself. What is wrong between its operands is not reported as a conflict with a borrow as well.
    fn finish(&mut self, mut operands: Operands) {
        let list = std::mem::take(&mut operands.list);
        let mut conflict = false;
        'pairs: for (at, second) in list.iter().enumerate() {
            for first in list.get(..at).unwrap_or_default() {
                if first.how == Use::Shared && second.how == Use::Shared {
                    continue;
                }
                if first.places.iter().any(|a| second.places.iter().any(|b| a.overlaps(b))) {
                    self.report_operands("call", first, second);
                    conflict = true;
                    break 'pairs;
                }
            }
        }
        if conflict {
            for source in operands.pending {
                self.mark_moved(&source);
            }
            return;
        }
        for source in std::mem::take(&mut operands.exclusive) {
            self.disturb(Access::Mut, &source);
        }
        self.flush(&mut operands);
    }
}

#[derive(Default)]
struct Operands {
    list: Vec<Operand>,
    pending: Vec<Source>,
    /// Places given as `mut`: borrowed when the call is made.
    exclusive: Vec<Source>,
    /// The next operand is the receiver of a method.
    receiver: bool,
}

fn use_of(mode: Mode) -> Use {
    match mode {
        Mode::Borrow => Use::Shared,
        Mode::Mut => Use::Exclusive,
        Mode::Take => Use::Move,
    }
}

/// An expression without conversions around it.
pub(super) fn inner(mut e: &Expr) -> &Expr {
    while let ExprKind::Wrap(next) | ExprKind::Unwrap(next, _) | ExprKind::Convert(next) = &e.kind {
        e = next;
    }
    e
}

/// Neither moves nor calls anything.
fn is_leaf(e: &Expr) -> bool {
    matches!(
        inner(e).kind,
        ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Text(_)
            | ExprKind::Nil
            | ExprKind::Local(_)
    )
}

/// The type of the object itself, before conversions.
fn place_type(e: &Expr) -> Ty {
    inner(e).ty
}

/// A chain of projections that starts at a local.
fn is_place(e: &Expr) -> bool {
    let mut at = inner(e);
    loop {
        at = match &at.kind {
            ExprKind::Local(_) => return true,
            ExprKind::Field(base, ..) | ExprKind::Element(base, _) | ExprKind::Entry(base, _) => inner(base),
            ExprKind::Builtin(
                Builtin::GetMulti | Builtin::GetMap | Builtin::Latest | Builtin::KeyAt | Builtin::ValAt,
                args,
            ) => match args.first() {
                Some(base) => inner(base),
                None => return false,
            },
            _ => return false,
        };
    }
}

/// Whether a local is `self` of a method.
pub(super) fn is_self(walk: &Walk<'_>, local: LocalId) -> bool {
    local == LocalId(0) && walk.has_self()
}

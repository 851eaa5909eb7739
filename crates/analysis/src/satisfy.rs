//! Interfaces: whether a class satisfies one, whether one covers another, and which function serves each method of
//! each class that becomes an interface value (language specification 3.7, 5.4).
//!
//! A question such as "may `T` go where `D` is wanted" can depend on further ones (a parameter that is itself an
//! interface), and those on the first again. All of them must hold, none is an alternative to another, so the set of
//! questions that can be reached is collected with a work list and fails as a whole if one of them fails by itself.
//!
//! Dispatch calls the table's function with exactly the words of the interface's signature. Where a method's words
//! differ from them (a `?Int` parameter for an `Int` of the signature, no result for `Int`), an adapter function is
//! made here whose body converts and calls the method.

use crate::env::{Env, Mismatch};
use crate::hir::{self, ClassId, Expr, ExprKind, FuncId, IfaceId, LocalId, Sig, StmtKind};
use crate::types::{Ty, TyKind, Types};
use diagnostics::span::Span;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use syntax::ast::Mode;

/// One question: does this class, do all classes of this interface, satisfy the interface?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Goal {
    Class(ClassId, IfaceId),
    Iface(IfaceId, IfaceId),
}

/// One step of 5.4 without a run-time check.
enum Step {
    Yes,
    No,
    /// Yes if the goal holds.
    If(Goal),
}

impl Env<'_> {
    /// Whether a class's methods match the interface's signatures. On success the method (or adapter) for each
    /// signature, in order; the pair is then recorded in `program.interfaces[..].impls`, together with all interfaces
    /// that values of this one are converted to.
    pub fn satisfies(&mut self, class: ClassId, iface: IfaceId) -> Result<Vec<FuncId>, Mismatch> {
        if let Some(found) = self.impls.get(&(iface, class)) {
            let impls = self.program.interfaces.get(iface.0 as usize).and_then(|i| i.impls.get(*found));
            return Ok(impls.map(|(_, funcs)| funcs.clone()).unwrap_or_default());
        }
        if let Some(decl) = self.program.classes.get(class.0 as usize)
            && decl.is_table
        {
            return Err(format!("`{}` is an `@table` class, and row handles satisfy no interface", decl.name));
        }
        let goals = self.prove(Goal::Class(class, iface))?;
        self.commit(goals);
        let found = self.impls.get(&(iface, class)).copied().unwrap_or(usize::MAX);
        let impls = self.program.interfaces.get(iface.0 as usize).and_then(|i| i.impls.get(found));
        Ok(impls.map(|(_, funcs)| funcs.clone()).unwrap_or_default())
    }

    /// The methods that `class` needs to satisfy the interface, for a help.
    pub(crate) fn methods_wanted(&self, iface: IfaceId, class: &str) -> String {
        let sigs = self.program.interfaces.get(iface.0 as usize).map(|i| i.sigs.as_slice()).unwrap_or_default();
        let form = |sig: &Sig| {
            let params: Vec<String> = sig.params.iter().map(|(_, ty)| self.show(*ty)).collect();
            let ret = if sig.ret == Types::VOID { String::new() } else { format!(" -> {}", self.show(sig.ret)) };
            format!("`fn {}({}){ret}`", sig.name, params.join(", "))
        };
        let forms: Vec<String> = sigs.iter().map(form).collect();
        format!("`{class}` needs {}", forms.join(", "))
    }

    /// Whether every value of interface `from` can be one of `to`. On success every class known for `from`, now or
    /// later, is recorded for `to` as well.
    pub fn covers(&mut self, from: IfaceId, to: IfaceId) -> Result<(), Mismatch> {
        if from == to || self.covered_set.contains(&(from, to)) {
            return Ok(());
        }
        let goals = self.prove(Goal::Iface(from, to))?;
        self.commit(goals);
        Ok(())
    }

    /// Whether a value of type `from` goes into a slot of type `to` without a check at run time (5.4). Records nothing:
    /// callers that convert a class to an interface on the strength of it call `satisfies` too.
    #[must_use]
    pub fn assignable_static(&self, from: Ty, to: Ty) -> bool {
        match self.step(from, to) {
            Step::Yes => true,
            Step::No => false,
            Step::If(goal) => self.prove(goal).is_ok(),
        }
    }

    fn step(&self, from: Ty, to: Ty) -> Step {
        let types = &self.program.types;
        if from == to {
            return Step::Yes;
        }
        match (types.kind(from), types.kind(to)) {
            (TyKind::Error | TyKind::Never, _) | (_, TyKind::Error) => Step::Yes,
            (TyKind::Nil, TyKind::Nullable(_) | TyKind::Maybe { .. }) => Step::Yes,
            (
                TyKind::Nullable(s) | TyKind::Maybe { inner: s, .. },
                TyKind::Nullable(d) | TyKind::Maybe { inner: d, .. },
            ) => self.step(s, d),
            (TyKind::Nullable(_) | TyKind::Maybe { .. }, _) => Step::No,
            (_, TyKind::Nullable(d) | TyKind::Maybe { inner: d, .. }) => self.step(from, d),
            (TyKind::Bool | TyKind::Row(_) | TyKind::Void, TyKind::Int)
            | (TyKind::Int, TyKind::Row(_))
            | (TyKind::Text, TyKind::Json)
            | (TyKind::Json, TyKind::Text)
            | (TyKind::EmptyMulti, TyKind::Multi(_))
            | (TyKind::EmptyMap, TyKind::Map(..)) => Step::Yes,
            (TyKind::Class(class), TyKind::Iface(iface)) => Step::If(Goal::Class(class, iface)),
            (TyKind::Iface(from), TyKind::Iface(to)) => Step::If(Goal::Iface(from, to)),
            _ => Step::No,
        }
    }

    /// All goals that `root` rests on, itself first; or why it does not hold.
    fn prove(&self, root: Goal) -> Result<Vec<Goal>, Mismatch> {
        let mut goals = vec![root];
        let mut seen: FxHashSet<Goal> = FxHashSet::default();
        let _ = seen.insert(root);
        // With each goal, the sentence about the root's method that led to it; empty for the root itself.
        let mut work: VecDeque<(Goal, String)> = VecDeque::from([(root, String::new())]);
        while let Some((goal, why)) = work.pop_front() {
            let needs = self.goal_needs(goal).map_err(|m| if why.is_empty() { m } else { format!("{why}: {m}") })?;
            for (need, sentence) in needs {
                if self.is_known(need) || !seen.insert(need) {
                    continue;
                }
                goals.push(need);
                work.push_back((need, if why.is_empty() { sentence } else { why.clone() }));
            }
        }
        Ok(goals)
    }

    fn is_known(&self, goal: Goal) -> bool {
        match goal {
            Goal::Class(class, iface) => self.impls.contains_key(&(iface, class)),
            Goal::Iface(from, to) => from == to || self.covered_set.contains(&(from, to)),
        }
    }

    /// Checks one goal by itself and names the further ones it depends on.
    fn goal_needs(&self, goal: Goal) -> Result<Vec<(Goal, String)>, Mismatch> {
        let (Goal::Class(_, to) | Goal::Iface(_, to)) = goal;
        let Some(target) = self.program.interfaces.get(to.0 as usize) else { return Ok(Vec::new()) };
        let mut needs = Vec::new();
        for sig in &target.sigs {
            let wanted = format!("{}.{}", target.name, sig.name);
            let (owner, found) = match goal {
                Goal::Class(class, _) => {
                    let Some(decl) = self.program.classes.get(class.0 as usize) else { return Ok(Vec::new()) };
                    if decl.is_table {
                        return Err(format!(
                            "`{}` is an `@table` class, and row handles satisfy no interface",
                            decl.name
                        ));
                    }
                    (&decl.name, self.method_sig(class, &sig.name)?)
                }
                Goal::Iface(from, _) => {
                    let Some(decl) = self.program.interfaces.get(from.0 as usize) else { return Ok(Vec::new()) };
                    (&decl.name, decl.sigs.iter().find(|s| s.name == sig.name).cloned())
                }
            };
            let Some(found) = found else {
                return Err(format!("`{owner}` has no method `{}`", sig.name));
            };
            if found.params.len() != sig.params.len() {
                return Err(format!(
                    "`{owner}.{}` takes {}, `{wanted}` takes {}",
                    sig.name,
                    parameters(found.params.len()),
                    parameters(sig.params.len())
                ));
            }
            for (i, ((mode, ty), (want_mode, want_ty))) in found.params.iter().zip(&sig.params).enumerate() {
                if (*mode == Mode::Take) != (*want_mode == Mode::Take) {
                    let (with, without) = if *mode == Mode::Take {
                        (format!("`{owner}.{}`", sig.name), format!("`{wanted}`"))
                    } else {
                        (format!("`{wanted}`"), format!("`{owner}.{}`", sig.name))
                    };
                    return Err(format!("parameter {} is `take` in {with} but not in {without}", i + 1));
                }
                match self.step(*want_ty, *ty) {
                    Step::Yes => {}
                    Step::If(need) => needs.push((
                        need,
                        format!(
                            "parameter {} of `{owner}.{}` is `{}`, that of `{wanted}` is `{}`",
                            i + 1,
                            sig.name,
                            self.show(*ty),
                            self.show(*want_ty)
                        ),
                    )),
                    Step::No => {
                        return Err(format!(
                            "parameter {} of `{owner}.{}` is `{}`, that of `{wanted}` is `{}`",
                            i + 1,
                            sig.name,
                            self.show(*ty),
                            self.show(*want_ty)
                        ));
                    }
                }
            }
            if sig.ret == Types::VOID {
                continue;
            }
            let differs = || {
                format!(
                    "`{owner}.{}` returns `{}`, `{wanted}` returns `{}`",
                    sig.name,
                    self.show(found.ret),
                    self.show(sig.ret)
                )
            };
            match self.step(found.ret, sig.ret) {
                Step::Yes => {}
                Step::If(need) => needs.push((need, differs())),
                Step::No => return Err(differs()),
            }
        }
        Ok(needs)
    }

    /// The signature of an instance method, without `self`; an error for a static one.
    fn method_sig(&self, class: ClassId, name: &str) -> Result<Option<Sig>, Mismatch> {
        let Some(func) = self.method(class, name).and_then(|id| self.program.funcs.get(id.0 as usize)) else {
            return Ok(None);
        };
        if func.is_static {
            return Err(format!("`{}` is static, and static methods serve no interface", func.display));
        }
        let params = func.params.iter().zip(&func.locals).skip(1).map(|(mode, local)| (*mode, local.ty)).collect();
        Ok(Some(Sig { name: func.name.clone(), params, ret: func.ret }))
    }

    fn commit(&mut self, goals: Vec<Goal>) {
        // All edges first: recording a class then follows them.
        for goal in &goals {
            if let Goal::Iface(from, to) = goal
                && self.covered_set.insert((*from, *to))
            {
                self.covered.entry(*from).or_default().push(*to);
                let known = self.program.interfaces.get(from.0 as usize).map(|i| i.impls.clone()).unwrap_or_default();
                self.propagate(known.iter().map(|(class, _)| (*class, *from, *to)).collect());
            }
        }
        for goal in &goals {
            if let Goal::Class(class, iface) = goal {
                self.record(*class, *iface);
            }
        }
    }

    /// Records a class that satisfies the interface by its own methods.
    fn record(&mut self, class: ClassId, iface: IfaceId) {
        if self.impls.contains_key(&(iface, class)) {
            return;
        }
        let sigs = self.program.interfaces.get(iface.0 as usize).map(|i| i.sigs.clone()).unwrap_or_default();
        let mut funcs = Vec::with_capacity(sigs.len());
        for sig in &sigs {
            let Some(method) = self.method(class, &sig.name) else { return };
            funcs.push(self.adapt(method, sig, None));
        }
        let edges = self.insert_impl(class, iface, funcs);
        self.propagate(edges);
    }

    /// The functions by which a class of `from` serves `to`, because values of `from` become values of `to`. The methods
    /// are reached by way of `from`: conversions compose even where the class by itself would not satisfy `to`.
    fn functions_through(&mut self, class: ClassId, from: IfaceId, to: IfaceId) -> Option<Vec<FuncId>> {
        let found = *self.impls.get(&(from, class))?;
        let source = self.program.interfaces.get(from.0 as usize)?;
        let (_, base) = source.impls.get(found)?.clone();
        let source_sigs = source.sigs.clone();
        let sigs = self.program.interfaces.get(to.0 as usize)?.sigs.clone();
        let mut funcs = Vec::with_capacity(sigs.len());
        for sig in &sigs {
            let slot = source_sigs.iter().position(|s| s.name == sig.name)?;
            funcs.push(self.adapt(*base.get(slot)?, sig, source_sigs.get(slot)));
        }
        Some(funcs)
    }

    /// Follows the edges in `work` (class, from, to) and those behind them until every class is recorded everywhere.
    fn propagate(&mut self, mut work: Vec<(ClassId, IfaceId, IfaceId)>) {
        while let Some((class, from, to)) = work.pop() {
            if !self.impls.contains_key(&(to, class))
                && let Some(funcs) = self.functions_through(class, from, to)
            {
                work.extend(self.insert_impl(class, to, funcs));
            }
        }
    }

    /// The edges to follow from the new entry.
    fn insert_impl(&mut self, class: ClassId, iface: IfaceId, funcs: Vec<FuncId>) -> Vec<(ClassId, IfaceId, IfaceId)> {
        if let Some(decl) = self.program.interfaces.get_mut(iface.0 as usize) {
            let _ = self.impls.insert((iface, class), decl.impls.len());
            decl.impls.push((class, funcs));
        }
        self.covered.get(&iface).into_iter().flatten().map(|to| (class, iface, *to)).collect()
    }

    /// The function that dispatch calls for `sig`: `method` itself if its types are the signature's, else an adapter.
    /// `via`: types that the values pass through on their way.
    fn adapt(&mut self, method: FuncId, sig: &Sig, via: Option<&Sig>) -> FuncId {
        let Some(func) = self.program.funcs.get(method.0 as usize) else { return method };
        let same_params =
            func.locals.iter().skip(1).zip(&sig.params).all(|(local, (_, ty))| self.same_word(local.ty, *ty));
        if same_params && self.same_word(func.ret, sig.ret) {
            return method;
        }
        let func = func.clone();
        let Some(this) = func.locals.first().cloned() else { return method };
        let span = func.span;
        let expr = |kind, ty| Expr { kind, ty, span };
        let mut locals = vec![this.clone()];
        let mut modes = vec![Mode::Borrow];
        let mut args = vec![expr(ExprKind::Local(LocalId(0)), this.ty)];
        for (i, (mode, ty)) in sig.params.iter().enumerate() {
            let target = func.locals.get(i + 1);
            let name = target.map_or_else(|| this.name.clone(), |l| l.name.clone());
            locals.push(hir::Local { name, ty: *ty, span });
            modes.push(*mode);
            let id = LocalId(u32::try_from(i + 1).unwrap_or(u32::MAX));
            let mut arg = expr(ExprKind::Local(id), *ty);
            if let Some((_, middle)) = via.and_then(|s| s.params.get(i)) {
                arg = self.convert(arg, *middle);
            }
            args.push(self.convert(arg, target.map_or(*ty, |l| l.ty)));
        }
        let mut value = expr(ExprKind::Call(method, args), func.ret);
        let kind = if sig.ret == Types::VOID {
            StmtKind::Expr(value)
        } else {
            if let Some(via) = via
                && via.ret != Types::VOID
            {
                value = self.convert(value, via.ret);
            }
            StmtKind::Return(Some(self.convert(value, sig.ret)))
        };
        let body = hir::Block { stmts: vec![hir::Stmt { kind, span }], end: end_of(span) };
        let adapter = FuncId(u32::try_from(self.program.funcs.len()).unwrap_or(u32::MAX));
        let origin = self.funcs.get(method.0 as usize).copied();
        self.program.funcs.push(hir::Func { params: modes, locals, ret: sig.ret, body, ..func });
        self.bodies.push(None);
        self.funcs.push(origin.unwrap_or_else(|| self.origin(span.file, false)));
        adapter
    }

    /// Whether a value of one type is one of the other as it stands: the same type, or two pointers that differ by `?`
    /// or by being seen as an interface.
    fn same_word(&self, a: Ty, b: Ty) -> bool {
        a == b || (self.is_pointer(a) && self.is_pointer(b))
    }

    fn is_pointer(&self, ty: Ty) -> bool {
        match self.program.types.kind(self.program.types.strip(ty)) {
            TyKind::Text
            | TyKind::Bytes
            | TyKind::Json
            | TyKind::Class(_)
            | TyKind::Iface(_)
            | TyKind::Multi(_)
            | TyKind::Map(..) => true,
            TyKind::Union(union) => self.program.unions.get(union.0 as usize).is_some_and(|u| u.has_payload),
            _ => false,
        }
    }

    /// A value in a slot of another type, by the rules of `step`, which has said yes.
    fn convert(&mut self, value: Expr, to: Ty) -> Expr {
        let (from, span) = (value.ty, value.span);
        if from == to {
            return value;
        }
        let kind = match (self.program.types.kind(from), self.program.types.kind(to)) {
            (TyKind::Nullable(_) | TyKind::Maybe { .. }, _) => ExprKind::Convert(Box::new(value)),
            (_, TyKind::Nullable(inner)) => ExprKind::Wrap(Box::new(self.convert(value, inner))),
            (TyKind::Void, _) => ExprKind::VoidAsInt(Box::new(value)),
            _ => ExprKind::Convert(Box::new(value)),
        };
        Expr { kind, ty: to, span }
    }
}

fn parameters(n: usize) -> String {
    match n {
        0 => "no parameters".to_owned(),
        1 => "1 parameter".to_owned(),
        n => format!("{n} parameters"),
    }
}

fn end_of(span: Span) -> Span {
    Span { start: span.end.saturating_sub(1), ..span }
}

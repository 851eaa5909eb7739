//! Statements (language 6.3, 8.1, 8.4, 8.8): scopes, assignment, branches, loops, returns.

use super::coerce::{retype, wrap};
use super::flow::{Flow, State};
use super::site::Site;
use super::{Cx, Loop, Want, named};
use crate::hir::{self, Expr, ExprKind, LocalId, Place, StmtKind};
use crate::types::{Ty, TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::Span;
use syntax::ast::{self, BinOp, Name};

impl<'e, 'a> Cx<'e, 'a> {
    pub(super) fn block(&mut self, block: &'a ast::Block) -> hir::Block {
        let mark = self.open();
        let mut stmts = Vec::with_capacity(block.stmts.len());
        for stmt in &block.stmts {
            self.stmt(stmt, &mut stmts);
        }
        self.close(mark);
        hir::Block { stmts, end: self.block_end(block) }
    }

    /// The closing brace.
    pub(super) fn block_end(&self, block: &ast::Block) -> Span {
        Span { start: block.span.end.saturating_sub(1).max(block.span.start), ..block.span }
    }

    /// Checks a statement and appends its HIR. Unreachable statements are checked as if reached, and left out.
    pub(super) fn stmt(&mut self, stmt: &'a ast::Stmt, out: &mut Vec<hir::Stmt>) {
        if self.flow.reachable {
            self.live_stmt(stmt, out);
            return;
        }
        let was_dead = std::mem::replace(&mut self.dead, true);
        self.flow.reachable = true;
        let mut dropped = Vec::new();
        self.live_stmt(stmt, &mut dropped);
        self.flow.reachable = false;
        self.dead = was_dead;
    }

    fn live_stmt(&mut self, stmt: &'a ast::Stmt, out: &mut Vec<hir::Stmt>) {
        let span = stmt.span;
        let mut push = |kind: StmtKind| out.push(hir::Stmt { kind, span });
        match &stmt.kind {
            ast::StmtKind::Let { name, ty, value } => {
                if let Some(kind) = self.let_stmt(name, ty.as_ref(), value) {
                    push(kind);
                }
            }
            ast::StmtKind::Expr(e) => {
                let value = self.expr(e, Want::Stmt);
                if !matches!(self.kind(value.ty), TyKind::Error | TyKind::Nil | TyKind::EmptyMulti | TyKind::EmptyMap) {
                    push(StmtKind::Expr(value));
                }
            }
            ast::StmtKind::Assign { target, value } => {
                if let Some(kind) = self.assign(target, value) {
                    push(kind);
                }
            }
            ast::StmtKind::OpAssign { target, op, value } => {
                if let Some(kind) = self.op_assign(target, *op, value, span) {
                    push(kind);
                }
            }
            ast::StmtKind::If(branch) => push(self.if_stmt(branch)),
            ast::StmtKind::While { cond, body } => push(self.while_stmt(cond, body)),
            ast::StmtKind::DoWhile { body, cond } => push(self.do_while(body, cond)),
            ast::StmtKind::For { first, second, iter, body } => {
                if let Some(kind) = self.for_stmt(first, second.as_ref(), iter, body) {
                    push(kind);
                }
            }
            ast::StmtKind::Return(value) => self.return_stmt(value.as_ref(), span, out),
            ast::StmtKind::Unread { names, leaves, local } => {
                self.unread_stmt(names, *leaves);
                if let Some(local) = local {
                    let _ = self.declare(local, Types::ERROR);
                }
            }
            ast::StmtKind::Break => {
                self.leave("break", span);
                push(StmtKind::Break);
            }
            ast::StmtKind::Continue => {
                self.leave("continue", span);
                push(StmtKind::Continue);
            }
        }
    }

    fn let_stmt(&mut self, name: &ast::Ident, ty: Option<&'a ast::Type>, value: &'a ast::Expr) -> Option<StmtKind> {
        let (slot, value) = if let Some(ty) = ty {
            let mut reports = std::mem::take(&mut self.diags);
            let slot = self.env.resolve_type(self.file, ty, &mut reports);
            self.diags = reports;
            let site = Site::Let(name.name.clone());
            (slot, self.check(value, slot, &site))
        } else {
            let raw = self.expr(value, Want::Value);
            let settled = self.settle(raw);
            (settled.ty, settled)
        };
        if value.ty == Types::NEVER {
            let _ = self.declare(name, Types::ERROR);
            return Some(StmtKind::Expr(value));
        }
        // An annotated `?T` stays strict whatever it starts with: only assignment and conditions narrow.
        let local = self.declare(name, slot);
        (value.ty != Types::ERROR).then_some(StmtKind::Let(local, value))
    }

    /// Records what an assignment of a value of type `given` says about a nullable local (6.3).
    fn assigned(&mut self, local: LocalId, given: Ty) {
        let declared = self.declared_state(local);
        if !matches!(self.kind(self.local_ty(local)), TyKind::Nullable(_) | TyKind::Maybe { .. }) {
            return;
        }
        let state = match self.kind(given) {
            TyKind::Nil | TyKind::Nullable(_) => declared,
            TyKind::Maybe { noisy, .. } => State::Maybe { noisy },
            _ => State::Value,
        };
        if state != State::Value {
            self.nil_log.push(local);
        }
        self.flow.set(local, state);
    }

    /// A statement that could not be read: what it may have said of the names counts as said.
    fn unread_stmt(&mut self, names: &[Name], leaves: bool) {
        for name in names {
            let _ = self.unread.insert(name.clone());
            if let Some(local) = self.lookup(name)
                && matches!(self.kind(self.local_ty(local)), TyKind::Nullable(_) | TyKind::Maybe { .. })
            {
                self.flow.set(local, State::Value);
            }
        }
        self.flow.reachable &= !leaves;
    }

    fn assign(&mut self, target: &'a ast::Expr, value: &'a ast::Expr) -> Option<StmtKind> {
        if let ast::ExprKind::Name(name) = &target.kind {
            let local = self.assignable_local(name, target.span, value)?;
            let ty = self.local_ty(local);
            let is_payload = self.payloads.contains(&local);
            let slot = match self.kind(ty) {
                TyKind::Maybe { inner, .. } if is_payload => inner,
                TyKind::Maybe { inner, .. } => self.nullable(inner),
                _ => ty,
            };
            let site = Site::Assign(name.clone());
            let raw = self.expr(value, Want::Slot(slot, &site));
            let given = raw.ty;
            let value = self.coerce(raw, value, slot, &site);
            self.assigned(local, given);
            let failed = value.ty == Types::ERROR || ty == Types::ERROR;
            let value = if is_payload { wrap(value, ty) } else { retype(value, ty) };
            return (!failed).then_some(StmtKind::Assign(Place::Local(local), value));
        }
        let (place, ty, site) = match self.place(target) {
            Ok(found) => found,
            Err(never) => {
                let _ = self.expr(value, Want::Value);
                return never.map(StmtKind::Expr);
            }
        };
        let value = self.check(value, ty, &site);
        (value.ty != Types::ERROR).then_some(StmtKind::Assign(place, value))
    }

    /// The local that `name` assigns to; otherwise reports, and checks `value` on its own.
    fn assignable_local(&mut self, name: &Name, span: Span, value: &'a ast::Expr) -> Option<LocalId> {
        let is_self = name == "self" && self.class.is_some();
        if let Some(local) = self.lookup(name)
            && !is_self
        {
            return Some(local);
        }
        if is_self {
            let _ = self.bad_target(span, "`self`", "assign to its fields: `self.f = …`");
        } else if !matches!(self.env.const_in_scope(self.file, self.class, name), crate::env::ConstLookup::None) {
            let _ = self.bad_target(span, &format!("constant `{name}`"), "use a local for values that change");
        } else if self.is_unread(name) || self.env.alias_is_broken(self.file, name) {
            let _ = self.error(span);
        } else {
            self.not_declared(name, span);
        }
        let _ = self.expr(value, Want::Value);
        None
    }

    /// An assignment to a name that nothing declares: one report, whatever follows of it.
    fn not_declared(&mut self, name: &Name, span: Span) {
        let help = self.meant(name).unwrap_or_else(|| format!("introduce it with `let`: `let {name} = …`"));
        let _ = self.fail(
            Diagnostic::error(403, span, format!("unknown name `{name}`"))
                .label("nothing to assign to")
                .note("`=` changes a local, a parameter, a field or an element; `let` introduces a local")
                .help(help),
        );
        let _ = self.unread.insert(name.clone());
    }

    fn bad_target(&mut self, span: Span, what: &str, help: &str) -> Expr {
        self.fail(
            Diagnostic::error(403, span, format!("{what} cannot be assigned to"))
                .label("not an assignment target")
                .note("targets are locals, parameters, fields and elements of a `multi` or `map`")
                .help(help),
        )
    }

    /// A field or element as a target, its type, and the slot it is for messages.
    ///
    /// `Err`: reported, or with the expression that never completes in place of the assignment.
    fn place(&mut self, target: &'a ast::Expr) -> Result<(Place, Ty, Site), Option<Expr>> {
        match &target.kind {
            ast::ExprKind::Field(base, field) => {
                let value = self.expr(base, Want::Value);
                let value = self.settle(value);
                let value = self.need(value, base, &Site::Base(field.name.clone()));
                if value.ty == Types::NEVER {
                    return Err(Some(value));
                }
                self.warn_copy(&value, target.span);
                let (class, is_row) = match self.kind(value.ty) {
                    TyKind::Class(class) => (class, false),
                    TyKind::Row(class) => (class, true),
                    _ => {
                        let _ = self.field_of(value, field, target.span);
                        return Err(None);
                    }
                };
                let found = self.env.field(class, &field.name).map(|(i, f)| (i, f.ty, f.read_only, f.span));
                let class_name = self.class_name(class);
                match found {
                    Some((index, ty, read_only, declared)) if !matches!(self.kind(ty), TyKind::Backlink(..)) => {
                        if read_only && self.class != Some(class) {
                            self.report(
                                Diagnostic::error(
                                    219,
                                    field.span,
                                    format!(
                                        "`{class_name}.{}` is `pub(read)`: only `{class_name}` writes it",
                                        field.name
                                    ),
                                )
                                .label("written outside its class")
                                .related(declared, "declared here")
                                .note(
                                    "a `pub(read)` field is readable everywhere and assignable in methods of its class",
                                )
                                .help(format!("add a method to `{class_name}` that sets it")),
                            );
                        }
                        let site = Site::Field(class_name, field.name.clone());
                        if is_row {
                            return Ok((Place::Column(value, class, index), ty, site));
                        }
                        Ok((Place::Field(value, class, index), ty, site))
                    }
                    Some(_) => {
                        let _ = self.bad_target(target.span, "a backlink", "assign the `ref` column of the other row");
                        Err(None)
                    }
                    None => {
                        let _ = self.field_of(value, field, target.span);
                        Err(None)
                    }
                }
            }
            ast::ExprKind::Index(base, index) => {
                let value = self.expr(base, Want::Value);
                let value = self.settle(value);
                let value = self.need(value, base, &Site::Base(Name::new_static("[…]")));
                self.warn_copy(&value, target.span);
                match self.kind(value.ty) {
                    TyKind::Multi(element) => {
                        let at = self.check(index, Types::INT, &Site::Index);
                        (at.ty != Types::ERROR)
                            .then_some((Place::Element(value, at), element, Site::Element))
                            .ok_or(None)
                    }
                    TyKind::Map(key, element) => {
                        let key = self.check(index, key, &Site::Key);
                        (key.ty != Types::ERROR)
                            .then_some((Place::Entry(value, key), element, Site::Element))
                            .ok_or(None)
                    }
                    TyKind::Never => Err(Some(value)),
                    TyKind::Error => Err(None),
                    _ => {
                        let _ = self.not_indexable(&value);
                        Err(None)
                    }
                }
            }
            ast::ExprKind::Unread => {
                let _ = self.error(target.span);
                Err(None)
            }
            _ => {
                let _ = self.bad_target(target.span, &named(target), "assign to a local, a field or an element");
                Err(None)
            }
        }
    }

    fn op_assign(&mut self, target: &'a ast::Expr, op: BinOp, value: &'a ast::Expr, span: Span) -> Option<StmtKind> {
        if let ast::ExprKind::Name(name) = &target.kind {
            let local = self.assignable_local(name, target.span, value)?;
            let ty = self.local_ty(local);
            let read = self.read_local(local, target.span);
            let right = self.expr(value, Want::Value);
            let result = self.arithmetic(op, span, read, target, right, value, span);
            if result.ty == Types::ERROR {
                return None;
            }
            if result.ty == ty {
                return match result.kind {
                    ExprKind::Binary(op, _, right) => Some(StmtKind::OpAssign(Place::Local(local), op, *right)),
                    kind => Some(StmtKind::Assign(Place::Local(local), Expr { kind, ..result })),
                };
            }
            let given = result.ty;
            let site = Site::Assign(name.clone());
            let value = self.coerce(result, target, ty, &site);
            self.assigned(local, given);
            return (value.ty != Types::ERROR).then_some(StmtKind::Assign(Place::Local(local), value));
        }
        let (place, ty, site) = match self.place(target) {
            Ok(found) => found,
            Err(never) => {
                let _ = self.expr(value, Want::Value);
                return never.map(StmtKind::Expr);
            }
        };
        // Stands for the value that is read from the place; a missing map entry reads as zero.
        let read = Expr { kind: ExprKind::Nil, ty, span: target.span };
        let right = self.expr(value, Want::Value);
        let result = self.arithmetic(op, span, read, target, right, value, span);
        if result.ty == Types::ERROR {
            return None;
        }
        if result.ty != ty {
            let _ = self.coerce(result, target, ty, &site);
            if self.kind(ty) != TyKind::Bool {
                let given = self.show(ty);
                let _ = self.bad_target(
                    target.span,
                    &format!("a place of type `{given}`"),
                    "compound assignment works on Int and Float",
                );
            }
            return None;
        }
        match result.kind {
            ExprKind::Binary(op, _, right) => Some(StmtKind::OpAssign(place, op, *right)),
            // The value never comes.
            _ => None,
        }
    }

    fn if_stmt(&mut self, branch: &'a ast::If) -> StmtKind {
        let mut arms = Vec::with_capacity(branch.arms.len());
        let mut ends = Vec::with_capacity(branch.arms.len());
        for (cond, body) in &branch.arms {
            let (cond, facts) = self.condition(cond, "if");
            let mut otherwise = self.flow.clone();
            otherwise.narrow(&facts.when_false);
            self.flow.narrow(&facts.when_true);
            let body = self.block(body);
            ends.push(std::mem::replace(&mut self.flow, otherwise));
            arms.push((cond, body));
        }
        let has_else = branch.otherwise.is_some();
        let otherwise = branch.otherwise.as_ref().map(|body| self.block(body));
        // An `else if` is an `if` inside an `else`: join from the inside out.
        let mut end = std::mem::take(&mut self.flow);
        let mut is_else = has_else;
        while let Some(then) = ends.pop() {
            end = if is_else { self.join_else(then, end) } else { self.join(then, end) };
            is_else = true;
        }
        self.flow = end;
        StmtKind::If { arms, otherwise }
    }

    /// Walks a loop: `walk` checks condition and body from the state at the loop's head. A local that is narrowed
    /// there but may become nil in the body is `T~` at the head (6.3); finding one means to walk again. The demotions
    /// stay known, so that nested loops are not walked more often than there are demotions around them. Programs made to
    /// need many walks get all narrowed locals as `T~` instead: sound, at the price of warnings.
    fn looped<R>(&mut self, body: &'a ast::Block, walk: impl Fn(&mut Cx<'e, 'a>) -> R) -> (R, Flow, Loop) {
        const WALKS_OF_A_LOOP: u32 = 8;
        const WALKS_OF_DEEP_LOOPS: u32 = 64;
        const DEEP: usize = 3;
        let key = std::ptr::from_ref(body) as usize;
        let mut walks = 0;
        loop {
            let before = self.flow.clone();
            let (reports, first_inner) = (self.diags.len(), self.next_local());
            let mark = self.nil_log.len();
            if let Some(list) = self.demoted.get(&key) {
                for local in list {
                    if self.flow.is_narrowed(*local) {
                        self.flow.set(*local, State::Maybe { noisy: true });
                    }
                }
            }
            if walks > WALKS_OF_A_LOOP || (self.loops.len() >= DEEP && self.deep_walks > WALKS_OF_DEEP_LOOPS) {
                self.flow.demote_all();
            }
            let head = self.flow.clone();
            self.loops.push(Loop { first_inner, breaks: Flow::default(), continues: Flow::default() });
            let result = walk(self);
            let frame =
                self.loops.pop().unwrap_or(Loop { first_inner, breaks: Flow::default(), continues: Flow::default() });
            let assigned = self.nil_log.get(mark..).unwrap_or_default();
            let mut lost: Vec<LocalId> = assigned.iter().copied().filter(|l| head.is_narrowed(*l)).collect();
            lost.sort_unstable();
            lost.dedup();
            if lost.is_empty() {
                return (result, head, frame);
            }
            walks += 1;
            if self.loops.len() >= DEEP {
                self.deep_walks += 1;
            }
            self.demoted.entry(key).or_default().extend(lost);
            self.diags.truncate(reports);
            self.locals.truncate(first_inner.0 as usize);
            self.flow = before;
        }
    }

    fn while_stmt(&mut self, cond: &'a ast::Expr, body: &'a ast::Block) -> StmtKind {
        let ((cond, mut exit, body), _, frame) = self.looped(body, |cx| {
            let (cond, facts) = cx.condition(cond, "while");
            let mut exit = cx.flow.clone();
            exit.narrow(&facts.when_false);
            cx.flow.narrow(&facts.when_true);
            (cond, exit, cx.block(body))
        });
        if matches!(cond.kind, ExprKind::Bool(true)) {
            exit.reachable = false;
        }
        self.flow = self.join(exit, frame.breaks);
        StmtKind::While { cond, body }
    }

    fn do_while(&mut self, body: &'a ast::Block, cond: &'a ast::Expr) -> StmtKind {
        let ((cond, body), _, frame) = self.looped(body, |cx| {
            let block = cx.block(body);
            let continues = cx.loops.last_mut().map(|l| std::mem::take(&mut l.continues)).unwrap_or_default();
            let end = std::mem::take(&mut cx.flow);
            cx.flow = cx.join(end, continues);
            let (cond, _) = cx.condition(cond, "while");
            (cond, block)
        });
        let mut exit = std::mem::take(&mut self.flow);
        if matches!(cond.kind, ExprKind::Bool(true)) {
            exit.reachable = false;
        }
        self.flow = self.join(exit, frame.breaks);
        StmtKind::DoWhile { body, cond }
    }

    fn for_stmt(
        &mut self,
        first: &ast::Ident,
        second: Option<&ast::Ident>,
        iter: &'a ast::Expr,
        body: &'a ast::Block,
    ) -> Option<StmtKind> {
        let value = if self.is_range(iter) {
            self.no_range(iter.span)
        } else {
            let value = self.expr(iter, Want::Value);
            let value = self.settle(value);
            self.need(value, iter, &Site::Iterable)
        };
        let (first_ty, second_ty) = match (self.kind(value.ty), second) {
            (TyKind::Multi(element), None) => (element, None),
            (TyKind::Map(key, element), Some(_)) => (key, Some(element)),
            (TyKind::Error | TyKind::Never, _) => (Types::ERROR, second.map(|_| Types::ERROR)),
            (kind, _) => {
                let given = self.show(value.ty);
                let help = match kind {
                    TyKind::Map(..) => "a map has two: `for k, v in m`",
                    TyKind::Multi(_) => "a `multi` has one: `for x in c`; keep a counter beside the loop",
                    TyKind::Int => "count with `let i = 0` and `while i < n { …; i += 1 }`",
                    TyKind::Text => {
                        "count with `let i = 0` and `while i < len(t) { …; i += 1 }`; `byte_at(t, i)` is a byte of it"
                    }
                    _ => "loop over a `multi` or a `map`",
                };
                let vars = if second.is_some() { "two variables" } else { "one variable" };
                let _ = self.fail(
                    Diagnostic::error(403, value.span, format!("`for` with {vars} over `{given}`"))
                        .label(format!("this is `{given}`"))
                        .note("`for x in c` walks a `multi`, `for k, v in m` a `map`")
                        .help(help),
                );
                (Types::ERROR, second.map(|_| Types::ERROR))
            }
        };
        let ((first, second, body), head, frame) = self.looped(body, |cx| {
            let mark = cx.open();
            let first = cx.declare(first, first_ty);
            let second = second.map(|name| cx.declare(name, second_ty.unwrap_or(Types::ERROR)));
            let body = cx.block(body);
            cx.close(mark);
            (first, second, body)
        });
        self.flow = self.join(head, frame.breaks);
        if value.ty == Types::NEVER {
            return Some(StmtKind::Expr(value));
        }
        if first_ty == Types::ERROR {
            return None;
        }
        Some(match second {
            Some(second) => StmtKind::ForMap { key: first, value: second, iter: value, body },
            None => StmtKind::ForMulti { var: first, iter: value, body },
        })
    }

    /// `a .. b` of two Ints, which other languages walk.
    fn is_range(&self, iter: &ast::Expr) -> bool {
        let is_int = |e: &ast::Expr| match &e.kind {
            ast::ExprKind::Int(_) => true,
            ast::ExprKind::Name(name) => self.lookup(name).is_some_and(|l| self.local_ty(l) == Types::INT),
            ast::ExprKind::Call { callee, .. } => matches!(&callee.kind, ast::ExprKind::Name(name) if name == "len"),
            _ => false,
        };
        matches!(&iter.kind, ast::ExprKind::Concat(items) if items.len() == 2 && items.iter().all(is_int))
    }

    fn no_range(&mut self, span: Span) -> Expr {
        self.fail(
            Diagnostic::error(201, span, "`..` between `Int` and `Int`: it joins Texts and makes no range")
                .label("not a list")
                .note("`for` walks a `multi` or a `map`; there is no range operator")
                .help("count with `let i = 0` and `while i < n { …; i += 1 }`"),
        )
    }

    fn leave(&mut self, word: &'static str, span: Span) {
        let Some(first_inner) = self.loops.last().map(|l| l.first_inner) else {
            let _ = self.fail(
                Diagnostic::error(403, span, format!("`{word}` outside a loop"))
                    .label("no loop around it")
                    .note(format!("`{word}` acts on the nearest `while`, `do` or `for`"))
                    .help(match word {
                        "break" => {
                            "an arm of `switch` ends by itself: leave the `break` out; a function is left by `return`"
                        }
                        _ => "a function is left by `return`",
                    }),
            );
            return;
        };
        if !self.dead {
            let mut state = self.flow.clone();
            state.trim(first_inner);
            if let Some(mut frame) = self.loops.pop() {
                if word == "break" {
                    frame.breaks = self.join(std::mem::take(&mut frame.breaks), state);
                } else {
                    frame.continues = self.join(std::mem::take(&mut frame.continues), state);
                }
                self.loops.push(frame);
            }
        }
        self.flow.reachable = false;
    }

    fn return_stmt(&mut self, value: Option<&'a ast::Expr>, span: Span, out: &mut Vec<hir::Stmt>) {
        let is_status = Some(self.func) == self.main && self.main_is_void;
        let result = match value {
            None if is_status => Some(Expr { kind: ExprKind::Int(0), ty: Types::INT, span }),
            None => {
                if !self.may_fall_off(self.ret) {
                    let ret = self.show(self.ret);
                    self.report(
                        Diagnostic::error(
                            227,
                            span,
                            format!("`return` without a value: `{}` gives `{ret}`", self.func_name),
                        )
                        .label("no value")
                        .note("a function with a result must return one on every path")
                        .help(format!("write `return` with a value of type `{ret}`")),
                    );
                }
                None
            }
            Some(e) if is_status => {
                let value = self.expr(e, Want::Value);
                let value = if value.ty == Types::VOID { value } else { self.settle_quietly(value) };
                match self.kind(value.ty) {
                    TyKind::Int | TyKind::Never | TyKind::Error => Some(value),
                    TyKind::Maybe { inner: Types::INT, .. } => {
                        let site = Site::Return(self.func_name.clone());
                        Some(self.need(value, e, &site))
                    }
                    _ => {
                        out.push(hir::Stmt { kind: StmtKind::Expr(value), span });
                        Some(Expr { kind: ExprKind::Int(0), ty: Types::INT, span })
                    }
                }
            }
            Some(e) if self.ret == Types::VOID => {
                let value = self.expr(e, Want::Stmt);
                if !matches!(self.kind(value.ty), TyKind::Error | TyKind::Nil | TyKind::EmptyMulti | TyKind::EmptyMap) {
                    out.push(hir::Stmt { kind: StmtKind::Expr(value), span });
                }
                None
            }
            Some(e) => {
                let site = Site::Return(self.func_name.clone());
                Some(self.check(e, self.ret, &site))
            }
        };
        // A value that never comes is no return.
        if self.flow.reachable && !self.dead {
            self.returns = true;
        }
        self.flow.reachable = false;
        match result {
            Some(value) if value.ty == Types::NEVER => out.push(hir::Stmt { kind: StmtKind::Expr(value), span }),
            Some(value) if value.ty == Types::ERROR => {}
            value => out.push(hir::Stmt { kind: StmtKind::Return(value), span }),
        }
    }

    /// A value that is dropped: nil and empty literals need no destination.
    fn settle_quietly(&mut self, e: Expr) -> Expr {
        match self.kind(e.ty) {
            TyKind::Nil | TyKind::EmptyMulti | TyKind::EmptyMap => {
                Expr { kind: ExprKind::Int(0), ty: Types::INT, span: e.span }
            }
            _ => e,
        }
    }
}

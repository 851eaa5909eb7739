//! `switch` and `try … catch` (language 8.5, 8.6): expressions with blocks in them.

use super::flow::{Flow, State};
use super::site::Site;
use super::{Cx, Want};
use crate::hir::{self, Arm, ArmTest, BlockExpr, Expr, ExprKind, LocalId, UnionId};
use crate::types::{Ty, TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::Span;
use rustc_hash::FxHashSet;
use syntax::ast::{self, Name};

/// A checked block whose value, if it has one, is not converted yet.
struct Part<'a> {
    block: hir::Block,
    value: Option<(Expr, &'a ast::Expr)>,
    completes: bool,
    /// Some of it was not read: its value may be missing for that.
    is_broken: bool,
    span: Span,
}

impl<'a> Cx<'_, 'a> {
    pub(super) fn switch(&mut self, switch: &'a ast::Switch, span: Span, want: Want<'_>) -> Expr {
        let subject = self.expr(&switch.subject, Want::Value);
        let mut subject = self.settle(subject);
        let has_nil = switch.arms.iter().flat_map(|a| &a.values).any(|v| matches!(v.kind, ast::ExprKind::Nil));
        if let TyKind::Maybe { inner, .. } = self.kind(subject.ty)
            && matches!(self.kind(inner), TyKind::Union(_))
            && !has_nil
        {
            subject = self.need(subject, &switch.subject, &Site::Subject);
        }
        let union = match self.kind(subject.ty) {
            TyKind::Union(id) => Some(id),
            _ => None,
        };
        let failed = subject.ty == Types::ERROR;
        let never = subject.ty == Types::NEVER;
        let subject_local = self.new_local(Name::default(), subject.ty, subject.span);
        let mut arms: Vec<(ArmTest, Part<'a>)> = Vec::with_capacity(switch.arms.len());
        let mut default: Option<Part<'a>> = None;
        let mut covered = Covered::default();
        let mut end = Flow::default();
        let last = switch.arms.len().saturating_sub(1);
        for (at, arm) in switch.arms.iter().enumerate() {
            covered.unknown |= arm.body.is_broken;
            let before = self.flow.clone();
            let mark = self.open();
            if arm.is_default {
                let part = self.default_arm(arm, at == last, default.is_some(), want);
                default = Some(part);
            } else {
                let test = match union {
                    _ if failed => self.unread_test(arm),
                    Some(union) => self.union_test(union, arm, &mut covered),
                    None => self.value_test(subject_local, &subject, &switch.subject, arm, &mut covered),
                };
                let part = self.part(&arm.body, arm.span, want);
                arms.push((test, part));
            }
            self.close(mark);
            let after = std::mem::replace(&mut self.flow, before);
            end = self.join(end, after);
        }
        let exhaustive = self.is_exhaustive(union, &subject, &covered);
        if default.is_none() && !exhaustive && !failed && !never && !covered.unknown {
            self.not_exhaustive(union, subject.ty, &covered, switch.subject.span);
        }
        self.flow = end;
        let is_stmt = matches!(want, Want::Stmt);
        let parts: Vec<&Part<'a>> = arms.iter().map(|a| &a.1).chain(&default).collect();
        let ty = if is_stmt { Some(Types::VOID) } else { self.part_type(&parts, want) };
        let Some(ty) = ty else { return self.error(span) };
        let mut out = Vec::with_capacity(arms.len() + 1);
        for (test, part) in arms {
            let span = part.span;
            out.push(Arm { test, body: self.finish(part, ty, want), span });
        }
        if let Some(part) = default {
            let span = part.span;
            out.push(Arm { test: ArmTest::Default, body: self.finish(part, ty, want), span });
        }
        if failed || ty == Types::ERROR {
            return self.error(span);
        }
        if never {
            return subject;
        }
        let kind = ExprKind::Switch(Box::new(hir::Switch { subject, subject_local, arms: out, exhaustive }));
        Expr { kind, ty, span }
    }

    fn default_arm(&mut self, arm: &'a ast::Arm, is_last: bool, is_second: bool, want: Want<'_>) -> Part<'a> {
        if !is_last {
            self.report(
                Diagnostic::warning(203, arm.span, "`default` is not the last arm")
                    .label("written before other arms")
                    .note("it still matches last: the other arms are tested first")
                    .help("move it to the end"),
            );
        }
        let part = self.part(&arm.body, arm.span, want);
        if is_second {
            self.report(
                Diagnostic::error(403, arm.span, "a second `default` arm")
                    .label("never reached")
                    .note("a `switch` has one `default`")
                    .help("remove one"),
            );
        }
        part
    }

    /// Of a subject that is not known the cases are not judged, and what they bind is not missed.
    fn unread_test(&mut self, arm: &ast::Arm) -> ArmTest {
        arm.values.iter().for_each(|value| self.unread_pattern(value));
        ArmTest::Any(Vec::new())
    }

    fn unread_pattern(&mut self, value: &ast::Expr) {
        let ast::ExprKind::Call { args, .. } = &value.kind else { return };
        args.iter().for_each(|part| self.unread_part(part));
    }

    /// A part of a pattern that is no name may be two of them with something wrong between.
    fn unread_part(&mut self, part: &ast::Expr) {
        let mut parts = vec![part];
        while let Some(part) = parts.pop() {
            match &part.kind {
                ast::ExprKind::Name(name) => {
                    let _ = self.unread.insert(name.clone());
                }
                ast::ExprKind::Binary { lhs, rhs, .. } => parts.extend([lhs.as_ref(), rhs.as_ref()]),
                _ => {}
            }
        }
    }

    /// A block with a value, in its own scope.
    fn part(&mut self, body: &'a ast::Block, span: Span, want: Want<'_>) -> Part<'a> {
        let mark = self.open();
        let mut block = hir::Block { stmts: Vec::with_capacity(body.stmts.len()), end: self.block_end(body) };
        let mut value = None;
        let last = body.stmts.len().saturating_sub(1);
        for (at, stmt) in body.stmts.iter().enumerate() {
            match &stmt.kind {
                ast::StmtKind::Expr(e) if at == last && !matches!(want, Want::Stmt) => {
                    let mut found = self.expr(e, want);
                    if let Want::Slot(ty, site) = want
                        && self.flow.reachable
                        && found.ty != Types::VOID
                        && found.ty != Types::NIL
                    {
                        found = self.coerce(found, e, ty, site);
                    }
                    if self.flow.reachable {
                        value = Some((found, e));
                    } else {
                        block.stmts.push(hir::Stmt { kind: hir::StmtKind::Expr(found), span: stmt.span });
                    }
                }
                _ => self.stmt(stmt, &mut block.stmts),
            }
        }
        self.close(mark);
        Part { block, value, completes: self.flow.reachable, is_broken: body.is_broken, span }
    }

    /// The common type of the values of all parts that complete; `None` after a report.
    fn part_type(&mut self, parts: &[&Part<'a>], want: Want<'_>) -> Option<Ty> {
        let mut common: Option<Ty> = None;
        for part in parts.iter().filter(|p| p.completes) {
            let Some((value, _)) = &part.value else {
                if part.is_broken {
                    return Some(Types::ERROR);
                }
                self.report(
                    Diagnostic::error(201, part.span, "this arm gives no value, but the `switch` is used as one")
                        .label("no value")
                        .note("an arm's value is its last statement if that is an expression")
                        .help("end the arm with an expression, or leave it with `return`, `break` or `continue`"),
                );
                return None;
            };
            let (ty, at) = (value.ty, value.span);
            if ty == Types::ERROR {
                return Some(Types::ERROR);
            }
            common = match common {
                None => Some(ty),
                Some(before) => match self.common(before, ty) {
                    Some(joined) => Some(joined),
                    None => {
                        self.disagree(before, ty, at, "arms of the `switch`");
                        return None;
                    }
                },
            };
        }
        if let Want::Slot(ty, _) = want {
            return Some(ty);
        }
        match common {
            None => Some(Types::NEVER),
            Some(Types::VOID) => Some(Types::INT),
            Some(ty) => match self.kind(ty) {
                TyKind::Nil | TyKind::EmptyMulti | TyKind::EmptyMap => {
                    let settled = self.settle(Expr {
                        kind: ExprKind::Nil,
                        ty,
                        span: parts.first().map_or_else(Span::default, |p| p.span),
                    });
                    Some(settled.ty)
                }
                _ => Some(ty),
            },
        }
    }

    fn disagree(&mut self, a: Ty, b: Ty, at: Span, what: &str) {
        let (a, b) = (self.show(a), self.show(b));
        self.report(
            Diagnostic::error(201, at, format!("{what} have no common type: `{a}` and `{b}`"))
                .label(format!("this is `{b}`"))
                .note("all branches that complete must agree on the type of the value")
                .help(format!("give a value of type `{a}`, or annotate the place the value goes to")),
        );
    }

    /// The part with its value as `ty`; without one where `ty` is no value.
    fn finish(&mut self, part: Part<'a>, ty: Ty, want: Want<'_>) -> BlockExpr {
        let value = match part.value {
            Some((value, src)) if ty != Types::VOID => {
                let site = match want {
                    Want::Slot(_, site) => site,
                    _ => &Site::Part,
                };
                Some(self.coerce(value, src, ty, site))
            }
            _ => None,
        };
        BlockExpr { block: part.block, value }
    }

    fn union_test(&mut self, union: UnionId, arm: &'a ast::Arm, covered: &mut Covered) -> ArmTest {
        let mut found = Vec::with_capacity(arm.values.len());
        let mut bindings = Vec::new();
        for value in &arm.values {
            let decl = self.env.program.unions.get(union.0 as usize);
            let Some((name, pattern, (at, variant))) = case_name(value).and_then(|(name, pattern)| {
                let variant = (0_u32..).zip(&decl?.variants).find(|(_, v)| v.name == *name)?;
                Some((name, pattern, variant))
            }) else {
                self.not_a_variant(union, value, covered);
                continue;
            };
            let _ = covered.variants.insert(at);
            found.push(at);
            if let Some(pattern) = pattern {
                let fields: Vec<Ty> = variant.fields.iter().map(|f| f.1).collect();
                bindings = self.bind(name, value.span, pattern, &fields, arm.values.len());
            }
        }
        let has_payload = self.env.program.unions.get(union.0 as usize).is_some_and(|u| u.has_payload);
        if has_payload { ArmTest::Variants(union, found, bindings) } else { ArmTest::Ordinals(found) }
    }

    fn bind(
        &mut self,
        name: &Name,
        span: Span,
        pattern: &'a [ast::Expr],
        fields: &[Ty],
        values: usize,
    ) -> Vec<LocalId> {
        let mut names = Vec::with_capacity(pattern.len());
        for part in pattern {
            if let ast::ExprKind::Name(name) = &part.kind {
                names.push(ast::Ident { name: name.clone(), span: part.span });
            } else {
                pattern.iter().for_each(|part| self.unread_part(part));
                self.report(
                    Diagnostic::error(203, part.span, format!("the pattern of `{name}` binds plain names only"))
                        .label("not a name")
                        .note("patterns do not nest and do not test payloads")
                        .help("bind a name and test it in the arm"),
                );
                self.bind_unknown(pattern);
                return Vec::new();
            }
        }
        let fault = if names.len() != fields.len() {
            Some(format!("`{name}` has {} payload values, the pattern binds {}", fields.len(), names.len()))
        } else if values > 1 {
            Some(format!("a pattern with payload stands alone: `{name}` shares its arm"))
        } else {
            None
        };
        if let Some(title) = fault {
            let help = match (fields.len(), values) {
                (0, _) | (_, 2..) => format!("write `case {name}:` to bind nothing"),
                (count, _) => {
                    let all = ["a", "b", "c", "d"].iter().copied().chain(std::iter::repeat("…")).take(count.min(5));
                    let all = all.collect::<Vec<_>>().join(", ");
                    format!("write `case {name}({all}):`, or `case {name}:` to bind nothing")
                }
            };
            self.report(
                Diagnostic::error(203, span, title)
                    .label("bad pattern")
                    .note("a pattern binds all payload values of its variant, and is the only one of its arm")
                    .help(help),
            );
            self.bind_unknown(pattern);
            return Vec::new();
        }
        names.iter().zip(fields).map(|(name, ty)| self.declare_payload(name, *ty)).collect()
    }

    /// A payload of an owned type may have been moved out of its object (7.3): the local holds what is there, and every
    /// reading of it checks.
    fn declare_payload(&mut self, name: &ast::Ident, ty: Ty) -> LocalId {
        let may_be_empty = match self.kind(ty) {
            TyKind::Multi(_) | TyKind::Map(..) | TyKind::Class(_) => true,
            TyKind::Union(_) => !self.is_scalar(ty),
            _ => false,
        };
        if !may_be_empty {
            return self.declare(name, ty);
        }
        let slot = self.intern(TyKind::Maybe { inner: ty, noisy: false });
        let local = self.declare(name, slot);
        let _ = self.payloads.insert(local);
        local
    }

    /// The bindings of a pattern that is wrong itself.
    fn bind_unknown(&mut self, pattern: &[ast::Expr]) {
        for part in pattern {
            if let ast::ExprKind::Name(name) = &part.kind {
                let _ = self.declare(&ast::Ident { name: name.clone(), span: part.span }, Types::ERROR);
            }
        }
    }

    fn not_a_variant(&mut self, union: UnionId, value: &ast::Expr, covered: &mut Covered) {
        covered.unknown = true;
        let text = super::describe(value);
        let decl = self.env.program.unions.get(union.0 as usize);
        let name = decl.map(|u| u.name.clone()).unwrap_or_default();
        let near = decl.and_then(|u| self.near(&text, u.variants.iter().map(|v| v.name.as_str())));
        self.unread_pattern(value);
        self.report(
            Diagnostic::error(201, value.span, format!("`{text}` is not a variant of `{name}`"))
                .label("not a variant")
                .note(format!("the subject is `{name}`; its cases are its variants"))
                .help(match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("name a variant of `{name}`"),
                }),
        );
    }

    fn value_test(
        &mut self,
        local: LocalId,
        subject: &Expr,
        subject_src: &'a ast::Expr,
        arm: &'a ast::Arm,
        covered: &mut Covered,
    ) -> ArmTest {
        let over_union = match self.kind(self.strip(subject.ty)) {
            TyKind::Union(id) => Some(id),
            _ => None,
        };
        let mut tests = Vec::with_capacity(arm.values.len());
        for value in &arm.values {
            if let Some(union) = over_union
                && self.names_variant(union, value)
            {
                self.variant_of_nullable(subject.ty, value, covered);
                continue;
            }
            match value.kind {
                ast::ExprKind::Bool(true) => covered.yes = true,
                ast::ExprKind::Bool(false) => covered.no = true,
                _ => {}
            }
            let right = self.expr(value, Want::Hint(subject.ty));
            if right.ty == Types::ERROR {
                covered.unknown = true;
                continue;
            }
            let read = Expr { kind: ExprKind::Local(local), ty: subject.ty, span: value.span };
            if right.ty != Types::NIL && self.common(subject.ty, right.ty).is_none() {
                let (want, given) = (self.show(subject.ty), self.show(right.ty));
                self.report(
                    Diagnostic::error(
                        201,
                        value.span,
                        format!("case of type `{given}` for a subject of type `{want}`"),
                    )
                    .label(format!("this is `{given}`"))
                    .note("case values are compared with the subject by `==`")
                    .help(format!("give a value of type `{want}`")),
                );
                continue;
            }
            tests.push(self.equality(false, read, subject_src, right, value, value.span, value.span));
        }
        ArmTest::Any(tests)
    }

    /// A variant as a case, where the subject may be nil.
    fn variant_of_nullable(&mut self, subject: Ty, value: &ast::Expr, covered: &mut Covered) {
        if let ast::ExprKind::Call { args, .. } = &value.kind {
            self.bind_unknown(args);
        }
        // One subject is one defect, however many cases it has.
        if std::mem::replace(&mut covered.unknown, true) {
            return;
        }
        let (text, ty) = (super::describe(value), self.show(subject));
        self.report(
            Diagnostic::error(201, value.span, format!("case `{text}` over a subject of type `{ty}`"))
                .label("the subject may be nil")
                .note("variants are told apart only where the value is known not to be nil")
                .help("check nil first: `if x != nil { switch x { … } }`"),
        );
    }

    fn names_variant(&self, union: UnionId, value: &ast::Expr) -> bool {
        let Some((name, pattern)) = case_name(value) else { return false };
        if pattern.is_none() && self.lookup(name).is_some() {
            return false;
        }
        self.env.program.unions.get(union.0 as usize).is_some_and(|u| u.variants.iter().any(|v| v.name == *name))
    }

    fn is_exhaustive(&self, union: Option<UnionId>, subject: &Expr, covered: &Covered) -> bool {
        match union {
            Some(union) => {
                let decl = self.env.program.unions.get(union.0 as usize);
                decl.is_some_and(|u| u.variants.len() == covered.variants.len())
            }
            None => subject.ty == Types::BOOL && covered.yes && covered.no,
        }
    }

    fn not_exhaustive(&mut self, union: Option<UnionId>, subject: Ty, covered: &Covered, span: Span) {
        let given = self.show(subject);
        let decl = union.and_then(|u| self.env.program.unions.get(u.0 as usize));
        let report = match decl {
            Some(decl) => {
                let missing = (0_u32..)
                    .zip(&decl.variants)
                    .filter(|(at, _)| !covered.variants.contains(at))
                    .map(|(_, v)| format!("`{}`", v.name))
                    .collect::<Vec<_>>()
                    .join(", ");
                Diagnostic::error(208, span, format!("`switch` over `{given}` does not cover {missing}"))
                    .label("not exhaustive")
                    .note("every variant needs an arm, or there is a `default`")
                    .help(format!("add arms for {missing}, or `default:`"))
            }
            None if subject == Types::BOOL => {
                let missing = if covered.yes { "false" } else { "true" };
                Diagnostic::error(208, span, format!("`switch` over `Bool` does not cover `{missing}`"))
                    .label("not exhaustive")
                    .note("both values need an arm, or there is a `default`")
                    .help(format!("add `case {missing}:`, or `default:`"))
            }
            None => Diagnostic::error(208, span, format!("`switch` over `{given}` needs a `default`"))
                .label("not exhaustive")
                .note("case values cannot cover every value of this type")
                .help("add `default:`"),
        };
        self.report(report);
    }

    pub(super) fn try_catch(
        &mut self,
        body: &'a ast::Expr,
        var: &ast::Ident,
        handler: &'a ast::Handler,
        span: Span,
        want: Want<'_>,
    ) -> Expr {
        let is_stmt = matches!(want, Want::Stmt);
        let before = self.flow.clone();
        let mark = self.nil_log.len();
        let value = self.expr(body, want);
        let body_end = std::mem::replace(&mut self.flow, before);
        // The body may have been left anywhere: what it may have set to nil is unknown in the arm.
        for local in self.nil_log.get(mark..).unwrap_or_default() {
            if self.flow.is_narrowed(*local) {
                self.flow.set(*local, State::Maybe { noisy: true });
            }
        }
        let scope = self.open();
        let error = self.intern(TyKind::Class(self.env.program.well_known.error));
        let var = self.declare(var, error);
        let part = match handler {
            ast::Handler::Block(block) => {
                let tail = block.stmts.last().and_then(|s| match &s.kind {
                    ast::StmtKind::Expr(e) => Some(e),
                    _ => None,
                });
                self.part(block, block.span, tail.map_or(raw(want), |e| handled(e, want)))
            }
            ast::Handler::Expr(e) => {
                let found = self.expr(e, handled(e, want));
                let mut block = hir::Block { stmts: Vec::new(), end: e.span };
                let completes = self.flow.reachable;
                let value = if is_stmt || !completes {
                    block.stmts.push(hir::Stmt { kind: hir::StmtKind::Expr(found), span: e.span });
                    None
                } else {
                    Some((found, e))
                };
                Part { block, value, completes, is_broken: false, span: e.span }
            }
        };
        self.close(scope);
        let handler_end = std::mem::take(&mut self.flow);
        let body_completes = body_end.reachable;
        self.flow = self.join(body_end, handler_end);
        if is_stmt {
            let handler = BlockExpr { block: part.block, value: None };
            let kind = ExprKind::Try { body: Box::new(value), var, handler: Box::new(handler) };
            return Expr { kind, ty: Types::VOID, span };
        }
        let part_failed = part.value.as_ref().map_or(part.is_broken, |v| v.0.ty == Types::ERROR);
        if value.ty == Types::ERROR || part_failed {
            return self.error(span);
        }
        self.try_value(value, body, body_completes, part, var, span, want)
    }

    /// A `try` whose value is used: converts both parts to its type.
    #[expect(clippy::too_many_arguments, reason = "the two checked parts and the surroundings")]
    fn try_value(
        &mut self,
        value: Expr,
        body: &'a ast::Expr,
        body_completes: bool,
        part: Part<'a>,
        var: LocalId,
        span: Span,
        want: Want<'_>,
    ) -> Expr {
        let value_ty = if value.ty == Types::VOID { Types::INT } else { value.ty };
        let gives_nil = part.completes
            && match &part.value {
                None => true,
                Some((v, _)) => v.ty == Types::NIL || (v.ty == Types::VOID && value_ty != Types::INT),
            };
        let slot = match want {
            Want::Slot(ty, site) => Some((ty, site)),
            _ => None,
        };
        let ty = if !body_completes && !part.completes {
            Types::NEVER
        } else if gives_nil {
            self.or_nil(value_ty, slot.map(|s| s.0), span)
        } else if let Some((ty, _)) = slot {
            ty
        } else {
            let part_ty = part.value.as_ref().map(|v| (v.0.ty, v.0.span));
            self.joined_type(body_completes.then_some(value.ty), part_ty, span)
        };
        if ty == Types::ERROR {
            return self.error(span);
        }
        let site = slot.map_or(&Site::Part, |s| s.1);
        let value = if body_completes { self.coerce(value, body, ty, site) } else { value };
        let mut block = part.block;
        let caught = match part.value {
            Some((v, src)) if part.completes && !(gives_nil && v.ty != Types::NIL) => {
                Some(self.coerce(v, src, ty, site))
            }
            other => {
                if let Some((v, src)) = other {
                    block.stmts.push(hir::Stmt { span: src.span, kind: hir::StmtKind::Expr(v) });
                }
                (part.completes && ty != Types::NEVER).then_some(Expr { kind: ExprKind::Nil, ty, span: part.span })
            }
        };
        let handler = BlockExpr { block, value: caught };
        Expr { kind: ExprKind::Try { body: Box::new(value), var, handler: Box::new(handler) }, ty, span }
    }

    /// The type of a `try` whose body gives a `value` and whose arm gives nil, where a `slot` is wanted.
    fn or_nil(&mut self, value: Ty, slot: Option<Ty>, span: Span) -> Ty {
        let inner = match self.kind(value) {
            TyKind::Nullable(_) => return value,
            TyKind::Never | TyKind::Nil => {
                return match slot {
                    Some(slot) => self.nullable(slot),
                    None => self.settle_type(Types::NIL, span),
                };
            }
            TyKind::Maybe { inner, .. } => inner,
            // Into a slot of another type the value converts first: `T~` of the slot's type.
            TyKind::EmptyMulti | TyKind::EmptyMap => match slot.map(|slot| self.strip(slot)) {
                Some(slot) if self.could_fit(value, slot) => slot,
                _ => match self.settle_type(value, span) {
                    Types::ERROR => return Types::ERROR,
                    settled => settled,
                },
            },
            _ => match slot {
                Some(slot) if self.could_fit(value, slot) => self.strip(slot),
                _ => value,
            },
        };
        self.intern(TyKind::Maybe { inner, noisy: true })
    }

    /// The type that the body and the arm of a `try` have in common, as far as they complete with a value; `ERROR` after
    /// a report.
    fn joined_type(&mut self, body: Option<Ty>, arm: Option<(Ty, Span)>, span: Span) -> Ty {
        let joined = match (body, arm) {
            (Some(body), Some((arm, at))) => {
                let Some(joined) = self.common(body, arm) else {
                    self.disagree(body, arm, at, "the body and the arm of `try`");
                    return Types::ERROR;
                };
                joined
            }
            (Some(ty), None) | (None, Some((ty, _))) => ty,
            (None, None) => Types::NEVER,
        };
        let settled = self.settle_type(joined, span);
        if settled == Types::VOID { Types::INT } else { settled }
    }

    fn settle_type(&mut self, ty: Ty, span: Span) -> Ty {
        match self.kind(ty) {
            TyKind::Nil | TyKind::EmptyMulti | TyKind::EmptyMap => {
                self.settle(Expr { kind: ExprKind::Nil, ty, span }).ty
            }
            _ => ty,
        }
    }
}

/// A `switch` or `try` that is the handler's value checks each of its parts against the slot; any other value is
/// converted by the handler's `try`, which has to see whether it is nil.
fn handled<'s>(value: &ast::Expr, want: Want<'s>) -> Want<'s> {
    match &value.kind {
        ast::ExprKind::Switch(_) | ast::ExprKind::Try { .. } => want,
        _ => raw(want),
    }
}

/// The handler's value is converted by the `try`, not by its own block.
fn raw(want: Want<'_>) -> Want<'_> {
    match want {
        Want::Slot(ty, _) => Want::Hint(ty),
        other => other,
    }
}

#[derive(Default)]
struct Covered {
    variants: FxHashSet<u32>,
    yes: bool,
    no: bool,
    /// A case was refused, or an arm not read: what is covered is not known.
    unknown: bool,
}

/// `Name` or `Name(…)` as a case.
fn case_name(value: &ast::Expr) -> Option<(&Name, Option<&[ast::Expr]>)> {
    match &value.kind {
        ast::ExprKind::Name(name) => Some((name, None)),
        ast::ExprKind::Call { callee, args } => match &callee.kind {
            ast::ExprKind::Name(name) => Some((name, Some(args))),
            _ => None,
        },
        _ => None,
    }
}

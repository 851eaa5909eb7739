//! Construction (language 3.4, 3.6): objects, actors, variants.

use super::coerce::{retype, wrap};
use super::site::Site;
use super::{Cx, Want};
use crate::env::{NamedType, TypeLookup};
use crate::hir::{self, Builtin, ClassId, Default_, Expr, ExprKind, UnionId};
use crate::types::{Ty, TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use syntax::ast::{self, Name};

/// Values for an object: given ones in written order, then the fields left to their defaults.
pub(super) struct Fields {
    pub(super) given: Vec<(u32, Expr)>,
    pub(super) defaults: Vec<u32>,
    failed: bool,
}

impl<'a> Cx<'_, 'a> {
    pub(super) fn construct(&mut self, class: &ast::Ident, fields: &'a [(ast::Ident, ast::Expr)], span: Span) -> Expr {
        let Some(id) = self.class_named(class) else { return self.error(span) };
        if self.env.is_table(id) {
            return self.fail(
                Diagnostic::error(250, span, format!("`{}` is a table: its rows are not objects", class.name))
                    .label("object of a table class")
                    .note("a table's values live in the store and are handled by `ref`")
                    .help(format!("write `insert {} {{ … }}`", class.name)),
            );
        }
        let fields = self.fields(id, &class.name, fields, span);
        let ty = self.intern(TyKind::Class(id));
        Expr { kind: ExprKind::New { class: id, fields: fields.given, defaults: fields.defaults }, ty, span }
    }

    pub(super) fn spawn(&mut self, class: &ast::Ident, fields: &'a [(ast::Ident, ast::Expr)], span: Span) -> Expr {
        let Some(id) = self.class_named(class) else { return self.error(span) };
        let target = if self.env.is_table(id) { Err("it is a table".to_owned()) } else { self.env.receive_of(id) };
        let (receive, message) = match target {
            Ok((receive, message, _)) => (receive, message),
            Err(why) => {
                let has_it = self.env.method(id, "receive").is_some();
                let meant = if has_it { None } else { self.near_method(id, "receive") };
                return self.fail(
                    Diagnostic::error(221, class.span, format!("`{}` cannot be spawned: {why}", class.name))
                        .label("not an actor class")
                        .note(
                            "an actor class has one `fn receive(msg: M)`, `M` a class, record or union, bare or `mut`",
                        )
                        .help(match meant {
                            Some(meant) => format!("did you mean `receive`? `{}` has a method `{meant}`", class.name),
                            None => {
                                format!("write `fn receive(msg: M)` in `{}` with a class `M` of its own", class.name)
                            }
                        }),
                );
            }
        };
        let fields = self.fields(id, &class.name, fields, span);
        if let Some(class) = self.env.program.classes.get_mut(id.0 as usize) {
            class.receive = Some(receive);
        }
        let ty = self.intern(TyKind::Actor(message));
        Expr { kind: ExprKind::Spawn { class: id, fields: fields.given, defaults: fields.defaults }, ty, span }
    }

    pub(super) fn class_named(&mut self, class: &ast::Ident) -> Option<ClassId> {
        let found = match self.env.type_lookup(self.file, &class.name) {
            TypeLookup::Found(entry) => Some(entry.named),
            TypeLookup::NotExported { .. } | TypeLookup::Ambiguous(_) => {
                self.diags.extend(self.env.unknown_type(self.file, class));
                return None;
            }
            TypeLookup::None if self.env.is_unread(&class.name) => return None,
            TypeLookup::None => None,
        };
        if let Some(NamedType::Class(id)) = found {
            return Some(id);
        }
        let near = self.near(&class.name, self.env.program.classes.iter().map(|c| c.name.as_str()));
        let (title, help) = match (found, near) {
            (Some(NamedType::Union(_)), _) => {
                (format!("`{}` is a union, not a class", class.name), "name one of its variants instead".to_owned())
            }
            (Some(NamedType::Iface(_)), _) => (
                format!("`{}` is an interface, not a class", class.name),
                "construct a class that satisfies it".to_owned(),
            ),
            (None, _) if !self.env.variant(self.file, &class.name).is_empty() => (
                format!("`{}` is a variant, not a class", class.name),
                format!("a variant takes its payload by position: `{}(…)`", class.name),
            ),
            (_, Some(near)) => (format!("unknown class `{}`", class.name), format!("did you mean `{near}`?")),
            (_, None) => {
                (format!("unknown class `{}`", class.name), format!("declare it: `class {} {{ … }}`", class.name))
            }
        };
        self.report(
            Diagnostic::error(207, class.span, title)
                .label("not a class")
                .note("`Name { … }` constructs an object of the class or record `Name`")
                .help(help),
        );
        None
    }

    pub(super) fn fields(
        &mut self,
        id: ClassId,
        class: &Name,
        fields: &'a [(ast::Ident, ast::Expr)],
        span: Span,
    ) -> Fields {
        let mut out = Fields { given: Vec::with_capacity(fields.len()), defaults: Vec::new(), failed: false };
        let mut seen = FxHashSet::default();
        let mut repeated = false;
        for (name, value) in fields {
            let Some((index, ty)) = self.env.field(id, &name.name).map(|(i, f)| (i, f.ty)) else {
                let _ = self.unknown_field(id, name);
                let _ = self.expr(value, Want::Value);
                out.failed = true;
                continue;
            };
            repeated |= !seen.insert(index);
            if matches!(self.kind(ty), TyKind::Backlink(..)) {
                out.failed = true;
                self.report(
                    Diagnostic::error(
                        202,
                        name.span,
                        format!("`{class}.{}` is a backlink and cannot be given", name.name),
                    )
                    .label("not a stored field")
                    .note("a backlink is computed from the rows that refer to this one")
                    .help("leave it out"),
                );
                continue;
            }
            let value = self.check(value, ty, &Site::Field(class.clone(), name.name.clone()));
            out.failed |= value.ty == Types::ERROR;
            out.given.push((index, value));
        }
        if repeated {
            out.given = self.keep_last(out.given);
        }
        // An alias of a record has defaults of its own; HIR knows those of the class, so these are written out.
        let own = self.env.record_defaults(self.file, class).map(<[_]>::to_vec);
        let mut missing = Vec::new();
        let mut written = Vec::new();
        if let Some(decl) = self.env.program.classes.get(id.0 as usize) {
            for (index, field) in (0_u32..).zip(&decl.fields) {
                if seen.contains(&index) || matches!(self.kind(field.ty), TyKind::Backlink(..)) {
                    continue;
                }
                let default = match &own {
                    Some(own) => own.get(index as usize).and_then(Option::as_ref),
                    None => field.default.as_ref(),
                };
                let is_nullable = matches!(self.kind(field.ty), TyKind::Nullable(_));
                match default {
                    Some(default) if own.is_some() => written.push((index, field.ty, default.clone())),
                    None if own.is_some() && is_nullable => written.push((index, field.ty, Default_::Nil)),
                    None if !is_nullable && field.ty != Types::ERROR => missing.push((field.name.clone(), field.span)),
                    _ => out.defaults.push(index),
                }
            }
        }
        for (index, ty, default) in written {
            let value = self.default_value(&default, ty, span);
            out.given.push((index, value));
        }
        // Misspelt fields are reported already; what they leave out is no second defect.
        if !missing.is_empty() && !out.failed {
            let list = missing.iter().map(|m| format!("`{}`", m.0)).collect::<Vec<_>>().join(", ");
            let mut report = Diagnostic::error(206, span, format!("`{class} {{ … }}` lacks {list}"))
                .label("incomplete")
                .note("a field may be left out if it has a default or is nullable")
                .help(format!(
                    "add {}",
                    missing.iter().map(|m| format!("`{}: …`", m.0)).collect::<Vec<_>>().join(", ")
                ));
            for (name, at) in &missing {
                report = report.related(*at, format!("`{name}` is declared here"));
            }
            self.report(report);
        }
        out.failed |= !missing.is_empty();
        out
    }

    /// A repeated key keeps its last value, all are evaluated (3.4): a value that is not kept is evaluated in front of
    /// the next field's value and dropped, as the subject of a `switch` with nothing but a `default`.
    fn keep_last(&mut self, given: Vec<(u32, Expr)>) -> Vec<(u32, Expr)> {
        let mut last = FxHashMap::default();
        for (at, (index, _)) in given.iter().enumerate() {
            let _ = last.insert(*index, at);
        }
        let mut out = Vec::with_capacity(last.len());
        let mut dropped: Vec<Expr> = Vec::new();
        for (at, (index, value)) in given.into_iter().enumerate() {
            if last.get(&index) != Some(&at) {
                dropped.push(value);
                continue;
            }
            let value = self.after(std::mem::take(&mut dropped), value);
            out.push((index, value));
        }
        out
    }

    /// `value`, with `dropped` evaluated and dropped before it.
    pub(super) fn after(&mut self, dropped: Vec<Expr>, value: Expr) -> Expr {
        dropped.into_iter().rev().fold(value, |value, subject| {
            let (ty, span) = (value.ty, value.span);
            let subject_local = self.new_local(Name::default(), subject.ty, subject.span);
            let mut block = hir::Block { stmts: Vec::new(), end: span };
            let value = if ty == Types::NEVER {
                block.stmts.push(hir::Stmt { kind: hir::StmtKind::Expr(value), span });
                None
            } else {
                Some(value)
            };
            let body = hir::BlockExpr { block, value };
            let arms = vec![hir::Arm { test: hir::ArmTest::Default, body, span }];
            let switch = hir::Switch { subject, subject_local, arms, exhaustive: false };
            Expr { kind: ExprKind::Switch(Box::new(switch)), ty, span }
        })
    }

    /// The arguments of a builtin, as `until_never`; an error where one of them is wrong.
    pub(super) fn complete(&mut self, values: Vec<Expr>, span: Span) -> Result<Vec<Expr>, Expr> {
        if values.iter().any(|v| v.ty == Types::ERROR) {
            return Err(self.error(span));
        }
        self.until_never(values)
    }

    /// Operands of which one never completes: what comes before it is evaluated, what follows is not reached. Gives the
    /// operands back when all complete.
    pub(super) fn until_never(&mut self, mut values: Vec<Expr>) -> Result<Vec<Expr>, Expr> {
        let Some(at) = values.iter().position(|v| v.ty == Types::NEVER) else { return Ok(values) };
        values.truncate(at + 1);
        match values.pop() {
            Some(never) => Err(self.after(values, never)),
            None => Ok(values),
        }
    }

    /// A field's default as an expression of the field's type.
    fn default_value(&mut self, default: &Default_, ty: Ty, span: Span) -> Expr {
        let inner = self.strip(ty);
        let (kind, given) = match default {
            Default_::Nil => return Expr { kind: ExprKind::Nil, ty, span },
            Default_::Now => (ExprKind::Builtin(Builtin::Plain(Name::new_static("now")), Vec::new()), Types::INT),
            Default_::Int(n) => (ExprKind::Int(*n), Types::INT),
            Default_::Float(f) => (ExprKind::Float(*f), Types::FLOAT),
            Default_::Bool(b) => (ExprKind::Bool(*b), Types::BOOL),
            Default_::Text(t) => (ExprKind::Text(t.clone()), Types::TEXT),
            Default_::EmptyMulti => (ExprKind::List(Vec::new()), inner),
            Default_::EmptyMap => (ExprKind::EmptyMap, inner),
            Default_::List(items) => {
                let element = match self.kind(inner) {
                    TyKind::Multi(element) => element,
                    _ => Types::ERROR,
                };
                let items = items.iter().map(|item| self.default_value(item, element, span)).collect();
                (ExprKind::List(items), inner)
            }
            Default_::New(class) => {
                let count = self.env.program.classes.get(class.0 as usize).map_or(0, |c| c.fields.len());
                let defaults =
                    (0..u32::try_from(count).unwrap_or(0)).filter(|at| !self.is_backlink(*class, *at)).collect();
                let kind = ExprKind::New { class: *class, fields: Vec::new(), defaults };
                (kind, self.intern(TyKind::Class(*class)))
            }
        };
        wrap(retype(Expr { kind, ty: given, span }, inner), ty)
    }

    fn is_backlink(&self, class: ClassId, at: u32) -> bool {
        let field = self.env.program.classes.get(class.0 as usize).and_then(|c| c.fields.get(at as usize));
        field.is_some_and(|f| matches!(self.kind(f.ty), TyKind::Backlink(..)))
    }

    /// A variant by bare name (`args` is `None`) or call.
    pub(super) fn variant(
        &mut self,
        name: &Name,
        name_span: Span,
        args: Option<&'a [ast::Expr]>,
        span: Span,
        want: Want<'_>,
    ) -> Expr {
        let Some((union, variant)) = self.pick_variant(name, want) else {
            let owners: Vec<String> = self
                .env
                .variant(self.file, name)
                .iter()
                .filter_map(|(u, _)| self.env.program.unions.get(u.0 as usize).map(|u| u.name.to_string()))
                .collect();
            let list = owners.iter().map(|m| format!("`{m}`")).collect::<Vec<_>>().join(", ");
            return self.fail(
                Diagnostic::error(218, name_span, format!("variant `{name}` is ambiguous: {list} all declare it"))
                    .label("several candidates")
                    .note("the expected type decides between variants of one name; here none is expected")
                    .help("annotate the local, or rename one of the variants"),
            );
        };
        let Some((union_name, payload, has_payload)) = self.env.program.unions.get(union.0 as usize).and_then(|u| {
            let v = u.variants.get(variant as usize)?;
            Some((u.name.clone(), v.fields.iter().map(|f| (f.0.clone(), f.1)).collect::<Vec<_>>(), u.has_payload))
        }) else {
            return self.error(span);
        };
        let given = args.map_or(0, <[ast::Expr]>::len);
        if given != payload.len() {
            let fields = payload.iter().map(|f| f.0.as_str()).collect::<Vec<_>>().join(", ");
            let help = if payload.is_empty() { format!("write `{name}`") } else { format!("write `{name}({fields})`") };
            return self.fail(
                Diagnostic::error(
                    203,
                    span,
                    format!("`{union_name}.{name}` takes {} values, given {given}", payload.len()),
                )
                .label(format!("{given} given"))
                .note("a variant is built with all of its payload, by position")
                .help(help),
            );
        }
        let ty = self.intern(TyKind::Union(union));
        let mut values = Vec::with_capacity(given);
        for ((at, value), (field, field_ty)) in (1_usize..).zip(args.unwrap_or_default()).zip(payload) {
            values.push(self.check(value, field_ty, &Site::Param(name.clone(), at, field)));
        }
        let kind = if has_payload {
            ExprKind::NewVariant { union, variant, args: values }
        } else {
            ExprKind::Ordinal { union, variant }
        };
        Expr { kind, ty, span }
    }

    /// Between unions with a variant of one name: the expected type, then the own module's union.
    fn pick_variant(&self, name: &Name, want: Want<'_>) -> Option<(UnionId, u32)> {
        let candidates = self.env.variant(self.file, name);
        if let [only] = candidates {
            return Some(*only);
        }
        if let Some(ty) = want.ty()
            && let TyKind::Union(union) = self.kind(self.strip(ty))
            && let Some(found) = candidates.iter().find(|c| c.0 == union)
        {
            return Some(*found);
        }
        let module = self.env.file(self.file).module;
        let mut own = candidates.iter().filter(|c| {
            let file = self.env.program.unions.get(c.0.0 as usize).map(|u| u.span.file);
            file.is_some_and(|f| self.env.file(f).module == module)
        });
        match (own.next(), own.next()) {
            (Some(found), None) => Some(*found),
            _ => None,
        }
    }
}

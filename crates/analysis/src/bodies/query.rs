//! Rows and queries (language 8.7, tables specification): columns, backlinks, `insert`, `delete`, `from … select`.

use super::construct::Fields;
use super::site::Site;
use super::{Cx, Want, describe};
use crate::env::NamedType;
use crate::hir::{ClassId, Expr, ExprKind, Query, StoreOp};
use crate::types::{Ty, TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::Span;
use syntax::ast;

impl<'a> Cx<'_, 'a> {
    fn store(&mut self, op: StoreOp, ty: Ty, span: Span) -> Expr {
        Expr { kind: ExprKind::Store(Box::new(op)), ty, span }
    }

    /// `row.f`.
    pub(super) fn column(&mut self, row: Expr, class: ClassId, field: &ast::Ident, span: Span) -> Expr {
        let Some((index, ty)) = self.env.field(class, &field.name).map(|(i, f)| (i, f.ty)) else {
            return self.unknown_field(class, field);
        };
        if let TyKind::Backlink(target, _) = self.kind(ty) {
            let row_ty = self.intern(TyKind::Row(target));
            let rows = self.intern(TyKind::Multi(row_ty));
            return self.store(StoreOp::Backlink(row, class, index), rows, span);
        }
        self.store(StoreOp::Column(row, class, index), ty, span)
    }

    pub(super) fn insert(&mut self, class: &ast::Ident, fields: &'a [(ast::Ident, ast::Expr)], span: Span) -> Expr {
        let Some(id) = self.class_named(class) else { return self.error(span) };
        let Some((is_record, is_table)) =
            self.env.program.classes.get(id.0 as usize).map(|c| (c.is_record, c.is_table))
        else {
            return self.error(span);
        };
        if is_record {
            return self.fail(
                Diagnostic::error(250, span, format!("`{}` is a record: it has no rows", class.name))
                    .label("inserted record")
                    .note("rows belong to classes; a record is a plain value")
                    .help(format!("declare it as a class: `class {} {{ … }}`", class.name)),
            );
        }
        if !is_table {
            let first = self.inserted.entry(id).or_insert(span);
            *first = span.min(*first);
        }
        let Fields { given, defaults, .. } = self.fields(id, &class.name, fields, span);
        let ty = self.intern(TyKind::Row(id));
        self.store(StoreOp::Insert { class: id, fields: given, defaults }, ty, span)
    }

    /// `WO-W206`, once per class that is inserted without `@table`.
    pub(super) fn warn_volatile(&mut self) {
        let inserted: Vec<_> = std::mem::take(&mut self.inserted).into_iter().collect();
        for (class, span) in inserted {
            let name = self.class_name(class);
            if let Some(class) = self.env.program.classes.get_mut(class.0 as usize) {
                class.storage.inserted = true;
            }
            self.report(
                Diagnostic::warning(206, span, format!("rows of `{name}` are volatile"))
                    .label("first insert of a class without `@table`")
                    .note("a class without `@table` can be inserted; its rows are gone when the process ends")
                    .help(format!(
                        "write `@table(durable: false)` before `class {name}` to say so, or `@table` to keep them"
                    )),
            );
        }
    }

    pub(super) fn delete(&mut self, row: &'a ast::Expr, span: Span) -> Expr {
        let value = self.expr(row, Want::Value);
        let value = self.settle(value);
        let inner = self.strip(value.ty);
        if !matches!(self.kind(inner), TyKind::Row(_) | TyKind::Error | TyKind::Never) {
            let (shown, given) = (describe(row), self.show(value.ty));
            return self.fail(
                Diagnostic::error(250, row.span, format!("`delete {shown}`: `{given}` is not a row"))
                    .label(format!("this is `{given}`"))
                    .note("`delete` takes a row: the value of an `insert`, a query's element or a `ref`")
                    .help(match row.kind {
                        ast::ExprKind::Index(..) => "an entry leaves a map by `remove(map, key)`",
                        ast::ExprKind::Query(_) => "delete them one by one: `for x in from … select x { delete x }`",
                        _ => "find the row with a query first",
                    }),
            );
        }
        let value = self.need(value, row, &Site::Base("delete".into()));
        if matches!(value.ty, Types::ERROR | Types::NEVER) {
            return value;
        }
        self.store(StoreOp::Delete(value), Types::INT, span)
    }

    pub(super) fn query(&mut self, query: &'a ast::Query, span: Span) -> Expr {
        if let Some(group) = query.group {
            return self.fail(
                Diagnostic::error(250, group, "`group … by … into` is not part of queries yet")
                    .label("grouping")
                    .note("a query filters, orders, skips, takes and projects")
                    .help("loop over the query and count into a `map`"),
            );
        }
        let Some((class, source)) = self.source(&query.source) else { return self.error(span) };
        // Evaluated once, so they know of no row.
        let skip = query.skip.as_ref().map(|e| self.check(e, Types::INT, &Site::Operand("skip")));
        let take = query.take.as_ref().map(|e| self.check(e, Types::INT, &Site::Operand("take")));
        let row = self.intern(TyKind::Row(class));
        let mark = self.open();
        let var = self.declare(&query.var, row);
        self.queries += 1;
        let filters: Vec<Expr> = query.filters.iter().map(|f| self.condition(f, "where").0).collect();
        let mut order = Vec::with_capacity(query.order.len());
        let mut failed = filters.iter().any(|f| f.ty == Types::ERROR);
        for (key, desc) in &query.order {
            let value = self.expr(key, Want::Value);
            let value = self.settle(value);
            if !self.orders(value.ty) {
                let (shown, given) = (describe(key), self.show(value.ty));
                let _ = self.fail(
                    Diagnostic::error(250, key.span, format!("`order by {shown}`: `{given}` has no order"))
                        .label(format!("this is `{given}`"))
                        .note("keys are Int, Bool, Float, Text, bare unions, rows, or nullable of those")
                        .help("order by a column of one of these types"),
                );
                failed = true;
            }
            failed |= value.ty == Types::ERROR;
            order.push((value, *desc));
        }
        failed |= skip.iter().chain(&take).any(|e| e.ty == Types::ERROR);
        let select = self.expr(&query.select, Want::Value);
        let select = self.settle(select);
        self.queries -= 1;
        self.close(mark);
        if failed || matches!(select.ty, Types::ERROR | Types::NEVER) {
            return self.error(span);
        }
        let is_column = matches!(&select.kind, ExprKind::Store(op) if matches!(&**op,
            StoreOp::Column(row, ..) if matches!(row.kind, ExprKind::Local(local) if local == var)));
        if !is_column && !self.is_copied(select.ty) {
            let given = self.show(select.ty);
            return self.fail(
                Diagnostic::error(250, query.select.span, format!("`select` of `{given}`"))
                    .label("cannot be projected")
                    .note("a query selects its variable, one of its columns, or an expression of a copied type")
                    .help("select the row and build the value in a loop over the result"),
            );
        }
        let element = match self.kind(select.ty) {
            TyKind::Maybe { inner, .. } => self.nullable(inner),
            TyKind::Void => Types::INT,
            _ => select.ty,
        };
        let ty = self.intern(TyKind::Multi(element));
        let query = Query { var, class, source, filters, order, skip, take, select };
        self.store(StoreOp::Query(Box::new(query)), ty, span)
    }

    /// What a query runs over: a class (a local of that name wins), or rows at hand.
    fn source(&mut self, source: &'a ast::Expr) -> Option<(ClassId, Option<Expr>)> {
        let mut shown = format!("`{}`", describe(source));
        if let ast::ExprKind::Name(name) = &source.kind
            && self.lookup(name).is_none()
            && let Some(named) = self.env.named_type(self.file, name)
        {
            if let NamedType::Class(class) = named
                && !self.env.program.classes.get(class.0 as usize).is_some_and(|c| c.is_record)
            {
                return Some((class, None));
            }
            shown.push_str(", a record,");
        } else if let Some(near) = self.near_class(source) {
            let _ = self.fail(
                Diagnostic::error(403, source.span, format!("unknown name {shown}"))
                    .label("not defined here")
                    .note("a query runs over a class, a backlink, or a `multi` of rows")
                    .help(format!("did you mean `{near}`?")),
            );
            return None;
        } else {
            let value = self.expr(source, Want::Value);
            let value = self.settle(value);
            let value = self.need(value, source, &Site::Iterable);
            match self.kind(value.ty) {
                TyKind::Error => return None,
                TyKind::Multi(element) => {
                    if let TyKind::Row(class) = self.kind(element) {
                        return Some((class, Some(value)));
                    }
                }
                _ => {}
            }
            shown.push_str(&format!(" of type `{}`", self.show(value.ty)));
        }
        let _ = self.fail(
            Diagnostic::error(250, source.span, format!("{shown} cannot be queried"))
                .label("not a source of rows")
                .note("a query runs over a class, a backlink, or a `multi` of rows")
                .help("name a class after `in`; loop over other lists with `for`"),
        );
        None
    }

    /// The class that an unknown name in capitals was probably meant to be.
    fn near_class(&self, source: &ast::Expr) -> Option<String> {
        let ast::ExprKind::Name(name) = &source.kind else { return None };
        let is_class = name.starts_with(|c: char| c.is_ascii_uppercase()) && self.lookup(name).is_none();
        is_class.then(|| self.near(name, self.env.type_candidates(self.file))).flatten()
    }

    fn orders(&self, ty: Ty) -> bool {
        match self.kind(self.strip(ty)) {
            TyKind::Int | TyKind::Bool | TyKind::Float | TyKind::Text | TyKind::Row(_) => true,
            TyKind::Error | TyKind::Never => true,
            TyKind::Union(union) => self.env.program.unions.get(union.0 as usize).is_some_and(|u| !u.has_payload),
            _ => false,
        }
    }

    /// A copy type of 5.1, or nullable of one.
    pub(super) fn is_copied(&self, ty: Ty) -> bool {
        match self.kind(self.strip(ty)) {
            TyKind::Multi(_) | TyKind::Map(..) | TyKind::Class(_) => false,
            TyKind::EmptyMulti | TyKind::EmptyMap => false,
            TyKind::Union(union) => self.env.program.unions.get(union.0 as usize).is_some_and(|u| !u.has_payload),
            _ => true,
        }
    }

    /// `WO-W207` for a change of something that was read out of a column, which is a copy.
    pub(super) fn warn_copy(&mut self, base: &Expr, span: Span) {
        let mut at = base;
        let (class, index, is_backlink) = loop {
            match &at.kind {
                ExprKind::Store(op) => match &**op {
                    StoreOp::Column(_, class, index) => break (*class, *index, false),
                    StoreOp::Backlink(_, class, index) => break (*class, *index, true),
                    _ => return,
                },
                ExprKind::Field(inner, ..)
                | ExprKind::Element(inner, _)
                | ExprKind::Entry(inner, _)
                | ExprKind::Unwrap(inner, _)
                | ExprKind::Convert(inner) => at = inner,
                _ => return,
            }
        };
        // A column that is itself a row leads to another row, which is written through.
        if matches!(self.kind(base.ty), TyKind::Row(_)) {
            return;
        }
        let class_name = self.class_name(class);
        let field = self.env.program.classes.get(class.0 as usize).and_then(|c| c.fields.get(index as usize));
        let Some(field) = field.map(|f| f.name.clone()) else { return };
        self.report(
            Diagnostic::warning(207, span, format!("this changes a copy of `{class_name}.{field}`, not the row"))
                .label("the row keeps its value")
                .note("what is read out of a column is a copy")
                .help(match is_backlink {
                    true => "assign the `ref` column of the other row".to_owned(),
                    false => format!("change a local, then assign the whole column: `row.{field} = …`"),
                }),
        );
    }
}

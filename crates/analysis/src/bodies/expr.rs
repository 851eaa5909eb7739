//! Expressions other than operators and calls: literals, names, members, elements, lists.

use super::coerce::unwrap;
use super::flow::{Facts, State};
use super::site::Site;
use super::{Cx, Want, not_exported};
use crate::env::{ConstLookup, FuncLookup, NamedType, QualifiedConst};
use crate::habits;
use crate::hir::{Expr, ExprKind, LocalId, OnNil};
use crate::types::{TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::Span;
use syntax::ast::{self, Name};

impl<'a> Cx<'_, 'a> {
    pub(super) fn expr(&mut self, e: &'a ast::Expr, want: Want<'_>) -> Expr {
        self.expr_facts(e, want).0
    }

    /// `e` as a value of type `to`.
    pub(super) fn check(&mut self, e: &'a ast::Expr, to: crate::types::Ty, site: &Site) -> Expr {
        let value = self.expr(e, Want::Slot(to, site));
        self.coerce(value, e, to, site)
    }

    /// `e` as a condition, with its facts.
    pub(super) fn condition(&mut self, e: &'a ast::Expr, word: &'static str) -> (Expr, Facts) {
        let (value, mut facts) = self.expr_facts(e, Want::Value);
        // Reported as a condition that may be nil, it was probably meant as a test for nil.
        if let ast::ExprKind::Name(name) = &e.kind
            && let Some(local) = self.lookup(name)
            && matches!(self.kind(value.ty), TyKind::Nullable(_))
        {
            facts.when_true.push(local);
        }
        (self.boolean(value, e, &Site::Condition(word)), facts)
    }

    pub(super) fn expr_facts(&mut self, e: &'a ast::Expr, want: Want<'_>) -> (Expr, Facts) {
        let span = e.span;
        let value = match &e.kind {
            ast::ExprKind::Binary { .. } => return self.binary(e),
            ast::ExprKind::Unary { op, operand } => return self.unary(*op, operand, span),
            ast::ExprKind::Unread => self.error(span),
            ast::ExprKind::Int(n) => Expr { kind: ExprKind::Int(*n), ty: Types::INT, span },
            ast::ExprKind::Float(f) => Expr { kind: ExprKind::Float(*f), ty: Types::FLOAT, span },
            ast::ExprKind::Bool(b) => Expr { kind: ExprKind::Bool(*b), ty: Types::BOOL, span },
            ast::ExprKind::Nil => Expr { kind: ExprKind::Nil, ty: Types::NIL, span },
            ast::ExprKind::Text(pieces) => self.text(pieces, span),
            ast::ExprKind::Concat(items) => self.concat(items, span),
            ast::ExprKind::Name(name) => self.name(name, span, want),
            ast::ExprKind::Field(base, field) => self.field(base, field, span),
            ast::ExprKind::Index(base, index) => self.index(base, index, span),
            ast::ExprKind::Call { callee, args } => self.call(callee, args, span, want),
            ast::ExprKind::New { class, fields } => self.construct(class, fields, span),
            ast::ExprKind::Spawn { class, fields } => self.spawn(class, fields, span),
            ast::ExprKind::List(items) => self.list(items, span, want),
            ast::ExprKind::EmptyMap => Expr { kind: ExprKind::EmptyMap, ty: Types::EMPTY_MAP, span },
            ast::ExprKind::Switch(switch) => self.switch(switch, span, want),
            ast::ExprKind::Try { body, var, handler } => self.try_catch(body, var, handler, span, want),
            ast::ExprKind::As(inner, ty) => self.decode(inner, ty, span),
            ast::ExprKind::Insert { class, fields } => self.insert(class, fields, span),
            ast::ExprKind::Delete(row) => self.delete(row, span),
            ast::ExprKind::Query(query) => self.query(query, span),
        };
        (value, Facts::default())
    }

    pub(super) fn read_local(&mut self, local: LocalId, span: Span) -> Expr {
        let ty = self.local_ty(local);
        let (TyKind::Nullable(inner) | TyKind::Maybe { inner, .. }) = self.kind(ty) else {
            return Expr { kind: ExprKind::Local(local), ty, span };
        };
        if self.payloads.contains(&local) {
            return unwrap(Expr { kind: ExprKind::Local(local), ty, span }, inner, OnNil::TrapReceiver);
        }
        let state = self.state(local);
        let ty = match state {
            State::Value => ty,
            State::Maybe { noisy } => self.intern(TyKind::Maybe { inner, noisy }),
            State::Strict => self.intern(TyKind::Nullable(inner)),
        };
        let read = Expr { kind: ExprKind::Local(local), ty, span };
        if state == State::Value { unwrap(read, inner, OnNil::Proved) } else { read }
    }

    fn name(&mut self, name: &Name, span: Span, want: Want<'_>) -> Expr {
        if let Some(local) = self.lookup(name) {
            return self.read_local(local, span);
        }
        match self.env.const_in_scope(self.file, self.class, name) {
            ConstLookup::Found(literal) => return literal_expr(literal, span),
            ConstLookup::Ambiguous(modules) => return self.ambiguous(name, span, "constant", &modules),
            ConstLookup::None => {}
        }
        if !self.env.variant(self.file, name).is_empty() {
            return self.variant(name, span, None, span, want);
        }
        self.unknown_name(name, span)
    }

    pub(super) fn ambiguous(&mut self, name: &str, span: Span, what: &str, modules: &[String]) -> Expr {
        let list = modules.iter().map(|m| format!("`{m}`")).collect::<Vec<_>>().join(", ");
        let alias = |m: &String| m.rsplit('/').next().unwrap_or_default().to_owned();
        let mut aliases: Vec<String> = modules.iter().map(alias).collect();
        aliases.sort();
        aliases.dedup();
        let is_path = |m: &String| m.split('/').all(|s| !s.is_empty() && !s.contains('.'));
        let help = if aliases.len() == modules.len() && modules.iter().all(is_path) {
            let forms: Vec<String> = modules.iter().map(|m| format!("`{}.{name}`", alias(m))).collect();
            format!("name the module, with its `use` in this file: {}", forms.join(" or "))
        } else {
            "rename one of them".to_owned()
        };
        self.fail(
            Diagnostic::error(218, span, format!("{what} `{name}` is ambiguous: it is declared in each of {list}"))
                .label("several candidates")
                .note("a name must have one meaning in a file")
                .help(help),
        )
    }

    /// Whether the name may stand for something that could not be read, which is reported.
    pub(super) fn is_unread(&self, name: &str) -> bool {
        [name, ""].iter().any(|name| self.unread.contains(*name)) || self.env.is_unread(name)
    }

    /// Whether a bare call of `name` would find a function.
    pub(super) fn is_function_name(&self, name: &Name) -> bool {
        !matches!(self.env.func_in_scope(self.file, name), FuncLookup::None)
            || self.builtins.sigs.contains_key(&(Name::new_static("builtins"), name.clone()))
    }

    pub(super) fn unknown_name(&mut self, name: &Name, span: Span) -> Expr {
        if self.is_unread(name) {
            return self.error(span);
        }
        if self.is_function_name(name) {
            return self.fail(
                Diagnostic::error(403, span, format!("`{name}` is a function, not a value"))
                    .label("a function without a call")
                    .note("functions are not values; what is called later is an object, passed where an interface is expected")
                    .help(format!("call it: `{name}(…)`")),
            );
        }
        if self.env.alias_is_broken(self.file, name) {
            // What should have declared it is reported.
            return self.error(span);
        }
        let mut report = Diagnostic::error(403, span, format!("unknown name `{name}`"));
        if matches!(
            self.env.named_type(self.file, name),
            Some(NamedType::Class(_) | NamedType::Union(_) | NamedType::Iface(_))
        ) {
            let help = match self.env.named_type(self.file, name) {
                Some(NamedType::Union(id)) => {
                    let first = self.env.program.unions.get(id.0 as usize).and_then(|u| u.variants.first());
                    format!("name a variant alone, as `{}`", first.map_or("First", |v| v.name.as_str()))
                }
                Some(NamedType::Iface(_)) => "construct a class that satisfies it".to_owned(),
                Some(NamedType::Class(id)) if self.env.is_table(id) => {
                    format!("a query gives its rows: `from x in {name} select x`")
                }
                _ => format!("construct one: `{name} {{ … }}`"),
            };
            report = Diagnostic::error(403, span, format!("`{name}` is a type, not a value"))
                .label("a type where a value is needed")
                .note("a type's name stands in annotations, and that of a class before `{ … }` or `.`")
                .help(help);
        } else if self.env.namespace(self.file, name).is_some() || crate::env::Env::is_namespace_name(name) {
            report = report
                .label("a module, not a value")
                .note("a module's name stands before `.`")
                .help(format!("call a member: `{name}.…(…)`"));
        } else {
            report = report.label("not defined here").note("a name is a local, a parameter, a constant or a variant");
            report = report.help(self.name_help(name));
        }
        self.fail(report)
    }

    /// What to write instead of an unknown name: blanks around a minus, a near spelling.
    pub(super) fn name_help(&self, name: &str) -> String {
        self.meant(name).unwrap_or_else(|| format!("declare it: `let {name} = …`"))
    }

    /// What an unknown name in the place of a value was probably meant to be.
    pub(super) fn meant(&self, name: &str) -> Option<String> {
        if let Some((first, rest)) = name.split_once('-')
            && (self.lookup(first).is_some()
                || !matches!(self.env.const_in_scope(self.file, self.class, first), ConstLookup::None))
        {
            return Some(match rest {
                "" => format!("a dash belongs to a name; put blanks around the minus: `{first} - 1`, `{first} -= 1`"),
                "-" => format!(
                    "a dash belongs to a name; to count down, write `{first} -= 1` with a blank before the minus"
                ),
                _ => format!("a dash belongs to a name; to subtract, put blanks around the minus: `{first} - {rest}`"),
            });
        }
        if let Some(help) = habits::value(name) {
            return Some(help.to_owned());
        }
        let scope = self.env.file(self.file);
        let variants = self.env.variants.keys().map(|k| &k.1);
        let candidates = self.names.keys().chain(variants).chain(scope.aliases.keys()).map(Name::as_str);
        if let Some(near) = self.near(name, candidates) {
            // A module that is meant is not unused.
            for at in scope.aliases.get(near.as_str()).into_iter().flatten() {
                scope.uses.get(*at).into_iter().for_each(|entry| entry.used.set(true));
            }
            return Some(format!("did you mean `{near}`?"));
        }
        if name == "self" {
            return Some("`self` exists in methods that are not `static`".to_owned());
        }
        let is_member = self.class.is_some_and(|c| self.env.field(c, name).is_some());
        is_member.then(|| format!("members are reached through `self`: `self.{name}`"))
    }

    fn field(&mut self, base: &'a ast::Expr, field: &ast::Ident, span: Span) -> Expr {
        if let ast::ExprKind::Name(first) = &base.kind
            && self.lookup(first).is_none()
        {
            match self.env.const_qualified(self.file, first, &field.name) {
                QualifiedConst::Found(literal) => return literal_expr(literal, span),
                QualifiedConst::Ambiguous(places) => return self.ambiguous(&field.name, span, "constant", &places),
                QualifiedConst::NotExported { module, span: declared } => {
                    return self.fail(not_exported(&field.name, "constant", "const", &module, span, declared));
                }
                QualifiedConst::Unknown => {}
            }
            if let Some(NamedType::Class(class)) = self.env.named_type(self.file, first) {
                if let Some(literal) = self.env.class_const(class, &field.name, true) {
                    return literal_expr(literal, span);
                }
                return self.no_member(first, field, span);
            }
            if self.env.namespace(self.file, first).is_some()
                || self.env.func_qualified(self.file, first, &field.name).is_some()
            {
                return self.no_member(first, field, span);
            }
        }
        let value = self.expr(base, Want::Value);
        let value = self.settle(value);
        let value = self.need(value, base, &Site::Base(field.name.clone()));
        self.field_of(value, field, span)
    }

    fn no_member(&mut self, owner: &Name, field: &ast::Ident, span: Span) -> Expr {
        self.fail(
            Diagnostic::error(403, span, format!("`{owner}` has no constant `{}`", field.name))
                .label("not a value")
                .note("behind a module or class name stand its `pub const`, its `static const`, or a call")
                .help(format!("to call a function write `{owner}.{}(…)`", field.name)),
        )
    }

    /// The stored field `field` of a value without nil.
    pub(super) fn field_of(&mut self, value: Expr, field: &ast::Ident, span: Span) -> Expr {
        match self.kind(value.ty) {
            TyKind::Error | TyKind::Never => value,
            TyKind::Class(class) => {
                let Some((index, ty)) = self.env.field(class, &field.name).map(|(i, f)| (i, f.ty)) else {
                    return self.unknown_field(class, field);
                };
                Expr { kind: ExprKind::Field(Box::new(value), class, index), ty, span }
            }
            TyKind::Row(class) => self.column(value, class, field, span),
            kind => {
                let given = self.show(value.ty);
                let help = match kind {
                    TyKind::Actor(_) => "an actor's fields are its own: let it answer a message, with `call` or `send`",
                    TyKind::Union(_) => "bind the payload in a `switch`: `case Variant(name): …`",
                    TyKind::Map(..) if habits::member(&field.name).is_none() => {
                        "an entry is reached by its key: `m[key]`"
                    }
                    _ => habits::member(&field.name).unwrap_or("call a function on the value instead"),
                };
                self.fail(
                    Diagnostic::error(403, field.span, format!("`{given}` has no field `{}`", field.name))
                        .label(format!("the value before it is `{given}`"))
                        .note("only classes, records and rows have fields")
                        .help(help),
                )
            }
        }
    }

    pub(super) fn unknown_field(&mut self, class: crate::hir::ClassId, field: &ast::Ident) -> Expr {
        let name = self.class_name(class);
        let near = self
            .env
            .program
            .classes
            .get(class.0 as usize)
            .and_then(|c| self.near(&field.name, c.fields.iter().map(|f| f.name.as_str())));
        let is_method = self.env.method(class, &field.name).is_some();
        let help = match near {
            _ if self.env.is_table(class) && field.name == "id" => {
                "a row is its id: use it as an `Int`, as in `let id: Int = row`".to_owned()
            }
            _ if is_method => format!("`{}` is a method: call it with `{}(…)`", field.name, field.name),
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("declare the field in `{name}`, or use one that it has"),
        };
        self.fail(
            Diagnostic::error(202, field.span, format!("`{name}` has no field `{}`", field.name))
                .label("unknown field")
                .note(format!("`{name}` declares its fields; there are no others"))
                .help(help),
        )
    }

    pub(super) fn class_name(&self, class: crate::hir::ClassId) -> Name {
        self.env.program.classes.get(class.0 as usize).map(|c| c.name.clone()).unwrap_or_default()
    }

    fn index(&mut self, base: &'a ast::Expr, index: &'a ast::Expr, span: Span) -> Expr {
        let value = self.expr(base, Want::Value);
        let value = self.settle(value);
        let value = self.need(value, base, &Site::Base(Name::new_static("[…]")));
        match self.kind(value.ty) {
            TyKind::Multi(element) => {
                let at = self.check(index, Types::INT, &Site::Index);
                Expr { kind: ExprKind::Element(Box::new(value), Box::new(at)), ty: element, span }
            }
            TyKind::Map(key, element) => {
                let key = self.check(index, key, &Site::Key);
                let ty = match self.kind(element) {
                    TyKind::Nullable(_) | TyKind::Error => element,
                    _ => self.intern(TyKind::Maybe { inner: element, noisy: false }),
                };
                Expr { kind: ExprKind::Entry(Box::new(value), Box::new(key)), ty, span }
            }
            TyKind::Error | TyKind::Never => value,
            _ => self.not_indexable(&value),
        }
    }

    pub(super) fn not_indexable(&mut self, value: &Expr) -> Expr {
        let given = self.show(value.ty);
        let help = if value.ty == Types::TEXT {
            "`byte_at(t, i)` reads a byte of a Text, `substr(t, i, n)` a part"
        } else {
            "index a `multi` with an Int, a `map` with a key"
        };
        self.fail(
            Diagnostic::error(403, value.span, format!("`{given}` cannot be indexed"))
                .label(format!("this is `{given}`"))
                .note("only `multi` and `map` have elements")
                .help(help),
        )
    }

    fn list(&mut self, items: &'a [ast::Expr], span: Span, want: Want<'_>) -> Expr {
        if items.is_empty() {
            return Expr { kind: ExprKind::List(Vec::new()), ty: Types::EMPTY_MULTI, span };
        }
        if let Some(slot) = want.ty()
            && let TyKind::Multi(element) = self.kind(self.strip(slot))
            && matches!(want, Want::Slot(..))
        {
            let items = items.iter().map(|item| self.check(item, element, &Site::Element)).collect();
            let ty = self.intern(TyKind::Multi(element));
            return Expr { kind: ExprKind::List(items), ty, span };
        }
        let mut values = Vec::with_capacity(items.len());
        let mut common = None;
        for item in items {
            let value = self.expr(item, common.map_or(Want::Value, Want::Hint));
            if value.ty == Types::ERROR {
                return value;
            }
            common = match common {
                None => Some(value.ty),
                Some(before) => match self.common(before, value.ty) {
                    Some(ty) => Some(ty),
                    None => {
                        let (a, b) = (self.show(before), self.show(value.ty));
                        return self.fail(
                            Diagnostic::error(201, value.span, format!("list of `{a}` with an item of type `{b}`"))
                                .label(format!("this is `{b}`"))
                                .note("the items of a list have one type")
                                .help("convert the item, or annotate the list with an interface type"),
                        );
                    }
                },
            };
            values.push(value);
        }
        let element = match common {
            Some(ty) => match self.kind(ty) {
                TyKind::Maybe { inner, .. } => self.nullable(inner),
                TyKind::Void | TyKind::Never => Types::INT,
                TyKind::Nil | TyKind::EmptyMulti | TyKind::EmptyMap => {
                    let lost = Expr { kind: ExprKind::Nil, ty, span };
                    let settled = self.settle(lost);
                    if settled.ty == Types::ERROR {
                        return settled;
                    }
                    settled.ty
                }
                _ => ty,
            },
            None => Types::ERROR,
        };
        let items = values
            .into_iter()
            .zip(items)
            .map(|(value, item)| self.coerce(value, item, element, &Site::Element))
            .collect();
        let ty = self.intern(TyKind::Multi(element));
        Expr { kind: ExprKind::List(items), ty, span }
    }

    /// `json.decode(text) as T`, the only conversion there is.
    fn decode(&mut self, inner: &'a ast::Expr, ty: &'a ast::Type, span: Span) -> Expr {
        let arg = match &inner.kind {
            ast::ExprKind::Call { callee, args } => match &callee.kind {
                ast::ExprKind::Field(base, member) if member.name == "decode" => match (&base.kind, args.as_slice()) {
                    (ast::ExprKind::Name(ns), [arg]) if self.lookup(ns).is_none() => {
                        (self.env.namespace(self.file, ns).as_deref() == Some("json")).then_some(arg)
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        let Some(arg) = arg else {
            if let ast::ExprKind::Call { callee, .. } = &inner.kind
                && let ast::ExprKind::Field(base, _) = &callee.kind
                && let ast::ExprKind::Name(name) = &base.kind
                && self.is_unread(name)
            {
                return self.error(span);
            }
            let help = match &ty.kind {
                ast::TypeKind::Named(to) if to.name == "Int" => "`trunc(f)` cuts a Float, `parse_int(t)` reads a Text",
                ast::TypeKind::Named(to) if to.name == "Float" => {
                    "`float(n)` converts an Int, `parse_float(t)` reads a Text"
                }
                ast::TypeKind::Named(to) if to.name == "Text" => "a value becomes a Text in a hole: `\"${value}\"`",
                _ => "write `json.decode(text) as T` with `use json` in this file",
            };
            return self.fail(
                Diagnostic::error(403, span, "`as` converts only the result of `json.decode(…)`")
                    .label("not a `json.decode`")
                    .note("`json.decode(text) as T` reads a value of type `T`; other values convert through functions")
                    .help(help),
            );
        };
        let mut reports = std::mem::take(&mut self.diags);
        let target = self.env.resolve_type(self.file, ty, &mut reports);
        self.diags = reports;
        let text = self.nullable(Types::TEXT);
        let site = Site::Builtin(Name::new_static("json.decode"), 1, false);
        let value = self.check(arg, text, &site);
        if target == Types::ERROR || value.ty == Types::ERROR {
            return self.error(span);
        }
        if value.ty == Types::NEVER {
            return value;
        }
        if let Err(why) = self.env.decodable(target) {
            let shown = self.show(target);
            // `why` leads from the target to what has no form.
            let (title, note) = if why == format!("`{shown}`") {
                (
                    format!("`{shown}` is no target of `json.decode`"),
                    "a target is a class, a record, `multi` or `map` of one, or `json.Value`",
                )
            } else {
                (
                    format!("`{shown}` cannot be decoded: {why}"),
                    "JSON has no form for interfaces, actors and payload unions",
                )
            };
            return self.fail(
                Diagnostic::error(403, ty.span, title)
                    .label("not decodable")
                    .note(note)
                    .help("decode into a record of plain fields, then build the value from it"),
            );
        }
        let ty = self.nullable(target);
        Expr { kind: ExprKind::JsonDecode(Box::new(value)), ty, span }
    }
}

pub(super) fn literal_expr(literal: ast::Literal, span: Span) -> Expr {
    let (kind, ty) = match literal {
        ast::Literal::Int(n) => (ExprKind::Int(n), Types::INT),
        ast::Literal::Float(f) => (ExprKind::Float(f), Types::FLOAT),
        ast::Literal::Bool(b) => (ExprKind::Bool(b), Types::BOOL),
        ast::Literal::Text(t) => (ExprKind::Text(t), Types::TEXT),
    };
    Expr { kind, ty, span }
}

//! Calls (language 4.2, 4.3, 8.3): what a callee means, argument counts and types, methods, extension methods.

use super::site::Site;
use super::{Cx, Want, describe, named, not_exported};
use crate::env::{Elsewhere, Env, FuncLookup, NamedType, QualifiedLookup, UseTarget};
use crate::habits;
use crate::hir::{Expr, ExprKind, FuncId, IfaceId};
use crate::types::{Ty, TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::Span;
use syntax::ast::{self, Mode, Name};

impl<'a> Cx<'_, 'a> {
    pub(super) fn call(&mut self, callee: &'a ast::Expr, args: &'a [ast::Expr], span: Span, want: Want<'_>) -> Expr {
        match &callee.kind {
            ast::ExprKind::Name(name) => self.call_free(name, callee.span, args, span, want),
            ast::ExprKind::Field(base, member) => self.call_member(base, member, args, span),
            _ => self.fail(
                Diagnostic::error(403, callee.span, format!("{} cannot be called", named(callee)))
                    .label("not a name and not `value.method`")
                    .note("functions are not values; only a name or a method can be called")
                    .help("call a function by its name"),
            ),
        }
    }

    pub(super) fn call_free(
        &mut self,
        name: &Name,
        name_span: Span,
        args: &'a [ast::Expr],
        span: Span,
        want: Want<'_>,
    ) -> Expr {
        match self.env.func_in_scope(self.file, name) {
            FuncLookup::Found(func) => return self.call_func(func, None, name, args, span),
            FuncLookup::Ambiguous(modules) => return self.ambiguous(name, name_span, "function", &modules),
            FuncLookup::None => {}
        }
        if !self.env.variant(self.file, name).is_empty() {
            return self.variant(name, name_span, Some(args), span, want);
        }
        let builtins = Name::new_static("builtins");
        if self.builtins.sigs.contains_key(&(builtins.clone(), name.clone())) {
            return self.call_builtin(&builtins, name, name_span, args, span);
        }
        let found = self.unknown_function(name, name_span);
        self.unjudged(args);
        found
    }

    /// Arguments of what is not known: they use names and modules, but cannot be right or wrong.
    fn unjudged(&mut self, args: &'a [ast::Expr]) {
        let reports = self.diags.len();
        for arg in args {
            let _ = self.expr(arg, Want::Value);
        }
        self.diags.truncate(reports);
    }

    fn unknown_function(&mut self, name: &Name, span: Span) -> Expr {
        if self.is_unread(name) {
            self.may_end = true;
            return self.error(span);
        }
        let report = match self.env.func_elsewhere(self.file, name) {
            Elsewhere::NotExported { module, span: declared } => {
                not_exported(name, "function", "fn", &module, span, declared)
            }
            Elsewhere::UnusedModule { module } => Diagnostic::error(
                210,
                span,
                format!("function `{name}` is in module `{module}`, which this file does not use"),
            )
            .label("needs a `use`")
            .note("functions of another module are visible after `use`")
            .help(format!("add `use {module}`")),
            Elsewhere::Nowhere if self.env.file(self.file).uses.iter().any(|u| u.target == UseTarget::Unknown) => {
                // The function may be from the module that was not found; that `use` is reported.
                return self.error(span);
            }
            Elsewhere::Nowhere => {
                let report =
                    Diagnostic::error(403, span, format!("unknown function `{name}`")).label("not defined here");
                let module = self.env.file(self.file).module;
                let own = self.env.modules.get(module.0 as usize);
                let builtins = self.builtins.sigs.keys().filter(|k| k.0 == "builtins").map(|k| k.1.as_str());
                let variants = self.env.variants.keys().map(|k| k.1.as_str());
                let candidates = builtins.chain(variants);
                // Of two equally near names the program's own is meant.
                let names = own.iter().flat_map(|m| m.funcs.keys().map(Name::as_str));
                let near = self.near(name, names).or_else(|| self.near(name, candidates));
                let help = if let Some(help) = self.own_method(name) {
                    help
                } else if self.lookup(name).is_some() {
                    format!("`{name}` is a local; only functions and methods can be called")
                } else if matches!(self.env.named_type(self.file, name), Some(NamedType::Class(_))) {
                    format!("construct a `{name}` with `{name} {{ … }}`")
                } else if let Some(help) = habits::function(name) {
                    help.to_owned()
                } else if let Some(near) = near {
                    format!("did you mean `{near}`?")
                } else if name.contains('-') {
                    self.name_help(name)
                } else {
                    format!("declare it: `fn {name}(…) {{ … }}`")
                };
                report
                    .note("a bare call finds functions of this module, of used modules, variants and builtins")
                    .help(help)
            }
        };
        self.fail(report)
    }

    /// The help of a bare call that may mean a method of the class around it.
    pub(super) fn own_method(&self, name: &str) -> Option<String> {
        let class = self.class.filter(|c| self.env.method(*c, name).is_some())?;
        Some(format!("`{name}` is a method of `{}`: call `self.{name}(…)`", self.class_name(class)))
    }

    fn call_member(&mut self, base: &'a ast::Expr, member: &'a ast::Ident, args: &'a [ast::Expr], span: Span) -> Expr {
        if let ast::ExprKind::Name(first) = &base.kind
            && self.lookup(first).is_none()
        {
            if let Some(call) = self.call_alias(first, member, args, span) {
                return call;
            }
            if let Some(NamedType::Class(class)) = self.env.named_type(self.file, first) {
                return self.call_static(class, first, member, args, span);
            }
            if Env::is_namespace_name(first)
                && !self.is_unread(first)
                && !self.env.alias_is_broken(self.file, first)
                && matches!(self.env.const_in_scope(self.file, self.class, first), crate::env::ConstLookup::None)
            {
                return self.fail(
                    Diagnostic::error(403, base.span, format!("`{first}` is used without `use {first}`"))
                        .label("module not used in this file")
                        .note("members of a reserved module need its `use` in the same file")
                        .help(format!("add `use {first}` at the top of the file")),
                );
            }
        }
        let recv = self.expr(base, Want::Value);
        let recv = self.settle(recv);
        self.call_method(recv, base, member, args, span)
    }

    /// `alias.name(…)`. A project's module may have the name of a namespace: the member is looked up in both.
    fn call_alias(&mut self, alias: &Name, member: &ast::Ident, args: &'a [ast::Expr], span: Span) -> Option<Expr> {
        let namespace = self.env.namespace(self.file, alias);
        let function = self.env.func_qualified(self.file, alias, &member.name);
        let has = |space: &Name| self.builtins.sigs.contains_key(&(space.clone(), member.name.clone()));
        Some(match (namespace, function) {
            (Some(space), Some(QualifiedLookup::Found(func))) if has(&space) => {
                let module = self.env.funcs.get(func.0 as usize).map_or("", |o| self.env.module_path(o.module));
                let places = [space.to_string(), module.to_owned()];
                self.ambiguous(&member.name, member.span, "function", &places)
            }
            (Some(space), None | Some(QualifiedLookup::Unknown { .. })) => {
                self.call_builtin(&space, &member.name, member.span, args, span)
            }
            (Some(space), _) if has(&space) => self.call_builtin(&space, &member.name, member.span, args, span),
            (_, Some(found)) => self.call_qualified(found, alias, member, args, span),
            (_, None) => return None,
        })
    }

    fn call_qualified(
        &mut self,
        found: QualifiedLookup,
        alias: &Name,
        member: &ast::Ident,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Expr {
        let name = &member.name;
        match found {
            QualifiedLookup::Found(func) => self.call_func(func, None, name, args, span),
            QualifiedLookup::Ambiguous(modules) => self.ambiguous(name, member.span, "function", &modules),
            QualifiedLookup::NotExported { module, span: declared } => {
                self.fail(not_exported(name, "function", "fn", &module, member.span, declared))
            }
            QualifiedLookup::Unknown { module } => {
                let exported = self.env.modules.iter().find(|m| m.path == module);
                let near = self.near(name, exported.iter().flat_map(|m| m.funcs.keys().map(Name::as_str)));
                self.fail(
                    Diagnostic::error(403, member.span, format!("module `{module}` has no function `{name}`"))
                        .label("unknown function")
                        .note(format!("`{alias}` is the module `{module}`"))
                        .help(match near {
                            Some(near) => format!("did you mean `{alias}.{near}`?"),
                            None => format!("declare `pub fn {name}` there"),
                        }),
                )
            }
        }
    }

    fn call_static(
        &mut self,
        class: crate::hir::ClassId,
        first: &Name,
        member: &ast::Ident,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Expr {
        let name = &member.name;
        let Some(func) = self.env.method(class, name) else {
            let near = self.near_method(class, name).map(|near| format!("did you mean `{near}`?"));
            return self.fail(
                Diagnostic::error(403, member.span, format!("`{first}` has no static function `{name}`"))
                    .label("unknown function")
                    .note("`Cls.name(…)` calls a `static fn` of the class")
                    .help(near.unwrap_or_else(|| format!("declare `static fn {name}` in `{first}`"))),
            );
        };
        if !self.func_is_static(func) {
            return self.fail(
                Diagnostic::error(403, member.span, format!("`{first}.{name}` is not static: it needs an object"))
                    .label("method called on the class")
                    .note("only a `static fn` is called on the class's name")
                    .help(format!("call it on an object of `{first}`, or declare it `static fn {name}`")),
            );
        }
        self.call_func(func, None, name, args, span)
    }

    fn func_is_static(&self, func: FuncId) -> bool {
        self.env.program.funcs.get(func.0 as usize).is_some_and(|f| f.is_static)
    }

    pub(super) fn near_method(&self, class: crate::hir::ClassId, name: &str) -> Option<String> {
        let methods = self.env.program.classes.get(class.0 as usize).map(|c| c.methods.as_slice()).unwrap_or_default();
        let names = methods.iter().filter_map(|m| self.env.program.funcs.get(m.0 as usize)).map(|f| f.name.as_str());
        self.near(name, names)
    }

    /// A call of a resolved function; `recv` is the receiver of a method or extension, already of its type.
    pub(super) fn call_func(
        &mut self,
        func: FuncId,
        recv: Option<Expr>,
        name: &Name,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Expr {
        let Some(decl) = self.env.program.funcs.get(func.0 as usize) else { return self.error(span) };
        let (display, declared, ret) = (decl.display.clone(), decl.span, decl.ret);
        let skip = usize::from(recv.is_some());
        let wanted = decl.params.len().saturating_sub(skip);
        if wanted != args.len() {
            let own = if display == *name { self.own_method(name) } else { None };
            let help = own.unwrap_or_else(|| self.call_form(func, skip, name));
            self.miscounted(wanted, args);
            return self.fail(
                Diagnostic::error(403, span, format!("`{display}` takes {}, given {}", arguments(wanted), args.len()))
                    .label(format!("{} given", arguments(args.len())))
                    .related(declared, format!("`{display}` is declared here"))
                    .note("there are no optional arguments and no overloads")
                    .help(help),
            );
        }
        let mut values = Vec::with_capacity(args.len() + skip);
        values.extend(recv);
        for (at, arg) in args.iter().enumerate() {
            let param = self.env.program.funcs.get(func.0 as usize).and_then(|f| f.locals.get(at + skip));
            let (ty, param) = param.map_or((Types::ERROR, Name::default()), |p| (p.ty, p.name.clone()));
            values.push(self.check(arg, ty, &Site::Param(name.clone(), at + 1, param)));
        }
        self.warn_changed(func, &values);
        self.calls.push(func);
        if self.env.program.funcs.get(func.0 as usize).is_some_and(|f| f.never_returns) {
            self.flow.reachable = false;
        }
        let ty = self.call_ty(ret);
        if ty == Types::ERROR {
            return self.error(span);
        }
        Expr { kind: ExprKind::Call(func, values), ty, span }
    }

    /// `WO-W207` for arguments that the function says it changes. What a method does to its object it does not say.
    fn warn_changed(&mut self, func: FuncId, values: &[Expr]) {
        let Some(decl) = self.env.program.funcs.get(func.0 as usize) else { return };
        let object = usize::from(decl.class.is_some() && !decl.is_static);
        let modes = decl.params.clone();
        for (mode, value) in modes.iter().zip(values).skip(object) {
            if *mode == Mode::Mut && !self.is_copied(value.ty) {
                self.warn_copy(value, value.span);
            }
        }
    }

    /// How a function is called, by the names of its parameters.
    fn call_form(&self, func: FuncId, skip: usize, name: &Name) -> String {
        let Some(decl) = self.env.program.funcs.get(func.0 as usize) else { return String::new() };
        let params = decl.locals.iter().take(decl.params.len()).skip(skip).map(|p| p.name.as_str());
        format!("call it as `{name}({})`", params.collect::<Vec<_>>().join(", "))
    }

    /// Checks the arguments of a call with a wrong number of them; the superfluous ones are wrong anyway.
    pub(super) fn miscounted(&mut self, wanted: usize, args: &'a [ast::Expr]) {
        let (fitting, more) = args.split_at(wanted.min(args.len()));
        for arg in fitting {
            let _ = self.expr(arg, Want::Value);
        }
        self.unjudged(more);
    }

    fn call_method(
        &mut self,
        recv: Expr,
        base: &'a ast::Expr,
        member: &ast::Ident,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Expr {
        let name = &member.name;
        if self.has_extensions && matches!(self.kind(recv.ty), TyKind::Nullable(_)) {
            // The type of an extension's first parameter may be nullable.
            let Ok(extension) = self.extension(recv.ty, member) else { return self.error(span) };
            if let Some((func, _)) = extension {
                return self.call_func(func, Some(recv), name, args, span);
            }
        }
        let recv = self.need(recv, base, &Site::Base(name.clone()));
        let (ty, kind) = (recv.ty, self.kind(recv.ty));
        if matches!(kind, TyKind::Error | TyKind::Never) {
            self.unjudged(args);
            return recv;
        }
        let method = match kind {
            TyKind::Class(class) | TyKind::Row(class) => self.env.method(class, name),
            _ => None,
        };
        let extension = if self.has_extensions { self.extension(ty, member) } else { Ok(None) };
        let Ok(extension) = extension else { return self.error(span) };
        if let (Some(_), Some((_, module)), TyKind::Class(class)) = (method, &extension, kind) {
            let class = self.class_name(class);
            let title = format!("`{name}` is a method of `{class}` and an extension from `{module}`");
            return self.fail(
                Diagnostic::error(220, member.span, title)
                    .label("two meanings")
                    .note("a real method and an extension of one name would hide each other")
                    .help(format!("call the function as `{name}({}, …)`, or rename one", describe(base))),
            );
        }
        if let Some((func, _)) = extension
            && method.is_none()
        {
            return self.call_func(func, Some(recv), name, args, span);
        }
        match kind {
            TyKind::Class(class) => match method {
                Some(func) if self.func_is_static(func) => {
                    let class = self.class_name(class);
                    let title = format!("`{class}.{name}` is static: it is not called on an object");
                    self.fail(
                        Diagnostic::error(403, member.span, title)
                            .label("static function called on an instance")
                            .note("a `static fn` has no `self`")
                            .help(format!("write `{class}.{name}(…)`")),
                    )
                }
                Some(func) => self.call_func(func, Some(recv), name, args, span),
                None => {
                    let near = self.near_method(class, name).map(|near| format!("did you mean `{near}`?"));
                    let is_field = self.env.field(class, name).is_some();
                    let help =
                        if is_field { Some(format!("`{name}` is a field; fields are not called")) } else { near };
                    self.no_method(ty, member, help)
                }
            },
            TyKind::Iface(iface) => self.call_iface(iface, recv, member, args, span),
            TyKind::Row(class) => {
                let is_table = self.env.is_table(class);
                if let Some(func) = method
                    && is_table
                    && !self.func_is_static(func)
                {
                    return self.call_func(func, Some(recv), name, args, span);
                }
                self.no_method(ty, member, None)
            }
            _ => self.no_method(ty, member, None),
        }
    }

    fn no_method(&mut self, ty: Ty, member: &ast::Ident, help: Option<String>) -> Expr {
        let given = self.show(ty);
        let name = &member.name;
        let free = self.is_function_name(name);
        let help = help.unwrap_or_else(|| match (self.kind(ty), habits::member(name)) {
            (TyKind::Actor(_), _) => {
                "an actor is reached by messages: `send(address, message)` or `call(address, message)`".to_owned()
            }
            _ if free => format!("`{name}` is a function: `{name}(value, …)`"),
            (TyKind::Class(_) | TyKind::Iface(_) | TyKind::Row(_), None) => {
                format!("declare a method `{name}` in `{given}`")
            }
            (_, Some(help)) => help.to_owned(),
            (_, None) => format!("write a function: `fn {name}(x: {given}) {{ … }}`"),
        });
        self.fail(
            Diagnostic::error(403, member.span, format!("`{given}` has no method `{name}`"))
                .label("unknown method")
                .note(format!("the value before it is `{given}`"))
                .help(help),
        )
    }

    /// The extension `member` for receivers of type `ty`, with its module; `Err` after a report.
    fn extension(&mut self, ty: Ty, member: &ast::Ident) -> Result<Option<(FuncId, String)>, ()> {
        let mut found = self.env.extensions(self.file, &member.name);
        found.retain(|(func, _)| {
            let decl = self.env.program.funcs.get(func.0 as usize);
            decl.is_some_and(|f| !f.params.is_empty() && f.locals.first().is_some_and(|p| p.ty == ty))
        });
        if found.len() > 1 {
            let modules: Vec<String> = found.into_iter().map(|f| f.1).collect();
            let _ = self.ambiguous(&member.name, member.span, "extension", &modules);
            return Err(());
        }
        Ok(found.pop())
    }

    fn call_iface(
        &mut self,
        iface: IfaceId,
        recv: Expr,
        member: &ast::Ident,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Expr {
        let name = &member.name;
        let found = self.env.program.interfaces.get(iface.0 as usize).and_then(|decl| {
            let slot = decl.sigs.iter().position(|s| s.name == *name)?;
            let sig = decl.sigs.get(slot)?;
            Some((u32::try_from(slot).ok()?, sig.params.len(), sig.ret, decl.name.clone()))
        });
        let Some((slot, wanted, ret, iface_name)) = found else {
            let near = self
                .env
                .program
                .interfaces
                .get(iface.0 as usize)
                .and_then(|decl| self.near(name, decl.sigs.iter().map(|s| s.name.as_str())));
            let ty = recv.ty;
            return self.no_method(ty, member, near.map(|near| format!("did you mean `{near}`?")));
        };
        if wanted != args.len() {
            return self.fail(
                Diagnostic::error(
                    403,
                    span,
                    format!("`{iface_name}.{name}` takes {}, given {}", arguments(wanted), args.len()),
                )
                .label(format!("{} given", arguments(args.len())))
                .note("there are no optional arguments and no overloads")
                .help(format!("give exactly {}", arguments(wanted))),
            );
        }
        let mut values = Vec::with_capacity(args.len());
        for (at, arg) in args.iter().enumerate() {
            let decl = self.env.program.interfaces.get(iface.0 as usize);
            let param = decl.and_then(|d| d.sigs.get(slot as usize)).and_then(|s| s.params.get(at));
            let ty = param.map_or(Types::ERROR, |p| p.1);
            values.push(self.check(arg, ty, &Site::Param(name.clone(), at + 1, name.clone())));
        }
        let ty = self.call_ty(ret);
        if ty == Types::ERROR {
            return self.error(span);
        }
        Expr { kind: ExprKind::CallIface { iface, slot, recv: Box::new(recv), args: values }, ty, span }
    }
}

pub(super) fn arguments(count: usize) -> String {
    match count {
        0 => "no arguments".to_owned(),
        1 => "1 argument".to_owned(),
        n => format!("{n} arguments"),
    }
}

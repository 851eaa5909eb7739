//! Calls of builtins and namespace members (language 11): the signatures of `stdlib/` are unified with the arguments,
//! and the generic ones become the HIR builtin for their types.

use super::call::arguments;
use super::site::Site;
use super::{Cx, Want};
use crate::env::{BuiltinSig, Pattern};
use crate::hir::{Builtin, Expr, ExprKind};
use crate::types::{Ty, TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::Span;
use syntax::ast::{self, Name};

/// Types found so far for the variables of a signature.
#[derive(Default)]
struct Bindings(Vec<(Name, Ty)>);

impl Bindings {
    fn get(&self, name: &str) -> Option<Ty> {
        self.0.iter().find(|b| b.0 == name).map(|b| b.1)
    }
}

impl<'a> Cx<'_, 'a> {
    pub(super) fn call_builtin(
        &mut self,
        namespace: &Name,
        name: &Name,
        name_span: Span,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Expr {
        let is_free = namespace == "builtins";
        let shown = if is_free { name.clone() } else { smol_str::format_smolstr!("{namespace}.{name}") };
        let table = self.builtins;
        let Some(sigs) = table.sigs.get(&(namespace.clone(), name.clone())) else {
            return self.unknown_builtin(namespace, name, name_span);
        };
        if !sigs.iter().any(|s| s.available) {
            return self.unavailable(&shown, name_span);
        }
        match shown.as_str() {
            "send" | "call" | "call_dl" | "monitor" | "time.after" => {
                return self.call_actor(&shown, args, span);
            }
            "json.encode" | "assert_eq" | "class_name" => return self.call_any(&shown, sigs, args, span),
            "json.decode" => {
                return self.fail(
                    Diagnostic::error(403, span, "`json.decode(…)` needs a target type")
                        .label("decoded into what?")
                        .note("the type after `as` decides how the text is read")
                        .help("write `json.decode(text) as T`"),
                );
            }
            _ => {}
        }
        let Some(mut chosen) = sigs.iter().find(|s| s.params.len() == args.len()) else {
            return self.wrong_count(&shown, sigs, args, span);
        };
        let mut values: Vec<Expr> = Vec::with_capacity(args.len());
        let mut bindings = Bindings::default();
        let mut rest = args.iter().enumerate();
        // Overloads differ in the first parameter.
        if sigs.len() > 1
            && let Some((_, arg)) = rest.next()
        {
            let (found, value) = match self.overload(&shown, sigs, arg, args.len()) {
                Ok(found) => found,
                Err(other) => return other,
            };
            chosen = found;
            let site = Site::Builtin(shown.clone(), 1, is_free);
            let value = self.need(value, arg, &site);
            if let Some(param) = chosen.params.first() {
                let _ = self.unify(&param.2, value.ty, &mut bindings);
            }
            values.push(value);
        }
        for (at, arg) in rest {
            let Some((_, _, pattern)) = chosen.params.get(at) else { continue };
            let site = if stores(&shown, at) {
                Site::Store(shown.clone(), at + 1)
            } else {
                Site::Builtin(shown.clone(), at + 1, is_free)
            };
            if let Some(ty) = self.substitute(pattern, &bindings) {
                values.push(self.check(arg, ty, &site));
                continue;
            }
            let value = self.expr(arg, Want::Value);
            let value = self.settle(value);
            let value = self.need(value, arg, &site);
            if value.ty == Types::NEVER {
                // Nothing is known of the rest, and nothing of it is reached.
                values.push(value);
                break;
            }
            if value.ty != Types::ERROR && !self.unify(pattern, value.ty, &mut bindings) {
                return self.wrong_argument(&shown, at + 1, pattern, &value);
            }
            values.push(value);
        }
        let values = match self.complete(values, span) {
            Ok(values) => values,
            Err(other) => return other,
        };
        self.finish_builtin(&shown, chosen, values, &bindings, span)
    }

    fn unknown_builtin(&mut self, namespace: &Name, name: &Name, span: Span) -> Expr {
        let members = self.builtins.sigs.keys().filter(|k| k.0 == *namespace).map(|k| k.1.as_str());
        let help = match self.near(name, members.clone()) {
            Some(near) => format!("did you mean `{namespace}.{near}`?"),
            None => {
                let mut all: Vec<String> = members.map(|m| format!("`{m}`")).collect();
                all.sort();
                format!("its members are {}", all.join(", "))
            }
        };
        self.fail(
            Diagnostic::error(406, span, format!("module `{namespace}` has no member `{name}`"))
                .label("unknown member")
                .note(format!("`{namespace}` is a reserved module with a fixed set of functions"))
                .help(help),
        )
    }

    fn unavailable(&mut self, shown: &str, span: Span) -> Expr {
        let what = if shown.ends_with("_tls") { "TLS is" } else { "it is" };
        self.fail(
            Diagnostic::error(406, span, format!("`{shown}` is not available yet"))
                .label("not available yet")
                .note("the name is reserved for a later version")
                .help(format!("{what} not available yet; do without `{shown}` for now")),
        )
    }

    fn wrong_argument(&mut self, shown: &str, number: usize, pattern: &Pattern, value: &Expr) -> Expr {
        let (want, given) = (self.show_pattern(pattern), self.show(value.ty));
        let title = format!("argument {number} of `{shown}` must be `{want}`, found `{given}`");
        self.fail(
            Diagnostic::error(209, value.span, title)
                .label(format!("this is `{given}`"))
                .note(format!("`{shown}` works on `{want}`"))
                .help(self.own_method(shown).unwrap_or_else(|| format!("give a value of type `{want}`"))),
        )
    }

    /// The overload with `count` parameters that the first argument chooses, and that argument; what the call is where it
    /// chooses none.
    fn overload<'s>(
        &mut self,
        shown: &Name,
        sigs: &'s [BuiltinSig],
        arg: &'a ast::Expr,
        count: usize,
    ) -> Result<(&'s BuiltinSig, Expr), Expr> {
        let value = self.expr(arg, Want::Value);
        let value = self.first_form(value, sigs, count);
        let value = self.settle(value);
        if matches!(self.kind(value.ty), TyKind::Error | TyKind::Never) {
            return Err(value);
        }
        let inner = self.strip(value.ty);
        let fits = |pattern: &Pattern| self.unify(pattern, inner, &mut Bindings::default());
        let mut forms = sigs.iter().filter(|s| s.params.len() == count);
        if let Some(found) = forms.find(|s| s.params.first().is_some_and(|p| fits(&p.2))) {
            return Ok((found, value));
        }
        let given = self.show(value.ty);
        let firsts = sigs.iter().filter_map(|s| s.params.first());
        let wanted: Vec<String> = firsts.map(|p| format!("`{}`", self.show_pattern(&p.2))).collect();
        Err(self.fail(
            Diagnostic::error(209, value.span, format!("argument 1 of `{shown}` cannot be `{given}`"))
                .label(format!("this is `{given}`"))
                .note(format!("`{shown}` takes {}", wanted.join(" or ")))
                .help(self.own_method(shown).unwrap_or_else(|| "give one of those".to_owned())),
        ))
    }

    /// An empty container takes the type of the first overload that names one.
    fn first_form(&mut self, value: Expr, sigs: &[BuiltinSig], count: usize) -> Expr {
        if !matches!(self.kind(value.ty), TyKind::EmptyMulti | TyKind::EmptyMap) {
            return value;
        }
        for sig in sigs.iter().filter(|s| s.params.len() == count) {
            let pattern = sig.params.first().map(|p| &p.2);
            if let Some(ty) = pattern.and_then(|p| self.substitute(p, &Bindings::default()))
                && self.could_fit(value.ty, ty)
            {
                return Expr { ty, ..value };
            }
        }
        value
    }

    fn wrong_count(&mut self, shown: &str, sigs: &[BuiltinSig], args: &'a [ast::Expr], span: Span) -> Expr {
        let wanted = sigs.first().map_or(0, |s| s.params.len());
        self.miscounted(wanted, args);
        let params = sigs
            .first()
            .map(|s| {
                s.params.iter().map(|p| format!("{}: {}", p.1, self.show_pattern(&p.2))).collect::<Vec<_>>().join(", ")
            })
            .unwrap_or_default();
        self.fail(
            Diagnostic::error(209, span, format!("`{shown}` takes {}, given {}", arguments(wanted), args.len()))
                .label(format!("{} given", arguments(args.len())))
                .note("builtins have a fixed number of arguments")
                .help(self.own_method(shown).unwrap_or_else(|| format!("its form is `{shown}({params})`"))),
        )
    }

    fn finish_builtin(
        &mut self,
        shown: &str,
        sig: &BuiltinSig,
        values: Vec<Expr>,
        bindings: &Bindings,
        span: Span,
    ) -> Expr {
        match shown {
            "multi_new" => return Expr { kind: ExprKind::List(Vec::new()), ty: Types::EMPTY_MULTI, span },
            "map_new" => return Expr { kind: ExprKind::EmptyMap, ty: Types::EMPTY_MAP, span },
            _ => {}
        }
        if matches!(shown, "push" | "pop" | "shift" | "set" | "remove" | "sort" | "reverse")
            && let Some(container) = values.first()
        {
            self.warn_copy(container, span);
        }
        let first = values.first().map_or(Types::ERROR, |v| v.ty);
        if let TyKind::Multi(element) = self.kind(first) {
            let fault = match shown {
                "sort" if !self.sortable(element) => {
                    Some(("has no order", "sort scalars, Texts or Bytes, or a multi of keys"))
                }
                "slice" if self.is_owned_container(element) => {
                    Some(("is owned by its element's place", "copy what is needed with a loop"))
                }
                _ => None,
            };
            if let Some((fault, help)) = fault {
                let (given, element) = (self.show(first), self.show(element));
                let at = values.first().map_or(span, |v| v.span);
                return self.fail(
                    Diagnostic::error(209, at, format!("argument 1 of `{shown}` cannot be `{given}`"))
                        .label(format!("`{element}` {fault}"))
                        .note(format!("`{shown}` takes a `multi` of another element type"))
                        .help(help),
                );
            }
        }
        let ret = match &sig.ret {
            None => Types::VOID,
            Some(pattern) => self.substitute(pattern, bindings).unwrap_or(Types::ERROR),
        };
        // An element of a `multi ?T` is a strict `?T`; only a declared `?T` is a `T~`.
        let mut ty = if matches!(sig.ret, Some(Pattern::Var(_))) { ret } else { self.call_ty(ret) };
        if shown == "trap" {
            self.flow.reachable = false;
            ty = Types::NEVER;
        }
        let builtin = self.builtin_for(shown, first);
        Expr { kind: ExprKind::Builtin(builtin, values), ty, span }
    }

    fn builtin_for(&self, shown: &str, first: Ty) -> Builtin {
        let is_map = matches!(self.kind(first), TyKind::Map(..));
        let is_multi = matches!(self.kind(first), TyKind::Multi(_));
        match shown {
            "len" | "count" if is_map => Builtin::LenMap,
            "len" | "count" if is_multi => Builtin::LenMulti,
            "len" => Builtin::LenText,
            "push" => Builtin::Push,
            "get" if is_map => Builtin::GetMap,
            "get" => Builtin::GetMulti,
            "set" => Builtin::SetMap,
            "has" => Builtin::HasMap,
            "remove" => Builtin::RemoveMap,
            "latest" => Builtin::Latest,
            "pop" => Builtin::Pop,
            "shift" => Builtin::Shift,
            "slice" => Builtin::Slice,
            "sort" => Builtin::Sort,
            "reverse" => Builtin::Reverse,
            "key_at" => Builtin::KeyAt,
            "val_at" => Builtin::ValAt,
            "trap" => Builtin::Trap,
            "assert" => Builtin::Assert,
            _ => Builtin::Plain(Name::new(shown)),
        }
    }

    /// `json.encode`, `assert_eq` and `class_name`: any type, nil included for the first two.
    fn call_any(&mut self, shown: &Name, sigs: &[BuiltinSig], args: &'a [ast::Expr], span: Span) -> Expr {
        let wanted = if shown == "assert_eq" { 2 } else { 1 };
        if args.len() != wanted {
            return self.wrong_count(shown, sigs, args, span);
        }
        let mut values = Vec::with_capacity(wanted);
        let mut common = Types::NEVER;
        for arg in args {
            let value = self.expr(arg, if values.is_empty() { Want::Value } else { Want::Hint(common) });
            if value.ty == Types::ERROR {
                return self.error(span);
            }
            let Some(ty) = self.common(common, value.ty) else {
                let (a, b) = (self.show(common), self.show(value.ty));
                return self.fail(
                    Diagnostic::error(209, value.span, format!("argument 2 of `{shown}` must be `{a}`, found `{b}`"))
                        .label(format!("this is `{b}`"))
                        .note("both values need a common type to be compared")
                        .help(format!("give two values of type `{a}`, or two of type `{b}`")),
                );
            };
            common = ty;
            values.push(value);
        }
        let mut common = match self.kind(common) {
            TyKind::Maybe { inner, .. } => self.nullable(inner),
            TyKind::Void | TyKind::Never => Types::INT,
            // nil alone: any nullable type prints and compares the same.
            TyKind::Nil => self.nullable(Types::INT),
            TyKind::EmptyMulti => self.intern(TyKind::Multi(Types::INT)),
            TyKind::EmptyMap => self.intern(TyKind::Map(Types::TEXT, Types::INT)),
            _ => common,
        };
        let site = Site::Builtin(shown.clone(), 1, !shown.contains('.'));
        if shown == "class_name" {
            common = self.strip(common);
            let never = values.iter().any(|v| v.ty == Types::NEVER);
            if !never && !matches!(self.kind(common), TyKind::Class(_) | TyKind::Iface(_)) {
                let given = self.show(common);
                return self.fail(
                    Diagnostic::error(209, span, format!("argument 1 of `class_name` cannot be `{given}`"))
                        .label(format!("this is `{given}`"))
                        .note("only classes, records and interface values have a class")
                        .help("give an object"),
                );
            }
        }
        let values: Vec<Expr> =
            values.into_iter().zip(args).map(|(value, arg)| self.coerce(value, arg, common, &site)).collect();
        let values = match self.complete(values, span) {
            Ok(values) => values,
            Err(other) => return other,
        };
        let (builtin, ty) = match shown.as_str() {
            "json.encode" => (Builtin::JsonEncode, Types::TEXT),
            "class_name" => (Builtin::ClassName, Types::TEXT),
            _ => (Builtin::AssertEq, Types::VOID),
        };
        Expr { kind: ExprKind::Builtin(builtin, values), ty, span }
    }

    fn sortable(&self, element: Ty) -> bool {
        let inner = self.strip(element);
        matches!(inner, Types::TEXT | Types::BYTES)
            || (self.is_scalar(inner) && !matches!(self.kind(inner), TyKind::Actor(_)))
    }

    /// Containers and payload unions: never copied, never traced.
    fn is_owned_container(&self, element: Ty) -> bool {
        let inner = self.strip(element);
        matches!(self.kind(inner), TyKind::Multi(_) | TyKind::Map(..))
            || (matches!(self.kind(inner), TyKind::Union(_)) && !self.is_scalar(inner))
    }

    fn unify(&self, pattern: &Pattern, ty: Ty, bindings: &mut Bindings) -> bool {
        match (pattern, self.kind(ty)) {
            (Pattern::Var(name), _) => match bindings.get(name) {
                Some(bound) => bound == ty,
                None => {
                    bindings.0.push((name.clone(), ty));
                    true
                }
            },
            (Pattern::Ty(wanted), _) => *wanted == ty || self.could_fit(ty, *wanted),
            (Pattern::Nullable(inner), TyKind::Nullable(ty)) => self.unify(inner, ty, bindings),
            (Pattern::Multi(inner), TyKind::Multi(ty)) => match inner.as_ref() {
                // Containers are invariant.
                Pattern::Ty(wanted) => *wanted == ty,
                _ => self.unify(inner, ty, bindings),
            },
            (Pattern::Map(key, value), TyKind::Map(k, v)) => {
                self.unify(key, k, bindings) && self.unify(value, v, bindings)
            }
            (Pattern::Actor(inner), TyKind::Actor(ty)) => self.unify(inner, ty, bindings),
            _ => false,
        }
    }

    /// The type of a pattern whose variables are all bound.
    fn substitute(&mut self, pattern: &Pattern, bindings: &Bindings) -> Option<Ty> {
        Some(match pattern {
            Pattern::Var(name) => bindings.get(name)?,
            Pattern::Ty(ty) => *ty,
            Pattern::Nullable(inner) => {
                let inner = self.substitute(inner, bindings)?;
                self.nullable(inner)
            }
            Pattern::Multi(inner) => {
                let inner = self.substitute(inner, bindings)?;
                self.intern(TyKind::Multi(inner))
            }
            Pattern::Map(key, value) => {
                let key = self.substitute(key, bindings)?;
                let value = self.substitute(value, bindings)?;
                self.intern(TyKind::Map(key, value))
            }
            Pattern::Actor(inner) => {
                let inner = self.substitute(inner, bindings)?;
                self.intern(TyKind::Actor(inner))
            }
        })
    }

    fn show_pattern(&self, pattern: &Pattern) -> String {
        match pattern {
            Pattern::Var(name) => name.to_string(),
            Pattern::Ty(ty) => self.show(*ty),
            Pattern::Nullable(inner) => format!("?{}", self.show_pattern(inner)),
            Pattern::Multi(inner) => format!("multi {}", self.show_pattern(inner)),
            Pattern::Map(key, value) => format!("map<{}, {}>", self.show_pattern(key), self.show_pattern(value)),
            Pattern::Actor(inner) => format!("actor {}", self.show_pattern(inner)),
        }
    }
}

/// Whether argument `at` (from 0) goes into a container.
fn stores(shown: &str, at: usize) -> bool {
    matches!((shown, at), ("push", 1) | ("set", 2))
}

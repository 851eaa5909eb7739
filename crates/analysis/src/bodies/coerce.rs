//! Assignability (language 5.4) with its conversions made explicit, plain uses of maybe-absent values (5.3), common
//! types, and where `[]`, `{}` and nil get their type from.

use super::actor::{OWN_ADDRESS, is_self};
use super::site::Site;
use super::{Cx, describe};
use crate::hir::{Expr, ExprKind, OnNil};
use crate::types::{Ty, TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::Span;
use syntax::ast;

/// How a non-nil value of one type becomes one of another.
enum Fit {
    Same,
    /// The same representation under another type.
    Convert,
    /// The Int 0 of a call without value.
    Void,
    No,
    /// The interface is not satisfied; reported.
    Reported,
}

impl<'a> Cx<'_, 'a> {
    /// `e` as a value of type `to`; `src` is its syntax, for messages.
    pub(super) fn coerce(&mut self, e: Expr, src: &'a ast::Expr, to: Ty, site: &Site) -> Expr {
        if e.ty == to || e.ty == Types::ERROR || e.ty == Types::NEVER {
            return e;
        }
        if to == Types::ERROR {
            return self.error(e.span);
        }
        match (self.kind(e.ty), self.kind(to)) {
            // A `T~` slot is an unannotated local: it takes what `?T` takes.
            (_, TyKind::Maybe { inner, .. }) => {
                let strict = self.nullable(inner);
                let value = self.coerce(e, src, strict, site);
                retype(value, to)
            }
            (TyKind::Nil, TyKind::Nullable(_)) => Expr { kind: ExprKind::Nil, ty: to, span: e.span },
            (TyKind::Nullable(from), TyKind::Nullable(inner))
            | (TyKind::Maybe { inner: from, .. }, TyKind::Nullable(inner)) => {
                match self.fit(from, inner, e.span, site) {
                    Fit::Same | Fit::Convert => retype(e, to),
                    Fit::Reported => self.error(e.span),
                    Fit::Void | Fit::No => self.mismatch(&e, src, to, site),
                }
            }
            (_, TyKind::Nullable(inner)) => {
                let value = self.coerce_value(e, src, inner, to, site);
                wrap(value, to)
            }
            (TyKind::Nullable(_) | TyKind::Maybe { .. } | TyKind::Nil, _) => {
                // Two defects in one place are one report: the wrong type comes first.
                let inner = self.strip(e.ty);
                if inner != Types::NIL && !self.could_fit(inner, to) {
                    return self.mismatch(&e, src, to, site);
                }
                let value = self.need_for(e, src, Some(to), site);
                self.coerce_value(value, src, to, to, site)
            }
            _ => self.coerce_value(e, src, to, to, site),
        }
    }

    /// `e` has no nullable type; `shown` is the slot's type.
    fn coerce_value(&mut self, e: Expr, src: &'a ast::Expr, to: Ty, shown: Ty, site: &Site) -> Expr {
        if e.ty == to || e.ty == Types::ERROR || e.ty == Types::NEVER {
            return e;
        }
        match self.fit(e.ty, to, e.span, site) {
            Fit::Same | Fit::Convert if matches!(self.kind(e.ty), TyKind::EmptyMulti | TyKind::EmptyMap) => {
                Expr { ty: to, ..e }
            }
            Fit::Same => e,
            Fit::Convert => retype(e, to),
            Fit::Void => void_as_int(e),
            Fit::Reported => self.error(e.span),
            Fit::No => self.mismatch(&e, src, shown, site),
        }
    }

    fn mismatch(&mut self, e: &Expr, src: &ast::Expr, to: Ty, site: &Site) -> Expr {
        if self.holds_error(to) || self.holds_error(e.ty) {
            return self.error(e.span);
        }
        let (want, given, place) = (self.show(to), self.show(e.ty), site.text());
        let help = self.site_help(e, src, to, site).unwrap_or_else(|| self.way_to(to, e.ty));
        self.fail(
            Diagnostic::error(site.mismatch_code(), e.span, format!("{place} must be `{want}`, found `{given}`"))
                .label(format!("this is `{given}`"))
                .note(format!("`{given}` does not convert to `{want}`"))
                .help(help),
        )
    }

    /// What the place of a wrong value says about what was meant.
    fn site_help(&self, e: &Expr, src: &ast::Expr, to: Ty, site: &Site) -> Option<String> {
        match (site, self.kind(self.strip(to))) {
            (Site::Builtin(name, ..) | Site::Store(name, _), _) => self.own_method(name),
            (Site::Message(_), TyKind::Class(class)) if self.env.method(class, "receive").is_some() => {
                let given = self.show(e.ty);
                Some(format!("`actor M` names the message, not the class: declare the address as `actor {given}`"))
            }
            (_, TyKind::Actor(_)) if is_self(src) => Some(OWN_ADDRESS.to_owned()),
            _ => None,
        }
    }

    /// How a value of type `from` becomes one of type `to`.
    fn way_to(&self, to: Ty, from: Ty) -> String {
        let (want, given) = (self.show(to), self.show(from));
        match (self.kind(self.strip(to)), self.kind(self.strip(from))) {
            (TyKind::Text, TyKind::Int | TyKind::Float | TyKind::Bool) => {
                "write `\"${…}\"` around the value to make it a Text".to_owned()
            }
            (TyKind::Int, TyKind::Text) => "`parse_int(…)` reads an Int from a Text".to_owned(),
            (TyKind::Int, TyKind::Float) => "`trunc(…)` makes an Int of a Float".to_owned(),
            (TyKind::Float, TyKind::Int) => "`float(…)` makes a Float of an Int".to_owned(),
            (TyKind::Bytes, TyKind::Text) => "`bytes_of_text(…)` makes Bytes of a Text".to_owned(),
            (TyKind::Text, TyKind::Bytes) => "`text_of_bytes(…)` makes a Text of Bytes".to_owned(),
            (TyKind::Multi(_) | TyKind::Map(..), TyKind::Multi(_) | TyKind::Map(..)) => {
                format!("containers do not convert element by element: build a `{want}`")
            }
            (TyKind::Actor(wanted), TyKind::Actor(found)) => {
                let (wanted, found) = (self.show(wanted), self.show(found));
                format!(
                    "`actor M` names the message, not the class: `actor {found}` receives `{found}`, not `{wanted}`"
                )
            }
            (_, TyKind::Actor(_)) => format!("`spawn` gives an address: its type is `{given}`"),
            _ => format!("give a value of type `{want}`"),
        }
    }

    /// Whether a part of the type is not known, which is reported where it is named.
    fn holds_error(&self, ty: Ty) -> bool {
        match self.kind(ty) {
            TyKind::Error => true,
            TyKind::Nullable(inner) | TyKind::Maybe { inner, .. } | TyKind::Multi(inner) | TyKind::Actor(inner) => {
                self.holds_error(inner)
            }
            TyKind::Map(key, value) => self.holds_error(key) || self.holds_error(value),
            _ => false,
        }
    }

    /// Whether non-nil values go, without reporting or recording anything.
    pub(super) fn could_fit(&self, from: Ty, to: Ty) -> bool {
        let to = self.strip(to);
        from == to
            || from == Types::ERROR
            || to == Types::ERROR
            || matches!(
                (self.kind(from), self.kind(to)),
                (TyKind::Bool | TyKind::Void | TyKind::Row(_), TyKind::Int)
                    | (TyKind::Int, TyKind::Row(_))
                    | (TyKind::Text, TyKind::Json)
                    | (TyKind::Json, TyKind::Text)
                    | (TyKind::Class(_) | TyKind::Iface(_), TyKind::Iface(_))
                    | (TyKind::EmptyMulti, TyKind::Multi(_))
                    | (TyKind::EmptyMap, TyKind::Map(..))
            )
    }

    fn fit(&mut self, from: Ty, to: Ty, span: Span, site: &Site) -> Fit {
        if from == to || from == Types::ERROR || from == Types::NEVER {
            return Fit::Same;
        }
        match (self.kind(from), self.kind(to)) {
            (TyKind::Void, TyKind::Int) => Fit::Void,
            (TyKind::Class(class), TyKind::Iface(iface)) => match self.env.satisfies(class, iface) {
                Ok(_) => Fit::Convert,
                Err(why) => self.unsatisfied(from, to, &why, span, site),
            },
            (TyKind::Iface(source), TyKind::Iface(iface)) => match self.env.covers(source, iface) {
                Ok(()) => Fit::Convert,
                Err(why) => self.unsatisfied(from, to, &why, span, site),
            },
            _ if self.could_fit(from, to) => Fit::Convert,
            _ => Fit::No,
        }
    }

    fn unsatisfied(&mut self, from: Ty, to: Ty, why: &str, span: Span, site: &Site) -> Fit {
        let (given, want) = (self.show(from), self.show(to));
        let help = match self.kind(to) {
            TyKind::Iface(iface) => self.env.methods_wanted(iface, &given),
            _ => String::new(),
        };
        self.report(
            Diagnostic::error(205, span, format!("`{given}` does not satisfy `{want}`: {why}"))
                .label(format!("{} must be `{want}`", site.text()))
                .note(format!("`{given}` needs every method of `{want}` with fitting parameters and result"))
                .help(help),
        );
        Fit::Reported
    }

    /// A value without nil for a place that needs one: plain use of `T~`, refusal of strict `?T` and nil by site.
    pub(super) fn need(&mut self, e: Expr, src: &'a ast::Expr, site: &Site) -> Expr {
        self.need_for(e, src, None, site)
    }

    fn need_for(&mut self, e: Expr, src: &'a ast::Expr, slot: Option<Ty>, site: &Site) -> Expr {
        match self.kind(e.ty) {
            TyKind::Void => void_as_int(e),
            TyKind::Nil => {
                let want = slot.map(|s| format!(" of type `{}`", self.show(s))).unwrap_or_default();
                let help = match slot {
                    Some(slot) if !site.is_fixed() => {
                        format!("give a value, or make the type nullable: `?{}`", self.show(slot))
                    }
                    _ => "give a value".to_owned(),
                };
                self.fail(
                    Diagnostic::error(site.nil_code(), e.span, format!("nil where {}{want} is needed", site.text()))
                        .label("this is nil")
                        .note("only `?T` holds nil")
                        .help(help),
                )
            }
            TyKind::Maybe { inner, noisy } => {
                if noisy {
                    self.warn_plain(&e, src, inner, site);
                }
                let on_nil = self.on_nil(inner, site);
                unwrap(e, inner, on_nil)
            }
            TyKind::Nullable(inner) => {
                let (name, ty) = (describe(src), self.show(e.ty));
                let Some(code) = site.null_code() else {
                    self.warn_plain(&e, src, inner, site);
                    let on_nil = self.on_nil(inner, site);
                    return unwrap(e, inner, on_nil);
                };
                let place = site.text();
                let title = match (code, slot) {
                    (213, _) => format!("`{name}` is `{ty}` and may be nil: {place} needs a value"),
                    (_, Some(slot)) => format!("`{name}` is `{ty}` and may be nil: {place} is `{}`", self.show(slot)),
                    (_, None) => format!("`{name}` is `{ty}` and may be nil: {place} needs a value"),
                };
                let help = if matches!(src.kind, ast::ExprKind::Name(_)) {
                    format!("test it first: `if {name} != nil {{ … }}`")
                } else if self.queries > 0 {
                    format!("call a function with it that tests it: `fn f(v: {ty}) …` and `f({name})`")
                } else {
                    format!("bind it to a local and test that: `let v = {name}`, `if v != nil {{ … }}`")
                };
                self.fail(
                    Diagnostic::error(code, e.span, title)
                        .label(format!("`{ty}` here"))
                        .note("a nullable value is used only where it is known not to be nil; only plain locals are narrowed")
                        .help(help),
                )
            }
            _ => e,
        }
    }

    fn warn_plain(&mut self, e: &Expr, src: &'a ast::Expr, inner: Ty, site: &Site) {
        let (name, strict) = (describe(src), self.show(inner));
        let then = match self.on_nil(inner, site) {
            OnNil::Zero | OnNil::Proved => "reads as the zero value",
            OnNil::TrapText => "traps 6 `null text`",
            OnNil::TrapReceiver => "traps 6 `null receiver`",
            OnNil::Message => "traps 6 as a nil message",
        };
        self.report(
            Diagnostic::warning(204, e.span, format!("`{name}` is `?{strict}`: a nil here {then}"))
                .label(format!("used as `{strict}` without a test"))
                .note("what may be nil is usable plainly and checked at run time")
                .help(if matches!(src.kind, ast::ExprKind::Name(_)) {
                    format!("test it first: `if {name} != nil {{ … }}`")
                } else {
                    "bind it to a local and compare that with nil first".to_owned()
                }),
        );
    }

    pub(super) fn on_nil(&self, inner: Ty, site: &Site) -> OnNil {
        if matches!(site, Site::Message(_)) {
            OnNil::Message
        } else if self.is_scalar(inner) {
            OnNil::Zero
        } else if (Self::is_text(inner) || inner == Types::BYTES) && !site.is_free_builtin() {
            OnNil::TrapText
        } else {
            OnNil::TrapReceiver
        }
    }

    /// The type of two values that meet without an expected type (5.4).
    pub(super) fn common(&mut self, a: Ty, b: Ty) -> Option<Ty> {
        if a == b {
            return Some(a);
        }
        match (self.kind(a), self.kind(b)) {
            (TyKind::Error, _) | (_, TyKind::Error) => Some(Types::ERROR),
            (TyKind::Never, _) => Some(b),
            (_, TyKind::Never) => Some(a),
            (TyKind::Nil, TyKind::Maybe { .. }) => Some(b),
            (TyKind::Maybe { .. }, TyKind::Nil) => Some(a),
            (TyKind::Nil, TyKind::Void) | (TyKind::Void, TyKind::Nil) => Some(self.nullable(Types::INT)),
            (TyKind::Nil, _) => Some(self.nullable(b)),
            (_, TyKind::Nil) => Some(self.nullable(a)),
            (TyKind::Maybe { inner: x, noisy: m }, TyKind::Maybe { inner: y, noisy: n }) => {
                let inner = self.common(x, y)?;
                Some(self.intern(TyKind::Maybe { inner, noisy: m || n }))
            }
            (TyKind::Nullable(x), TyKind::Nullable(y) | TyKind::Maybe { inner: y, .. })
            | (TyKind::Maybe { inner: x, .. }, TyKind::Nullable(y)) => {
                let inner = self.common(x, y)?;
                Some(self.nullable(inner))
            }
            (TyKind::Nullable(x), _) => {
                let inner = self.common(x, b)?;
                Some(self.nullable(inner))
            }
            (_, TyKind::Nullable(y)) => {
                let inner = self.common(a, y)?;
                Some(self.nullable(inner))
            }
            (TyKind::Maybe { inner: x, noisy }, _) => {
                let inner = self.common(x, b)?;
                Some(self.intern(TyKind::Maybe { inner, noisy }))
            }
            (_, TyKind::Maybe { inner: y, noisy }) => {
                let inner = self.common(a, y)?;
                Some(self.intern(TyKind::Maybe { inner, noisy }))
            }
            (TyKind::Bool | TyKind::Void, TyKind::Int) | (TyKind::Int, TyKind::Bool | TyKind::Void) => Some(Types::INT),
            (TyKind::Bool, TyKind::Void) | (TyKind::Void, TyKind::Bool) => Some(Types::INT),
            (TyKind::Row(_), TyKind::Int) => Some(a),
            (TyKind::Int, TyKind::Row(_)) => Some(b),
            (TyKind::Text, TyKind::Json) | (TyKind::Json, TyKind::Text) => Some(Types::TEXT),
            (TyKind::EmptyMulti, TyKind::Multi(_)) | (TyKind::EmptyMap, TyKind::Map(..)) => Some(b),
            (TyKind::Multi(_), TyKind::EmptyMulti) | (TyKind::Map(..), TyKind::EmptyMap) => Some(a),
            (TyKind::Class(class), TyKind::Iface(iface)) => self.env.satisfies(class, iface).is_ok().then_some(b),
            (TyKind::Iface(iface), TyKind::Class(class)) => self.env.satisfies(class, iface).is_ok().then_some(a),
            _ => None,
        }
    }

    /// A value whose type stands by itself: nil, `[]` and `{}` take the function's result type or are refused.
    pub(super) fn settle(&mut self, e: Expr) -> Expr {
        let ret = self.ret;
        let inner = self.strip(ret);
        match (self.kind(e.ty), self.kind(inner)) {
            (TyKind::Nil, _) if matches!(self.kind(ret), TyKind::Nullable(_)) => Expr { ty: ret, ..e },
            (TyKind::EmptyMulti, TyKind::Multi(_)) | (TyKind::EmptyMap, TyKind::Map(..)) => Expr { ty: inner, ..e },
            (TyKind::Nil, _) => self.no_destination(e.span, "nil", "?Int"),
            (TyKind::EmptyMulti, _) => self.no_destination(e.span, "[]", "multi Int"),
            (TyKind::EmptyMap, _) => self.no_destination(e.span, "{}", "map<Text, Int>"),
            (TyKind::Void, _) => void_as_int(e),
            _ => e,
        }
    }

    fn no_destination(&mut self, span: Span, what: &str, example: &str) -> Expr {
        self.fail(
            Diagnostic::error(403, span, format!("`{what}` has no type here"))
                .label("nothing says which type this is")
                .note("its type comes from an annotation, the slot it goes into, or the function's result")
                .help(format!("annotate it: `let x: {example} = {what}`")),
        )
    }
}

pub(super) fn retype(e: Expr, ty: Ty) -> Expr {
    if e.ty == ty || e.ty == Types::ERROR || e.ty == Types::NEVER {
        return e;
    }
    let span = e.span;
    match e.kind {
        ExprKind::Nil => Expr { kind: ExprKind::Nil, ty, span },
        _ => Expr { kind: ExprKind::Convert(Box::new(e)), ty, span },
    }
}

pub(super) fn wrap(e: Expr, ty: Ty) -> Expr {
    if e.ty == ty || e.ty == Types::ERROR || e.ty == Types::NEVER {
        return e;
    }
    let span = e.span;
    Expr { kind: ExprKind::Wrap(Box::new(e)), ty, span }
}

pub(super) fn unwrap(e: Expr, inner: Ty, on_nil: OnNil) -> Expr {
    let span = e.span;
    Expr { kind: ExprKind::Unwrap(Box::new(e), on_nil), ty: inner, span }
}

pub(super) fn void_as_int(e: Expr) -> Expr {
    if e.ty != Types::VOID {
        return e;
    }
    let span = e.span;
    Expr { kind: ExprKind::VoidAsInt(Box::new(e)), ty: Types::INT, span }
}

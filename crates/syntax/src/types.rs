//! Types: `?T`, `multi T`, `map<K, V>`, `ref C`, `actor M`, `backlink C.f`, `C`, `m.C`.

use diagnostics::Diagnostic;

use crate::ast::{Type, TypeKind};
use crate::state::{Input, Res, ahead, bump, eat, expect, fail, name, nested, peek, span_of, special};
use crate::token::K;

const WANTED: &str = "a type";

pub(crate) fn ty(inp: &mut Input<'_, '_>) -> Res<Type> {
    let first = peek(inp);
    match first.kind {
        K::Question => {
            let _ = bump(inp);
            if peek(inp).kind == K::Question {
                return double_nullable(inp);
            }
            let inner = nested(inp, ty)?;
            let span = span_of(inp, first).to(inner.span);
            Ok(Type { kind: TypeKind::Nullable(Box::new(inner)), span })
        }
        K::Multi => {
            let _ = bump(inp);
            let inner = nested(inp, ty)?;
            let span = span_of(inp, first).to(inner.span);
            Ok(Type { kind: TypeKind::Multi(Box::new(inner)), span })
        }
        K::Map if ahead(inp, 1) == K::Lt => {
            let _ = bump(inp);
            let _ = bump(inp);
            let key = nested(inp, ty)?;
            let _ = expect(inp, K::Comma, "`,`")?;
            let value = nested(inp, ty)?;
            let close = peek(inp);
            if !matches!(close.kind, K::Gt | K::GeHead | K::ShrHead) {
                return fail(inp, "`>`");
            }
            let _ = bump(inp);
            let span = span_of(inp, first).to(span_of(inp, close));
            Ok(Type { kind: TypeKind::Map(Box::new(key), Box::new(value)), span })
        }
        K::Map => {
            let _ = bump(inp);
            fail(inp, "`<`")
        }
        K::Ref | K::Actor => {
            let _ = bump(inp);
            let of = name(inp, "a class name")?;
            let span = span_of(inp, first).to(of.span);
            let kind = if first.kind == K::Ref { TypeKind::Ref(of) } else { TypeKind::Actor(of) };
            Ok(Type { kind, span })
        }
        K::Backlink => {
            let _ = bump(inp);
            let class = name(inp, "a class name")?;
            let _ = expect(inp, K::Dot, "`.` and a field name")?;
            let field = name(inp, "a field name")?;
            let span = span_of(inp, first).to(field.span);
            Ok(Type { kind: TypeKind::Backlink(class, field), span })
        }
        kind if kind.is_name() => {
            let class = name(inp, WANTED)?;
            if eat(inp, K::Dot) {
                let inner = name(inp, "a type name")?;
                let span = class.span.to(inner.span);
                return Ok(Type { kind: TypeKind::Qualified(class, inner), span });
            }
            let span = class.span;
            Ok(Type { kind: TypeKind::Named(class), span })
        }
        _ => fail(inp, WANTED),
    }
}

/// `??T`, and `?-> ?T`: nullability does not nest.
pub(crate) fn double_nullable<T>(inp: &mut Input<'_, '_>) -> Res<T> {
    let at = peek(inp);
    let span = span_of(inp, at);
    let diagnostic = Diagnostic::error(101, span, "expected a type, found a second `?`")
        .label("the type is nullable already")
        .note("`?T` is `T` or nil; there is no second kind of nil")
        .help("write one `?`");
    special(at, diagnostic)
}

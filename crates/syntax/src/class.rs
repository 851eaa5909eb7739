//! Classes: fields with defaults, annotations, constants, methods.

use diagnostics::Diagnostic;
use diagnostics::span::Span;

use crate::ast::{
    Annotation, AnnotationArgs, Class, Const, Default_, DefaultKind, Expr, ExprKind, Field, Fn, Literal, Name, Piece,
    TableArg, TableValue, UnOp,
};
use crate::decl::{const_decl, fn_decl, no_clause, skip_inline};
use crate::expr::expr;
use crate::literal::unescape;
use crate::state::{
    Input, Res, ahead, bump, eat, expect, fail, field_name, name, peek, rest, skip_newlines, span_of, special, text,
};
use crate::token::{K, Token};
use crate::types::ty;
use crate::words::{doctrine_error, legacy_error};

/// At `class` or `type`, after the modifiers.
pub(crate) fn class(inp: &mut Input<'_, '_>, is_pub: bool, annotations: Vec<Annotation>) -> Res<Class> {
    let word = bump(inp);
    let name = name(inp, "the name of the class")?;
    no_clause(inp)?;
    let _ = expect(inp, K::LBrace, if word.kind == K::Type { "`{` or `=`" } else { "`{`" })?;
    for annotation in annotations.iter().filter(|a| a.name.name == "gc") {
        refuse_gc(inp, annotation.span, &name.name);
    }
    let mut fields = Vec::new();
    let mut consts = Vec::new();
    let mut methods = Vec::new();
    let outer_column = inp.state().column;
    loop {
        while matches!(peek(inp).kind, K::Nl | K::Comma) {
            inp.skip();
        }
        let at = peek(inp);
        if at.kind == K::RBrace {
            let _ = bump(inp);
            let state = inp.state();
            state.column = outer_column;
            let span = state.span(word.start, at.end);
            return Ok(Class { is_pub, annotations, name, fields, consts, methods, span });
        }
        let state = inp.state();
        (state.anchor, state.head) = (at.start, at.start);
        state.column = state.column_of(at.start);
        match member(inp) {
            Ok(Member::Field(field)) => fields.push(field),
            Ok(Member::Const(value)) => consts.push(value),
            Ok(Member::Fn(method)) => methods.push(method),
            Err(failure) => {
                inp.state().column = outer_column;
                return Err(failure);
            }
        }
    }
}

enum Member {
    Field(Field),
    Const(Const),
    Fn(Fn),
}

fn member(inp: &mut Input<'_, '_>) -> Res<Member> {
    let at = peek(inp);
    let next = ahead(inp, 1);
    match at.kind {
        K::Pub => read_only_field(inp).map(Member::Field),
        K::Static if matches!(next, K::Fn | K::Const) => {
            let _ = bump(inp);
            if next == K::Fn {
                return fn_decl(inp, false, true).map(Member::Fn);
            }
            inp.parse(const_decl(false, true)).map(Member::Const)
        }
        K::Fn => fn_decl(inp, false, false).map(Member::Fn),
        K::Const => inp.parse(const_decl(false, false)).map(Member::Const),
        K::Inline => {
            skip_inline(inp, "a field, `fn`, `const` or `}`")?;
            fn_decl(inp, false, false).map(Member::Fn)
        }
        K::Service | K::Policy | K::On if next != K::Colon => {
            let span = span_of(inp, at);
            let word = String::from_utf8_lossy(text(inp, at));
            special(at, legacy_error(span, &word))
        }
        kind if kind.is_doctrine() && next != K::Colon => {
            let span = span_of(inp, at);
            let word = String::from_utf8_lossy(text(inp, at));
            special(at, doctrine_error(span, &word))
        }
        kind if kind.is_field_name() => field(inp, false, at).map(Member::Field),
        _ => fail(inp, "a field, `fn`, `const` or `}`"),
    }
}

fn read_only_field(inp: &mut Input<'_, '_>) -> Res<Field> {
    let first = bump(inp);
    let is_read = peek(inp).kind == K::LParen && ahead(inp, 1) == K::Read && ahead(inp, 2) == K::RParen;
    if !is_read {
        let at = peek(inp);
        let span = span_of(inp, at);
        let found = inp.state().describe(at);
        let diagnostic = Diagnostic::error(
            101,
            span,
            format!("expected `(read)` after `pub` in a class, found {found}"),
        )
        .label("members have no visibility of their own")
        .note("`pub(read)` makes a field assignable in the class's methods only; there is no other `pub` in a class")
        .help("write `pub(read) name: T`, or leave `pub` out");
        return special(at, diagnostic);
    }
    for _ in 0..3 {
        let _ = bump(inp);
    }
    field(inp, true, first)
}

/// A field from its name on; `first` is the first token of the member.
pub(crate) fn field(inp: &mut Input<'_, '_>, read_only: bool, first: Token) -> Res<Field> {
    let name = field_name(inp, if read_only { "the name of a field" } else { "a field or `}`" })?;
    let _ = expect(inp, K::Colon, "`:` and the field's type")?;
    let ty = ty(inp)?;
    let mut end = ty.span;
    let mut annotations = Vec::new();
    while peek(inp).kind == K::At {
        let annotation = annotation(inp)?;
        end = annotation.span;
        if annotation.name.name == "gc" {
            refuse_gc(inp, annotation.span, &name.name);
        }
        annotations.push(annotation);
    }
    let mut default = None;
    if eat(inp, K::Assign) {
        let value = expr(inp, false)?;
        end = value.span;
        default = Some(Default_ { kind: default_of(&value), span: value.span });
    }
    match peek(inp).kind {
        K::Nl | K::Comma => {
            let _ = bump(inp);
        }
        K::RBrace => {}
        K::At if default.is_some() => return late_annotation(inp),
        _ if default.is_some() => return fail(inp, "`,`, the end of the line or `}`"),
        _ => return fail(inp, "`=`, `,`, the end of the line or `}`"),
    }
    let span = span_of(inp, first).to(end);
    Ok(Field { read_only, name, ty, annotations, default, span })
}

fn late_annotation<T>(inp: &mut Input<'_, '_>) -> Res<T> {
    let at = peek(inp);
    let span = span_of(inp, at);
    let name = rest(inp).get(1).map(|t| String::from_utf8_lossy(text(inp, *t)).into_owned()).unwrap_or_default();
    let diagnostic = Diagnostic::error(101, span, format!("expected the end of the field, found annotation `@{name}`"))
        .label("an annotation after the default")
        .note("the annotations of a field stand between its type and `=`")
        .help("write `name: T @annotation = default`");
    special(at, diagnostic)
}

fn refuse_gc(inp: &mut Input<'_, '_>, span: Span, on: &Name) {
    let diagnostic = Diagnostic::error(104, span, format!("`@gc` on `{on}`"))
        .label("this annotation is refused")
        .note("whether a class is traced follows from how its objects are used")
        .help("remove it; `woc dump gc PATH` shows which classes are traced and why");
    inp.state().emit(diagnostic);
}

// ---- defaults and literals ----

/// The literal that `value` is, with a sign folded in.
pub(crate) fn literal_of(value: &Expr) -> Option<Literal> {
    match &value.kind {
        ExprKind::Int(v) => Some(Literal::Int(*v)),
        ExprKind::Float(v) => Some(Literal::Float(*v)),
        ExprKind::Bool(v) => Some(Literal::Bool(*v)),
        ExprKind::Text(pieces) => match pieces.as_slice() {
            [] => Some(Literal::Text(Vec::new())),
            [Piece::Text(text)] => Some(Literal::Text(text.clone())),
            _ => None,
        },
        ExprKind::Unary { op: UnOp::Neg, operand } => match &operand.kind {
            ExprKind::Int(v) if *v != i64::MIN => Some(Literal::Int(v.wrapping_neg())),
            ExprKind::Float(v) => Some(Literal::Float(-v)),
            _ => None,
        },
        _ => None,
    }
}

fn default_of(value: &Expr) -> DefaultKind {
    if let Some(literal) = literal_of(value) {
        return DefaultKind::Literal(literal);
    }
    match &value.kind {
        ExprKind::Nil => DefaultKind::Nil,
        ExprKind::Name(name) if name == "now" => DefaultKind::Now,
        ExprKind::Call { callee, args }
            if args.is_empty() && matches!(&callee.kind, ExprKind::Name(n) if n == "now") =>
        {
            DefaultKind::Now
        }
        ExprKind::Name(name) => DefaultKind::Const(name.clone()),
        ExprKind::EmptyMap => DefaultKind::EmptyMap,
        ExprKind::New { class, fields } if fields.is_empty() => DefaultKind::New(class.clone()),
        ExprKind::List(items) => {
            let mut defaults = Vec::with_capacity(items.len());
            for item in items {
                match default_of(item) {
                    DefaultKind::Invalid => return DefaultKind::Invalid,
                    kind => defaults.push(Default_ { kind, span: item.span }),
                }
            }
            DefaultKind::List(defaults)
        }
        _ => DefaultKind::Invalid,
    }
}

// ---- annotations ----

/// At `@`.
pub(crate) fn annotation(inp: &mut Input<'_, '_>) -> Res<Annotation> {
    let at = bump(inp);
    let name = name(inp, "the name of an annotation")?;
    let start = span_of(inp, at);
    if peek(inp).kind != K::LParen {
        let span = start.to(name.span);
        return Ok(Annotation { name, args: AnnotationArgs::None, span });
    }
    let (args, close) = if name.name == "table" {
        let (args, close) = table_args(inp)?;
        (AnnotationArgs::Table(args), close)
    } else {
        (AnnotationArgs::None, skip_balanced(inp)?)
    };
    let span = start.to(span_of(inp, close));
    Ok(Annotation { name, args, span })
}

/// From `(` to its `)`, whatever is between.
fn skip_balanced(inp: &mut Input<'_, '_>) -> Res<Token> {
    let mut depth = 0usize;
    loop {
        let token = peek(inp);
        match token.kind {
            K::LParen | K::LBracket | K::LBrace => depth += 1,
            K::RParen | K::RBracket | K::RBrace => depth = depth.saturating_sub(1),
            K::Eof => return fail(inp, "`)`"),
            _ => {}
        }
        let _ = bump(inp);
        if depth == 0 {
            return Ok(token);
        }
    }
}

fn table_args(inp: &mut Input<'_, '_>) -> Res<(Vec<TableArg>, Token)> {
    let _ = bump(inp);
    let mut args = Vec::new();
    loop {
        skip_newlines(inp);
        if peek(inp).kind == K::RParen {
            return Ok((args, bump(inp)));
        }
        let key = field_name(inp, "an argument of `@table` or `)`")?;
        let _ = expect(inp, K::Colon, "`:` and the argument's value")?;
        let (value, end) = table_value(inp)?;
        let span = key.span.to(end);
        args.push(TableArg { key, value, span });
        skip_newlines(inp);
        if !eat(inp, K::Comma) && peek(inp).kind != K::RParen {
            return fail(inp, "`,` or `)`");
        }
    }
}

/// A text, a word, or a list of names; other values are kept as `Other` for the checker to refuse.
fn table_value(inp: &mut Input<'_, '_>) -> Res<(TableValue, Span)> {
    let token = peek(inp);
    let span = span_of(inp, token);
    match token.kind {
        K::Str => {
            let literal = text(inp, token);
            let _ = bump(inp);
            let content = literal.get(1..literal.len().saturating_sub(1)).unwrap_or_default();
            Ok((TableValue::Text(unescape(content)), span))
        }
        K::LBracket => {
            if let Some((names, close)) = name_list(inp) {
                return Ok((TableValue::Names(names), span.to(close)));
            }
            let close = skip_balanced(inp)?;
            Ok((TableValue::Other, span.to(span_of(inp, close))))
        }
        K::True | K::False => {
            let _ = bump(inp);
            let word = if token.kind == K::True { "true" } else { "false" };
            Ok((TableValue::Word(Name::new_static(word)), span))
        }
        kind if kind.is_name() && matches!(ahead(inp, 1), K::Comma | K::RParen | K::Nl) => {
            let word = name(inp, "a word")?;
            Ok((TableValue::Word(word.name), word.span))
        }
        _ => {
            let value = expr(inp, false)?;
            Ok((TableValue::Other, value.span))
        }
    }
}

/// `[a, b]` of names only; nothing is consumed otherwise.
fn name_list(inp: &mut Input<'_, '_>) -> Option<(Vec<crate::ast::Ident>, Span)> {
    let tokens = rest(inp);
    let mut count = 1;
    loop {
        match (tokens.get(count)?.kind, count % 2) {
            (K::RBracket, _) => break,
            (kind, 1) if kind.is_field_name() => {}
            (K::Comma, 0) => {}
            _ => return None,
        }
        count += 1;
    }
    let _ = bump(inp);
    let mut names = Vec::new();
    while peek(inp).kind != K::RBracket {
        if let Ok(ident) = field_name(inp, "a column") {
            names.push(ident);
        } else {
            let _ = bump(inp);
        }
    }
    let close = bump(inp);
    Some((names, span_of(inp, close)))
}
